"""Interventions as text for a link, and back: JSON of each one's type and the fields that are not at their default.

    [["HeadGate",{"gate":0.0,"kind":"cross","layer":3,"head":0}],["LiftCausalMask",{}]]

A Patch is in a link by the text whose run its values come from. `decode` gives a PatchFrom, which the model has to
resolve.

Links from before this form are still read: `gate:0:zero@cross.3.0;lift-causal-mask`, a name, its values after colons,
its address after `@`, in which `*` and whatever is missing at the end mean all.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import MISSING, fields
from typing import Any

from model.interventions.attention import AttentionTemperature, HeadGate, SharedKeysValues, Unscaled, ValueZeroing
from model.interventions.base import Intervention
from model.interventions.blocks import NormOff, PositionsOff, PositionsShuffled, ResidualOff, SublayerOff
from model.interventions.masks import ForbidSource, LiftCausalMask, MaskEdit, PatternMask
from model.interventions.patch import Patch, PatchFrom
from model.interventions.patterns import FrozenPattern, PatternEdit, PermutedAttention, UniformAttention
from model.language import Refusal

MAX_INTERVENTIONS = 32
MAX_CHARACTERS = 4000
"""Browsers and servers take links of some 8,000 characters."""

OLD_NAMES = {
    "temperature": (AttentionTemperature, ("tau",)),
    "unscaled": (Unscaled, ()),
    "gate": (HeadGate, ("gate", "mode")),
    "mask": (MaskEdit, ("forbid", "allow")),
    "forbid-source": (ForbidSource, ("positions",)),
    "lift-causal-mask": (LiftCausalMask, ()),
    "pattern": (PatternEdit, ("query", "weights")),
    "uniform": (UniformAttention, ()),
    "permuted": (PermutedAttention, ("seed", "order")),
    "zero-values": (ValueZeroing, ("positions",)),
    "positions-off": (PositionsOff, ("side",)),
    "positions-shuffled": (PositionsShuffled, ("order", "side")),
    "sublayer-off": (SublayerOff, ()),
    "residual-off": (ResidualOff, ()),
}
"""Name in the old form -> class, and the fields that stand before the address."""
TYPES = {
    kind.__name__: kind for kind in (*(kind for kind, _ in OLD_NAMES.values()), SharedKeysValues, PatternMask, NormOff)
}
TYPES["Patch"] = PatchFrom  # the text that its values come from, not the values
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')


def encode(interventions: Sequence[Intervention]) -> str:
    """The text that `decode` reads these interventions from; empty for none.

    Raises:
        ValueError: too many, too long, a FrozenPattern, which is too large for any link, or a Patch whose values come
            from no text.
    """
    if len(interventions) > MAX_INTERVENTIONS:
        raise Refusal(
            "A link holds at most {most} changes; there are {count}.", most=MAX_INTERVENTIONS, count=len(interventions)
        )
    if any(isinstance(change, FrozenPattern) for change in interventions):
        raise Refusal("Attention weights taken from another run do not fit into a link.")
    changes = [_named_fields(change) for change in interventions]
    text = json.dumps(changes, separators=(",", ":")) if changes else ""
    # In a link, + would be read as a space.
    text = _STRING.sub(lambda string: string[0].replace("+", r"\u002b"), text).replace("e+", "e")
    if len(text) > MAX_CHARACTERS:
        raise Refusal(
            "These changes need {count:,} characters; a link holds at most {most:,}.",
            count=len(text),
            most=MAX_CHARACTERS,
        )
    return text


def decode(text: str) -> tuple[Intervention, ...]:
    """The interventions in `text`, in order. Whether a model has their addresses is checked when it runs with them.

    Raises:
        ValueError: `text` is in neither form; the sentence says which part is wrong, and why.
    """
    if len(text) > MAX_CHARACTERS:
        raise Refusal(
            "The changes in this link have {count:,} characters; at most {most:,} are read.",
            count=len(text),
            most=MAX_CHARACTERS,
        )
    if not text:
        return ()
    parts = _parse(text) if text.startswith("[") else [_parse_old(part) for part in text.split(";")]
    if len(parts) > MAX_INTERVENTIONS:
        raise Refusal(
            "The link names {count} changes; at most {most} are read.", count=len(parts), most=MAX_INTERVENTIONS
        )
    return tuple(_create(name, values) for name, values in parts)


def _named_fields(change: Intervention) -> tuple[str, dict[str, Any]]:
    if isinstance(change, Patch) and change.origin is None:
        raise Refusal("A patch whose values come from no text does not fit into a link.")
    if isinstance(change, Patch | PatchFrom):
        return "Patch", _changed_fields(change if isinstance(change, PatchFrom) else change.origin)
    return type(change).__name__, _changed_fields(change)


def _changed_fields(change: Intervention) -> dict[str, Any]:
    values = {field.name: (getattr(change, field.name), field.default) for field in fields(change)}
    return {name: value for name, (value, default) in values.items() if default is MISSING or value != default}


def _parse(text: str) -> list[tuple[str, dict[str, Any]]]:
    try:
        parts = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Refusal("The changes in this link are incomplete: was it cut off when it was copied?") from error
    if not all(isinstance(part, list) and list(map(type, part)) == [str, dict] for part in parts):
        raise Refusal("Each change in a link must be a pair of a name and its fields.")
    return [(name, {field: _to_tuples(value) for field, value in values.items()}) for name, values in parts]


def _to_tuples(value: Any) -> Any:
    return tuple(map(_to_tuples, value)) if isinstance(value, list) else value


def _parse_old(part: str) -> tuple[str, dict[str, Any]]:
    head, _, place = part.partition("@")
    name, *values = head.split(":")
    if name not in OLD_NAMES:
        return name, {}
    kind, first = OLD_NAMES[name]
    places = place.split(".") if place else []
    address = [field.name for field in fields(kind) if field.name not in first]
    if len(values) != len(first) or len(places) > len(address):
        raise Refusal(
            "In the link, {name} has {values} values and {places} places; it takes {all_values} values "
            "and at most {all_places} places.",
            name=name,
            values=len(values),
            places=len(places),
            all_values=len(first),
            all_places=len(address),
        )
    written = zip((*first, *address), (*values, *places), strict=False)
    try:
        return kind.__name__, {field: _old_value(field, text) for field, text in written if text != "*"}
    except ValueError as error:
        raise Refusal("In the link, {part} cannot be read: a number is expected.", part=_shorten(part)) from error


def _old_value(field: str, text: str) -> Any:
    if field in ("mode", "side", "kind", "stack", "name"):
        return text
    if field in ("forbid", "allow"):
        return tuple(tuple(map(int, cell.split("-"))) for cell in text.split(",") if cell)
    number = float if field in ("tau", "gate", "weights") else int
    if field in ("positions", "order", "weights"):
        return tuple(number(item) for item in text.split(",") if item)
    return number(text)


def _create(name: str, values: dict[str, Any]) -> Intervention:
    if name not in TYPES:
        raise Refusal(
            "The link names an unknown change {part}; the known ones are {names}.",
            part=_shorten(name),
            names=", ".join(TYPES),
        )
    try:
        return TYPES[name](**values)
    except ValueError as error:
        raise Refusal(
            "In the link, {name} cannot be read: {part}.", name=name, part=_shorten(str(error), 200)
        ) from error
    except TypeError as error:
        raise Refusal("In the link, {name} has a field that it does not take, or lacks one.", name=name) from error


def _shorten(text: str, most: int = 20) -> str:
    shown = text if len(text) <= most else f"{text[:most]}…"
    return shown if most > 20 else repr(shown)
