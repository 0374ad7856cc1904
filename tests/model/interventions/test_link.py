"""Links hold interventions: what is written is read back, and whatever is read is an intervention or a sentence."""

import json
import re
from dataclasses import fields

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from model import interventions
from model.interventions.link import MAX_CHARACTERS, MAX_INTERVENTIONS, TYPES, decode, encode
from model.network.config import TransformerConfig
from tests.model import strategies

CONFIG = TransformerConfig(vocab_size=360, d_model=32, n_heads=4, d_ff=16)
some = settings(suppress_health_check=[HealthCheck.too_slow])
lists = st.lists(strategies.interventions(CONFIG, False), max_size=5).map(tuple)
NAMES = ["temperature", "gate", "mask", "pattern", "permuted", "positions-off", "sublayer-off", "lift-causal-mask"]
WORDS = ["encoder", "cross", "decoder_self", "mean", "zero", "source", "target"]
SIGNS = [*":;@,-.*", "0", "1", "0.5", "1e5", "nan", "9999999999999", "-1"]
pieces = st.sampled_from(NAMES + WORDS + SIGNS)
FIELDS = sorted({field.name for type in TYPES.values() for field in fields(type)} | {"other"})
values = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 4) | st.floats() | st.sampled_from([*WORDS, "x"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(FIELDS), inner, max_size=2),
    max_leaves=6,
)
named = st.tuples(st.sampled_from([*TYPES, "x"]), st.dictionaries(st.sampled_from(FIELDS), values, max_size=4))
forged = (st.lists(named | values, max_size=3) | values).map(json.dumps)


def read(text: str) -> tuple[tuple[interventions.Intervention, ...], str | None]:
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
    assert "+" not in text, "a link reads it as a space"


@some
@given(st.text(max_size=60) | st.lists(pieces, max_size=12).map("".join) | forged)
def test_any_text_is_read_or_refused_in_a_sentence(text):
    changes, refusal = read(text)
    assert refusal is None or (refusal[-1] in ".?" and len(refusal) < 400)
    assert decode(encode(changes)) == changes
    assert all(interventions.describe(change).endswith(".") for change in changes)


OLD_LINKS = {
    "temperature:0.5@cross.3.0": interventions.AttentionTemperature(0.5, "cross", 3, 0),
    "temperature:1e30": interventions.AttentionTemperature(1e30),
    "gate:0:mean@*.1": interventions.HeadGate(0, layer=1, mode="mean"),
    "mask:0-2,1-2:@decoder_self": interventions.MaskEdit(((0, 2), (1, 2)), kind="decoder_self"),
    "permuted:7:*@cross": interventions.PermutedAttention(7, kind="cross"),
    "permuted:0:1,0": interventions.PermutedAttention(order=(1, 0)),
    "lift-causal-mask@1": interventions.LiftCausalMask(1),
    "positions-off:*": interventions.PositionsOff(),
    "sublayer-off@encoder.0.feed_forward": interventions.SublayerOff("encoder", 0, "feed_forward"),
    "pattern:2:0.5,0,1e-3@cross": interventions.PatternEdit(2, (0.5, 0, 1e-3), "cross"),
    "zero-values:0,3": interventions.ValueZeroing((0, 3)),
    "positions-shuffled:1,0:target": interventions.PositionsShuffled((1, 0), "target"),
    "forbid-source:1@*.0": interventions.ForbidSource((1,), layer=0),
    "unscaled": interventions.Unscaled(),
    "uniform@cross": interventions.UniformAttention("cross"),
    "residual-off": interventions.ResidualOff(),
}


def test_links_of_the_old_form_are_read():
    assert {link: decode(link) for link in OLD_LINKS} == {link: (change,) for link, change in OLD_LINKS.items()}
    assert decode(";".join(OLD_LINKS)) == tuple(OLD_LINKS.values())
    assert decode("") == ()


def test_a_link_is_json_of_names_and_of_the_fields_that_are_not_their_defaults():
    changes = (interventions.HeadGate(0, layer=1, mode="mean"), interventions.MaskEdit(((0, 2), (1, 2)), kind="cross"))
    written = [["HeadGate", {"gate": 0, "layer": 1, "mode": "mean"}]]
    written += [["MaskEdit", {"forbid": [[0, 2], [1, 2]], "kind": "cross"}]]
    assert json.loads(encode(changes)) == written
    assert encode(()) == ""
    assert " " not in encode(changes), "a link has room for 4,000 characters"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("__import__:os", "unknown change '__import__'"),
        ("temperature:0", "AttentionTemperature cannot be read: tau must be a number above 0"),
        ("temperature:x", "a number is expected"),
        ("temperature:1:2", "temperature has 2 values"),
        ("temperature:1@cross.0.0.0", "4 places"),
        ("temperature:1@left", "kind must be one of encoder_self, decoder_self, cross, got 'left'"),
        ("mask:1:", "a cell is a pair (query, key)"),
        (";", "unknown change ''"),
        ('[["HeadGate",{"gate":0', "was it cut off"),
        ("[" * 3000, "was it cut off"),
        ('[["__import__",{}]]', "unknown change '__import__'"),
        ('[["HeadGate"]]', "a pair of a name and its fields"),
        ('[["HeadGate",{"gate":2}]]', "gate must lie in [0, 1], got 2"),
        ('[["HeadGate",{"gate":0,"layer":true}]]', "a layer must be a whole number from 0 on"),
        ('[["HeadGate",{"gate":0,"head":-1}]]', "a head must be a whole number from 0 on"),
        ('[["HeadGate",{"gate":"0"}]]', "a field that it does not take"),
        ('[["HeadGate",{"volume":1}]]', "a field that it does not take"),
        ('[["PatternMask",{"window":1e400}]]', "a window must be a whole number from 0 on, got inf"),
        ('[["PatternMask",{"global_tokens":3}]]', "a field that it does not take"),
        ('[["PatternMask",{"global_tokens":["a"]}]]', "a position must be a whole number from 0 on, got 'a'"),
        ('[["MaskEdit",{"forbid":[[0,0.5]]}]]', "a position must be a whole number from 0 on"),
        ('[["FrozenPattern",{}]]', "unknown change 'FrozenPattern'"),
        ("x" * (MAX_CHARACTERS + 1), "at most 4,000 are read"),
        (";".join(["unscaled"] * (MAX_INTERVENTIONS + 1)), "names 33 changes"),
    ],
)
def test_a_forged_link_is_refused_in_a_sentence(text, sentence):
    with pytest.raises(ValueError, match=re.escape(sentence)):
        decode(text)


def test_what_no_link_has_room_for_is_not_written():
    with pytest.raises(ValueError, match="at most 32 changes; there are 33"):
        encode((interventions.LiftCausalMask(),) * 33)
    with pytest.raises(ValueError, match="a link holds at most 4,000"):
        encode((interventions.ForbidSource(tuple(range(2000))),))
    with pytest.raises(ValueError, match="do not fit into a link"):
        encode((interventions.FrozenPattern((((1.0,),),)),))
