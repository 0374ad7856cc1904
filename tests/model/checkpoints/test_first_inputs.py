"""What people type first: the two lists of en-de, and when a translation is accepted."""

import unicodedata
from itertools import combinations
from pathlib import Path

import pytest

from model import evaluate
from model.checkpoints.store import DEFAULT_CHECKPOINT
from model.checkpoints.translator import Translator
from model.evaluate import is_accepted
from model.training.data import read_pairs

FOLDER = Path(__file__).parents[3] / "checkpoints" / DEFAULT_CHECKPOINT
LISTS = {"first-inputs.tsv": 200, "first-inputs-held-out.tsv": 100}
PAIRS = {name: read_pairs([FOLDER / name]) for name in LISTS}


@pytest.mark.parametrize("name", LISTS)
def test_a_list_has_each_input_once_and_is_as_long_as_the_card_says(name):
    assert len(PAIRS[name]) == len({source for source, _ in PAIRS[name]}) == LISTS[name]


def test_the_answers_to_an_input_are_clean_and_differ_in_more_than_the_comparison_allows():
    for source, answers in (pair for pairs in PAIRS.values() for pair in pairs):
        each = answers.split(" | ")
        for answer in each:
            assert answer, source
            assert answer == " ".join(unicodedata.normalize("NFC", answer).split()), source
            assert not set(answer) & set('|/{}<>"'), source
            assert answer.endswith(evaluate.ENDS) == source.endswith(evaluate.ENDS), source
        assert not [pair for pair in combinations(each, 2) if is_accepted(source, pair[1], pair[:1])], source


@pytest.mark.parametrize(
    ("source", "answer", "translation", "accepted"),
    [
        ("what time is it", "Wie spät ist es", "Wie spät ist es?", True),
        ("what time is it", "Wie spät ist es", "Wie spät ist es", True),
        ("what time is it", "Wie spät ist es", "wie spät ist es", False),
        ("What time is it?", "Wie spät ist es?", "Wie spät ist es.", False),
        ("What time is it?", "Wie spät ist es?", "Wie spät ist es", False),
        ("red", "rot", "Rot", True),
        ("dog", "Hund", "hund", False),
        ("dog", "Hund", "Hunde", False),
        ("hello world", "Hallo, Welt", "Hallo, Welt!", True),
        ("hello world", "Hallo, Welt", "Hallo, Welt!!", False),
        ("hello world", "Hallo, Welt", "Hallo  Welt", False),
        ("asdf", "asdf", "", False),
    ],
)
def test_only_a_first_capital_and_the_mark_that_the_source_lacks_are_free(source, answer, translation, accepted):
    assert is_accepted(source, translation, ["etwas anderes", answer]) is accepted


@pytest.mark.usefixtures("checkpoint_folder")
def test_what_is_not_accepted_is_printed_above_the_share_that_is(tmp_path, capsys, monkeypatch):
    path = tmp_path / "answers.tsv"
    path.write_text("hello\tHallo | Guten Tag\ndog\tHund\ncat\tKatze | Kater\n", encoding="utf-8")
    monkeypatch.setattr(Translator, "translate", lambda *_: ["Guten Tag!", "Heu", "Kater"])
    evaluate.main([f"--data={path}", "--answers", "--device=cpu"])
    assert capsys.readouterr().out.splitlines() == ["dog -> Heu", "accepted = 0.6667 2 of 3"]
