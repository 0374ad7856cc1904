"""Pieces as they are written on screen."""

import html
import re

import pytest

from viz.tokens import MOST_ROOM, as_markdown, as_plotly, labels, text_width


def test_pieces_that_continue_a_word_have_a_hyphen_and_tokens_with_a_name_have_none() -> None:
    pieces = ["\u2581play", "ing", ".", "<s>", "[CLS]", "<|endoftext|>", "<0xF0><0x9F>", "[cls]"]
    assert labels(pieces) == ["play", "-ing", ".", "<s>", "[CLS]", "<|endoftext|>", "<0xF0><0x9F>", "-[cls]"]
    others = ["<extra_id_0>", "<start_of_turn>", "<image>", "__de__", "de_DE", "deu_Latn"]
    assert labels(others) == others


def test_room_for_labels_grows_with_the_widest_and_has_a_limit() -> None:
    assert text_width(["i", "cat"]) < text_width(["cats"]) < text_width(["CATS"]) < text_width(["猫猫猫猫"])
    assert text_width(["cats"], size=24) == pytest.approx(2 * text_width(["cats"]), abs=1)
    assert text_width(["a" * 500]) == MOST_ROOM
    assert text_width([]) == 0


@pytest.mark.parametrize(
    "text",
    [
        "5*3*2 $x^2$ :red[x] <b> &amp; `c` a|b ~~s~~ [l](m) ![i](j)",
        "# h",
        "- i",
        "1. one",
        ":smile: -> -- >= http://a.b www.a.b a@b.c",
        ":material/home:",
    ],
)
def test_markdown_of_a_text_has_backslashes_before_markup_and_nothing_else_added(text: str) -> None:
    """tests/browser/test_injection.py sees that Streamlit shows exactly the text."""
    markdown = as_markdown(text)
    assert markdown != text
    assert re.sub(r"\\(\W)", r"\1", markdown.replace(":small[]", "")) == text


@pytest.mark.parametrize(
    "text", ["Encoder self-attention", "openai-community/gpt2", "It's 3.5 %, isn't it? (Yes)", "-"]
)
def test_an_ordinary_text_stays_readable_as_markdown(text: str) -> None:
    assert as_markdown(text).lstrip("\\") == text


def test_a_text_of_several_lines_becomes_one_line_of_markdown() -> None:
    assert as_markdown("a\n\n    b\tc\r\n") == "a b c "


def test_a_text_for_plotly_is_no_html_and_no_template_and_keeps_its_quotation_marks() -> None:
    text = '<b>"it\'s"</b> &amp; %{x} 3.5 % {y}'
    shown = as_plotly(text)
    assert not set(shown) & set("<>")
    assert "%{" not in shown
    assert html.unescape(shown) == text
    assert set(re.findall("&(.*?);", shown)) <= {"lt", "gt", "amp", "#37"}, "the entities that Plotly knows"
