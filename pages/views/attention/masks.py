"""Masks: what a query may not attend to, masking before or after the softmax, and what leaks without masks."""

import numpy as np
import pandas as pd

from model.analysis.distributions import total_variation
from model.analysis.heads.mask_shape import mask_shape
from model.analysis.heads.softmax import future_mass, mask_orders
from model.analysis.runs.padded_batch import room_for_pads, run_padded
from model.interventions import LiftCausalMask
from model.network.attention import MultiHeadAttention
from model.network.masks import causal_mask, padding_mask
from model.run import Run
from pages.views import Result, answer, view
from pages.views.chosen_token import QUERY
from pages.views.controls import SWITCH, choice, number, toggle
from pages.views.shared import axes, probability_changes
from viz.forms import Bars, Map, Maps, Mark, Scale
from viz.heatmap import row_names
from viz.labels import say_label, say_options
from viz.latex import span
from viz.theme import CHOSEN, OKABE_ITO, WEIGHTS
from viz.tokens import labels

MOST_PADS = 8
PLACES = {"all": "Every layer", "layer": "This layer only"}
WITHOUT = toggle(
    "Without the causal mask",
    lambda run: SWITCH if run.attention.causal and not run.attention.mask[run.head].all() else {},
    key="without",
)
PADS = number("Pads", lambda run: (1, min(room_for_pads(run.opened, run.trace), MOST_PADS)), 4, key="pads")
LIFTED = choice("Lift it in", lambda run: say_options(PLACES) if run.attention.causal else {}, key="lift")


@view("What is hidden", code=(padding_mask, causal_mask, LiftCausalMask, MultiHeadAttention._explicit))
def masks(run: Run, without: bool | None = WITHOUT) -> Result:
    """The mask of a head, its scores before and after it, and its weights; with a switch, without the causal mask."""
    lifted = run.forced(*run.trace.interventions, LiftCausalMask(run.layer)) if without else None
    attention, head = (lifted or run).attention, run.head
    mask, scaled = attention.mask[head], attention.pre_softmax[head]
    scores = Scale.signed(scaled)
    scores = Scale(scores.low, scores.high, title=f"score (1, 2)<br>{span(scores.low, scores.high)}")
    weights = Scale(0, 1, WEIGHTS, "weight (3)<br>0 to 1")
    maps = {
        "1  Scaled scores": Map(scaled, None, scores, "scaled score"),
        "2  Masked scores": Map(scaled, mask, scores, "scaled score"),
        "3  Softmax of 2: weights": Map(attention.pattern[head], mask, weights),
    }
    causal = next((kind for kind in run.trace.kinds if kind.causal), None)
    shape = mask_shape(mask, attention.causal, attention.crosses)
    facts = {"attention": attention, "mask": shape, "causal": causal, "tau": attention.temperature[head]}
    if lifted:
        facts["later"] = future_mass(attention.pattern)[head]
        facts["before"] = future_mass(run.attention.pattern)[head].max()
        facts["totals"] = run.trace.log_probability, lifted.trace.log_probability
    return Result({"maps": Maps(*axes(attention), maps)}, facts | {"lifted": bool(lifted)}, drawn=lifted)


@view("Padding", code=(run_padded,))
def padding(run: Run, pads: int | None = PADS) -> Result:
    """The sentence in a batch with a longer one: pads get no weight, and nothing else changes."""
    if pads is None:
        return Result()
    padded = run.compute(run_padded, run.opened, run.trace, run.kind, run.layer, pads)
    rows, keys = axes(run.attention)
    mask = padded.mask[run.head]
    maps = {
        "The sentence alone": Map(run.attention.pattern[run.head], mask[:, : len(keys)], columns=keys),
        "In the padded batch": Map(padded.pattern[run.head], mask, columns=_padded_keys(keys, pads)),
    }
    end = Mark(x=len(keys) - 0.5, panel=2, colour=CHOSEN, width=2, dash="solid")
    return Result(
        {"padding": Maps(rows, keys, maps, marks=[end])},
        {"padded": padded, "companion": " ".join(labels(padded.companion))},
        {"padded_scaled": padded.scaled[run.head], "padded_mask": mask},
    )


def _padded_keys(keys: list[str], pads: int) -> list[str]:
    return [*keys, *(f"{position} <pad>" for position in range(len(keys), len(keys) + pads))]


@view("Before or after the softmax", code=(mask_orders,))
def orders(run: Run, row: int = QUERY) -> Result:
    """One row's weights with the mask applied before and after the softmax."""
    attention, head = run.attention, run.head
    mask, scaled, pattern = attention.mask[head], attention.pre_softmax[head], attention.pattern[head]
    (rows, keys), pads = axes(attention), 0
    if mask.all():
        pads = min(room_for_pads(run.opened, run.trace), 4)
        if pads < 1:
            return Result(facts={"pads": None})
        padded = run.compute(run_padded, run.opened, run.trace, run.kind, run.layer, pads)
        mask, scaled, pattern = padded.mask[head], padded.scaled[head], padded.pattern[head]
        keys = _padded_keys(keys, pads)
    masked = mask_orders(scaled[row], mask[row], float(attention.temperature[head]))
    ways = {"masked before": pattern[row], "zeroed after": masked.after, "renormalised after": masked.renormalised}
    before, after, renormalised = ways.values()
    named = {f"{name}: sum {weights.sum():.6f}": weights for name, weights in ways.items()}
    colours = OKABE_ITO[0], OKABE_ITO[5], OKABE_ITO[2]
    return Result(
        {"orders": Bars(keys, named, ("key", "attention weight"), (0, 1), colours, what="key")},
        {
            "pads": pads,
            "row": rows[row],
            "visible": int(mask[row].sum()),
            "keys": len(keys),
            "sums": [weights.sum() for weights in ways.values()],
            "lost": 1 - after.sum(),
            "apart": np.abs(renormalised - before).max(),
        },
    )


@view("Lift the causal mask", code=(LiftCausalMask, future_mass))
def lift(run: Run, place: str | None = LIFTED) -> Result:
    """The same target, teacher-forced without the causal mask."""
    if place is None:
        return Result(facts={"causal": False, "hidden": int((~run.attention.mask[run.head]).sum())})
    before = run.trace
    change = LiftCausalMask(None if place == "all" else run.layer)
    after = run.forced(*before.interventions, change).trace
    right = before.target_probabilities, after.target_probabilities
    mass = future_mass(after.attention(run.kind, run.layer).pattern)
    rows = row_names(after.tgt_tokens, after.next_tokens)
    leak = Maps(
        rows=[say_label(f"head {head}") for head in range(len(mass))],
        columns=rows,
        maps={"": Map(mass, scale=Scale(0, 1, WEIGHTS, "weight on<br>later positions,<br>0 to 1"), what="weight")},
        axes=("head", "decoder row"),
        layout={"height": 290 + 22 * len(mass), "margin": {"b": 158}, "xaxis": {"title": "decoder row (query)"}},
    )
    table = pd.DataFrame(
        {
            "row": rows,
            "before": right[0],
            "after": right[1],
            "difference": right[1] - right[0],
            "distribution moved": total_variation(before.probabilities, after.probabilities),
            "weight on later positions": mass.mean(axis=0),
        }
    )
    lifted = probability_changes(before, *right, ("causal mask on", "causal mask lifted"))
    return Result(
        {"lift": lifted, "leak": leak, "rows": table},
        {
            "causal": True,
            "rose": int((right[1] > right[0]).sum()),
            "fell": int((right[1] < right[0]).sum()),
            "before": right[0],
            "after": right[1],
            "mass": mass,
            "masked": future_mass(before.attention(run.kind, run.layer).pattern).max(),
        },
        {
            "log_probability_before": before.target_log_probabilities,
            "log_probability_after": after.target_log_probabilities,
        },
    )


@answer
def one_line(run: Run) -> Result:
    """How many keys a row may attend to."""
    mask = run.attention.mask[run.head]
    sees = mask.sum(axis=-1)
    hides_later = run.attention.causal and not np.triu(mask, 1).any()
    return Result(facts={"sees": sees.mean(), "least": sees.min(), "keys": mask.shape[-1], "hides_later": hides_later})
