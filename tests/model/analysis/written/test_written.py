"""What parts wrote adds up to the run's own streams, scores and logits: of every family, and after every change."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
import torch

from model.analysis.double_precision import in_double_precision
from model.analysis.written import (
    head_of_part,
    logit_parts,
    logit_parts_by_key,
    logit_parts_of_all,
    score_parts,
    shares_of_last,
    side_parts,
    written_parts,
)
from model.checkpoints.checkpoint import Checkpoint
from model.interventions import (
    AttentionTemperature,
    HeadGate,
    PatternEdit,
    PositionsOff,
    PositionsShuffled,
    ResidualOff,
    SharedKeysValues,
    SublayerOff,
    ValueZeroing,
)
from model.network.config import EOS
from model.trace import Trace, relative_error
from tests.model.strategies import FAMILIES, SHAPES, shaped

SOURCE, TARGET = "a dog and a cat", "Ein Hund und eine Katze."
LIVE, DOUBLE = 5e-5, 1e-9


def summed(parts: dict) -> np.ndarray:
    return np.sum(list(parts.values()), axis=0)


def stream_errors(trace: Trace) -> Iterator[float]:
    for name, stream in trace.streams.items():
        stages = written_parts(trace, name)
        assert [sublayer for sublayer, _ in stages][-1] is None
        assert len(stages) == len(stream.sublayers) + 1
        for sublayer, parts in stages:
            whole = stream.final if sublayer is None else sublayer.before
            assert {part.shape for part in parts.values()} == {whole.shape}
            yield relative_error(summed(parts), whole)
        yield abs(shares_of_last(trace, name, len(stream.final) - 1).sum() - 1)


def score_errors(trace: Trace) -> Iterator[float]:
    for (kind, layer), attention in trace.attentions.items():
        for head in (0, attention.n_heads - 1):
            q, k = (side_parts(trace, kind, layer, head, side) for side in "qk")
            yield relative_error(summed(q) @ summed(k).T, attention.scores[head])
        query, key = np.array(attention.scores.shape[1:]) - 1
        queries, keys, pairs = score_parts(trace, kind, layer, 1, query, key)
        assert pairs.shape == (len(queries), len(keys))
        assert "input" not in queries + keys
        yield abs(pairs.sum() - attention.scores[1, query, key]) / max(1, np.abs(attention.scores).max())


def logit_errors(opened: Checkpoint, trace: Trace) -> Iterator[float]:
    largest = max(1, np.abs(trace.logits).max())
    for row in (0, len(trace.logits) - 1):
        token, other = map(int, trace.logits[row].argsort()[[-1, -2]])
        logit, against = trace.logits[row, [token, other]].astype(float)
        yield abs(sum(logit_parts(opened, trace, row, token).values()) - logit) / largest
        parts = logit_parts(opened, trace, row, token, other)
        yield abs(sum(parts.values()) - (logit - against)) / largest
        for name, by_key in logit_parts_by_key(opened, trace, row, token, other).items():
            yield abs(by_key.sum() - parts[name]) / largest


def all_errors(opened: Checkpoint, trace: Trace) -> Iterator[float]:
    logits = trace.logits[range(len(trace.next_ids)), list(trace.next_ids)].astype(float)
    parts = logit_parts_of_all(opened, trace)
    yield relative_error(summed(parts), logits)
    one = logit_parts(opened, trace, 1, trace.next_ids[1])
    assert {name: values[1] for name, values in parts.items()} == pytest.approx(one, rel=1e-6, abs=1e-6)


def worst(opened: Checkpoint, trace: Trace) -> float:
    return max([*stream_errors(trace), *score_errors(trace), *logit_errors(opened, trace), *all_errors(opened, trace)])


def traced(opened: Checkpoint) -> Trace:
    return opened.trace(SOURCE, TARGET) if len(opened.model.stacks) == 2 else opened.trace(SOURCE)


DEALT = [pair for number, pair in enumerate(product(SHAPES, FAMILIES)) if number % 2 == 0]
"""each shape with one family or two"""


@pytest.mark.parametrize(("name", "family"), DEALT)
def test_parts_sum_to_what_the_run_holds(name: str, family: str) -> None:
    opened = shaped(name, family)
    trace = traced(opened)
    assert worst(opened, trace) < LIVE
    double = in_double_precision(opened)
    assert worst(double, double.rerun(trace, ())) < DOUBLE


def open_tiny(name: str) -> Checkpoint:
    from tests.model.checkpoints.huggingface.test_families import opened

    return opened(name)


@pytest.mark.parametrize(
    "name",
    [
        *("GPT-2", "Gemma 2", "OLMo 2", "Granite", "gpt-oss", "BERT", "ALBERT", "T5", "Marian"),
        *("StableLM, norm of each head", "Cohere, parallel", "Starcoder2", "Pegasus"),
    ],
)
def test_parts_sum_to_what_the_run_of_a_hugging_face_model_holds(name: str) -> None:
    pytest.importorskip("transformers")
    from tests.model.checkpoints.huggingface import families

    opened = open_tiny(name)
    trace = opened.trace(families.SOURCE, families.TARGET if len(opened.model.stacks) == 2 else None)
    assert worst(opened, trace) < LIVE


CHANGES = (
    HeadGate(0.0, kind="decoder_self", layer=0, head=1),
    HeadGate(0.5, mode="zero", kind="cross"),
    HeadGate(0.0, mode="mean", kind="encoder_self", layer=1),
    SublayerOff(stack="decoder", layer=0, name="feed_forward"),
    SublayerOff(stack="encoder", layer=1, name="self_attn"),
    ResidualOff(stack="decoder"),
    PositionsOff(),
    PositionsShuffled(order=(2, 0, 1)),
    AttentionTemperature(0.3),
    PatternEdit(1, (0.9, 0.1), kind="cross", layer=1),
    ValueZeroing((0,), kind="decoder_self"),
    SharedKeysValues(2),
)


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: type(change).__name__)
@pytest.mark.parametrize("name", ["post", "pre, RMSNorm, RoPE, wide shared keys"])
def test_parts_of_a_changed_run_sum_to_its_own_numbers(name: str, change) -> None:
    opened = shaped(name)
    if isinstance(change, PositionsOff | PositionsShuffled) and "RoPE" in name:
        pytest.skip("nothing is added for positions")
    trace = opened.trace(SOURCE, TARGET, interventions=(change,))
    assert max([*stream_errors(trace), *score_errors(trace)]) < LIVE
    row = len(trace.logits) - 1
    parts = logit_parts(opened, trace, row, EOS)
    assert sum(parts.values()) == pytest.approx(trace.logits[row, EOS], rel=LIVE, abs=LIVE)


def by_hand(opened: Checkpoint, trace: Trace) -> np.ndarray:
    """(position, d_model): what head 1 of the first decoder layer is in the decoder's output.

    Post-norm: the part is normalised after each of the six sub-layers, with the mean of its own numbers and the
    standard deviation of the run's.
    """
    attention, layers = trace.attention("decoder_self", 0), opened.model.decoder.layers
    of_head = slice(attention.d_k, 2 * attention.d_k)
    part = attention.pattern[1].astype(float) @ attention.v[1] @ layers[0].self_attn.w_o.weight.numpy()[:, of_head].T
    for sublayer in trace.streams["decoder"].sublayers:
        gamma = getattr(layers[sublayer.layer], f"{sublayer.name}_residual").norm.weight.numpy()
        deviation = np.sqrt(sublayer.added.astype(float).var(axis=-1, keepdims=True) + 1e-5)
        part = (part - part.mean(axis=-1, keepdims=True)) * gamma / deviation
    return part


def test_a_heads_part_of_the_output_is_the_one_by_hand() -> None:
    opened = shaped("post")
    trace = traced(opened)
    _, parts = written_parts(trace, "decoder")[-1]
    assert parts["decoder_self 0.1"] == pytest.approx(by_hand(opened, trace), abs=1e-6)


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("side", ["query", "key"])
def test_without_a_part_and_with_the_norms_frozen_a_score_changes_by_its_term(name: str, side: str) -> None:
    """The part is taken out of the recorded stream, and PyTorch computes q or k again, norms held as they were."""
    opened = in_double_precision(shaped(name, "language model"))
    trace, layer, head, query, key = traced(opened), 1, 2, 4, 3
    attention = trace.attention("decoder_self", layer)
    row = query if side == "query" else key
    sublayer = next(each for each in trace.streams["decoder"].sublayers if each.layer == layer)
    stage = next(parts for each, parts in written_parts(trace, "decoder") if each is not None and each.layer == layer)
    names = score_parts(trace, "decoder_self", layer, head, query, key)
    place = 0 if side == "query" else 1
    module, letter = opened.model.decoder.layers[layer].self_attn, "qk"[place]
    for part in ("embedding", "decoder_self 0.0", "decoder 0 feed_forward"):
        before = sublayer.before.astype(float)
        removed = before.copy()
        removed[row] -= stage[part][row]
        read = [frozen(sublayer, before, x)[row] if sublayer.norm_first else x[row] for x in (before, removed)]
        vectors = [torch.from_numpy(x) @ getattr(module, f"w_{letter}").weight.T for x in read]
        difference = (
            (vectors[0] - vectors[1])
            .numpy()
            .reshape(-1, attention.d_k)[attention.kv_head[head] if side == "key" else head]
        )
        if attention.qk_norm is not None:
            norm = getattr(attention.qk_norm, f"{letter}_norm")
            plain = getattr(attention.qk_norm, letter)[head, row].astype(float)
            difference = difference * norm.gamma / np.sqrt((plain**2).mean() + norm.eps)
        if attention.rotary is not None:
            at = np.zeros((1, len(attention.q[0]), attention.d_k))
            at[0, row] = difference
            difference = attention.rotary.turn(at)[0, row]
        other = attention.k[head, key] if side == "query" else attention.q[head, query]
        term = names[2].sum(axis=1 - place)[names[place].index(part)]
        assert float(difference @ other) == pytest.approx(term, rel=1e-8, abs=1e-10)


def frozen(sublayer, before: np.ndarray, x: np.ndarray) -> np.ndarray:
    norm = sublayer.norm
    centred = before - before.mean(-1, keepdims=True) if norm.kind == "LayerNorm" else before
    own = x - x.mean(-1, keepdims=True) if norm.kind == "LayerNorm" else x
    return norm.gamma * own / np.sqrt((centred**2).mean(-1, keepdims=True) + norm.eps)


def test_layer_0_is_content_and_position_and_nothing_else() -> None:
    trace = traced(shaped("post"))
    for kind in ("encoder_self", "decoder_self"):
        queries, keys, _ = score_parts(trace, kind, 0, 1, 2, 1)
        assert queries == ("embedding", "position", "b_Q")
        assert keys == ("embedding", "position", "b_K")


def test_the_keys_of_cross_attention_are_parts_of_the_encoder() -> None:
    opened = shaped("post")
    queries, keys, _ = score_parts(traced(opened), "cross", 1, 0, 2, 3)
    assert {name for name in map(head_of_part, queries) if name} == {
        *(("decoder_self", layer, head) for layer in (0, 1) for head in range(4)),
        *(("cross", 0, head) for head in range(4)),
    }
    assert {name for name in map(head_of_part, keys) if name} == {
        ("encoder_self", layer, head) for layer in (0, 1) for head in range(4)
    }


def test_a_key_that_a_head_gives_no_weight_adds_nothing() -> None:
    opened = shaped("pre", "language model")
    trace = traced(opened)
    for name, by_key in logit_parts_by_key(opened, trace, 2, trace.next_ids[2]).items():
        _, layer, head = head_of_part(name)
        assert not by_key[trace.attention("decoder_self", layer).pattern[head, 2] == 0].any()


def test_a_head_that_is_off_wrote_nothing() -> None:
    opened = shaped("post")
    off = HeadGate(0.0, kind="cross", layer=1, head=2)
    trace = opened.trace(SOURCE, TARGET, interventions=(off,))
    parts = logit_parts(opened, trace, 1, EOS)
    assert parts["cross 1.2"] == 0
    assert parts["cross 1.1"] != 0
    assert not logit_parts_by_key(opened, trace, 1, EOS)["cross 1.2"].any()


@pytest.mark.parametrize("name", ["cross_attn", "feed_forward"])
def test_a_sublayer_that_is_off_wrote_nothing_of_the_last_vector(name: str) -> None:
    opened = shaped("pre")
    trace = opened.trace(SOURCE, TARGET, interventions=(SublayerOff("decoder", 1, name),))
    off = [(one.layer, one.name) for one in trace.streams["decoder"].sublayers].index((1, name))
    shares = shares_of_last(trace, "decoder", 2)
    assert abs(shares[1 + off]) < LIVE < abs(shares[off])


def test_of_a_stream_without_norms_each_share_is_what_was_added_along_its_end() -> None:
    trace = traced(shaped("pre", "language model"))
    stream = trace.streams["decoder"]
    bare = replace(trace, streams={"decoder": replace(stream, last_norm=None, final=stream.sublayers[-1].after)})
    end = bare.streams["decoder"].final[3].astype(float)
    wrote = [stream.embedded.stream[3], *(one.added[3] - one.before[3] for one in stream.sublayers)]
    expected = [each @ end / (end @ end) for each in wrote]
    assert shares_of_last(bare, "decoder", 3) == pytest.approx([*expected, 0], abs=LIVE)


def test_a_run_that_was_saved_without_its_last_norm_says_so() -> None:
    opened = shaped("pre")
    trace = traced(opened)
    old = replace(trace, streams={name: replace(each, last_norm=None) for name, each in trace.streams.items()})
    with pytest.raises(ValueError, match="run its text again"):
        written_parts(old, "decoder")
    with pytest.raises(ValueError, match="run its text again"):
        logit_parts(opened, old, 0, EOS)


@pytest.mark.parametrize("place", [{"head": 4}, {"query": 99}, {"key": -1}, {"layer": 7}, {"kind": "sideways"}])
def test_a_place_that_is_not_there_is_refused_in_a_sentence(place: dict) -> None:
    trace = traced(shaped("post"))
    with pytest.raises(ValueError, match=r"^no (head|query|key|attention) "):
        score_parts(trace, **{"kind": "cross", "layer": 0, "head": 0, "query": 0, "key": 0} | place)


@pytest.mark.parametrize("place", [(99, 5, None), (-1, 5, None), (0, 10**6, None), (0, 5, -3)])
def test_a_row_or_a_token_that_is_not_there_is_refused_in_a_sentence(place: tuple) -> None:
    opened = shaped("post")
    with pytest.raises(ValueError, match=r"^no (position|token) "):
        logit_parts(opened, traced(opened), *place)


@pytest.mark.parametrize("change", [None, *CHANGES[:6]], ids=lambda change: type(change).__name__)
@pytest.mark.parametrize("name", ["post", "pre"])
def test_a_logits_terms_are_the_parts_of_the_stream_times_one_row_of_the_output(name, change) -> None:
    opened = shaped(name)
    trace = opened.trace(SOURCE, TARGET, interventions=() if change is None else (change,))
    row = opened.model.output.weight[EOS].double().numpy()
    _, parts = written_parts(trace, "decoder")[-1]
    terms = logit_parts(opened, trace, 2, EOS)
    assert terms == pytest.approx({part: float(values[2] @ row) for part, values in parts.items()}, abs=1e-4)
