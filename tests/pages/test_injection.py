"""What a person typed, or a checkpoint holds, is text on every page: never Markdown, never HTML, never a template."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from model.checkpoints.store import CHECKPOINTS_VARIABLE
from pages import Page
from tests.injection import LANGUAGE_MODEL, MARKDOWN, MASKED_MODEL, TRANSLATOR, TYPED, save_checkpoints, tokens_as_text
from tests.pages.figures import tabs_of
from tests.pages.test_pages import EVERY_PAGE
from viz.forms import Document

PLAIN = {
    "Text.body",
    "Code.code_text",
    "TextArea.default",
    "TextArea.value",
    "TextInput.default",
    "TextInput.value",
    "Selectbox.options",
    "Selectbox.raw_value",
    "MultiSelect.options",
    "Dataframe.columns",
    "DownloadButton.url",
    "LinkButton.url",
    "PageLink.query_string",
}
"""what Streamlit shows as it is, or does not show; every other string is taken for Markdown"""
NOT_SHOWN = (".id", "key", "element_id", "form_id")
MARKDOWN_LEFT = re.compile(
    r"(?<!\\)(\*[zt]\d*\*|\*3\*|!\[[zx]|\$z\d|\$x\^|<b>|`[zc]|:red\[[zx]|:smile:|\[[zl]\d*\]\(|[za]\||~~[zs]|&amp;|\b_z\d|<!--|"
    r"<img|:material/home:)"
)
HTML_LEFT = re.compile(r"<b>z|<b>b<|<!-- ?[zc]|<img")
TEMPLATE_LEFT = re.compile(r"%\{x\}\d")


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_checkpoints(tmp_path_factory.mktemp("hostile") / "checkpoints")


@pytest.fixture
def open_hostile(open_app: Callable, hostile: Path, monkeypatch: pytest.MonkeyPatch) -> Callable:
    monkeypatch.setenv(CHECKPOINTS_VARIABLE, str(hostile))
    return open_app


def strings(message: Message) -> Iterator[tuple[str, str]]:
    """Every string in the message, with "Message.field"."""
    for field, value in message.ListFields():
        for one in value if field.is_repeated else [value]:
            if field.type == FieldDescriptor.TYPE_MESSAGE and isinstance(one, Message):
                yield from strings(one)
            elif field.type == FieldDescriptor.TYPE_STRING and isinstance(one, str):
                yield f"{message.DESCRIPTOR.name}.{field.name}", one


def live(name: str, text: str) -> str:
    """The markup in a string of the page that would act; empty if there is none."""
    if name in PLAIN or name.endswith(NOT_SHOWN) or name.startswith(("Bidi", "ArrowData")):
        return ""
    if name.startswith("PlotlyChart"):
        found = HTML_LEFT.search(text) if name.endswith("spec") else None
        templates = re.findall(r'"(?:hover|text)template":"((?:[^"\\\\]|\\\\.)*)"', text)
        found = found or next(filter(None, map(TEMPLATE_LEFT.search, templates)), None)
    else:
        found = (HTML_LEFT if name.startswith("Html.") else MARKDOWN_LEFT).search(text)
    return f"{name}: {text[max(found.start() - 60, 0) : found.end() + 40]}" if found else ""


def acting(app: Any) -> list[str]:
    """The markup on the page that would act; a checkpoint's README is Markdown, but shows no picture."""
    messages = (node.proto for node in app._tree if isinstance(getattr(node, "proto", None), Message))
    texts = [pair for message in messages for pair in strings(message) if pair[1] != Document(MARKDOWN).calm.strip()]
    return [one for name, text in texts if (one := live(name, text))]


@pytest.mark.parametrize("page", EVERY_PAGE, ids=lambda page: page.name)
def test_nothing_typed_and_no_token_or_name_of_a_checkpoint_acts_on_any_tab(page: Page, open_hostile: Callable) -> None:
    source, typed = tokens_as_text(20), f"{TYPED} {tokens_as_text(8)}"
    query = {"checkpoint": TRANSLATOR, "source": source, "target": "Typed", "typed": typed, "side_sentence": typed}
    app = open_hostile(page.path, **query)
    assert acting(app) == []
    key, names = tabs_of(app)
    first = page.first_tab or names[0]
    for name in (name for name in names if name != first):
        app = open_hostile(page.path, **query, **{key: name})
        assert acting(app) == [], name


@pytest.mark.parametrize("checkpoint", [LANGUAGE_MODEL, MASKED_MODEL])
@pytest.mark.parametrize("page", ["continue_text", "fill_in", "tokens_and_embeddings", "decoding", "translate"])
def test_nor_in_the_pages_of_the_other_families(page: str, checkpoint: str, open_hostile: Callable) -> None:
    source = f"<mask> {tokens_as_text(17)} <mask>" if checkpoint == MASKED_MODEL else tokens_as_text(17)
    app = open_hostile(f"pages/{page}.py", checkpoint=checkpoint, source=source, new_tokens="3")
    assert acting(app) == []


@pytest.mark.parametrize("parameter", ["checkpoint", "layer", "kind", "tau", "alignment", "changes", "course", "part"])
def test_what_a_forged_link_asks_for_is_quoted_as_text(parameter: str, open_hostile: Callable) -> None:
    app = open_hostile("pages/what_if.py", **{"checkpoint": TRANSLATOR, parameter: TYPED})
    assert acting(app) == []


def test_a_readme_shows_no_picture_whatever_its_code_looks_like() -> None:
    assert "![" in MARKDOWN
    assert "![" not in Document(MARKDOWN).calm
    assert "\n[z](http" in Document(MARKDOWN).calm, "outside of code a picture is a link"


def test_the_search_for_markup_sees_each_kind() -> None:
    for text in ("5*3*2", "$x^2$", "![x](y)", ":red[x]", ":smile:", "<b>", "`c`", "[l](y)", "a|b", "~~s~~", "&amp;"):
        assert live("Markdown.body", text), text
    assert live("PlotlyChart.spec", '{"hovertemplate":"of %{x}3"}')
    assert live("Html.body", "<p><b>z1</b>")
