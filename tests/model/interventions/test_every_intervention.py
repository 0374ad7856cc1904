"""What holds for every change to the model: in decoding, in batches, in links, between visitors, at extremes."""

import copy
import math
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import FrozenInstanceError, replace
from functools import partial

import numpy as np
import pytest
import torch

from model import interventions
from model.checkpoints.translator import Translator
from model.generation.search import beam_search, greedy
from model.network.config import BOS
from model.network.masks import padding_mask
from model.proof.checks import prove
from tests.model.strategies import arrays, assert_bit_equal, short_texts
from tests.model.tiny import random_checkpoint

SOURCE, TARGET = "Two dogs play", "Zwei Hunde rennen"
THREE_ROWS = ((0.0, 0.5, 0.5), (0.25, 0.75, 0.0), (0.2, 0.3, 0.5))
EVERY = (
    interventions.AttentionTemperature(0.4),
    interventions.Unscaled(),
    interventions.MaskEdit(((2, 0), (1, 1)), (), head=1),
    interventions.ForbidSource((0, 3)),
    interventions.PatternMask(window=2),
    interventions.PatternMask(window=1, stride=3, kind="decoder_self"),
    interventions.PatternMask(window=1, global_tokens=(0, 9), layer=1),
    interventions.PatternMask(block=2, kind="encoder_self", layer=0),
    interventions.LiftCausalMask(),
    interventions.HeadGate(0.3, head=2),
    interventions.HeadGate(0.0, mode="mean", layer=0),
    interventions.PatternEdit(2, (0.0, 3.0, 1.0)),
    interventions.UniformAttention(layer=0),
    interventions.PermutedAttention(5),
    interventions.PermutedAttention(order=(1, 2, 0)),
    interventions.FrozenPattern((THREE_ROWS,), kind="decoder_self"),
    interventions.ValueZeroing((0, 2)),
    interventions.ValueZeroing((0, 2), kind="cross"),
    interventions.SharedKeysValues(2),
    interventions.SharedKeysValues(1, "cross", 1),
    interventions.PositionsOff(),
    interventions.PositionsShuffled((3, 1, 0, 2), "source"),
    interventions.PositionsShuffled((3, 1, 0, 2), "target"),
    interventions.SublayerOff("decoder", 0, "self_attn"),
    interventions.ResidualOff("encoder", 1, "feed_forward"),
    interventions.NormOff("decoder", 1, "cross_attn"),
)
ANY = np.random.default_rng(0)
EVERY += (
    interventions.Patch("encoder.layers.0.self_attn_residual.before", ANY.normal(size=(5, 32)), (1, (2, 4))),
    interventions.Patch("decoder.layers.1.cross_attn.z", ANY.normal(size=(4, 3, 8)), head=2),
    interventions.Patch("decoder.layers.0.self_attn.scores", ANY.normal(size=(4, 3, 3)), (2,)),
    interventions.Patch("decoder.layers.1.feed_forward.out", ANY.normal(size=(9, 32)), ((0, 7), (2, 8))),
    interventions.Patch("src_embedding.positional", ANY.normal(size=(4, 32)), (0,)),
)
every = pytest.mark.parametrize("change", EVERY, ids=lambda change: repr(change)[:60])


@pytest.fixture(scope="module")
def double(tiny_config, tokenizer) -> Translator:
    """Random weights rarely end a text: few positions keep searches short."""
    return random_checkpoint(replace(tiny_config, max_len=32), tokenizer, torch.float64)


@every
@torch.inference_mode()
def test_step_t_of_decoding_is_row_t_of_the_trace(double, change):
    """Cached, where the change says that it may be; and then no row has learned of a later one."""
    trace, model = double.trace(SOURCE, TARGET, interventions=(change,)), double.model
    src, tgt = torch.tensor([trace.src_ids]), torch.tensor([trace.tgt_ids])
    # With the mask lifted, only the last row has seen no more than its own step has.
    first = len(trace.tgt_ids) - 1 if isinstance(change, interventions.LiftCausalMask) else 0
    with interventions.applied(model, (change,)):
        src_mask, cache = padding_mask(src), model.new_cache()
        memory = model.encode(src, src_mask)
        for t in range(first, tgt.shape[1]):
            whole = model.decode(tgt[:, : t + 1], memory, src_mask)[0, -1]
            np.testing.assert_allclose(whole, trace.logits[t], rtol=0, atol=1e-10)
            if change.position_free:
                step = model.decode_next(tgt[:, t], t, memory, src_mask, cache)[0]
                np.testing.assert_allclose(step, trace.logits[t], rtol=0, atol=1e-10)


@pytest.mark.parametrize("change", [change for change in EVERY if change.position_free], ids=lambda c: repr(c)[:60])
def test_searches_with_and_without_a_cache_find_the_same(double, change):
    sources = [[*double.tokenizer.encode(text), 3] for text in (SOURCE, "The cat sat on the mat.")]
    with short_texts(8), interventions.applied(double.model, (change,)):
        for search in (greedy, lambda *args, **kwargs: [found[0] for found in beam_search(*args, **kwargs)]):
            cached, whole = (search(double.model, sources, use_cache=use_cache) for use_cache in (True, False))
            assert [h.tokens for h in cached] == [h.tokens for h in whole]
            np.testing.assert_allclose(
                [h.log_probability for h in cached], [h.log_probability for h in whole], atol=1e-3
            )


@every
def test_a_trace_under_it_is_proved(translator, change):
    trace = translator.trace(SOURCE, TARGET, interventions=(change,))
    for check in prove(translator, trace):
        assert check.passed, (check.title, check.error)
    assert not np.array_equal(trace.logits, translator.trace(SOURCE, TARGET).logits), "and it does change something"


@every
def test_what_is_decoded_under_it_is_what_is_traced(translator, change):
    with short_texts(8):
        trace = translator.trace(SOURCE, beam_size=1, interventions=(change,))
        assert translator.translate([SOURCE], 1, interventions=(change,)) == [trace.translation]


@every
def test_it_is_described_in_one_sentence_frozen_and_hashable(change):
    sentence = interventions.describe(change)
    assert sentence[0].isupper()
    assert sentence.endswith(".")
    assert sentence.count(". ") == 0
    again = copy.deepcopy(change)
    if not isinstance(change, interventions.Patch):  # which shows the hash of its values, not the values
        again = eval(repr(change), dict(vars(interventions)))
    assert again == change
    assert hash(again) == hash(change)
    with pytest.raises(FrozenInstanceError):
        change.layer = 3


def test_every_change_has_words_of_its_own():
    assert len({interventions.describe(change) for change in EVERY}) == len(EVERY)


def test_a_search_with_a_frozen_pattern_puts_each_row_as_soon_as_it_is_there(double):
    pattern = double.trace(SOURCE, TARGET).attention("decoder_self", 0).pattern
    frozen = interventions.FrozenPattern.of(pattern, "decoder_self", 0)
    found = double.trace("A man rides a red bicycle", beam_size=1, interventions=(frozen,))
    rows = min(len(pattern[0]), len(found.tgt_ids))
    shown = found.attention("decoder_self", 0).pattern
    np.testing.assert_allclose(shown[:, :rows, :rows], pattern[:, :rows, :rows], rtol=0, atol=1e-12)
    assert not np.triu(shown, 1).any()


@pytest.mark.parametrize("kind", ["encoder_self", "cross"])
def test_a_frozen_pattern_that_does_not_fit_is_refused_in_a_sentence(double, kind):
    frozen = interventions.FrozenPattern.of(double.trace(SOURCE, TARGET).attention(kind, 0).pattern, kind, 0)
    with pytest.raises(ValueError, match=r"the frozen pattern has \d+ rows and \d+ keys, which does not fit"):
        double.trace("A man rides a red bicycle", TARGET, interventions=(frozen,))
    two_heads = interventions.FrozenPattern(((*THREE_ROWS,), (*THREE_ROWS,)), kind)
    with pytest.raises(ValueError, match="the pattern has 2 heads; the model has 4"):
        double.trace(SOURCE, TARGET, interventions=(two_heads,))


NO_TEMPERATURES = (0, -1.0, math.nan, math.inf, 1e-40, 1e39)
EXTREMES = (
    interventions.AttentionTemperature(1e30),
    interventions.PatternEdit(1, (1e-300, 1e300)),
    interventions.PatternEdit(0, (5e-324,)),
    interventions.PermutedAttention(2**32 - 1),
    interventions.ForbidSource(tuple(range(300))),
    interventions.ValueZeroing(tuple(range(300))),
    interventions.PatternMask(10**30, 10**30, (10**30,), 10**30),
    interventions.PatternMask(stride=1, global_tokens=tuple(range(300))),
    interventions.PositionsShuffled(tuple(reversed(range(100)))),
    interventions.MaskEdit(forbid=tuple((q, k) for q in range(30) for k in range(30))),
    interventions.SublayerOff(),
    interventions.ResidualOff(),
    interventions.NormOff(),
)


BESIDE = (
    (),
    (interventions.Unscaled(), interventions.AttentionTemperature(1e-30)),
    (interventions.SublayerOff(), interventions.ResidualOff()),
)
TEXTS = ("a", "A dog runs through the white snow. " * 2)
DEALT = [(a, b, TEXTS[(i + j) % 2]) for i, a in enumerate(EXTREMES) for j, b in enumerate(BESIDE)]
"""each change beside each of the others, on one text and the other in turn"""


@pytest.mark.parametrize(("change", "beside", "text"), DEALT)
def test_extremes_neither_overflow_nor_break(translator, change, beside, text):
    trace = translator.trace(text, text, interventions=(change, *beside))
    assert all(np.isfinite(array).all() for _, array in arrays(trace))
    assert all(check.passed for check in prove(translator, trace))


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        *(
            (partial(interventions.AttentionTemperature, tau), "tau must be a number above 0")
            for tau in NO_TEMPERATURES
        ),
        *((partial(interventions.HeadGate, gate), "gate must lie in") for gate in (-0.1, 1.1, math.nan)),
        (lambda: interventions.HeadGate(0.5, mode="median"), "mode must be zero or mean"),
        (lambda: interventions.HeadGate(0.5, kind="self"), "kind must be one of"),
        (lambda: interventions.HeadGate(0.5, head=-1), "a head must be a whole number"),
        (lambda: interventions.MaskEdit(forbid=((0, -1),)), "a position must be a whole number from 0"),
        (lambda: interventions.PatternEdit(0, (0.0, 0.0)), "one at least above 0"),
        (lambda: interventions.PatternEdit(0, ()), "one at least above 0"),
        (lambda: interventions.PatternEdit(0, (1.0, -1.0)), "must be finite and not negative"),
        (lambda: interventions.PatternEdit(0, (float("nan"),)), "must be finite and not negative"),
        (lambda: interventions.PatternEdit(-1, (1.0,)), "a position must be a whole number from 0"),
        (lambda: interventions.ForbidSource((-1,)), "a position must be a whole number from 0"),
        (lambda: interventions.ForbidSource((0,), "decoder_self"), "decoder_self has no source keys"),
        (lambda: interventions.ValueZeroing((0.5,)), "a position must be a whole number from 0"),
        (lambda: interventions.PermutedAttention(-1), "seed must be"),
        (lambda: interventions.PermutedAttention(order=(0, 2)), "each position from 0 on exactly once"),
        (lambda: interventions.PositionsShuffled((1, 1)), "each position from 0 on exactly once"),
        (lambda: interventions.PositionsShuffled((0,), None), "side must be source or target"),
        (lambda: interventions.PositionsOff("both"), "side must be one of"),
        (lambda: interventions.PatternMask(), "needs a window, a stride, global tokens or a block"),
        (lambda: interventions.PatternMask(0), "a window must be a whole number from 1 on"),
        (lambda: interventions.PatternMask(stride=2.5), "a stride must be a whole number"),
        (lambda: interventions.PatternMask(global_tokens=(-1,)), "a position must be a whole number from 0"),
        (lambda: interventions.PatternMask(2, kind="cross"), "cross-attention joins two texts"),
        (lambda: interventions.SharedKeysValues(0), "from 1 on"),
        (lambda: interventions.SharedKeysValues(1.5), "must be a whole number"),
        (lambda: interventions.SublayerOff("middle"), "stack must be one of"),
        (lambda: interventions.FrozenPattern(((),)), "the same numbers of rows and keys"),
        (lambda: interventions.FrozenPattern((((0.5,), (0.5, 0.5)),)), "the same numbers of rows and keys"),
        (lambda: interventions.FrozenPattern((((float("inf"),),),)), "must be finite"),
        (lambda: interventions.FrozenPattern.of(np.ones((2, 2))), "a pattern must be"),
    ],
)
def test_what_means_nothing_is_refused_in_a_sentence(wrong, sentence):
    with pytest.raises(ValueError, match=sentence):
        wrong()


def test_an_address_that_the_model_lacks_is_refused(translator):
    for change in (
        interventions.SublayerOff("encoder", 0, "cross_attn"),
        interventions.ResidualOff(layer=9),
        interventions.NormOff("encoder", name="cross_attn"),
        interventions.ForbidSource((0,), layer=7),
        interventions.PatternMask(2, layer=9),
        interventions.AttentionTemperature(2.0, layer=2),
        interventions.AttentionTemperature(2.0, head=4),
    ):
        with pytest.raises(ValueError, match="the model has no"):
            translator.trace(SOURCE, TARGET, interventions=(change,))
    with pytest.raises(ValueError, match="the order has 200 positions; the model has 128"):
        translator.trace(SOURCE, TARGET, interventions=(interventions.PositionsShuffled(tuple(range(200))),))


def test_16_visitors_with_16_temperatures_and_other_changes_get_what_each_gets_alone(translator):
    taus = np.geomspace(0.1, 10, 16).tolist()
    lists = [(interventions.AttentionTemperature(tau), change) for tau, change in zip(taus, EVERY, strict=False)]
    start = threading.Barrier(16)

    def visit(changes: tuple[interventions.Intervention, ...]) -> list:
        start.wait()
        return [translator.trace(SOURCE, TARGET, interventions=changes) for _ in range(3)]

    alone = [translator.trace(SOURCE, TARGET, interventions=changes) for changes in lists]
    with ThreadPoolExecutor(16) as pool:
        for expected, traces in zip(alone, pool.map(visit, lists), strict=True):
            for found in traces:
                assert_bit_equal(expected, found)
    assert len({trace.logits.tobytes() for trace in alone}) == 16
    assert alone[0].tgt_ids[0] == BOS
