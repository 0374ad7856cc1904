"""What the opened model does for positions, and how much of it is drawn."""

from collections.abc import Iterable, Mapping
from typing import Any

from model.analysis.positions import position_table
from model.run import Run
from model.trace import Array, Attention
from pages.views import Need, Part
from pages.views.controls import choice, slider
from pages.views.shared import axes, follows_formula
from viz.forms import Line, Map, Maps, Scale
from viz.labels import say_options
from viz.latex import signed
from viz.theme import OKABE_ITO, symmetric_range

STACKS = {"source": "encoder", "target": "decoder"}
FIELDS = {"rope": "rotary", "bias": "bias"}
"""what attention may do for positions -> where a trace has it"""
LONGEST_TABLE = 512
"""positions; more rows than that are thinner than a pixel"""
FIRST_POSITIONS = 64
"""rows that are drawn at first"""
ROUNDING = 1e-4
"""largest relative difference that counts as rounding in single precision"""
BELOW_ROWS = 380
"""pixels of a picture below two rows of controls"""
BAND = "rgba(140,140,140,0.4)"
NOTHING = 0, -1
"""limits of a control that is not offered"""


def adds_table(run: Run) -> bool:
    """True if the model adds a table to its embeddings; some of Hugging Face order their sines differently."""
    return Need.ADDED_POSITIONS in run.opened.features or run.opened.config.positions == "sinusoidal"


def scheme_of(run: Run) -> str:
    """What the model does for positions: "added", "rope" or "bias"; "none": none of these could be read."""
    if adds_table(run):
        return "added"
    return next((name for name, field in FIELDS.items() if _attention_with(run, field)), "none")


def _attention_with(run: Run, field: str) -> Attention | None:
    """The chosen attention if its `field` is set, else the first of the run, which may have it in some layers only."""
    places = sorted(run.trace.attentions, key=lambda place: (place[0] != run.attention.kind, place))
    attentions = (run.attention, *(run.trace.attention(*place) for place in places))
    return next((attention for attention in attentions if getattr(attention, field) is not None), None)


ADDED = Part("a table of positions that is added to the embeddings", adds_table)
SINES = Part("added sines and cosines in the paper's order", follows_formula)
ROTATES = Part("attention that rotates queries and keys", lambda run: scheme_of(run) == "rope")
BIASED = Part("attention that adds a bias to its scores", lambda run: scheme_of(run) == "bias")
PERIODIC = Part("sines and cosines", lambda run: follows_formula(run) or scheme_of(run) == "rope")
ENCODED = Part("positions that could be read", lambda run: scheme_of(run) != "none")
REORDERED = Part(
    "logits of one stack, or layers of this project's own code",
    lambda run: (Need.OWN_LAYERS if len(run.trace.streams) > 1 else Need.LOGITS) in run.opened.features,
)


def sides_of(run: Run) -> list[str]:
    return [side for side, stack in STACKS.items() if stack in run.trace.streams]


def table_of(run: Run, side: str | None) -> Array:
    """(max_len, d_model): what is added for each position of one side; None: the only or the first one."""
    return run.opened.positional_encoding(side or sides_of(run)[0])


def place_with(run: Run, field: str) -> tuple[Attention, int]:
    """The chosen head, or where its attention does not have `field`, one that has."""
    attention = _attention_with(run, field)
    return attention, min(run.head, attention.n_heads - 1)


def most_positions(run: Run) -> tuple[int, int]:
    match scheme_of(run):
        case "added":
            return 2, len(table_of(run, None))
        case "rope":
            length = len(place_with(run, "rotary")[0].key_tokens)
            return 2, max(min(run.opened.config.max_len, LONGEST_TABLE), length, 3)
    return NOTHING


def most_dimensions(run: Run) -> tuple[int, int]:
    return (2, table_of(run, None).shape[1]) if adds_table(run) else NOTHING


def changing_dimensions(run: Run) -> int:
    """The dimensions that complete at least a tenth of a wave over the positions that are drawn at first."""
    most = most_dimensions(run)[1]
    if not follows_formula(run):
        return most
    return max(2 * int((position_table.wavelengths(most) <= 10 * FIRST_POSITIONS).sum()), 2)


POSITIONS = slider("Positions", most_positions, FIRST_POSITIONS, key="positions")
DIMENSIONS = slider("Dimensions", most_dimensions, changing_dimensions, key="dimensions")
SIDE = choice(
    "Sentence",
    lambda run: (
        say_options({side: side.capitalize() for side in sides_of(run)})
        if adds_table(run) and len(sides_of(run)) > 1
        else {}
    ),
    key="side",
)


def shown_instead(run: Run, attention: Attention, head: int) -> dict[str, Any]:
    """Facts about the head that is shown, and whether it is another one than the sidebar's."""
    elsewhere = "" if attention is run.attention else run.trace.kind(attention.kind).title.lower()
    return {"attention": attention, "head": head, "elsewhere": elsewhere}


def draw_heads(x: Array, biases: Iterable[Array], head: int) -> dict[str, Line]:
    """A line for each head; that of the chosen one is wide."""
    colours = len(OKABE_ITO)
    return {
        f"head {i}": Line(
            x,
            bias,
            OKABE_ITO[i % colours],
            dash=("solid", "dash")[i // colours % 2],  # beyond the eight colours
            width=5 if i == head else 1.5,
        )
        for i, bias in enumerate(biases)
    }


def compare_maps(
    attention: Attention, head: int, scores: Mapping[str, Array], weights: Mapping[str, Array], *more: Array
) -> tuple[Maps, Scale]:
    """Scores of a head in one range of colours, which also holds `more`; beside them attention weights."""
    mask = attention.mask[head]
    limit = symmetric_range(*(values[mask] for values in (*scores.values(), *more)))[1]
    scale = Scale(-limit, limit, title=f"score<br>±{signed(limit)}")
    maps = {title: Map(values, mask, scale, "score") for title, values in scores.items()}
    maps |= {title: Map(values, mask) for title, values in weights.items()}
    return Maps(*axes(attention), maps, layout={"height": BELOW_ROWS}), scale
