"""One word on its way through one head, and the same word in all heads, for the explore component."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from viz.drawing import Drawing, named
from viz.labels import say_label
from viz.theme import SIGNED, Array, colour_scales, symmetric_range

AXES = {
    "query": {"title": "queries"},
    "key": {"title": "keys"},
    "dimension": {"title": "dimensions"},
    "model": {"title": "dimensions"},
}

MOST_CELLS = 65_536
"""of one matrix that is sent whole; of a larger one only the row of the chosen word"""


@dataclass(frozen=True)
class Side:
    """The tokens of one text, as buttons."""

    name: str
    """source, target or text: what it is called on screen"""
    tokens: Sequence[str]
    """plain-text labels (viz.tokens.labels)"""
    probabilities: Sequence[float | None]
    """that the model gave to each token; None: to this one none"""
    kind: str
    """the attention that a click on a token opens, if the chosen one has its queries elsewhere"""
    first: int = 0
    """the token that row 0 of this attention stands for: 1 where rows stand for what they predict"""
    asks: bool = True
    """whether the chosen attention has its queries here"""
    answers: bool = True
    """whether it has its keys here"""


@dataclass(frozen=True)
class Part:
    """One matrix of a step."""

    symbol: str
    """`_` starts a subscript"""
    name: str
    """of its array: a hook path or a part of it"""
    values: Array
    rows: str
    """query or key"""
    columns: str
    """key, dimension (of a head) or model (dimension of the residual stream)"""
    colour: str = ""
    scale: str = SIGNED
    shared: tuple[tuple[str, Array], ...] = ()
    """names and numbers of other matrices in whose range of colours it is drawn"""
    mask: tuple[str, Array] | None = None
    """name and numbers of what is not masked; None: nothing is"""
    made: str = ""
    """what is drawn of the array, as in viz.steps.table"""
    note: str = ""
    """its name in an export"""
    place: int | None = None
    """the row that stands for all; None: all are there"""
    limits: tuple[float, float] | None = None
    """of the colours; None: the script finds them in the numbers"""

    def row(self) -> dict[str, Any]:
        """As in a table of equations (viz.steps.table)."""
        row = {name: getattr(self, name) for name in ("symbol", "rows", "columns", "colour", "made", "note")}
        row |= {"scale": None if self.scale == SIGNED else self.scale}
        row |= {"array": self.name, "mask": self.mask and self.mask[0], "place": self.place, "range": self.limits}
        if self.shared and self.limits is None:
            row["range"] = [self.name, *(name for name, _ in self.shared)]
        return {name: value for name, value in row.items() if value not in ("", None)}


Equation = tuple[Part | str, ...]


@dataclass(frozen=True)
class Box:
    """One step of the way."""

    name: str
    """of the step: x, qkv, scores, divided, before, mask, softmax, z or out"""
    title: str
    """on screen; `_` starts a subscript"""
    why: str
    """one sentence"""
    equation: Equation
    """its matrices, the operators between them"""


def whole_or_row(part: Part, place: int) -> Part:
    """The matrix itself, or of a very large one the row at `place`."""
    if part.values.size <= MOST_CELLS:
        return part
    mask = part.mask and (row_name(part.mask[0], place), part.mask[1][place])
    limits = symmetric_range(part.values, *(values for _, values in part.shared)) if part.scale == SIGNED else None
    return replace(
        part, name=row_name(part.name, place), values=part.values[place], mask=mask, place=place, limits=limits
    )


def row_name(name: str, place: int) -> str:
    """Of one row of the array called `name`."""
    if name.endswith("]") and "@" not in name:
        return f"{name[:-1]}, {place}]"
    return f"({name})[{place}]" if "@" in name else f"{name}[{place}]"


def explore(
    sides: Sequence[Side],
    boxes: Sequence[Box],
    heads: tuple[Sequence[tuple[int, int]], Array, Array],
    path: Callable[[int], str],
    texts: tuple[Sequence[str], Sequence[str], Sequence[str]],
    **header,
) -> Drawing:
    """The picture; it takes what the parts of the boxes name, and the chosen query's row of `pattern` and of `mask` in
    each layer, `pattern[:, query]`.

    Args:
        sides: the texts whose tokens can be chosen.
        boxes: the steps, in the order of reading.
        heads: (layer, head) of each row, the chosen word's weights, (row, key), and where they are not masked.
        path: of the attention in a layer.
        texts: labels of the queries, additions to them or none, and labels of the keys.
        **header: stacks, each with a name and its kinds of attention; kind; place, the chosen (layer, head); query and
            key, their positions; names, of both in words; title, of the picture; temperature, of the head in the
            run; taus, those offered for a run, or none; place_title.
    """
    places, weights, allowed = heads
    arrays: dict[str, Array] = {}
    for part in (part for box in boxes for part in box.equation if isinstance(part, Part)):
        arrays |= {part.name: part.values} | dict([part.mask] if part.mask else [])
    layers = list(dict.fromkeys(layer for layer, _ in places))
    for layer in layers:
        own = [row for row, place in enumerate(places) if place[0] == layer]
        for name, rows in (("pattern", weights), ("mask", allowed)):
            arrays[named(path(layer), name, ":", header["query"])] = rows[own]
    described = [{name: value for name, value in vars(box).items() if name != "equation"} for box in boxes]
    header |= {
        "boxes": described,
        "sides": [vars(side) | {"name": say_label(side.name)} for side in sides],
        "axes": AXES,
        "scales": colour_scales(),
    }
    header |= {"equations": [[p if isinstance(p, str) else p.row() for p in box.equation] for box in boxes]}
    header |= {"labels": {"query": texts[0], "key": texts[2]}, "notes": {"query": texts[1]}}
    header |= {"places": [list(place) for place in places], "paths": [path(layer) for layer in layers]}
    return Drawing.pack("explore", header, arrays)
