"""Ten mistakes in the code: each does what it says, the claims notice it, and nobody else's run changes."""

import dataclasses
import math
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch

from model.analysis.heads.softmax import softmax
from model.checkpoints.store import load_checkpoint
from model.checkpoints.translator import Translator
from model.generation.search import greedy
from model.hooks import editing, explicit_path
from model.interventions import HeadGate, Unscaled
from model.network.encoder_decoder import Transformer
from model.proof.claims import CLAIMS
from model.proof.mistakes import (
    MISTAKES,
    PADS,
    break_model,
    check_mistake,
    code_around,
    lines_of,
    run_mistake,
    why_not,
)
from tests.model.checkpoints.test_shipped import FOLDER, NAMES
from tests.model.proof.test_claims_of_families import case_of
from tests.model.strategies import FAMILIES, SHAPES, assert_bit_equal, shaped, short_texts

SOURCE, TARGET = "Two dogs play in the snow.", "Zwei Hunde rennen."
ALWAYS = {"no-padding-mask": {"7"}, "no-scaling": {"3"}, "no-embedding-scale": {"3"}, "transposed-mask": {"6", "8a"}}
ALWAYS |= {"positions-restart": {"8a"}, "softmax-over-queries": {"3", "5", "6", "7", "8a"}}
ALWAYS |= {"heads-by-view": {"3", "4", "6", "7", "8a", "10", "21"}, "zero-after-softmax": {"3", "5", "6", "7", "8a"}}
ALWAYS |= {"half-precision-mask": {"1", "2", "3", "4", "5", "6", "7", "8a", "10", "12", "14", "22"}}
"""claims that fail on any sentence"""
RARELY = {"8b", "9", "12", "15", "16", "21"}
"""claims about searches, extremes and sums, which fail with some mistakes on some sentences"""
every = pytest.mark.parametrize("name", MISTAKES)
pytestmark = pytest.mark.usefixtures("checkpoint_folder", "written")


@pytest.fixture(scope="module")
def written():
    """What a run writes would be most of its time, and its first words are wrong as soon as any."""
    with short_texts():
        yield


@pytest.fixture(scope="module")
def trace(translator):
    return translator.trace(SOURCE, TARGET)


@every
def test_the_lines_shown_are_those_of_the_model_and_three_of_them(name):
    for lines in MISTAKES[name].lines:
        right, wrong = code_around(lines)
        assert len(right.splitlines()) in (2, 3)
        assert lines.right in right
        assert lines.wrong in wrong
        assert sum(a != b for a, b in zip(right.splitlines(), wrong.splitlines(), strict=True)) == 1


@pytest.mark.parametrize("name", ALWAYS)
def test_the_claims_notice_it(name, translator, trace):
    *_, verdict = check_mistake(translator, trace, name, "cross", 1, 2)
    assert verdict.done == 1
    assert not verdict.refusal
    broken = {measured.claim.label for measured in verdict.broken}
    assert ALWAYS[name] <= broken <= ALWAYS[name] | RARELY


def test_a_decoder_that_reads_itself_has_no_trace(translator, trace):
    (verdict,) = check_mistake(translator, trace, "cross-reads-x", "cross", 1, 2)
    assert not verdict.measurements
    assert f"expected (4, {len(trace.src_ids)}, 8)" in verdict.refusal


def edits_of(name, model):
    """The same mistake through the hook points of the right model, where it can be made there."""
    attentions = [path for path, _ in model.attentions().values()]
    if name == "transposed-mask":
        return {f"{path}.mask": lambda m: m.mT for (kind, _), (path, _) in model.attentions().items()
                if kind == "decoder_self"}  # fmt: skip
    if name == "no-embedding-scale":
        return {f"{side}_embedding.embedding": lambda x: x / math.sqrt(x.shape[-1]) for side in ("src", "tgt")}
    if name == "heads-by-view":
        return {
            f"{path}.z": lambda z: z.reshape(z.shape[0], z.shape[2], z.shape[1], -1).transpose(1, 2)
            for path in attentions
        }
    return {}


@pytest.mark.parametrize("name", ["transposed-mask", "no-embedding-scale", "heads-by-view", "no-scaling"])
def test_it_is_the_mistake_that_it_says(name, translator, trace):
    """Against the same change made through the hook points."""
    changes = (Unscaled(),) if name == "no-scaling" else (HeadGate(1.0),)
    with editing(translator.model, edits_of(name, translator.model)):
        expected = translator.rerun(trace, changes)
        with torch.inference_mode(), editing(translator.model, changes[0].edits(translator.model)):
            written = greedy(translator.model, [trace.src_ids], use_cache=False)[0].tokens
    found = run_mistake(translator, trace, name, "cross", 1)
    assert found.log_p == pytest.approx(expected.log_probability, abs=1e-3)
    # Unscaled scores are large, and so is their rounding error, which softmax turns into a relative error.
    np.testing.assert_allclose(found.pattern, expected.attention("cross", 1).pattern, rtol=1e-3, atol=1e-5)
    assert found.written == tuple(written)
    assert found.right == tuple(greedy(translator.model, [trace.src_ids])[0].tokens)


def test_weights_of_the_other_mistakes(translator, trace):
    def run(name, kind="decoder_self"):
        return run_mistake(translator, trace, name, kind, 1)

    n, m = len(trace.src_ids), len(trace.tgt_ids)
    np.testing.assert_allclose(run("softmax-over-queries").pattern.sum(axis=1), 1, atol=1e-6)
    sums = run("zero-after-softmax").pattern.sum(axis=-1)
    assert (sums < 1 + 1e-6).all()
    assert sums[:, :-1].mean() < 0.9
    np.testing.assert_allclose(sums[:, -1], 1, atol=1e-6)
    padded = run("no-padding-mask", "encoder_self")
    assert padded.pattern.shape == (4, n, n + PADS)
    assert (padded.pattern[..., n:] > 0).all()
    assert run("cross-reads-x", "cross").pattern.shape == (4, m, m)
    half = run("half-precision-mask")
    assert np.isnan(half.log_p)
    assert np.isnan(half.pattern).all()
    cached = run("positions-restart")
    np.testing.assert_allclose(cached.pattern[:, 0], trace.attention("decoder_self", 1).pattern[:, 0], atol=1e-6)
    assert not np.allclose(cached.pattern[:, 3], trace.attention("decoder_self", 1).pattern[:, 3], atol=1e-3)
    assert np.array_equal(cached.mask, np.broadcast_to(np.tri(m, dtype=bool), cached.mask.shape))
    assert np.array_equal(run("positions-restart", "encoder_self").mask, trace.attention("encoder_self", 1).mask)


def test_the_weights_are_shared_and_other_visitors_are_not_affected(translator, trace):
    with ThreadPoolExecutor(8) as pool:
        broken = [pool.submit(run_mistake, translator, trace, name, "cross", 0) for name in MISTAKES]
        plain = [pool.submit(translator.rerun, trace, ()) for _ in MISTAKES]
    for run in plain:
        assert_bit_equal(run.result(), trace)
    assert len({run.result().log_p for run in broken}) == len(MISTAKES)
    copied = break_model(translator, "no-scaling").model
    for (path, one), (_, other) in zip(copied.named_parameters(), translator.model.named_parameters(), strict=True):
        assert one.data_ptr() == other.data_ptr(), path
    assert type(translator.model) is Transformer
    assert all(parameter.grad is None for parameter in translator.model.parameters())


def test_a_mistake_joins_the_runs_own_interventions(translator, trace):
    changed = translator.rerun(trace, (HeadGate(0.0, "cross", 1),))
    one, other = (run_mistake(translator, t, "no-scaling", "cross", 1).log_p for t in (trace, changed))
    assert one != other


OF_ONE_STACK = {
    "decoder": {"transposed-mask": "6", "softmax-over-queries": "5", "heads-by-view": "4", "no-scaling": "3"}
    | {"zero-after-softmax": "5", "half-precision-mask": "14"},
    "encoder": {"no-padding-mask": "7", "softmax-over-queries": "5", "heads-by-view": "4", "no-scaling": "3"}
    | {"half-precision-mask": "14"},
}
"""family -> the mistakes that its modern models can make -> a claim that notices each"""


@pytest.mark.parametrize("family", OF_ONE_STACK)
def test_a_model_of_one_stack_makes_the_mistakes_that_its_code_has(family, tokenizer):
    case = case_of("RoPE" if family == "decoder" else "masked", tokenizer)
    opened, run = case.opened, case.trace
    assert {name for name in MISTAKES if not why_not(opened.model, name)} == set(OF_ONE_STACK[family])
    for name, label in OF_ONE_STACK[family].items():
        twin = break_model(opened, name)
        claim = next(claim for claim in CLAIMS if claim.label == label)
        with explicit_path():
            broken = dataclasses.replace(case, opened=twin, trace=twin.rerun(run, ()))
            assert not claim.measure(broken) <= claim.tolerance, name
        broken = run_mistake(opened, run, name, f"{family}_self", 1)
        assert broken.log_p != run.log_probability


@pytest.mark.parametrize(("shape", "n_heads"), [*((shape, 4) for shape in SHAPES), ("post", 1)])
@pytest.mark.parametrize("family", FAMILIES)
def test_each_mistake_that_a_family_is_offered_acts(family, shape, n_heads):
    """Offered: log p of the target, or a weight, moves far beyond rounding. Not offered: it is refused."""
    opened = shaped(shape, family, n_heads=n_heads)
    run = opened.trace(SOURCE, TARGET if family == "translator" else None)
    for name in MISTAKES:
        if why_not(opened.model, name):
            with pytest.raises(ValueError, match="cannot make this mistake"):
                break_model(opened, name)
            continue
        kind, layer = run.kinds[-1], run.kinds[-1].layers[-1]
        found, weights = run_mistake(opened, run, name, kind.name, layer), run.attention(kind.name, layer).pattern
        moved = abs(found.log_p - run.log_probability)
        if found.pattern.shape == weights.shape:
            moved = max(moved, np.abs(found.pattern - weights).max())
        assert not moved < 1e-3, name


@pytest.mark.parametrize("family", ["translator", "language model"])
@pytest.mark.parametrize("shape", ["post", "post, RMSNorm, learned positions"])
def test_cached_steps_without_positions_give_what_every_token_at_position_0_gives(family, shape):
    """Against a run at once whose every row has the encoding of position 0."""
    opened = shaped(shape, family)
    run = opened.trace(SOURCE)
    first = {"tgt_embedding.positional": lambda encoding: encoding[:1].expand_as(encoding)}
    with editing(opened.model, first):
        expected = opened.rerun(run, ())
    found = run_mistake(opened, run, "positions-restart", "decoder_self", 1)
    assert found.log_p == pytest.approx(expected.log_probability, abs=1e-3)
    np.testing.assert_allclose(found.pattern, expected.attention("decoder_self", 1).pattern, atol=1e-4)


@pytest.mark.parametrize("name", NAMES)
def test_what_the_mistakes_say_of_scores_embeddings_and_sums_holds_on_trained_weights(name):
    opened = load_checkpoint(str(FOLDER / name), device="cpu")
    run = opened.trace(SOURCE, TARGET if isinstance(opened, Translator) else None)
    kind, layer = next(iter(opened.model.attentions()))
    trained = run.attention(kind, layer)
    unscaled = run_mistake(opened, run, "no-scaling", kind, layer)
    assert (unscaled.pattern.max(axis=-1) >= trained.pattern.max(axis=-1) - 1e-6).all()
    for stack, stream in run.streams.items():
        added = stream.embedded
        if lines_of(opened.model, "no-embedding-scale") and not why_not(opened.model, "no-embedding-scale"):
            twin = break_model(opened, "no-embedding-scale").rerun(run, ()).streams[stack].embedded
            width = added.embedding.shape[-1]
            np.testing.assert_allclose(twin.embedding * math.sqrt(width), added.embedding, rtol=1e-5, atol=1e-6)
            assert np.array_equal(twin.positional, added.positional)
    causal = next((each.name for each in run.kinds if each.causal), None)
    if causal:
        sums = run_mistake(opened, run, "zero-after-softmax", causal, 0).pattern.sum(axis=-1)
        attention = run.attention(causal, 0)
        hidden = np.where(attention.mask, 0, softmax(attention.scaled)).sum(axis=-1)
        np.testing.assert_allclose(sums, 1 - hidden, atol=1e-5)
