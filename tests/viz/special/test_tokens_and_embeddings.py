"""Equations and pieces show the run's own numbers (claims 11 and 18)."""

import html
import re

import numpy as np
import pytest

from model.analysis.stream.vocabulary import spell
from model.checkpoints.translator import Translator
from model.trace import Trace
from viz.html import coverage_note, piece_boxes, piece_table
from viz.special.tokens_and_embeddings import equation_number, sum_equation

SENTENCE = "A dog 🦖 runs <b>."


@pytest.fixture(scope="module")
def trace(translator: Translator) -> Trace:
    return translator.trace(SENTENCE)


def test_the_equation_holds_the_numbers_of_the_cell() -> None:
    numbers = {"weight": -0.125, "scale": 16.0, "positional": 1e-07, "embedding": -2.0, "sum": -1.9999999}
    latex = sum_equation(numbers, 306, 4, 9, 256)
    assert r"E_{306,\,9}\cdot\sqrt{256}" in latex
    assert r"PE_{4,\,9}" in latex
    assert r"(-0.125) \cdot 16 + (1 \cdot 10^{-7})" in latex
    assert r"\mathbf{-2}" in latex
    assert latex.count("{") == latex.count("}")


@pytest.mark.parametrize("value", [0.0, 1.0, -3.25, 1e-9, -2.5e12, 0.12345678])
def test_a_number_keeps_the_digits_of_single_precision(value: float) -> None:
    text = equation_number(np.float32(value)).strip("()")
    mantissa, _, exponent = text.partition(r" \cdot 10^{")
    assert float(f"{mantissa}e{exponent.rstrip('}') or 0}") == pytest.approx(np.float32(value), rel=1e-6)


def test_boxes_hold_every_id_and_no_live_markup(translator: Translator, trace: Trace) -> None:
    pieces = spell(translator.tokenizer, trace.src_ids)
    drawn = piece_boxes("<i>", pieces, "#56B4E9", 3)
    assert [int(i) for i in re.findall(r"<small>id (\d+)</small>", drawn)] == list(trace.src_ids)
    assert drawn.count("together 🦖 U+1F996") == 1
    assert drawn.count(" chosen") == 1
    assert "&lt;i&gt;" in drawn
    assert "<b>" not in drawn
    assert "<i>" not in drawn
    assert html.escape(coverage_note(pieces)) in drawn
    assert drawn.count("<span") == drawn.count("</span")


def test_the_note_names_each_character_that_has_no_piece(translator: Translator) -> None:
    def said(text: str) -> str:
        return coverage_note(spell(translator.tokenizer, translator.tokenizer.encode(text)))

    assert said("A dog") == "No unknown characters: the vocabulary has pieces for all of them."
    assert (
        said("🦖 漢 🦖")
        == "Spelled as UTF-8 bytes, because the vocabulary has no piece for them: 🦖 U+1F996, 漢 U+6F22."
    )
    assert "U+202E" in said("\u202e")
    assert "\u202e" not in said("\u202e")
    assert coverage_note(spell(translator.tokenizer, [1])).endswith("only sees as <unk>: 1.")
    assert coverage_note(spell(translator.tokenizer, [4 + 0xF0])) == "Bytes that do not form a character: 1."


def test_the_table_has_the_bytes_of_each_piece(translator: Translator, trace: Trace) -> None:
    table = piece_table(spell(translator.tokenizer, trace.src_ids))
    assert list(table["id"]) == list(trace.src_ids)
    assert bytes.fromhex("".join(table["UTF-8 bytes"])).decode() == f" {SENTENCE}"
    emoji = table[table["code points"] == "U+1F996"]
    assert list(emoji["UTF-8 bytes"]) == ["F0", "9F", "A6", "96"]
    assert set(emoji["kind"]) == {"byte"}
    assert table.iloc[-1]["stands for"] == "special token"
