"""Figures of the home page: their numbers are their input, their labels cannot become markup."""

import html
import re
from dataclasses import dataclass

import numpy as np
import pytest

from viz.candidates import alternatives
from viz.html import chips, continued, translated
from viz.special.translate import certainty_bars, rank_candidates
from viz.theme import DECODER, FAINT_DECODER
from viz.tokens import decoder_names, decoder_rows, labels

MARKUP = "\u2581<b>x</b>"


@dataclass
class Candidate:
    token: str
    id: int
    probability: float


def test_certainty_shows_each_probability_and_emphasises_one() -> None:
    bars = certainty_bars([MARKUP, "</s>"], np.array([0.25, 1.0]), chosen=1).draw().data[0]
    assert list(bars.y) == [0.25, 1.0]
    assert list(bars.marker.color) == [FAINT_DECODER, DECODER]
    assert "<b>" not in str(bars.customdata[0])


def test_runners_up_state_the_rest_of_the_vocabulary() -> None:
    figure = alternatives([MARKUP, "\u2581b"], np.array([0.6, 0.3]), written=1, vocabulary=1000).draw()
    assert list(figure.data[0].x) == [0.6, 0.3, pytest.approx(0.1)]
    assert figure.layout.yaxis.ticktext == ("&lt;b&gt;x&lt;/b&gt;", "<b>b</b>", "all 998 others")


def test_ranking_adds_what_was_written_where_it_is_not_among_the_best() -> None:
    best = [Candidate("a", 5, 0.6), Candidate("b", 6, 0.2)]
    assert rank_candidates(best, ("b", 6, 0.2))[2] == 1
    names, probabilities, written = rank_candidates(best, ("c", 9, 0.01))
    assert (names, list(probabilities), written) == (["a", "b", "c"], [0.6, 0.2, 0.01], 2)


def test_every_token_has_one_notation() -> None:
    pieces = ["\u2581Ein", "t", "\u2581", ".", "<0xF0>", "</s>"]
    assert labels(pieces) == ["Ein", "-t", "\u2423", ".", "<0xF0>", "</s>"]
    shown = chips("Tokens", pieces, range(6), "#123456")
    assert re.findall("<bdi>(.*?)</bdi>", shown) == [html.escape(label) for label in labels(pieces)]
    (row,) = decoder_rows(pieces[:1], pieces[1:2])
    assert row == "Ein → -t"
    assert decoder_names(labels(pieces[:1]), labels(pieces[1:2])) == [row]
    assert decoder_rows(["▁Tier"], ["."]) == ["Tier → “.”"], "punctuation is not read as that of the name"


def test_chips_are_never_live_markup() -> None:
    text = chips("Source <i>", [MARKUP, "\u2581", "<0x0A>", "\u202e"], [7, 8, 9, 10], "#123456", [0.5, 0.25, 0.1, 0.15])
    assert "<b>" not in text
    assert "<i>" not in text
    assert "\u202e" not in text
    assert "&lt;b&gt;x&lt;/b&gt;" in text
    assert all(f">{n}</small>" in text for n in (7, 8, 9, 10))
    assert "50.0%" in text
    assert "<script>" not in translated("<script>alert(1)</script>")


def plain(body: str) -> str:
    return html.unescape(re.sub("<style>.*?</style>|<[^>]*>", "", body, flags=re.DOTALL))


def words_to_press(body: str) -> dict[int, str]:
    """Row -> the word whose click chooses it."""
    found = re.findall(r'<button data-kind="cross" data-query="(\d+)">(.*?)</button>', body)
    return {int(row): html.unescape(word) for row, word in found}


@pytest.mark.parametrize(
    ("text", "tokens", "rows"),
    [
        ("Der Hund.", ("▁Der", "▁Hund", ".", "</s>"), {0: "Der", 1: "Hund", 2: "."}),
        ("<b> & so", ("▁<b>", "▁&", "▁so"), {0: "<b>", 1: "&", 2: "so"}),
        ("Ein T-Rex", ("<s>", "▁Ein", "▁T", "-", "Rex"), {1: "Ein", 2: "T", 3: "-", 4: "Rex"}),
        ("Der Hund.", ("▁Hund", "."), {0: "Hund", 1: "."}),
        ("🦖 da", ("▁", "<0xF0>", "<0x9F>", "▁da"), {3: "da"}),
        ("a 🦖 da", ("▁a", "▁", "<0xF0>", "<0x9F>", "▁da"), {}),
        ("Der Hund.", (), {}),
    ],
)
def test_a_sentence_stays_as_it_is_and_each_of_its_tokens_can_be_pressed_where_they_add_up_to_it(
    text: str, tokens: tuple[str, ...], rows: dict[int, str]
) -> None:
    body = translated(text, "a dog", tokens, "cross")
    assert plain(body) == f"a dog{text}"
    assert words_to_press(body) == rows
    for given in (text[:4], ""):
        body = continued(given, text.removeprefix(given), tokens, "cross")
        assert plain(body) == text
        assert words_to_press(body) == rows
        before = [plain(one) for one in re.findall(r'<span class="given">(.*?)</span>', body)]
        assert "".join(before).startswith(given)
