"""Interventions as a short line of text for a link, and back.

One part per intervention, joined by `;`: a name, its values after colons, its address after `@`, in which `*` means all
and what is left out at the end is `*` too:

    temperature:0.5@cross.3.0;gate:0:mean@*.1;mask:0-2,1-2:@decoder_self;positions-shuffled:2,0,1:source;sublayer-off@encoder
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any

from model.interventions import (
    KINDS,
    SIDES,
    STACKS,
    SUBLAYERS,
    AttentionTemperature,
    ForbidSource,
    FrozenPattern,
    HeadGate,
    Intervention,
    LiftCausalMask,
    MaskEdit,
    PatternEdit,
    PermutedAttention,
    PositionsOff,
    PositionsShuffled,
    ResidualOff,
    SublayerOff,
    UniformAttention,
    Unscaled,
    ValueZeroing,
)

MAX_INTERVENTIONS = 32
MAX_CHARACTERS = 4000
"""Browsers and servers take links of some 8,000 characters."""

WHOLE = re.compile("0|[1-9][0-9]{0,9}")
NUMBER = re.compile(r"[0-9]{1,20}(\.[0-9]{1,20})?(e-?[0-9]{1,3})?")


@dataclass(frozen=True)
class _Text:
    """How one value is written and read."""

    write: Callable[[Any], str]
    read: Callable[[str], Any]


def _whole(text: str) -> int:
    if not WHOLE.fullmatch(text):
        raise ValueError(f"{_shown(text)} is not a whole number from 0 on")
    return int(text)


def _number(text: str) -> float:
    if not NUMBER.fullmatch(text):
        raise ValueError(f"{_shown(text)} is not a number from 0 on")
    return float(text)


def _written(number: float) -> str:
    # A link reads + as a space; -0.0 is 0.
    return repr(float(number) + 0.0).replace("e+", "e").removesuffix(".0")


def _listed(item: _Text) -> _Text:
    def read(text: str) -> tuple:
        return tuple(item.read(part) for part in text.split(",")) if text else ()

    return _Text(lambda values: ",".join(map(item.write, values)), read)


def _cell(text: str) -> tuple[int, int]:
    query, found, key = text.partition("-")
    if not found:
        raise ValueError(f"{_shown(text)} is not a cell such as 0-2 (query-key)")
    return _whole(query), _whole(key)


def _optional(item: _Text, none: str) -> _Text:
    return _Text(
        lambda value: none if value is None else item.write(value),
        lambda text: None if text == none else item.read(text),
    )


def _choice(allowed: Sequence[str]) -> _Text:
    def read(text: str) -> str:
        if text not in allowed:
            raise ValueError(f"{_shown(text)} is none of {', '.join(allowed)}")
        return text

    return _Text(str, read)


_WHOLE, _NUMBER = _Text(str, _whole), _Text(_written, _number)
_POSITIONS, _CELLS = _listed(_WHOLE), _listed(_Text(lambda cell: f"{cell[0]}-{cell[1]}", _cell))
_VALUES = {
    AttentionTemperature: ("temperature", {"tau": _NUMBER}),
    Unscaled: ("unscaled", {}),
    HeadGate: ("gate", {"gate": _NUMBER, "mode": _choice(("zero", "mean"))}),
    MaskEdit: ("mask", {"forbid": _CELLS, "allow": _CELLS}),
    ForbidSource: ("forbid-source", {"positions": _POSITIONS}),
    LiftCausalMask: ("lift-causal-mask", {}),
    PatternEdit: ("pattern", {"query": _WHOLE, "weights": _listed(_NUMBER)}),
    UniformAttention: ("uniform", {}),
    PermutedAttention: ("permuted", {"seed": _WHOLE, "order": _optional(_POSITIONS, "*")}),
    ValueZeroing: ("zero-values", {"positions": _POSITIONS}),
    PositionsOff: ("positions-off", {"side": _optional(_choice(SIDES), "*")}),
    PositionsShuffled: ("positions-shuffled", {"order": _POSITIONS, "side": _choice(SIDES)}),
    SublayerOff: ("sublayer-off", {}),
    ResidualOff: ("residual-off", {}),
}
_ADDRESS = {
    "kind": _choice(KINDS),
    "stack": _choice(STACKS),
    "layer": _WHOLE,
    "head": _WHOLE,
    "name": _choice(SUBLAYERS),
}
_BY_NAME = {name: kind for kind, (name, _) in _VALUES.items()}


def encode(interventions: Sequence[Intervention]) -> str:
    """The line of text that `decode` gives these back from; empty for none.

    Raises:
        ValueError: too many, too long, or a FrozenPattern, whose numbers no link has room for.
    """
    if len(interventions) > MAX_INTERVENTIONS:
        raise ValueError(f"A link holds at most {MAX_INTERVENTIONS} changes; there are {len(interventions)}.")
    text = ";".join(map(_encoded, interventions))
    if len(text) > MAX_CHARACTERS:
        raise ValueError(f"These changes need {len(text):,} characters; a link holds at most {MAX_CHARACTERS:,}.")
    return text


def decode(text: str) -> tuple[Intervention, ...]:
    """The interventions in `text`, in order; whether a model has their addresses only a run can tell.

    Raises:
        ValueError: `text` is not what `encode` writes; the sentence says which part, and why.
    """
    if len(text) > MAX_CHARACTERS:
        raise ValueError(
            f"The changes in this link have {len(text):,} characters; at most {MAX_CHARACTERS:,} are read."
        )
    parts = text.split(";") if text else []
    if len(parts) > MAX_INTERVENTIONS:
        raise ValueError(f"The link names {len(parts)} changes; at most {MAX_INTERVENTIONS} are read.")
    return tuple(map(_decoded, parts))


def _encoded(intervention: Intervention) -> str:
    if isinstance(intervention, FrozenPattern):
        raise ValueError("Attention weights taken from another run do not fit into a link.")
    name, values = _VALUES[type(intervention)]
    written = [name, *(text.write(getattr(intervention, field)) for field, text in values.items())]
    address = [getattr(intervention, field) for field in _address(type(intervention))]
    while address and address[-1] is None:
        address.pop()
    place = ".".join("*" if part is None else str(part) for part in address)
    return ":".join(written) + (f"@{place}" if place else "")


def _decoded(part: str) -> Intervention:
    head, _, place = part.partition("@")
    name, *values = head.split(":")
    if name not in _BY_NAME:
        raise ValueError(f"The link names an unknown change {_shown(name)}; there are {', '.join(_BY_NAME)}.")
    kind = _BY_NAME[name]
    readers, address = _VALUES[kind][1], _address(kind)
    places = place.split(".") if place else []
    if len(values) != len(readers) or len(places) > len(address):
        raise ValueError(
            f"In the link, {name} has {len(values)} values and {len(places)} places; it takes {len(readers)} values "
            f"and at most {len(address)} places."
        )
    try:
        found = {field: text.read(value) for (field, text), value in zip(readers.items(), values, strict=True)}
        for field, value in zip(address, places, strict=False):
            found[field] = _optional(_ADDRESS[field], "*").read(value)
        return kind(**found)
    except ValueError as error:
        raise ValueError(f"In the link, {name} cannot be read: {error}.") from error


def _address(kind: type) -> list[str]:
    """The fields of an intervention that say where, in the order of its class."""
    if kind in (PositionsOff, PositionsShuffled):
        return []
    return [field.name for field in fields(kind) if field.name in _ADDRESS and field.name not in _VALUES[kind][1]]


def _shown(text: str) -> str:
    """A link's own words in a message: short."""
    return repr(text if len(text) <= 20 else text[:20] + "…")
