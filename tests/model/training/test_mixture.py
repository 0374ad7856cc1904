"""Pairs for what people type: what is left out of them, how a source is typed, and what must be copied."""

import random
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.checkpoints.store import DEFAULT_CHECKPOINT
from model.commands import mixture
from model.training.data import read_pairs
from tests.model.strategies import few
from tests.model.tiny import SENTENCES

FOLDER = Path(__file__).parents[3] / "checkpoints" / DEFAULT_CHECKPOINT
LISTS = [FOLDER / "first-inputs.tsv", FOLDER / "first-inputs-held-out.tsv"]
PLACES = [
    ("I met Anna in Berlin.", "Ich traf Anna in Berlin."),
    ("We saw Anna in 1990.", "Wir sahen Anna 1990."),
    ("He saw Mary there.", "Er sah dort Maria."),
    ("They like Mary.", "Sie mögen Mary."),
    ("She left Berlin in 2004.", "Sie verließ Berlin 2004."),
]


@pytest.fixture
def prepare(tmp_path):
    """A function of training pairs and forbidden ones that gives the mixture's pairs by the name of their file."""

    def run(pairs, forbidden, *options):
        for name, lines in (("own", pairs), ("list", forbidden)):
            text = "".join(f"{source}\t{target}\n" for source, target in lines)
            (tmp_path / f"{name}.en-de.tsv").write_text(text, encoding="utf-8")
        train, without, out = tmp_path / "own.en-de.tsv", tmp_path / "list.en-de.tsv", tmp_path / "out"
        fixed = [f"--train={train}", f"--without={without}", f"--hold-out={train}", f"--out={out}"]
        mixture.main([*fixed, "--n-copies=200", *options])
        return {path.stem: read_pairs([path]) for path in out.iterdir()}

    return run


def test_no_input_of_the_lists_and_no_held_out_source_is_in_any_file(prepare):
    forbidden = [("its raining", "Es regnet"), ("hello", "Hallo"), ("asdf", "asdf"), ("anna", "Anna")]
    variants = [
        ("It's  raining!", "Es regnet!"),
        ("HELLO...", "Hallo ..."),
        ("Asdf", "Asdf"),
        ("It rains.", "Es regnet."),
    ]
    files = prepare([*SENTENCES, *PLACES, *variants], forbidden, "--n-held-out=2")
    held_out = files.pop("held-out")
    assert len(held_out) == 2
    keys = {mixture.fold(source) for source, _ in [*forbidden, *held_out]}
    assert {"own", "own-typed", "copies"} <= files.keys()
    for pairs in files.values():
        assert not keys & {mixture.fold(source) for source, _ in pairs}
    kept = {mixture.fold(source) for source, _ in files["own"]}
    assert kept | keys >= {mixture.fold(source) for source, _ in [*SENTENCES, *PLACES, ("It rains.", "")]}


@pytest.mark.parametrize("name", ["own-subject.tsv", "short-phrases.tsv"])
def test_the_pairs_written_for_training_are_no_inputs_of_the_lists(name):
    own, inputs = read_pairs([FOLDER / name]), read_pairs(LISTS)
    assert len({source for source, _ in own}) == len(own) >= 300
    assert not {mixture.fold(source) for source, _ in own} & {mixture.fold(source) for source, _ in inputs}


def test_which_pairs_are_held_out_does_not_depend_on_their_order_or_on_new_ones():
    pairs = [(f"Sentence {number}.", f"Satz {number}.") for number in range(300)]
    held_out = mixture.hold_out(pairs, 100)
    assert mixture.hold_out(pairs[::-1], 100) == held_out
    assert len(set(mixture.hold_out([*pairs, ("New.", "Neu.")], 100)) & set(held_out)) >= 99
    assert len(mixture.hold_out([*pairs, ("sentence 0", "Satz 0")], 301)) == 300  # one source, twice


@few
@given(st.sampled_from(SENTENCES), st.integers(0, 10**6))
def test_typing_changes_capitals_and_marks_of_the_source_and_no_letter(pair, seed):
    typed = mixture.as_typed(pair, random.Random(seed))
    if typed is None:
        return
    assert typed != pair
    assert mixture.fold(typed[0]) == mixture.fold(pair[0])
    assert typed[1] in (pair[1], pair[1][:-1])
    assert (typed[1] == pair[1]) == (typed[0][-1] == pair[0][-1])  # both lose the mark at their end, or neither


def test_people_type_in_every_way_that_the_card_names():
    pair = ("Well, don't you know, Tom?", "Weißt du es denn nicht, Tom?")
    rng = random.Random(0)
    typed = {each for _ in range(500) if (each := mixture.as_typed(pair, rng))}
    assert ("well dont you know tom", "Weißt du es denn nicht, Tom") in typed
    assert ("well, don't you know, tom?", pair[1]) in typed
    assert ("Well, Don't You Know, Tom", pair[1][:-1]) in typed
    assert ("WELL, DONT YOU KNOW, TOM", pair[1][:-1]) in typed
    assert mixture.as_typed(("dog", "Hund"), random.Random(3)) is None


def test_names_and_numbers_change_on_both_sides_of_a_sentence_and_all_other_copies_are_copies():
    made = mixture.copies([pair for pair in PLACES if "Maria" not in pair[1]], 2000, random.Random(1))
    sentences = [(source, target) for source, target in made if source.endswith(".")]
    assert 400 < len(sentences) < 800
    assert not set(sentences) <= set(PLACES)
    for source, target in sentences:
        exchanged = re.findall(r"[A-Z][a-z]+|\d+", source.split(maxsplit=1)[1])
        assert all(re.search(rf"\b{word}\b", target) for word in exchanged)
    alone = [(source, target) for source, target in made if not source.endswith(".")]
    assert all(target == source.replace(".", ",") for source, target in alone)
    assert {"Anna", "Berlin"} <= {source for source, _ in alone}


def test_a_name_that_has_a_german_form_is_not_copied():
    assert "Mary" not in {source for source, _ in mixture.copies(PLACES, 2000, random.Random(1))}


def test_the_seed_decides_and_another_makes_other_copies():
    first, again, other = (mixture.copies(PLACES, 50, random.Random(seed)) for seed in (1, 1, 2))
    assert first == again != other


@pytest.mark.parametrize("source", ["Hello there!", "good night, Mom", "Thanks a lot.", "How are your parents?"])
def test_a_greeting_is_short_and_begins_as_greetings_do(source):
    assert mixture.is_greeting(source)


@pytest.mark.parametrize("source", ["Hills are high.", "Goodness!", "Byte", "Hello, I have never seen such a thing."])
def test_a_long_sentence_and_one_that_begins_with_a_longer_word_are_no_greetings(source):
    assert not mixture.is_greeting(source)
