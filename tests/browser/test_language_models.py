"""Language models in Chromium: a long text is zoomed into, and a chat takes a reply and lines of earlier turns."""

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

import numpy as np
import pytest

from model.analysis.long.long_run import long_run, weights
from model.checkpoints.store import CHECKPOINTS_VARIABLE, MODELS_VARIABLE, load_checkpoint
from tests.browser.conftest import Visitor, query, serve
from tests.pages.test_long_text import TEXT, folder  # noqa: F401 - a fixture

pytest.importorskip("transformers")

PICTURE = "div.long_map"


@pytest.fixture(scope="module")
def chat_model(tmp_path_factory: pytest.TempPathFactory) -> str:
    from tests.model.checkpoints.huggingface.folders import save_chat_model

    return str(save_chat_model(tmp_path_factory.mktemp("models") / "chat"))


@pytest.fixture(scope="module")
def server(folder: Path, chat_model: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:  # noqa: F811
    """That has a language model of ours and a Hugging Face model that chats."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(MODELS_VARIABLE, chat_model)
        with serve(folder, tmp_path_factory.mktemp("server") / "log.txt") as address:
            yield address


def test_a_long_text_is_zoomed_into_and_a_query_chosen(
    server: str,
    visitor: Visitor,
    folder: Path,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(CHECKPOINTS_VARIABLE, str(folder))
    run = long_run(load_checkpoint("lm", "cpu"), TEXT)
    asked = {"checkpoint": "lm", "source": TEXT, "efficient": "Long text", "layer": "1", "head": "2"}
    visitor.visit(f"{server}/efficient_attention?{urlencode(asked)}")
    picture = visitor.page.locator(PICTURE)
    marks = picture.locator("canvas.marks")
    marks.scroll_into_view_if_needed()
    assert picture.get_attribute("data-looks") == "1"
    plane = picture.locator(".layers canvas").first
    before = plane.evaluate("canvas => canvas.toDataURL()")
    for _ in range(3):
        picture.get_by_role("button", name="Zoom in").click()
    assert plane.evaluate("canvas => canvas.toDataURL()") != before
    visitor.page.wait_for_function("node => node.dataset.looks === '2'", arg=picture.element_handle())
    marks.focus()
    visitor.page.keyboard.press("Enter")
    visitor.page.wait_for_function("node => node.dataset.row", arg=picture.element_handle())
    row = int(picture.get_attribute("data-row"))
    assert abs(row - len(run) // 2) <= 1
    visitor.settle()
    shown = picture.evaluate("node => [...node.exact]")
    expected = weights(run, ("decoder_self", 1), slice(2, 3), (row, row + 1))[0, 0]
    np.testing.assert_allclose(shown, expected, rtol=1e-3, atol=1e-6)
    visitor.page.keyboard.press("0")
    assert plane.evaluate("canvas => canvas.toDataURL()") != before  # the detail stays over the whole


def test_enter_sends_a_reply_and_begins_a_line_of_earlier_turns(server: str, visitor: Visitor, chat_model: str) -> None:
    asked = {"checkpoint": chat_model, "chat": "true", "turns": "System: Go.", "source": "Hello!", "new_tokens": "3"}
    visitor.visit(f"{server}/continue_text?{urlencode(asked)}")
    reply = visitor.page.get_by_test_id("stChatInputTextArea")
    reply.fill("And you?")
    reply.press("Enter")
    visitor.page.get_by_role("list", name="The chat").get_by_text("And you?").wait_for()
    visitor.settle()
    assert query(visitor)["source"] == "And you?"
    assert query(visitor)["turns"].startswith("System: Go.\nUser: Hello!\nAssistant: ")
    turns = visitor.page.get_by_role("textbox", name="What was said before")
    turns.fill("System: Go.")
    turns.press("Enter")
    turns.press_sequentially("User: Hi")
    assert turns.input_value() == "System: Go.\nUser: Hi"
