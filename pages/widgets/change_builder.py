"""What if: build one change to the model from its type, its value and its address."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from model import interventions as change
from model.analysis.positions.word_order import shuffle_words
from model.interventions import Intervention, describe, scaling_in_words
from model.language import Numeral, later, sentence, tr, tr_error
from model.run import Run
from model.trace import KIND_TITLES, SUBLAYER_TITLES
from pages.views.controls import TAU, Offer, decimals
from pages.widgets.changes import add, list_version, why_unsupported
from pages.widgets.controls import number, select, several, steps
from viz.labels import say_label
from viz.tokens import numbered

DRAFT = "of a change that is being built; what was added to the list is in the link"
SIDEBAR, ALL = "sidebar", "all"
SIDES = {"source": later("Source"), "target": later("Target")}
STACKS = {ALL: later("encoder and decoder"), "encoder": later("encoder"), "decoder": later("decoder")}
SUBLAYERS = {ALL: later("every sub-layer"), **SUBLAYER_TITLES}
SOURCE_KINDS = ("encoder_self", "cross")
SELF_KINDS = ("encoder_self", "decoder_self")


def build(run: Run, drawn: int) -> None:
    """Choose what to change, its value and its address; a button adds it to the list.

    If that has changed since the version that the rest of the page has `drawn`, the page reruns.
    """
    if list_version() != drawn:
        st.rerun()
    scaling = scaling_in_words(run.opened.model) or sentence("scaled")
    name = _pick(tr("What to change"), "what", {name: tr(name, scaling=scaling) for name in CHANGES})
    problem = ""
    try:
        made = CHANGES[name](run)
        problem = why_unsupported(run.opened, made) if made else ""
    except ValueError as error:
        made, problem = None, tr_error(error)
    st.text(problem or (tr(describe(made, run.opened.model)) if made else tr("Choose a value first.")), width="stretch")
    st.button(
        tr("Add"),
        icon=":material/add:",
        key="what_if_add",
        type="primary",
        on_click=add,
        args=(made,),
        disabled=bool(problem) or not made,
    )


def _temperature(run: Run) -> Intervention:
    tau = steps(replace(TAU.offer(run, {}), start=0.5, unlinked=DRAFT), "what_if_tau")
    return change.AttentionTemperature(tau, **_place(run))


def _gate(run: Run) -> Intervention:
    left, right = st.columns(2)
    gates = {gate: tr(Numeral(f"{gate:g}")) for gate in decimals(0.0, 1.0, 0.05)}
    gate = steps(Offer(tr("Gate"), gates, unlinked=DRAFT), "what_if_gate", left)
    words = {"zero": tr("zero"), "mean": tr("its mean (decoder: up to the query)")}
    mode = _pick(tr("What is removed is replaced by"), "mode", words, right)
    return change.HeadGate(gate, mode=mode, **_place(run))


def _cells(run: Run) -> Intervention:
    place = _place(run)
    queries, keys = _tokens(run, place["kind"])
    left, middle, right = st.columns(3)
    query = _pick(tr("Query (row)"), "query", dict(enumerate(queries)), left)
    key = _pick(tr("Key (column)"), "key", dict(enumerate(keys)), middle)
    words = {"forbid": tr("may not attend to the key"), "allow": tr("may attend to the key")}
    field = _pick(tr("The query"), "field", words, right)
    return change.MaskEdit(**{field: ((query, key),)}, **place)


def _forbid_source(run: Run) -> Intervention | None:
    positions = _positions(tr("Source tokens to mask everywhere"), "forbidden", numbered(run.trace.src_tokens))
    place = _place(run, SOURCE_KINDS)
    return change.ForbidSource(positions, **place) if positions else None


def _pattern(run: Run) -> Intervention | None:
    left, right = st.columns([2, 1])
    shapes = {
        "window": tr("sliding window"),
        "strided": tr("strided"),
        "global": tr("global tokens + window"),
        "block": tr("blocks"),
    }
    shape = _pick(tr("Pattern"), "pattern", shapes, left)
    size = number(Offer(tr("Its size"), None, 3, (1, 256), unlinked=DRAFT), "what_if_pattern_size", right)
    tokens = (0,)
    if shape == "global":
        tokens = _positions(tr("Global tokens"), "global", numbered(run.attention.key_tokens))
    place = _place(run, SELF_KINDS, heads=False)
    made = {
        "window": {"window": size},
        "strided": {"window": size, "stride": size},
        "global": {"window": size, "global_tokens": tokens},
        "block": {"block": size},
    }
    return change.PatternMask(**made[shape], **place) if tokens else None


def _lift(run: Run) -> Intervention:
    layers = _or_all(run.trace.kind("decoder_self").layers)
    layer = _pick(tr("Layer of the decoder"), "decoder_layer", layers)
    return change.LiftCausalMask(None if layer == ALL else layer)


def _row(run: Run) -> Intervention:
    """The row's own weights in an editable table."""
    place = _place(run)
    kind = place["kind"] or run.kind
    queries, keys = _tokens(run, kind)
    row = _pick(tr("Query (row)"), "query", dict(enumerate(queries)))
    layer = min(run.layer if place["layer"] is None else place["layer"], _layers(run, kind) - 1)
    weights = run.trace.attention(kind, layer).pattern[place["head"] or 0, row]
    table = st.data_editor(
        pd.DataFrame({"key": keys, "weight": np.round(weights.astype(float), 4)}),
        key=f"what_if_weights_{kind}_{layer}_{place['head']}_{row}",
        hide_index=True,
        disabled=["key"],
        height=180,
        column_config={
            "key": say_label("key"),
            "weight": st.column_config.NumberColumn(say_label("weight"), min_value=0.0, required=True, format="%.4f"),
        },
    )
    return change.PatternEdit(row, tuple(float(weight) for weight in table["weight"]), **place)


def _values(run: Run) -> Intervention | None:
    place = _place(run)
    keys = _tokens(run, place["kind"])[1]
    positions = _positions(tr("Keys whose values are set to 0"), "silent", keys)
    return change.ValueZeroing(positions, **place) if positions else None


def _shared(run: Run) -> Intervention:
    heads = run.attention.n_heads
    counts = [groups for groups in range(1, heads) if heads % groups == 0]
    words = {groups: tr("{count} groups", count=groups) for groups in reversed(counts)} | {1: tr("1 group")}
    groups = _pick(tr("Keys and values of the heads"), "groups", words)
    return change.SharedKeysValues(groups, **_place(run, heads=False))


def _positions_off(_run: Run) -> Intervention:
    sides = {ALL: later("Source and target"), **SIDES}
    side = _pick(tr("Sentence"), "off_side", _said(sides))
    return change.PositionsOff(None if side == ALL else side)


def _positions_shuffled(run: Run) -> Intervention:
    side = _pick(tr("Sentence"), "side", _said(SIDES))
    tokens = run.trace.src_tokens if side == "source" else run.trace.tgt_tokens
    return change.PositionsShuffled(shuffle_words(len(tokens), _seed()), side)


def _sublayer(made: type) -> Callable[[Run], Intervention]:
    def build(run: Run) -> Intervention:
        left, middle, right = st.columns(3)
        stack = _pick(tr("Stack"), "stack", _said(STACKS), left)
        name = _pick(tr("Sub-layer"), "sublayer", _said(SUBLAYERS), middle)
        layers = _or_all(range(_layers(run, None)))
        layer = _pick(tr("Layer"), "any_layer", layers, right)
        return made(*(None if value == ALL else value for value in (stack, layer, name)))

    return build


CHANGES: Mapping[str, Callable[[Run], Intervention | None]] = {
    later("Heads: switch off (gate)"): _gate,
    later("Scores: temperature τ"): _temperature,
    later("Scores: not {scaling}"): lambda run: change.Unscaled(**_place(run)),
    later("Mask: mask or unmask a cell"): _cells,
    later("Mask: hide source tokens"): _forbid_source,
    later("Mask: window, stride, blocks"): _pattern,
    later("Mask: lift the causal mask"): _lift,
    later("Weights: uniform"): lambda run: change.UniformAttention(**_place(run)),
    later("Weights: permuted"): lambda run: change.PermutedAttention(_seed(), **_place(run)),
    later("Weights: set one row"): _row,
    later("Values: set to zero"): _values,
    later("Keys and values: shared in groups"): _shared,
    later("Positions: none"): _positions_off,
    later("Positions: shuffled"): _positions_shuffled,
    later("Blocks: sub-layer off"): _sublayer(change.SublayerOff),
    later("Blocks: residual off"): _sublayer(change.ResidualOff),
    later("Blocks: norm off"): _sublayer(change.NormOff),
}


def _place(run: Run, kinds: Sequence[str] = tuple(KIND_TITLES), heads: bool = True) -> dict[str, Any]:
    """Choose kind, layer and, with `heads`, head; the sidebar's are the default."""
    kinds = [kind.name for kind in run.trace.kinds if kind.name in kinds]
    left, middle, right = st.columns([2, 1, 1])
    own = run.kind if run.kind in kinds else None
    names = {
        SIDEBAR: f"← {tr(KIND_TITLES[own]) if own else tr('all')}",
        ALL: tr("all"),
        **{kind: tr(KIND_TITLES[kind]) for kind in kinds},
    }
    kind = _pick(tr("Attention (←: as in the sidebar)"), "kind", names, left)
    kind = {SIDEBAR: own, ALL: None}.get(kind, kind)

    def choose(column: Any, label: str, key: str, sidebar: int, count: int) -> int | None:
        chosen = _pick(label, key, {SIDEBAR: f"← {sidebar}"} | _or_all(range(count)), column)
        return {SIDEBAR: sidebar, ALL: None}.get(chosen, chosen)

    layer = choose(middle, tr("Layer"), "layer", run.layer, _layers(run, kind))
    place = {"kind": kind, "layer": layer}
    return place | ({"head": choose(right, tr("Head"), "head", run.head, run.attention.n_heads)} if heads else {})


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
    return number(Offer(tr("Seed"), None, 1, (0, 9999), unlinked=DRAFT), "what_if_seed")


def _positions(label: str, key: str, names: list[str]) -> tuple[int, ...]:
    return tuple(sorted(several(Offer(label, dict(enumerate(names)), [], unlinked=DRAFT), f"what_if_{key}")))


def _said(options: Mapping[Any, str]) -> dict[Any, str]:
    return {value: tr(text) for value, text in options.items()}


def _or_all(numbers: Iterable[int]) -> dict[Any, str]:
    return {ALL: tr("all")} | {number: str(number) for number in numbers}


def _pick(label: str, key: str, options: Mapping[Any, str], place: Any = st) -> Any:
    return select(Offer(label, options, unlinked=DRAFT), f"what_if_{key}", place)
