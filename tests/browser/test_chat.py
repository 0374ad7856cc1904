"""A chat with a model of others: Enter sends a reply, and begins a line among the earlier turns."""

from pathlib import Path
from urllib.parse import urlencode

import pytest

from model.checkpoints.store import MODELS_VARIABLE
from tests.browser.conftest import Visitor, query, serve

pytest.importorskip("transformers")


def test_enter_sends_a_reply_and_begins_a_line_of_earlier_turns(
    visitor: Visitor, saved_checkpoints: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tests.model.checkpoints.huggingface.folders import save_chat_model

    checkpoint = str(save_chat_model(tmp_path / "chat"))
    monkeypatch.setenv(MODELS_VARIABLE, checkpoint)
    asked = {"checkpoint": checkpoint, "chat": "true", "turns": "System: Go.", "source": "Hello!", "new_tokens": "3"}
    with serve(saved_checkpoints, tmp_path / "log.txt") as address:
        visitor.visit(f"{address}/continue_text?{urlencode(asked)}")
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
        visitor.page.goto("about:blank")
