"""One text cut in several ways: pieces as chips, a row for each way, with their boundaries below one another."""

import html
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from viz.labels import say_label
from viz.theme import FONT, GUIDE, OKABE_ITO
from viz.tokens import visible

HUES = (OKABE_ITO[4], OKABE_ITO[1], OKABE_ITO[2], OKABE_ITO[3])
_STYLE = f"""<style>
.cuts {{ display: flex; flex-wrap: wrap; row-gap: 0.9rem; font-family: {FONT}; font-size: 0.95rem; }}
.cuts > * {{ display: grid; gap: 3px 2px; padding: 0 3px; grid-auto-rows: 1.6rem; box-sizing: border-box;
  max-width: 100%; overflow-x: auto; overflow-y: hidden; border-left: 1px solid {GUIDE}; }}
.cuts > .names {{ border-left: 0; padding-left: 0; font-size: 0.85rem; }}
.cuts span {{ box-sizing: border-box; padding: 0 0.35rem; border: 1px solid var(--hue); line-height: 1.5rem;
  white-space: pre; text-align: center; }}
.cuts .differs span {{ background: color-mix(in srgb, var(--hue) 45%, transparent); font-weight: 600; }}
.cuts .names span {{ border-width: 0 0 0 6px; text-align: left; }}
</style>"""


Cut = tuple[Sequence[str], Sequence[int]]
"""pieces, and how much of the text is read by the end of each: 3, 3, 9"""


@dataclass(frozen=True)
class Chip:
    """A piece, and the columns of its block that it takes."""

    piece: str
    row: int
    columns: range


@dataclass(frozen=True)
class Block:
    """The chips between two boundaries that all cuts share, with no such boundary between them."""

    chips: Sequence[Chip]
    differs: bool
    """whether a cut has a boundary here that another one lacks; pieces without text do not count"""


def blocks(cuts: Sequence[Cut]) -> list[Block]:
    """The text block by block: a column for each stretch between neighbouring boundaries, of whichever cut.

    A piece that reads nothing, such as the end token, has a column of its own, which others leave empty.
    """
    empty = [Counter(end for start, end in _spans(cut) if start == end) for cut in cuts]
    ends = sorted({end for cut in cuts for end in (0, *cut[1])})
    columns: dict[tuple[int, int], int] = {}
    for end in ends:
        for number in range(max(one[end] for one in empty)):
            columns[end, number] = len(columns)
        columns[end, -1] = len(columns)  # what begins here
    chips = []
    for row, cut in enumerate(cuts):
        seen: Counter[int] = Counter()
        for piece, (start, end) in zip(cut[0], _spans(cut), strict=True):
            first = columns[start, seen[start] if start == end else -1]
            last = first + 1 if start == end else min(columns[end, n] for n in (0, -1) if (end, n) in columns)
            seen[start] += start == end
            chips.append(Chip(piece, row, range(first, last)))
    inside = {column for chip in chips for column in chip.columns[1:]}
    starts = [column for column in range(len(columns)) if column not in inside]
    found = []
    for start, stop in zip(starts, [*starts[1:], len(columns)], strict=True):
        here = [
            Chip(chip.piece, chip.row, range(chip.columns.start - start, chip.columns.stop - start))
            for chip in chips
            if chip.columns.start in range(start, stop)
        ]
        found += [Block(here, stop - start > 1)] if here else []
    return found


def _spans(cut: Cut) -> list[tuple[int, int]]:
    return [*pairwise((0, *cut[1]))]


def cuts_html(cuts: Mapping[str, Cut], title: str) -> str:
    """A row of chips for each cut, by name; they wrap together, with the same boundaries below one another.

    Blocks in which the cuts differ are filled. It is a picture: who hears the page is told its title.
    """
    names = "".join(f"<span {_place(row)}>{html.escape(say_label(name))}</span>" for row, name in enumerate(cuts))
    parts = [f'<div class="names">{names}</div>']
    for block in blocks([*cuts.values()]):
        spans = "".join(
            f"<span {_place(chip.row, chip.columns)}><bdi>{html.escape(visible(chip.piece))}</bdi></span>"
            for chip in block.chips
        )
        parts.append(f"<div{' class=differs' * block.differs}>{spans}</div>")
    return f'{_STYLE}<div class="cuts" role="img" aria-label="{html.escape(title)}">{"".join(parts)}</div>'


def _place(row: int, columns: range = range(1)) -> str:
    area = f"{row + 1} / {columns.start + 1} / {row + 2} / {columns.stop + 1}"
    return f'style="--hue: {HUES[row % len(HUES)]}; grid-area: {area}"'
