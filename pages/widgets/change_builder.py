"""What if: build one change to the model from its type, its value and its address."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from model import interventions as change
from model.analysis.positions.word_order import shuffle_words
from model.interventions import Intervention, describe, scaling_in_words
from model.run import TAUS, Run
from model.trace import KIND_TITLES
from pages.widgets.changes import add, list_version, why_unsupported
from pages.widgets.controls import Options, number, select, several, slider, steps
from viz.tokens import numbered

SIDEBAR, ALL = "sidebar", "all"
SIDES = {"source": "Source", "target": "Target"}
STACKS = {ALL: "encoder and decoder", "encoder": "encoder", "decoder": "decoder"}
SUBLAYERS = {
    ALL: "every sub-layer",
    "self_attn": "self-attention",
    "cross_attn": "cross-attention",
    "feed_forward": "feed-forward",
}
SOURCE_KINDS = ("encoder_self", "cross")
SELF_KINDS = ("encoder_self", "decoder_self")


@st.fragment
def build(run: Run, drawn: int) -> None:
    """Choose what to change, its value and its address; a button adds it to the list.

    Args:
        run: the run to change.
        drawn: version of the list that the rest of the page shows; if the list has changed since, the page reruns.
    """
    if list_version() != drawn:
        st.rerun()
    scaling = scaling_in_words(run.opened.model) or "scaled"
    changes = {name.format(scaling=scaling): make for name, make in CHANGES.items()}
    name = _pick("What to change", "what", list(changes))
    problem = ""
    try:
        made = changes[name](run)
        problem = why_unsupported(run.opened, made) if made else ""
    except ValueError as error:
        made, problem = None, str(error)
    st.text(problem or (describe(made, run.opened.model) if made else "Choose a value first."), width="stretch")
    st.button(
        "Add",
        icon=":material/add:",
        key="what_if_add",
        type="primary",
        on_click=add,
        args=(made,),
        disabled=bool(problem) or not made,
    )


def _temperature(run: Run) -> Intervention:
    tau = steps("τ", {tau: f"{tau:g}" for tau in TAUS}, "what_if_tau", default=0.5, in_link=False)
    return change.AttentionTemperature(tau, **_place(run))


def _gate(run: Run) -> Intervention:
    left, right = st.columns(2)
    gate = slider("Gate", (0.0, 1.0), 0.0, "what_if_gate", step=0.05, place=left, in_link=False)
    words = {"zero": "zero", "mean": "its mean (decoder: up to the query)"}
    mode = _pick("What is removed is replaced by", "mode", words, right)
    return change.HeadGate(gate, mode=mode, **_place(run))


def _cells(run: Run) -> Intervention:
    place = _place(run)
    queries, keys = _tokens(run, place["kind"])
    left, middle, right = st.columns(3)
    query = _pick("Query (row)", "query", dict(enumerate(queries)), left)
    key = _pick("Key (column)", "key", dict(enumerate(keys)), middle)
    words = {"forbid": "may not attend", "allow": "may attend"}
    field = _pick("The query", "field", words, right)
    return change.MaskEdit(**{field: ((query, key),)}, **place)


def _forbid_source(run: Run) -> Intervention | None:
    positions = _positions("Source tokens to mask everywhere", "forbidden", numbered(run.trace.src_tokens))
    place = _place(run, SOURCE_KINDS)
    return change.ForbidSource(positions, **place) if positions else None


def _pattern(run: Run) -> Intervention | None:
    left, right = st.columns([2, 1])
    shapes = {"window": "sliding window", "strided": "strided", "global": "global tokens + window", "block": "blocks"}
    shape = _pick("Pattern", "pattern", shapes, left)
    size = number("Its size", (1, 256), 3, "what_if_pattern_size", place=right, in_link=False)
    tokens = (0,)
    if shape == "global":
        tokens = _positions("Global tokens", "global", numbered(run.attention.key_tokens))
    place = _place(run, SELF_KINDS, heads=False)
    made = {
        "window": {"window": size},
        "strided": {"window": size, "stride": size},
        "global": {"window": size, "global_tokens": tokens},
        "block": {"block": size},
    }
    return change.PatternMask(**made[shape], **place) if tokens else None


def _lift(run: Run) -> Intervention:
    layers = [ALL, *run.trace.kind("decoder_self").layers]
    layer = _pick("Layer of the decoder", "decoder_layer", layers)
    return change.LiftCausalMask(None if layer == ALL else layer)


def _row(run: Run) -> Intervention:
    """The row's own weights in an editable table."""
    place = _place(run)
    kind = place["kind"] or run.kind
    queries, keys = _tokens(run, kind)
    row = _pick("Query (row)", "query", dict(enumerate(queries)))
    layer = min(run.layer if place["layer"] is None else place["layer"], _layers(run, kind) - 1)
    weights = run.trace.attention(kind, layer).pattern[place["head"] or 0, row]
    table = st.data_editor(
        pd.DataFrame({"key": keys, "weight": np.round(weights.astype(float), 4)}),
        key=f"what_if_weights_{kind}_{layer}_{place['head']}_{row}",
        hide_index=True,
        disabled=["key"],
        height=180,
        column_config={"weight": st.column_config.NumberColumn(min_value=0.0, required=True, format="%.4f")},
    )
    return change.PatternEdit(row, tuple(float(weight) for weight in table["weight"]), **place)


def _values(run: Run) -> Intervention | None:
    place = _place(run)
    keys = _tokens(run, place["kind"])[1]
    positions = _positions("Keys whose values are set to 0", "silent", keys)
    return change.ValueZeroing(positions, **place) if positions else None


def _shared(run: Run) -> Intervention:
    heads = run.attention.n_heads
    counts = [groups for groups in range(1, heads) if heads % groups == 0]
    words = {groups: f"{groups} {'group' if groups == 1 else 'groups'}" for groups in reversed(counts)}
    groups = _pick("Keys and values of the heads", "groups", words)
    return change.SharedKeysValues(groups, **_place(run, heads=False))


def _positions_off(_run: Run) -> Intervention:
    sides = {ALL: "Source and target", **SIDES}
    side = _pick("Sentence", "off_side", sides)
    return change.PositionsOff(None if side == ALL else side)


def _positions_shuffled(run: Run) -> Intervention:
    side = _pick("Sentence", "side", SIDES)
    tokens = run.trace.src_tokens if side == "source" else run.trace.tgt_tokens
    return change.PositionsShuffled(shuffle_words(len(tokens), _seed()), side)


def _sublayer(made: type) -> Callable[[Run], Intervention]:
    def build(run: Run) -> Intervention:
        left, middle, right = st.columns(3)
        stack = _pick("Stack", "stack", STACKS, left)
        name = _pick("Sub-layer", "sublayer", SUBLAYERS, middle)
        layers = [ALL, *range(_layers(run, None))]
        layer = _pick("Layer", "any_layer", layers, right)
        return made(*(None if value == ALL else value for value in (stack, layer, name)))

    return build


CHANGES: Mapping[str, Callable[[Run], Intervention | None]] = {
    "Heads: switch off (gate)": _gate,
    "Scores: temperature τ": _temperature,
    "Scores: not {scaling}": lambda run: change.Unscaled(**_place(run)),
    "Mask: mask or unmask a cell": _cells,
    "Mask: hide source tokens": _forbid_source,
    "Mask: window, stride, blocks": _pattern,
    "Mask: lift the causal mask": _lift,
    "Weights: uniform": lambda run: change.UniformAttention(**_place(run)),
    "Weights: permuted": lambda run: change.PermutedAttention(_seed(), **_place(run)),
    "Weights: set one row": _row,
    "Values: set to zero": _values,
    "Keys and values: shared in groups": _shared,
    "Positions: none": _positions_off,
    "Positions: shuffled": _positions_shuffled,
    "Blocks: sub-layer off": _sublayer(change.SublayerOff),
    "Blocks: residual off": _sublayer(change.ResidualOff),
}


def _place(run: Run, kinds: Sequence[str] = tuple(KIND_TITLES), heads: bool = True) -> dict[str, Any]:
    """Choose kind, layer and, with `heads`, head; the sidebar's are the default."""
    kinds = [kind.name for kind in run.trace.kinds if kind.name in kinds]
    left, middle, right = st.columns([2, 1, 1])
    own = run.kind if run.kind in kinds else None
    names = {
        SIDEBAR: f"← {KIND_TITLES[own] if own else 'all'}",
        ALL: "all",
        **{kind: KIND_TITLES[kind] for kind in kinds},
    }
    kind = _pick("Attention (←: as in the sidebar)", "kind", names, left)
    kind = {SIDEBAR: own, ALL: None}.get(kind, kind)

    def choose(column: Any, label: str, sidebar: int, count: int) -> int | None:
        words = {SIDEBAR: f"← {sidebar}", ALL: "all", **{i: str(i) for i in range(count)}}
        chosen = _pick(label, label.lower(), words, column)
        return {SIDEBAR: sidebar, ALL: None}.get(chosen, chosen)

    layer = choose(middle, "Layer", run.layer, _layers(run, kind))
    place = {"kind": kind, "layer": layer}
    return place | ({"head": choose(right, "Head", run.head, run.attention.n_heads)} if heads else {})


def _layers(run: Run, kind: str | None) -> int:
    return max(len(each.layers) for each in run.trace.kinds if kind in (None, each.name))


def _tokens(run: Run, kind: str | None) -> tuple[list[str], list[str]]:
    """Labels of queries and keys; positions alone if the change applies to all kinds."""
    if kind is None:
        numbers = list(map(str, range(max(len(run.trace.src_tokens), len(run.trace.tgt_tokens)))))
        return numbers, numbers
    attention = run.trace.attention(kind, 0)
    return numbered(attention.query_tokens), numbered(attention.key_tokens)


def _seed() -> int:
    return number("Seed", (0, 9999), 1, "what_if_seed", in_link=False)


def _positions(label: str, key: str, names: list[str]) -> tuple[int, ...]:
    return tuple(sorted(several(label, dict(enumerate(names)), (), f"what_if_{key}", in_link=False)))


def _pick(label: str, key: str, options: Options, place: Any = st) -> Any:
    return select(label, options, f"what_if_{key}", place=place, in_link=False)
