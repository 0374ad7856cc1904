"""Three families: all attention of a translator in one matrix, and how other families mask the same tokens."""

from urllib.parse import urlencode

from model.analysis.heads.three_families import causal_encoder, family_masks, join_attention, one_way_arrays
from model.checkpoints.store import CheckpointError, available_checkpoints, stored_config
from model.needs import Need
from model.network.masks import causal_mask
from model.run import Run
from pages.views import Result, answer, view
from pages.views.shared import log_p_bars
from viz.forms import TALLEST, VISIBLE, Map, Maps, Mark, Texts
from viz.heatmap import bar_below, cells_height, slanted_room, weight_axis
from viz.theme import CHOSEN
from viz.tokens import numbered

NEEDS = (Need.DECODER, Need.CROSS_ATTENTION)
FAMILIES = ("encoder_decoder", "decoder", "encoder")
TITLES = {"encoder_only": "Encoder-only", "decoder_only": "Decoder-only", "prefix_lm": "Prefix LM"}


def _sizes(run: Run) -> tuple[int, int]:
    """How many tokens the source and the target have."""
    return len(run.trace.src_ids), len(run.trace.tgt_tokens)


def _names(run: Run) -> list[str]:
    """Of all tokens that the run reads, the source's first, numbered through."""
    return numbered([*run.trace.src_tokens, *run.trace.tgt_tokens])


def _borders(sources: int, panels: int) -> list[Mark]:
    """Lines where the source ends, in each panel."""
    style = {"colour": CHOSEN, "dash": "solid", "width": 2}
    return [Mark(**{axis: sources - 0.5}, panel=n, **style) for n in range(1, panels + 1) for axis in "xy"]


@view("All attention in one matrix", code=(join_attention, causal_mask), needs=NEEDS)
def joined(run: Run) -> Result:
    """The three attentions of a layer as one matrix; and a checkpoint of each family, to be opened on the same text."""
    matrix, names = join_attention(run.trace, run.layer, run.head), _names(run)
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
    return Result(
        {"matrix": Maps(names, names, one, marks=_borders(n, 1), layout=layout)},
        {"n": n, "m": m, "offers": _offers(run.trace.source)},
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


@view("Masks of the families", code=(family_masks,), needs=NEEDS)
def masks(run: Run) -> Result:
    """What each family would let these tokens attend to."""
    n, m = _sizes(run)
    by_family, names = family_masks(n, m), _names(run)
    maps = {TITLES[name]: Map(mask.astype(float), mask, VISIBLE, "may attend") for name, mask in by_family.items()}
    shares = {TITLES[name]: mask.mean() for name, mask in by_family.items()}
    return Result({"masks": Maps(names, names, maps, marks=_borders(n, len(maps)))}, {"shares": shares}, by_family)


@view("A causal encoder", code=(causal_encoder,), needs=NEEDS)
def one_way(run: Run) -> Result:
    """The same translator with an encoder that reads from left to right."""
    n, _ = _sizes(run)
    if n < 2:
        return Result(facts={"n": n})
    changes = (*run.trace.interventions, causal_encoder(n))
    before, after = run.trace, run.forced(*changes).trace
    arrays, shows = one_way_arrays(before, after), {}
    shows["probabilities"] = log_p_bars(before.next_tokens, arrays["before"], arrays["after"])
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
    masks = family_masks(source, target)
    own = source**2 + target * (target + 1) // 2 + source * target
    shares = {name: masks[name].mean() for name in ("encoder_only", "decoder_only")}
    return Result(facts=shares | {"translator": own / (source + target) ** 2, "cells": (source + target) ** 2})
