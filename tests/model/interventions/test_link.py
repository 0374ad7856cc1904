"""Links hold interventions: what is written is read back, and whatever is read is an intervention or a sentence."""

import re

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from model.interventions import (
    AttentionTemperature,
    ForbidSource,
    FrozenPattern,
    HeadGate,
    Intervention,
    LiftCausalMask,
    MaskEdit,
    PermutedAttention,
    PositionsOff,
    SublayerOff,
    describe,
)
from model.interventions.link import MAX_CHARACTERS, MAX_INTERVENTIONS, decode, encode
from model.network.config import TransformerConfig
from tests.model.strategies import interventions

CONFIG = TransformerConfig(vocab_size=360, d_model=32, n_heads=4, d_ff=16)
some = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
lists = st.lists(interventions(CONFIG, False), max_size=5).map(tuple)
NAMES = ["temperature", "gate", "mask", "pattern", "permuted", "positions-off", "sublayer-off", "lift-causal-mask"]
WORDS = ["encoder", "cross", "decoder_self", "mean", "zero", "source", "target"]
SIGNS = [*":;@,-.*", "0", "1", "0.5", "1e5", "nan", "9999999999999", "-1"]
pieces = st.sampled_from(NAMES + WORDS + SIGNS)


def read(text: str) -> tuple[tuple[Intervention, ...], str | None]:
    """What `text` holds, or why it holds nothing."""
    try:
        return decode(text), None
    except ValueError as error:
        return (), str(error)


@some
@given(lists)
def test_what_is_written_is_read_back(changes):
    text = encode(changes)
    assert decode(text) == changes
    assert encode(decode(text)) == text
    assert re.fullmatch(r"[A-Za-z0-9_.,:;@*-]*", text), "and needs no escaping that a person would stumble over"


@some
@given(st.text(max_size=60) | st.lists(pieces, max_size=12).map("".join))
def test_any_text_is_read_or_refused_in_a_sentence(text):
    changes, refusal = read(text)
    assert refusal is None or (refusal.endswith(".") and len(refusal) < 400)
    assert decode(encode(changes)) == changes
    assert all(describe(change).endswith(".") for change in changes)


@pytest.mark.parametrize(
    ("text", "changes"),
    [
        ("", ()),
        ("temperature:0.5@cross.3.0", (AttentionTemperature(0.5, "cross", 3, 0),)),
        ("temperature:1e30", (AttentionTemperature(1e30),)),
        ("gate:0:mean@*.1", (HeadGate(0, layer=1, mode="mean"),)),
        ("mask:0-2,1-2:@decoder_self", (MaskEdit(((0, 2), (1, 2)), kind="decoder_self"),)),
        ("permuted:7:*@cross;permuted:0:1,0", (PermutedAttention(7, kind="cross"), PermutedAttention(order=(1, 0)))),
        ("lift-causal-mask@1;positions-off:*", (LiftCausalMask(1), PositionsOff())),
        ("sublayer-off@encoder.0.feed_forward", (SublayerOff("encoder", 0, "feed_forward"),)),
    ],
)
def test_a_person_can_read_the_text(text, changes: tuple[Intervention, ...]):
    assert decode(text) == changes
    assert encode(changes) == text


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("__import__:os", "unknown change '__import__'"),
        ("temperature:0", "temperature cannot be read: tau must be a number above 0"),
        ("temperature:nan", "'nan' is not a number"),
        ("temperature:1:2", "temperature has 2 values"),
        ("temperature:1@cross.0.0.0", "4 places"),
        ("temperature:1@left", "'left' is none of encoder_self"),
        ("forbid-source:٣", "is not a whole number"),
        ("mask:1:", "is not a cell such as 0-2"),
        (";", "unknown change ''"),
        ("x" * (MAX_CHARACTERS + 1), "at most 4,000 are read"),
        (";".join(["unscaled"] * (MAX_INTERVENTIONS + 1)), "names 33 changes"),
    ],
)
def test_a_forged_link_is_refused_in_a_sentence(text, sentence):
    with pytest.raises(ValueError, match=re.escape(sentence)):
        decode(text)


def test_what_no_link_has_room_for_is_not_written():
    with pytest.raises(ValueError, match="at most 32 changes; there are 33"):
        encode((LiftCausalMask(),) * 33)
    with pytest.raises(ValueError, match="a link holds at most 4,000"):
        encode((ForbidSource(tuple(range(2000))),))
    with pytest.raises(ValueError, match="do not fit into a link"):
        encode((FrozenPattern((((1.0,),),)),))
