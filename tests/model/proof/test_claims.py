"""The picture is the model: claims 1 to 9 of the design, for any configuration, sentence and intervention."""

from dataclasses import replace

import numpy as np
import torch
from hypothesis import assume, given
from hypothesis import strategies as st

from model.checkpoints.translator import Translator
from model.hooks import recording
from model.interventions import (
    AttentionTemperature,
    ForbidSource,
    FrozenPattern,
    HeadGate,
    LiftCausalMask,
    MaskEdit,
    PermutedAttention,
    PositionsShuffled,
    ResidualOff,
    SublayerOff,
    ValueZeroing,
    applied,
)
from model.network.batch import pad_batch
from model.network.config import BOS, PAD, UNK
from model.network.encoder_decoder import Transformer
from model.network.masks import padding_mask
from model.proof.checks import chain_closes, prove
from model.trace import Trace
from model.tracer import record
from tests.model.strategies import KINDS, Run, arrays, assert_bit_equal, few, runs, sentences

DOUBLE = torch.float64


@few
@given(runs())
def test_1_two_runs_are_bit_equal_and_dropout_has_no_part_in_them(run):
    assert_bit_equal(run.trace, run.translator.trace(run.source, run.target, interventions=run.interventions))
    without = Transformer(replace(run.translator.model.config, dropout=0.0)).eval()
    without.load_state_dict(run.translator.model.state_dict())
    twin = replace(run.translator, model=without.requires_grad_(False))
    assert_bit_equal(run.trace, twin.trace(run.source, run.target, interventions=run.interventions))


@few
@given(runs())
def test_2_the_proof_strip_holds_for_every_run(run):
    for check in prove(run.translator, run.trace):
        assert check.passed, (check.title, check.error)


@few
@given(runs(dtype=DOUBLE))
def test_3_in_double_precision_the_chain_closes_to_ten_digits(run):
    assert chain_closes(run.translator, run.trace).error <= 1e-10


@few
@given(runs(dtype=DOUBLE))
def test_4_heads_contributions_and_one_bias_are_the_attentions_output(run):
    assume(not any(isinstance(change, SublayerOff) for change in run.interventions))
    for attention in run.trace.attentions.values():
        contributions = [z @ w_o for z, w_o in zip(attention.z, attention.projections.w_o, strict=True)]
        np.testing.assert_allclose(sum(contributions) + attention.projections.b_o, attention.out, rtol=0, atol=1e-12)


@few
@given(runs())
def test_5_rows_sum_to_one_over_what_may_be_seen_and_are_zero_elsewhere(run):
    for attention in run.trace.attentions.values():
        assert np.isfinite(attention.pattern).all()
        np.testing.assert_allclose(attention.pattern.sum(-1), attention.mask.any(-1), rtol=0, atol=1e-6)
        assert not attention.pattern[~attention.mask].any()
        assert (attention.pattern >= 0).all()


@few
@given(runs(changed=False), st.sampled_from(KINDS))
def test_5_a_query_that_may_look_at_nothing_gathers_nothing(run, kind):
    keys = len(run.trace.attention(kind, 0).key_tokens)
    nothing = MaskEdit(forbid=tuple((0, key) for key in range(keys)), kind=kind)
    changed = run.translator.trace(run.source, run.target, interventions=(nothing,))
    attention = changed.attention(kind, 0)
    assert not attention.pattern[:, 0].any()
    assert not attention.z[:, 0].any()
    np.testing.assert_allclose(attention.out[0], attention.projections.b_o, rtol=0, atol=1e-6)
    assert all(np.isfinite(array).all() for _, array in arrays(changed))
    assert all(check.passed for check in prove(run.translator, changed))


@few
@given(runs(causal=True), st.data())
def test_6_a_decoder_row_knows_nothing_of_the_tokens_after_it(run, data):
    tgt_ids = list(run.trace.tgt_ids)
    assume(len(tgt_ids) > 1)
    j = data.draw(st.integers(1, len(tgt_ids) - 1), label="changed token")
    tgt_ids[j] = data.draw(st.integers(4, 300).filter(lambda other: other != tgt_ids[j]), label="becomes")
    model, src_ids = run.translator.model, run.trace.src_ids
    before = record(model, [src_ids, run.trace.tgt_ids], run.interventions)
    after = record(model, [src_ids, tgt_ids], run.interventions)
    for path in before:
        if path.startswith(("decoder.", "tgt_embedding.sum", "logits")):
            rows = of_query(before[path], path), of_query(after[path], path)
            assert np.array_equal(rows[0][:j], rows[1][:j], equal_nan=True), path
    if not any(isinstance(change, ResidualOff) for change in run.interventions):
        # Without a residual connection, closed heads leave nothing of the token.
        assert not np.array_equal(before["logits"][j], after["logits"][j]), "and row j does read token j"


def of_query(activation: np.ndarray, path: str) -> np.ndarray:
    """The position first; heads, where there are any, second."""
    heads = path.rsplit(".", 1)[-1] in ("q", "k", "v", "scores", "scaled", "mask", "masked", "pattern", "z")
    if path.endswith(("self_attn.scores", "self_attn.scaled")):
        # Before the mask a row still meets the keys after it: only its own past is compared.
        activation = np.tril(activation)
    if path.endswith(("cross_attn.k", "cross_attn.v")):
        activation = activation.swapaxes(1, 2)[:, :, :0]
    return activation.swapaxes(0, 1) if heads else activation


@few
@given(runs(changed=False), sentences(0))
def test_7_a_sentence_alone_and_in_a_padded_batch_has_the_same_weights_and_logits(run, longer):
    translator = replace_dtype(run)
    model, trace = translator.model, translator.trace(run.source, run.target)
    other = [*translator.tokenizer.encode(longer * 3)[:40], 3]
    src, tgt = pad_batch([list(trace.src_ids), other]), pad_batch([list(trace.tgt_ids), [BOS, *other]])
    with recording(model) as activations:
        model(src, tgt)
    n_src, n_tgt = len(trace.src_ids), len(trace.tgt_ids)
    np.testing.assert_allclose(activations["logits"][0, :n_tgt], trace.logits, rtol=0, atol=1e-12)
    for (kind, layer), attention in trace.attentions.items():
        path, _ = model.attentions()[kind, layer]
        pattern = activations[f"{path}.pattern"][0].numpy()
        queries, keys = attention.pattern.shape[1:]
        np.testing.assert_allclose(pattern[:, :queries, :keys], attention.pattern, rtol=0, atol=1e-12)
        assert not pattern[:, :queries, keys:].any(), "no weight on padding"
    assert padding_mask(src)[0, 0, 0].tolist() == [i < n_src for i in range(src.shape[1])]
    assert "<pad>" not in (*trace.src_tokens, *trace.tgt_tokens, *trace.next_tokens)


def replace_dtype(run: Run) -> Translator:
    """The run's model in double precision."""
    model = Transformer(run.translator.model.config).double().eval().requires_grad_(False)
    model.load_state_dict(run.translator.model.state_dict())
    return replace(run.translator, model=model)


@few
@given(runs(causal=True, dtype=DOUBLE))
@torch.inference_mode()
def test_8_row_t_of_the_capture_is_step_t_of_decoding(run):
    trace, model = run.trace, run.translator.model
    src, tgt = torch.tensor([trace.src_ids]), torch.tensor([trace.tgt_ids])
    cached = all(change.position_free for change in run.interventions)
    with applied(model, run.interventions):
        src_mask, cache = padding_mask(src), model.new_cache()
        memory = model.encode(src, src_mask)
        for t in range(tgt.shape[1]):
            if cached:
                step = model.decode_next(tgt[:, t], t, memory, src_mask, cache)[0]
            else:
                step = model.decode(tgt[:, : t + 1], memory, src_mask)[0, -1]
            np.testing.assert_allclose(step, trace.logits[t], rtol=0, atol=1e-10)


@few
@given(runs(causal=True, dtype=DOUBLE))
def test_8_the_printed_translation_is_the_argmax_of_the_capture(run):
    trace = run.translator.trace(run.source, beam_size=1, interventions=run.interventions)
    allowed = trace.logits.copy()
    allowed[:, [PAD, UNK, BOS]] = -np.inf
    chosen = allowed[np.arange(len(allowed)), list(trace.next_ids)]
    np.testing.assert_allclose(chosen, allowed.max(axis=-1), rtol=0, atol=1e-6)
    assert trace.translation == run.translator.translate([run.source], 1, interventions=run.interventions)[0]
    assert trace.translation == run.translator.tokenizer.decode(list(trace.next_ids))


@few
@given(runs(changed=False), st.sampled_from((None, *KINDS)), st.sampled_from((None, 0)))
def test_9_identities_change_no_bit(run, kind, head):
    for identity in (
        AttentionTemperature(1.0, kind=kind, head=head),
        HeadGate(1.0, kind=kind, head=head),
        HeadGate(1.0, kind=kind, head=head, mode="mean"),
        MaskEdit(kind=kind, head=head),
        ForbidSource(()),
        PermutedAttention(order=(0, 1), kind=kind, head=head),
        ValueZeroing((), kind=kind, head=head),
        PositionsShuffled((0, 1, 2), "source"),
        PositionsShuffled((0, 1, 2), "target"),
        *(FrozenPattern.of(a.pattern, a.kind, a.layer, head) for a in run.trace.attentions.values()),
    ):
        changed = run.translator.trace(run.source, run.target, interventions=(identity,))
        assert_bit_equal(run.trace, changed)


@few
@given(runs(changed=False), st.sampled_from((1e-30, 1e-3, 1e3, 1e30)))
def test_9_extreme_temperatures_do_not_overflow(run, tau):
    changed = run.translator.trace(run.source, run.target, interventions=(AttentionTemperature(tau),))
    assert all(np.isfinite(array).all() for _, array in arrays(changed))
    assert all(check.passed for check in prove(run.translator, changed))


def test_9_temperatures_limits_are_the_largest_key_and_the_mean(translator):
    cold, hot = (
        translator.trace("Two dogs", "Zwei Hunde", interventions=(AttentionTemperature(tau, kind="cross", layer=0),))
        for tau in (1e-3, 1e6)
    )
    sharp, flat = cold.attention("cross", 0), hot.attention("cross", 0)
    assert np.array_equal(sharp.pattern.argmax(-1), sharp.scaled.argmax(-1))
    second, largest = np.sort(sharp.scaled, axis=-1)[..., -2:].transpose(2, 0, 1)
    clear = largest - second > 0.01
    assert clear.mean() > 0.5
    assert sharp.pattern.max(-1)[clear].min() > 0.99
    np.testing.assert_allclose(flat.pattern, 1 / len(flat.key_tokens), rtol=1e-4)


def test_lifting_the_causal_mask_lets_rows_see_what_follows(translator):
    def rows(target: str) -> Trace:
        return translator.trace("Two dogs", target, interventions=(LiftCausalMask(),))

    one, other = rows("Zwei Hunde"), rows("Zwei Katzen")
    assert one.tgt_ids[1] == other.tgt_ids[1]
    assert not np.array_equal(one.logits[0], other.logits[0])
    assert (one.attention("decoder_self", 0).pattern[:, 0, 1:] > 0).all()
    assert one.attention("decoder_self", 0).mask.all()
