"""Three families: all attention of a translator in one matrix, and how other families mask the same tokens."""

from urllib.parse import urlencode

import numpy as np

from model.analysis.heads import three_families
from model.checkpoints.store import CheckpointError, available_checkpoints, stored_config
from model.needs import Need
from model.network.masks import causal_mask
from model.run import Run
from model.trace import KIND_TITLES
from pages.views import Result, answer, view
from pages.views.controls import player
from pages.views.shared import log_p_changes
from viz.forms import TALLEST, Map, Maps, Mark, Texts
from viz.heatmap import bar_below, cells_height, slanted_room, weight_axis
from viz.networks import Networks
from viz.theme import CHOSEN
from viz.tokens import labels, numbered

NEEDS = (Need.DECODER, Need.CROSS_ATTENTION)
FAMILIES = ("encoder_decoder", "decoder", "encoder")
TITLES = {"encoder_only": "Encoder-only", "decoder_only": "Decoder-only", "encoder_decoder": "Encoder-decoder"}
MOST_DRAWN = 8
"""tokens of each text that have room as a network"""


def _sizes(run: Run) -> tuple[int, int]:
    """How many tokens the source and the target have."""
    return len(run.trace.src_ids), len(run.trace.tgt_tokens)


def _names(run: Run) -> list[str]:
    """Of all tokens that the run reads, the source's first, numbered through."""
    return numbered([*run.trace.src_tokens, *run.trace.tgt_tokens])


def _layer(run: Run) -> int:
    """The chosen layer, or the last one that every attention has."""
    return min(run.layer, *(kind.layers[-1] for kind in run.trace.kinds))


@view("All attention in one matrix", code=(three_families.join_attention, causal_mask), needs=NEEDS)
def joined(run: Run) -> Result:
    """The three attentions of a layer as one matrix; and a checkpoint of each family, to be opened on the same text."""
    matrix, names = three_families.join_attention(run.trace, _layer(run), run.head), _names(run)
    n, m = _sizes(run)
    room = slanted_room(names)
    plot = cells_height(len(names), TALLEST - room - 100)
    layout = {
        "height": plot + room + 100,
        "margin": {"t": 20, "b": room + 75, "r": 21},
        "yaxis": {"title": "query"},
        "coloraxis": weight_axis("attention weight, 0 to 1", **bar_below(0.5, 0.5, (room + 10) / plot)),
    }
    one = {"": Map(matrix["weights"], matrix["mask"])}
    borders = [Mark(**{axis: n - 0.5}, colour=CHOSEN, dash="solid", width=2) for axis in "xy"]  # where the source ends
    return Result(
        {"matrix": Maps(names, names, one, marks=borders, layout=layout)},
        {"n": n, "m": m, "layer": _layer(run), "offers": _offers(run.trace.source)},
    )


def _offers(source: str) -> dict[str, dict[str, str] | None]:
    """For each family a checkpoint and what a link to it says; None where there is no such checkpoint."""
    offers: dict[str, dict[str, str] | None] = dict.fromkeys(FAMILIES)
    for name in reversed(available_checkpoints()):
        try:
            family = stored_config(name).family
        except CheckpointError:
            continue
        offers[family] = {"name": name, "query": urlencode({"checkpoint": name, "source": source})}
    return offers


def _drawn(run: Run) -> list[int]:
    """Positions among all tokens of the first ones of source and target."""
    n, m = _sizes(run)
    return [*range(min(n, MOST_DRAWN)), *range(n, n + min(m, MOST_DRAWN))]


ROWS = player(
    "Rows", lambda run: (1, len(_drawn(run))), lambda run: len(_drawn(run)), key="families_rows", follows=True
)


@view("Masks of the families", code=(three_families.join_masks,), needs=NEEDS)
def masks(run: Run, rows: int = ROWS) -> Result:
    """What the encoder, the decoder and both together let a token attend to, as networks."""
    (n, m), drawn, arrows = _sizes(run), _drawn(run), three_families.join_masks(run.trace, _layer(run), run.head)
    row = drawn[rows - 1]
    parts = {"encoder_only": range(n), "decoder_only": range(n, n + m), "encoder_decoder": range(n + m)}
    every = np.any([*arrows.values()], axis=0)
    picture = Networks(
        names=_names(run),
        arrows={KIND_TITLES[kind]: mask for kind, mask in arrows.items()},
        networks={TITLES[name]: tokens for name, tokens in parts.items()},
        drawn=drawn,
        row=row,
        marks=[Mark(x=min(n, MOST_DRAWN) - 0.5, panel=3)],
        sets={"place": ROWS},
    )
    facts = {
        "shares": {TITLES[name]: every[np.ix_(tokens, tokens)].mean() for name, tokens in parts.items()},
        "layer": _layer(run),
        "row": row,
        "token": labels([*run.trace.src_tokens, *run.trace.tgt_tokens])[row],
        "reads": (int(every[row, :n].sum()), int(every[row, n:].sum())),
        "later": bool(every[row, row + 1 :].any()),
        "n": n,
        "m": m,
        "most": MOST_DRAWN,
        "drawn": len(drawn),
    }
    return Result({"masks": picture}, facts)


@view("A causal encoder", code=(three_families.causal_encoder,), needs=NEEDS)
def one_way(run: Run) -> Result:
    """The same translator with an encoder that reads from left to right."""
    n, _ = _sizes(run)
    if n < 2:
        return Result(facts={"n": n})
    changes = (*run.trace.interventions, three_families.causal_encoder(n))
    before, after = run.trace, run.forced(*changes).trace
    arrays, shows = three_families.one_way_arrays(before, after), {}
    shows["probabilities"] = log_p_changes(before.next_tokens, arrays["before"], arrays["after"])
    if decodes := run.request.target is None:
        texts = {"With the encoder as it is": before.translation}
        texts |= {"With the causal encoder": run.decoded(*changes).trace.translation}
        shows["texts"] = Texts(texts, compared=True)
    sums = (before.log_probability, after.log_probability)
    return Result(shows, {"n": n, "sums": sums, "decodes": decodes}, arrays)


@answer
def one_line(run: Run) -> Result:
    """Which share of all cells each family sees, with the tokens of this run."""
    source, target = (len(stream.tokens) for stream in run.trace.streams.values())
    masks = three_families.family_masks(source, target)
    own = source**2 + target * (target + 1) // 2 + source * target
    shares = {name: masks[name].mean() for name in ("encoder_only", "decoder_only")}
    return Result(facts=shares | {"translator": own / (source + target) ** 2, "cells": (source + target) ** 2})
