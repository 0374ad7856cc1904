"""Numbers of heads and of other parts, as pictures: maps of heads, and the largest parts of a sum by name."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from model.analysis.written import head_of_part
from model.run import Run
from model.trace import KIND_TITLES, SUBLAYER_TITLES, Array
from pages.views.controls import CLICKED_HEAD
from viz.forms import Bars, Scale
from viz.labels import say_label
from viz.special.what_if import HeadMaps
from viz.theme import OKABE_ITO, WEIGHTS

MOST = 12
"""parts that have a name in a picture"""
STACKS = {"encoder_self": "encoder", "decoder_self": "decoder"}
_PART = re.compile(
    rf"(?P<stack>encoder|decoder|cross|encoder_self|decoder_self|query|key)"
    rf"(?: (?P<layer>\d+))?(?: (?P<sublayer>{'|'.join(SUBLAYER_TITLES)}))?(?: (?P<rest>.+))?"
)


def part_label(name: str) -> str:
    """The name of a part on screen: "cross L2H5", "decoder L1 feed-forward", "embedding"."""
    if head := head_of_part(name):
        kind, layer, number = head
        return f"{say_label(STACKS.get(kind, kind))} L{layer}H{number}"
    if not (match := _PART.fullmatch(name)):
        return say_label(name)
    stack, layer, sublayer, rest = match.groups()
    words = [say_label(STACKS.get(stack, stack)), layer and f"L{layer}"]
    words += [sublayer and say_label(SUBLAYER_TITLES[sublayer]), rest and say_label(rest)]
    return " ".join(filter(None, words))


@dataclass(frozen=True)
class Ranked:
    """The largest terms of a sum, and the sum of all others."""

    parts: tuple[str, ...]
    """the largest first"""
    values: Array
    """(part,), and last the sum of the others where there are some"""
    others: int
    """how many these are"""

    @property
    def labels(self) -> list[str]:
        """As on screen, that of the rest included."""
        return [*map(part_label, self.parts), *([say_label(f"{self.others} others")] if self.others else [])]


def rank(values: Mapping[str, float], most: int = MOST) -> Ranked:
    """The `most` largest terms by size, and the sum of the others."""
    names = sorted(values, key=lambda name: -abs(values[name]))
    first, others = names[:most], names[most:]
    kept = [values[name] for name in first] + ([sum(values[name] for name in others)] if others else [])
    return Ranked(tuple(first), np.array(kept), len(others))


def part_bars(run: Run, ranked: Ranked, title: str) -> Bars:
    """A bar for each part; a click on one that a head wrote chooses this head."""
    return Bars(
        ranked.labels,
        {title: ranked.values},
        ("part", title),
        colours=OKABE_ITO[:1],
        number="+.4f",
        what="part",
        height=340,
        layout={"xaxis": {"tickangle": -50}, "showlegend": False},
        chooses=head_choices(run, [*ranked.parts, *([""] if ranked.others else [])]),
        sets=CLICKED_HEAD,
    )


def head_choices(run: Run, parts: Sequence[str]) -> list[dict[str, str | int]]:
    """What a click on each part chooses: the head that wrote it, or the one that is chosen already."""
    here = run.kind, run.layer, run.head
    return [dict(zip(("kind", "layer", "head"), head_of_part(part) or here, strict=True)) for part in parts]


def head_maps(
    run: Run, values: Mapping[str, Array], what: str, scale: Scale | None = None, number: str = ".2f", unit: str = ""
) -> HeadMaps:
    """Kind -> (layer, head), a number of each head; a click chooses the head.

    Without a scale, the numbers are not negative, and the largest is the end of the colours.
    """
    highest = max((float(np.nanmax(table, initial=0.0)) for table in values.values()), default=0.0)
    return HeadMaps(
        values=values,
        layers={kind: run.trace.kind(kind).layers for kind in values},
        names=KIND_TITLES,
        chosen=(run.kind, run.layer, run.head),
        what=what,
        scale=scale or Scale(0, highest or 1.0, WEIGHTS),
        unit=unit,
        number=number,
        sets=CLICKED_HEAD,
    )


def signed_head_maps(run: Run, heads: Mapping[str, float], what: str, number: str, kinds: Sequence[str]) -> HeadMaps:
    """What each head of these kinds adds, by the names of parts; NaN where a head is none of them."""
    values = {kind.name: np.full((len(kind.layers), kind.heads), np.nan) for kind in map(run.trace.kind, kinds)}
    for part, value in heads.items():
        kind, layer, head = head_of_part(part)
        if kind in values:
            values[kind][run.trace.kind(kind).layers.index(layer), head] = value
    scale = Scale.signed(*(table[np.isfinite(table)] for table in values.values()))
    return head_maps(run, values, what, scale, number)
