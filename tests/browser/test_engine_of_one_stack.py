"""Language models and masked models in the static page's engine, against the same runs in Python."""

import random
from collections.abc import Iterator
from dataclasses import replace

import pytest
import torch

from model.checkpoints.checkpoint import Checkpoint
from model.checkpoints.language_model import LanguageModel
from model.checkpoints.store import load_checkpoint
from model.interventions import ForbidSource, Intervention
from model.tracer import record
from tests.browser import engine as other
from tests.browser.engine import CLOSE, Engine, differences
from tests.browser.test_engine import CHANGES, differing

NAMES = "everyday-lm", "everyday-lm-2017", "everyday-mlm"
"""RMSNorm before, rotation, SwiGLU, shared keys and values; the network of 2017; and what reads in both directions"""
TEXTS = "Two young girls are playing in the snow.", "Tom's giraffe 中 wasn't hers – was it?", "Yes."
NEW_TOKENS = 12


@pytest.fixture(scope="module", params=NAMES)
def both(request: pytest.FixtureRequest, calculating_browser: object) -> Iterator[tuple[Engine, Checkpoint]]:
    """One model in the page and in Python."""
    engine = Engine.open(calculating_browser, other.ROOT / "checkpoints" / request.param)
    yield engine, load_checkpoint(str(other.ROOT / "checkpoints" / request.param), "cpu")
    engine.close()


@pytest.fixture(scope="module")
def writing(calculating_browser: object) -> Iterator[tuple[Engine, LanguageModel]]:
    """The language model in both."""
    engine = Engine.open(calculating_browser, other.ROOT / "checkpoints" / NAMES[0])
    yield engine, load_checkpoint(str(other.ROOT / "checkpoints" / NAMES[0]), "cpu")
    engine.close()


def some_lines(count: int) -> list[str]:
    """Sentences that people type."""
    lines = (other.ROOT / "checkpoints/en-de/first-inputs.tsv").read_text("utf-8").splitlines()
    return [line.split("\t")[0] for line in random.Random(4).sample(lines, count)]


def test_every_hook_path_has_the_numbers_of_python(both: tuple[Engine, Checkpoint]) -> None:
    engine, model = both
    for text in TEXTS:
        ids = model.model.frame(model.tokenizer.encode(text))
        found = differences(record(model.model, [ids]), engine.trace_text(ids))
        assert {path: distance for path, distance in found.items() if distance > CLOSE} == {}, text


def changes_of(model: Checkpoint) -> list[Intervention]:
    """One of each kind that is compared of a translator, of this model's own attention, if it has what that changes."""
    kind = model.trace(TEXTS[0]).kinds[0].name
    # What forbids source tokens may be of one kind of a translator alone.
    every = [change for changes in CHANGES for change in changes if not isinstance(change, ForbidSource)]
    own = [replace(change, kind=kind) if getattr(change, "kind", None) else change for change in every]
    return [*{(type(one), getattr(one, "mode", "")): one for one in own if _allows(model, one)}.values()]


def _allows(model: Checkpoint, change: Intervention) -> bool:
    try:
        model.check_intervention(change)
    except ValueError:
        return False
    return True


def test_changes_have_the_numbers_of_python(both: tuple[Engine, Checkpoint]) -> None:
    engine, model = both
    ids = model.model.frame(model.tokenizer.encode(TEXTS[0]))
    changes = changes_of(model)
    assert len(changes) > 10
    for change in changes:
        found = differences(record(model.model, [ids], [change]), engine.trace_text(ids, [change]))
        assert {path: far for path, far in found.items() if far > CLOSE} == {}, change


def test_a_language_model_writes_and_draws_what_it_does_in_python(writing: tuple[Engine, LanguageModel]) -> None:
    """Greedily, and with seeds."""
    *written, _ = other.compare_texts(*writing, some_lines(40), traces=1)
    assert differing(written) == {}


def test_a_changed_language_model_writes_what_python_writes(writing: tuple[Engine, LanguageModel]) -> None:
    engine, model = writing
    prompt = model._read("Two young girls are")
    for change in changes_of(model):
        expected = model._write(prompt, NEW_TOKENS, None, torch.Generator(), [change])[0]
        assert engine.write([{"ids": prompt}], NEW_TOKENS, [change]) == [expected], change


def test_positions_are_right_to_the_end_of_the_context(writing: tuple[Engine, LanguageModel]) -> None:
    engine, model = writing
    words = model.tokenizer.encode("The king and the queen lived in a house by the sea. ") * 60
    ids = model.model.frame(words[: model.model.config.max_len - 2])
    assert len(ids) >= model.model.config.max_len - 1
    paths = "decoder.layers.0.self_attn.scores", "decoder.layers.5.self_attn.z", "logits"
    expected = record(model.model, [ids])
    found = differences({path: expected[path] for path in paths}, engine.trace_text(ids, paths=paths))
    assert all(distance < CLOSE for distance in found.values()), found


def test_ids_and_texts_are_the_same(both: tuple[Engine, Checkpoint]) -> None:
    assert differing(other.compare_text(*both, [*TEXTS, *some_lines(190)])) == {}
