"""A copy of a translator learns one correction, says what it takes, and forgets it bit for bit."""

from dataclasses import replace
from pathlib import Path

import pytest

from model import correction
from model.checkpoints.checkpoint import parameters_hash
from model.checkpoints.store import DEFAULT_CHECKPOINT
from model.checkpoints.tokenizer import Tokenizer
from model.correction import Correction, bytes_of_copy, measure_moves, score_held_out, with_own_hash
from model.training.data import read_pairs

SOURCE, WANTED = "a dog", "zwei Hunde"
HELD_OUT = Path(__file__).parents[2] / "checkpoints" / DEFAULT_CHECKPOINT / correction.HELD_OUT_FILE


@pytest.fixture
def learning(translator, monkeypatch) -> Correction:
    monkeypatch.setattr(correction, "RATE", 3e-3)  # as so small a model needs it
    return Correction(translator, SOURCE, WANTED)


def learn(learning: Correction, past: bool = False) -> None:
    while not learning.learned:
        list(learning.go_on(1.0, past))


def test_a_correction_is_learned_and_undone_bit_for_bit_and_the_shared_model_stays(translator, learning) -> None:
    shared = parameters_hash(translator.model)
    assert learning.now().hash == shared
    assert learning.now().translate([SOURCE], beam_size=1) != [WANTED]
    learn(learning)
    learned = learning.now()
    assert learning.step > 0
    assert len(learning.losses) == learning.step + 1
    assert learning.losses[-1] < learning.losses[0]
    assert learned.translate([SOURCE], beam_size=1) == [WANTED]
    assert learned.hash != shared
    steps, losses = learning.step, learning.losses[:]
    learning.undo()
    assert learning.now().hash == shared == parameters_hash(translator.model)
    assert (learning.step, learning.losses) == (0, losses[:1])
    assert not any(weights.grad is not None or weights.requires_grad for weights in translator.model.parameters())
    learn(learning)
    assert (learning.step, learning.losses) == (steps, losses)
    assert learning.now().hash == learned.hash != shared == parameters_hash(translator.model)


def test_it_stops_where_it_writes_the_correction_unless_it_has_to_go_on(learning) -> None:
    learn(learning)
    step, loss = learning.step, learning.losses[-1]
    assert list(learning.go_on(1.0)) == []
    assert learning.step == step
    assert len(list(learning.go_on(0.0, past=True))) == 0
    list(learning.go_on(1e-9, past=True))
    assert learning.step == step + 1
    assert learning.losses[-1] < loss


def test_the_memory_that_is_stated_is_that_of_its_tensors(translator, learning) -> None:
    assert learning.bytes < bytes_of_copy(translator)
    list(learning.go_on(1e-9))
    assert learning.bytes == bytes_of_copy(translator)
    learning.undo()
    assert learning.bytes < bytes_of_copy(translator)


def test_one_thread_at_a_time_takes_steps_and_none_after_the_end(learning) -> None:
    steps = learning.go_on(100.0, past=True)
    next(steps)
    assert list(learning.go_on(100.0, past=True)) == []
    steps.close()
    learning.close()
    assert list(learning.go_on(100.0, past=True)) == []
    assert learning.step == 1


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        ("", "empty"),
        (" \n\u200b", "empty"),
        ("Hund " * 2000, "characters"),
        ("x " * 130, "tokens"),
        ("Hund " * 30, "of this source"),
    ],
)
def test_what_cannot_be_learned_gets_a_sentence(translator, wanted: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        Correction(translator, SOURCE, wanted)


def test_what_the_model_writes_already_is_no_correction_however_it_is_spaced(translator) -> None:
    (written,) = translator.translate([SOURCE], beam_size=1)
    with pytest.raises(ValueError, match="already"):
        Correction(translator, SOURCE, f"  {written}\n")


def test_words_without_pieces_are_named(translator, monkeypatch) -> None:
    encode = Tokenizer.encode

    def lacking(self: Tokenizer, text: str) -> list[int]:
        return [*encode(self, text), self.unknown] if "ß" in text else encode(self, text)

    monkeypatch.setattr(Tokenizer, "encode", lacking)
    with pytest.raises(ValueError, match="no pieces for Straße, so"):
        Correction(translator, SOURCE, "Die Straße dort")


def test_a_model_that_is_too_large_is_refused_with_both_sizes(translator, monkeypatch) -> None:
    monkeypatch.setattr(correction, "MOST_BYTES", bytes_of_copy(translator) - 1)
    with pytest.raises(ValueError, match="smaller model"):
        Correction(translator, SOURCE, WANTED)


def test_heads_move_in_weights_and_in_attention_on_the_sentence(translator, learning) -> None:
    still = measure_moves(translator, learning.now(), SOURCE, learning.wanted)
    assert not any(moved.any() for moved in (*still.weights.values(), *still.attention.values()))
    learn(learning)
    moved = measure_moves(translator, learning.now(), SOURCE, learning.wanted)
    assert moved.text == WANTED
    for places in (moved.weights, moved.attention):
        assert {*places} == {(kind.name, layer) for kind in translator.kinds for layer in kind.layers}
        assert all((of_heads >= 0).all() for of_heads in places.values())
        assert any(of_heads.any() for of_heads in places.values())


def test_equal_weights_have_one_hash_and_one_score(translator) -> None:
    pairs = [("a dog", "ein Hund"), ("two dogs", "zwei Hunde"), ("a cat", "eine Katze")] * 5
    own = with_own_hash(translator)
    assert own.hash == with_own_hash(replace(translator, hash="")).hash
    *parts, (share, score) = score_held_out(own, pairs)
    assert [found for _, found in parts] == [None] * len(parts)
    assert share == 1
    assert list(score.texts) == translator.translate([source for source, _ in pairs], beam_size=1)
    perfect = [(source, text) for (source, _), text in zip(pairs, score.texts, strict=True)]
    assert [*score_held_out(own, perfect)][-1][1].bleu >= score.bleu


def test_the_sentences_that_ship_are_two_hundred_different_ones() -> None:
    pairs = read_pairs([HELD_OUT])
    assert len(pairs) == len({source for source, _ in pairs}) == 200
    assert "CC BY" in HELD_OUT.with_suffix(".txt").read_text(encoding="utf-8")
