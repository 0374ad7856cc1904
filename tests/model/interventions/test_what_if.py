"""Each change to the model, held against the same change written by hand in numpy from the paper's formulas."""

import copy
import math
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch

from model import interventions
from model.checkpoints.translator import Translator
from model.trace import Trace
from tests.model.by_hand import PaperModel, positional_encoding
from tests.model.checkpoints.test_language_model import MODERN
from tests.model.strategies import KINDS
from tests.model.tiny import random_checkpoint

SOURCE, TARGET = "A dog runs", "Ein Hund rennt"
HEAD = 1
post_norm_alone = pytest.mark.parametrize("double", ["post"], indirect=True)
"""for what happens before any norm"""


def assert_as_by_hand(translator: Translator, interventions: tuple, **by_hand) -> Trace:
    """The run under `interventions` is PaperModel's with `by_hand`, and not the plain run."""
    trace = translator.trace(SOURCE, TARGET, interventions=interventions)
    paper = PaperModel(translator.model, **by_hand)
    np.testing.assert_allclose(trace.logits, paper.logits(trace.src_ids, trace.tgt_ids), rtol=0, atol=1e-10)
    for address, pattern in paper.patterns.items():
        np.testing.assert_allclose(trace.attentions[address].pattern, pattern, rtol=0, atol=1e-10)
    assert not np.allclose(trace.logits, translator.trace(SOURCE, TARGET).logits), "and it changes something"
    return trace


def in_head(change):
    """`change` for HEAD alone; the other heads stay."""

    def changed(array: np.ndarray) -> np.ndarray:
        return np.stack([change(part) if head == HEAD else part for head, part in enumerate(array)])

    return changed


def row_by_hand(pattern: np.ndarray, kind: str) -> np.ndarray:
    """Weights 3, 0, 1 and 4 in row 2, over the keys that it may see."""
    weights = np.zeros(pattern.shape[1])
    seen = 3 if kind == "decoder_self" else 4
    weights[:seen] = [3, 0, 1, 4][:seen]
    pattern[2] = weights / weights.sum()
    return pattern


def equal_rows(pattern: np.ndarray, kind: str) -> np.ndarray:
    for query, row in enumerate(pattern):
        n = query + 1 if kind == "decoder_self" else len(row)
        row[:n] = 1 / n
    return pattern


def silent_keys(v: np.ndarray, _kind: str) -> np.ndarray:
    v[[0, 1]] = 0
    return v


def weights_in_order(pattern: np.ndarray, kind: str) -> np.ndarray:
    """Each key has the weight of another; a row that cannot see all three keeps its own."""
    moved = np.concatenate([pattern[:, [2, 0, 1]], pattern[:, 3:]], axis=1)
    return np.where(np.arange(len(pattern))[:, None] < 2, pattern, moved) if kind == "decoder_self" else moved


OF_ONE_HEAD = {
    "unscaled": (interventions.Unscaled, "scaled", lambda scaled, _: scaled * math.sqrt(8)),
    "a row": (partial(interventions.PatternEdit, 2, (3.0, 0.0, 1.0, 4.0)), "pattern", row_by_hand),
    "uniform": (interventions.UniformAttention, "pattern", equal_rows),
    "keys without value": (partial(interventions.ValueZeroing, (0, 1, 99)), "v", silent_keys),
    "an order": (partial(interventions.PermutedAttention, 0, (2, 0, 1)), "pattern", weights_in_order),
}
"""name -> the change, what it changes in a head, and how: (array, kind) -> array"""


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", OF_ONE_HEAD)
def test_a_change_of_a_head_is_that_of_the_formulas(double, name, kind):
    change, what, how = OF_ONE_HEAD[name]
    by_hand = {((kind, 1), what): in_head(lambda array: how(array, kind))}
    assert_as_by_hand(double, (change(kind, 1, HEAD),), changes=by_hand)


def test_a_lifted_causal_mask_shows_every_target_word(double):
    by_hand = {(("decoder_self", 1), "mask"): np.ones_like}
    assert_as_by_hand(double, (interventions.LiftCausalMask(1),), changes=by_hand)


def test_forbidden_source_words_get_no_weight_in_encoder_and_cross_attention(double):
    def without(mask: np.ndarray) -> np.ndarray:
        mask[:, :, [0, 2]] = False
        return mask

    by_hand = {((kind, layer), "mask"): without for kind in ("encoder_self", "cross") for layer in (0, 1)}
    trace = assert_as_by_hand(double, (interventions.ForbidSource((0, 2, 99)),), changes=by_hand)
    assert not trace.attention("cross", 1).pattern[..., [0, 2]].any()
    assert_as_by_hand(
        double, (interventions.ForbidSource((0, 2), "cross", 1),), changes={(("cross", 1), "mask"): without}
    )


def test_a_mask_edit_forbids_and_allows_single_cells(double):
    def edited(mask: np.ndarray) -> np.ndarray:
        mask[1, 0], mask[0, 2] = False, True
        return mask

    change = interventions.MaskEdit(((1, 0),), ((0, 2),), "decoder_self", 0, HEAD)
    assert_as_by_hand(double, (change,), changes={(("decoder_self", 0), "mask"): in_head(edited)})


def test_a_row_whose_weights_are_all_on_later_words_stays(double):
    change = interventions.PatternEdit(0, (0.0, 1.0), "decoder_self")
    trace = double.trace(SOURCE, TARGET, interventions=(change,))
    assert np.array_equal(trace.logits, double.trace(SOURCE, TARGET).logits)


@post_norm_alone
@pytest.mark.parametrize("kind", KINDS)
def test_a_seed_deals_each_rows_weights_out_among_the_keys_it_may_see(double, kind):
    before = double.trace(SOURCE, TARGET).attention(kind, 0).pattern
    one, same, other = (
        double.trace(SOURCE, TARGET, interventions=(interventions.PermutedAttention(seed, None, kind, 0),))
        .attention(kind, 0)
        .pattern
        for seed in (1, 1, 2)
    )
    assert np.array_equal(np.sort(one), np.sort(before)), "the same weights in each row"
    assert np.array_equal(one, same)
    assert not np.array_equal(one, other)
    assert not np.array_equal(one, before)
    if kind == "decoder_self":
        assert not np.triu(one, 1).any()


@post_norm_alone
def test_every_permutation_of_three_keys_comes_up(double):
    plain = double.trace(SOURCE, "Hund").attention("decoder_self", 0).pattern[:, 2, :3]
    found = {head: set() for head in range(4)}
    for seed in range(60):
        change = interventions.PermutedAttention(seed, None, "decoder_self", 0)
        row = double.trace(SOURCE, "Hund", interventions=(change,)).attention("decoder_self", 0).pattern[:, 2, :3]
        for head, seen in found.items():
            seen.add(tuple(np.searchsorted(np.sort(plain[head]), row[head]).tolist()))
    assert {len(seen) for seen in found.values()} == {6}


def test_a_frozen_pattern_is_the_other_runs(double):
    cold = (
        double.trace(SOURCE, TARGET, interventions=(interventions.AttentionTemperature(0.3),))
        .attention("cross", 0)
        .pattern
    )
    change = interventions.FrozenPattern.of(cold, "cross", 0)
    assert_as_by_hand(double, (change,), changes={(("cross", 0), "pattern"): lambda _: cold})
    alone = interventions.FrozenPattern.of(cold[:1], "cross", 0, HEAD)
    assert_as_by_hand(double, (alone,), changes={(("cross", 0), "pattern"): in_head(lambda _: cold[0])})


def test_a_frozen_pattern_shows_no_row_what_comes_after_it(double):
    lifted = (
        double.trace(SOURCE, TARGET, interventions=(interventions.LiftCausalMask(),))
        .attention("decoder_self", 1)
        .pattern
    )

    def visible(_) -> np.ndarray:
        past = np.tril(lifted)
        return past / past.sum(axis=-1, keepdims=True)

    change = interventions.FrozenPattern.of(lifted, "decoder_self", 1)
    assert_as_by_hand(double, (change,), changes={(("decoder_self", 1), "pattern"): visible})


@pytest.mark.parametrize(("side", "name"), [("source", "src_embedding"), ("target", "tgt_embedding")])
def test_positions_can_be_left_out_and_shuffled(double, side, name):
    ids = double.trace(SOURCE, TARGET).src_ids if side == "source" else double.trace(SOURCE, TARGET).tgt_ids
    d_model = double.model.config.d_model
    assert_as_by_hand(double, (interventions.PositionsOff(side),), positions={name: np.zeros((len(ids), d_model))})
    encoding = positional_encoding(len(ids), d_model).astype(np.float32)
    encoding[:3] = encoding[[2, 0, 1]]
    assert_as_by_hand(double, (interventions.PositionsShuffled((2, 0, 1), side),), positions={name: encoding})


@pytest.mark.parametrize(
    ("stack", "name"),
    [("encoder", "self_attn"), ("decoder", "self_attn"), ("decoder", "cross_attn"), ("decoder", "feed_forward")],
)
def test_a_sub_layer_or_its_residual_can_be_taken_away(double, stack, name):
    path = frozenset({f"{stack}.layers.1.{name}"})
    assert_as_by_hand(double, (interventions.SublayerOff(stack, 1, name),), off=path)
    assert_as_by_hand(double, (interventions.ResidualOff(stack, 1, name),), unconnected=path)
    assert_as_by_hand(double, (interventions.NormOff(stack, 1, name),), unnormed=path)
    all_three = tuple(kind(stack, 1, name) for kind in (interventions.NormOff, interventions.ResidualOff))
    assert_as_by_hand(double, all_three, unconnected=path, unnormed=path)
    for both in (
        (interventions.ResidualOff(stack, 1, name), interventions.SublayerOff(stack, 1, name)),
        (interventions.SublayerOff(stack, 1, name), interventions.ResidualOff(stack, 1, name)),
    ):
        assert_as_by_hand(double, both, off=path, unconnected=path)


def test_at_the_same_place_the_later_change_gets_what_the_earlier_one_made(double):
    where = {"kind": "cross", "layer": 0}
    cut, uniform = interventions.PatternEdit(0, (1.0,), **where), interventions.UniformAttention(**where)
    last = {order[-1]: double.trace(SOURCE, TARGET, interventions=order) for order in ((cut, uniform), (uniform, cut))}
    row = {change: trace.attention("cross", 0).pattern[0, 0] for change, trace in last.items()}
    np.testing.assert_allclose(row[uniform], 1 / len(row[uniform]), rtol=1e-12)
    assert row[cut].tolist() == [1.0, *[0.0] * (len(row[cut]) - 1)]


def test_the_mask_comes_before_the_pattern_in_any_order(double):
    hidden, uniform = interventions.ForbidSource((0,), "cross"), interventions.UniformAttention("cross")
    for order in ((hidden, uniform), (uniform, hidden)):
        pattern = double.trace(SOURCE, TARGET, interventions=order).attention("cross", 0).pattern
        assert not pattern[..., 0].any()
        np.testing.assert_allclose(pattern[..., 1:], 1 / (pattern.shape[-1] - 1), rtol=1e-12)


def test_a_gate_is_put_on_what_the_zeroed_values_left(double):
    gates, where = np.array([1, 0.5, 1, 1.0]), {"kind": "cross", "layer": 1, "head": HEAD}

    def silent(v: np.ndarray) -> np.ndarray:
        v[0] = 0
        return v

    both = (interventions.HeadGate(0.5, **where), interventions.ValueZeroing((0,), **where))
    assert_as_by_hand(double, both, gates={("cross", 1): gates}, changes={(("cross", 1), "v"): in_head(silent)})


@post_norm_alone
def test_cells_forbidden_in_the_encoder_mean_the_same_in_a_batch_and_with_the_cache(double):
    change = interventions.MaskEdit(((0, 1), (2, 0), (3, 9)), kind="encoder_self")
    slow = interventions.MaskEdit(change.forbid, ((50, 50),), kind="encoder_self")
    texts = ["A dog runs", "A cat", "Two men and a dog"]
    assert change.position_free
    assert not slow.position_free
    together = double.translate(texts, interventions=(change,))
    assert together == [double.translate([text], interventions=(slow,))[0] for text in texts]
    for text in texts:
        cached, whole, plain = (
            double.continue_from(text, (), 1, changes).log_probability for changes in ((change,), (slow,), ())
        )
        assert cached == pytest.approx(whole, abs=1e-9)
        assert abs(cached - plain) > 1e-6


@post_norm_alone
@pytest.mark.parametrize("groups", [1, 2, 4])
@pytest.mark.parametrize("family", ["translator", "lm"])
def test_shared_keys_and_values_are_those_of_mean_pooled_matrices(family, groups, tokenizer, double):
    """Ainslie et al. 2023, section 2.1, done to a copy of the weights; with 4 groups nothing changes."""
    # The language model has grouped queries, RoPE, and a norm of the keys.
    modern = replace(MODERN, vocab_size=len(tokenizer))
    opened = double if family == "translator" else random_checkpoint(modern, tokenizer, torch.float64)
    trace = opened.trace(SOURCE, TARGET)
    pooled = replace(opened, model=copy.deepcopy(opened.model))
    for _, module in pooled.model.attentions().values():
        heads = module.n_kv_heads
        for linear in (module.w_k, module.w_v):
            for weights in filter(lambda part: part is not None, (linear.weight, linear.bias)):
                by_head = weights.data.unflatten(0, (min(groups, heads), -1, len(weights) // heads))
                weights.data.copy_(by_head.mean(dim=1, keepdim=True).expand_as(by_head).flatten(0, 2))
    found = opened.rerun(trace, (interventions.SharedKeysValues(groups),))
    np.testing.assert_allclose(found.logits, pooled.rerun(trace, (interventions.HeadGate(1.0),)).logits, atol=1e-10)
    same = np.allclose(found.logits, trace.logits, rtol=0, atol=1e-12)
    assert same == (groups == 4 or (family == "lm" and groups == 2)), "the language model has two heads of keys"
    first = found.attention(opened.kinds[0].name, 0)
    assert all(np.array_equal(first.k[h], first.k[h - h % (4 // groups)]) for h in range(4))


@post_norm_alone
def test_groups_that_do_not_divide_the_heads_get_a_sentence(double):
    with pytest.raises(ValueError, match="the 4 heads cannot be divided into 3 groups"):
        double.check_intervention(interventions.SharedKeysValues(3))
