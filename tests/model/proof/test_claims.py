"""The picture is the model: what the page "Verification" measures holds for any run, and every claim can fail."""

import dataclasses
import math
import re
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from model.checkpoints.store import load_checkpoint
from model.interventions import (
    AttentionTemperature,
    ForbidSource,
    FrozenPattern,
    HeadGate,
    LiftCausalMask,
    MaskEdit,
    PermutedAttention,
    PositionsShuffled,
    ValueZeroing,
)
from model.proof.claims import CLAIMS, Claim, double_case, measure_claim
from model.proof.measures import Case
from model.trace import Trace
from tests.model.proof.test_checks import altered, nudged
from tests.model.strategies import KINDS, assert_bit_equal, few, runs, short_texts, with_stream
from tests.model.tiny import random_model

ROOT = Path(__file__).parents[3]
MEASURABLE = [claim for claim in CLAIMS if claim.measure]


def failures(case: Case, claims: Sequence[Claim]) -> dict[str, tuple[float | None, float | None]]:
    """Label -> the errors of each claim that does not hold, in the run's own precision and in double."""
    double = double_case(case)
    measured = [measure_claim(claim, case, double) for claim in claims]
    return {each.claim.label: (each.error, each.double) for each in measured if not each.holds}


@few
@given(runs(changed=False), runs(), st.sampled_from(KINDS))
def test_what_the_page_measures_of_a_claim_holds_for_every_run(plain, changed, kind):
    """With dropout in its configuration, and with up to two changes at work; claim 20 needs a file of weights."""
    claims = [claim for claim in MEASURABLE if claim.number != 20]
    # A loop, and not a parameter: to draw the models, and to run them in double, takes longer than most claims do.
    with short_texts():
        for run in (plain, changed):
            last = run.translator.model.config.n_heads - 1
            assert failures(Case(run.translator, run.trace, kind, 0, last), claims) == {}


def of(number: int) -> Claim:
    return next(claim for claim in MEASURABLE if claim.number == number)


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


def test_15_renormalising_the_smallest_numbers_does_not_overflow(translator):
    cold = translator.trace("Two dogs", "Zwei Hunde", interventions=(AttentionTemperature(0.02),))
    assert failures(Case(translator, cold, "cross", 0, 0), [of(15)]) == {}


def test_20_the_hash_that_exports_name_is_that_of_the_file(checkpoint_folder):
    assert checkpoint_folder.is_dir()
    opened = load_checkpoint(device="cpu")
    case = Case(opened, opened.trace("Two dogs", "Zwei Hunde"), "cross", 0, 0)
    assert of(20).measure(case) == 0
    other = dataclasses.replace(case, trace=dataclasses.replace(case.trace, checkpoint_hash="x" * 64))
    assert of(20).measure(other) == 64


@pytest.fixture(scope="module")
def honest(translator) -> Case:
    return Case(translator, translator.trace("Two dogs play.", "Zwei Hunde spielen."), "cross", 1, 0)


def with_first(trace: Trace, kind: str, name: str, turned) -> Trace:
    return altered(trace, kind, **{name: turned(getattr(trace.attention(kind, 1), name))})


def swapped(array: np.ndarray) -> np.ndarray:
    """The first two heads in each other's place."""
    return array[[1, 0, *range(2, len(array))]]


def first_head_twice(z: np.ndarray) -> np.ndarray:
    return np.concatenate([2 * z[:1], z[1:]])


def wrong_head(trace: Trace) -> Trace:
    learned = trace.attention("cross", 1).projections
    return altered(trace, "cross", projections=dataclasses.replace(learned, w_q=swapped(learned.w_q)))


def bias_twice(trace: Trace) -> Trace:
    attention = trace.attention("cross", 1)
    return altered(trace, "cross", out=attention.out + attention.projections.b_o)


def shifted_positions(trace: Trace) -> Trace:
    embedded = trace.src_embedded
    return with_stream(trace, "encoder", embedded=dataclasses.replace(embedded, positional=embedded.positional + 1e-4))


def likelier(trace: Trace) -> Trace:
    first = dataclasses.replace(trace.candidates[0][0], probability=trace.candidates[0][0].probability + 1e-6)
    return dataclasses.replace(trace, candidates=((first, *trace.candidates[0][1:]), *trace.candidates[1:]))


nudged_pattern = partial(with_first, kind="decoder_self", name="pattern", turned=partial(nudged, by=1e-4))
LIES = {
    1: nudged_pattern,
    2: lambda trace: dataclasses.replace(trace, logits=nudged(trace.logits, 1e-4)),
    3: partial(with_first, kind="encoder_self", name="scores", turned=lambda a: np.array(a.swapaxes(1, 2))),
    4: bias_twice,
    5: nudged_pattern,
    7: lambda trace: dataclasses.replace(trace, logits=nudged(trace.logits)),
    8: lambda trace: dataclasses.replace(trace, logits=nudged(trace.logits)),
    9: nudged_pattern,
    10: partial(with_first, kind="cross", name="z", turned=swapped),
    12: partial(with_first, kind="encoder_self", name="scores", turned=lambda a: np.array(a.swapaxes(1, 2))),
    14: likelier,
    16: nudged_pattern,
    17: shifted_positions,
    19: wrong_head,
    21: partial(with_first, kind="decoder_self", name="z", turned=first_head_twice),
    22: lambda trace: with_stream(trace, "encoder", final=nudged(trace.memory)),
}


@pytest.mark.parametrize("number", LIES)
def test_a_lie_is_noticed_by_the_claim_that_forbids_it(honest, number):
    claim, lie = of(number), dataclasses.replace(honest, trace=LIES[number](honest.trace))
    assert claim.measure(honest) <= claim.tolerance
    assert not claim.measure(lie) <= claim.tolerance


def test_6_a_row_that_sees_the_future_is_noticed(honest, monkeypatch):
    """The mask on screen says causal, the model is not: only running it again with another future can tell."""
    lifted = torch.ones(1, 1, 1, 1, dtype=torch.bool)
    monkeypatch.setattr("model.network.encoder_decoder.causal_mask", lambda *_args: lifted)
    assert of(6).measure(honest) > 1e-3


@pytest.mark.parametrize("name", ["k", "v", "scores", "out"])
def test_6_every_result_of_a_row_is_compared(honest, monkeypatch, name):
    path = f"decoder.layers.1.self_attn.{name}"
    record = type(honest.opened).record

    def altered_before(self, trace, interventions, tgt_ids=None):
        found = record(self, trace, interventions, tgt_ids)
        if tgt_ids is None:
            found[path] = nudged(found[path], 1e-3)
        return found

    monkeypatch.setattr(type(honest.opened), "record", altered_before)
    assert of(6).measure(honest) > 1e-4


def test_6_says_why_it_does_not_apply_where_the_mask_was_lifted(translator):
    trace = translator.trace("Two dogs", "Zwei Hunde", interventions=(LiftCausalMask(),))
    assert "was lifted" in of(6).measure(Case(translator, trace, "cross", 0, 0))


def test_1_training_mode_is_noticed(tiny_config, translator):
    model = random_model(tiny_config)
    loud = dataclasses.replace(translator, model=model)
    trace = loud.trace("Two dogs", "Zwei Hunde")
    model.decoder.layers[0].train()
    assert of(1).measure(Case(loud, trace, "cross", 0, 0)) == math.inf


def test_20_is_not_asked_of_a_model_that_no_file_holds(honest):
    unsaved = dataclasses.replace(honest, trace=dataclasses.replace(honest.trace, checkpoint="not-saved"))
    assert isinstance(of(20).measure(unsaved), str)


def test_a_mistake_is_as_large_in_double_precision_and_rounding_is_not(honest):
    double = double_case(honest)
    claim = of(4)
    assert claim.measure(double) < 1e-6 * max(claim.measure(honest), 1e-9)
    for case in (honest, double):
        lie = dataclasses.replace(case, trace=bias_twice(case.trace))
        assert claim.measure(lie) > 0.01


def test_the_claims_are_numbered_from_1_to_22_and_each_is_measured_or_has_a_test_that_carries_its_number():
    assert sorted({claim.number for claim in CLAIMS}) == list(range(1, 23))
    assert len({claim.label for claim in CLAIMS}) == len(CLAIMS), "two measurements of one claim have a and b"
    names = " ".join(path.read_text("utf-8") for path in (ROOT / "tests").rglob("test_*.py"))
    for number in {claim.number for claim in CLAIMS} - {claim.number for claim in MEASURABLE}:
        assert re.search(rf"^def test_(\d+_)*{number}_", names, re.MULTILINE), number
