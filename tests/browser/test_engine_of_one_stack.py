"""Language models and masked models in the static page's engine, against the same runs in Python."""

import random
from collections.abc import Iterator

import pytest
import torch

from model.checkpoints.checkpoint import Checkpoint
from model.checkpoints.language_model import LanguageModel
from model.checkpoints.store import load_checkpoint
from model.interventions import (
    AttentionTemperature,
    HeadGate,
    Intervention,
    LiftCausalMask,
    MaskEdit,
    NormOff,
    PatternEdit,
    PatternMask,
    ResidualOff,
    SharedKeysValues,
    SublayerOff,
    UniformAttention,
    Unscaled,
    ValueZeroing,
)
from model.tracer import record
from tests.browser import engine as other
from tests.browser.engine import CLOSE, Engine, differences

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


def some_prompts(model: LanguageModel, count: int) -> list[list[int]]:
    """The first words of sentences that people type."""
    rng = random.Random(4)
    lines = (other.ROOT / "checkpoints/en-de/first-inputs.tsv").read_text("utf-8").splitlines()
    return other.prompts_of(model, [line.split("\t")[0] for line in rng.sample(lines, count)], rng)


def test_every_hook_path_has_the_numbers_of_python(both: tuple[Engine, Checkpoint]) -> None:
    engine, model = both
    for text in TEXTS:
        ids = model.model.frame(model.tokenizer.encode(text))
        found = differences(record(model.model, [ids]), engine.trace_text(ids))
        assert {path: distance for path, distance in found.items() if distance > CLOSE} == {}, text


def changes_of(model: Checkpoint) -> list[Intervention]:
    kind = model.trace(TEXTS[0]).kinds[0].name
    every = [
        AttentionTemperature(0.3, kind=kind, layer=1, head=1),
        Unscaled(head=2),
        HeadGate(0.0, layer=1, head=1),
        HeadGate(0.25, head=3, mode="mean"),
        SharedKeysValues(2, layer=0),
        ValueZeroing((0, 2), kind=kind),
        MaskEdit(forbid=((0, 0), (2, 1)), allow=((0, 2),), kind=kind, layer=1, head=3),
        PatternMask(window=2),
        LiftCausalMask(),
        PatternEdit(1, (0.0, 3.0, 1.0), layer=0),
        UniformAttention(layer=0, head=2),
        SublayerOff(layer=1, name="feed_forward"),
        NormOff(layer=1),
        ResidualOff(layer=1),
    ]
    return [change for change in every if _allows(model, change)]


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


def test_a_language_model_writes_what_python_writes(writing: tuple[Engine, LanguageModel]) -> None:
    engine, model = writing
    prompts = some_prompts(model, 30)
    expected = [model._write(prompt, NEW_TOKENS, None, torch.Generator(), ())[0] for prompt in prompts]
    assert engine.write([{"ids": prompt} for prompt in prompts], NEW_TOKENS) == expected


def test_a_seed_draws_the_tokens_that_it_draws_in_python(writing: tuple[Engine, LanguageModel]) -> None:
    engine, model = writing
    drawn = other.DRAWN
    prompts = [{"ids": ids, "seed": 1000 + i, **drawn[i % len(drawn)]} for i, ids in enumerate(some_prompts(model, 40))]
    expected = [other.drawn_by_python(model, prompt, NEW_TOKENS) for prompt in prompts]
    assert engine.write(prompts, NEW_TOKENS) == expected
    assert len({tuple(tokens) for tokens in expected}) > 30


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
    engine, model = both
    rng = random.Random(5)
    lines = [*TEXTS, *other.strange_lines(400, rng)]
    expected = [model.tokenizer.encode(line) for line in lines]
    assert engine.ids(lines) == expected
    lists = [*expected, *other.random_ids(model, 200, rng)]
    assert engine.texts(lists) == list(map(model.tokenizer.decode, lists))
