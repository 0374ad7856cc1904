"""What a person typed, or a checkpoint holds, is text on every page: never Markdown, never HTML, never a template."""

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from tests.injection import LANGUAGE_MODEL, MARKDOWN, MASKED_MODEL, TRANSLATOR, TYPED, tokens_as_text
from viz.forms import Document

pytestmark = pytest.mark.usefixtures("open_feet")

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
    r"(?<!\\)(\*[zt]\d*\*|\*3\*(?!\*)|!\[[zx]|\$z\d|\$x\^|<b>|`[zc]|:red\[[zx]|:smile:|\[[zl]\d*\]\(|[za]\||~~[zs]|&amp;|\b_z\d|<!--|"
    r"<img|:material/home:)"
)
HTML_LEFT = re.compile(r"<b>z|<b>b<|<!-- ?[zc]|<img")
TEMPLATE_LEFT = re.compile(r"%\{x\}\d")


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


@pytest.mark.parametrize("checkpoint", [LANGUAGE_MODEL, MASKED_MODEL])
@pytest.mark.parametrize("page", ["continue_text", "fill_in", "tokens_and_embeddings", "decoding", "translate"])
def test_no_token_or_name_of_a_checkpoint_acts_in_the_pages_of_the_other_families(
    page: str, checkpoint: str, open_hostile: Callable
) -> None:
    """Of a translator: on every tab, at the ends of its controls, in tests/pages/test_extremes.py."""
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
