"""The whole model: the chosen box and tokens, what is switched off, the picture, and one function per tab."""

import re
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from model.analysis.whole_model import SIDES, Box, box_arrays, model_boxes, switch_off_each
from model.checkpoints.store import shown_name
from model.interventions import Intervention, describe
from model.interventions.link import decode, encode
from model.needs import Need
from model.trace import Trace
from pages import page_of
from pages.compute.cache import shared_result, stored
from pages.compute.on_request import compute_on_request
from pages.compute.runs import rerun
from pages.compute.view import View
from pages.widgets import controls
from pages.widgets.canvas import draw
from pages.widgets.export import export_tab
from pages.widgets.glossary import define
from pages.widgets.page_links import links
from pages.widgets.snippet import Call
from viz.canvas.whole_model import TITLES, Row, Switched, whole_model
from viz.drawing import Drawing
from viz.latex import signed
from viz.tokens import as_markdown, labels

PICTURE = "whole-model"
AT, OFF, OPEN = "whole_at", "whole_off", "whole-open"
"""in the session and, but for OPEN, in the URL: box and tokens; what is switched off; the page to open"""
EACH_OFF = "whole-each-off"
STACKS = {"encoder": "Encoder", "decoder": "Decoder"}
MOST_CANDIDATES = 5
SUMS = {
    "post": r"\mathrm{Norm}(x + \mathrm{Sublayer}(x))",
    "pre": r"x + \mathrm{Sublayer}(\mathrm{Norm}(x))",
    "sandwich": r"x + \mathrm{Norm}'(\mathrm{Sublayer}(\mathrm{Norm}(x)))",
    "res-post": r"x + \mathrm{Norm}(\mathrm{Sublayer}(x))",
    "parallel": r"x + \mathrm{Attention}(\mathrm{Norm}(x)) + \mathrm{FFN}(\mathrm{Norm}'(x))",
}
"""a sub-layer, or a layer of parallel ones, by placement of the norm"""
DROPOUT = (
    " **Dropout** acts in training alone, and in no picture here: on the output of each sub-layer, before it is added, "
    "and on the sum of embeddings and positions (section 5.4). On the attention weights this project's models have "
    "none."
)
"""of the paper, and of models of this project"""

boxes_of = shared_result()(model_boxes)


@dataclass(frozen=True)
class Shown:
    """The run with the switches as they are, and where the token is."""

    view: View
    before: Trace
    """the run with everything on"""
    off: tuple[Intervention, ...]
    box: str
    """name of the chosen box"""
    positions: dict[str, int]
    """of the chosen token of each stack"""

    @cached_property
    def boxes(self) -> tuple[Box, ...]:
        return boxes_of(self.view.translator, self.view.trace)

    @cached_property
    def each_off(self) -> dict[str, float] | None:
        """Result of `switch_off_each` when the picture is drawn; None: nobody has asked for it."""
        return stored(EACH_OFF, self.view.translator, self.before)


def choose(view: View) -> Shown:
    """What the session or the link asks for, as far as this model and text have it."""
    state = st.session_state
    if OFF not in state:
        state[OFF] = _linked_switches()
    boxes = boxes_of(view.translator, view.trace)
    switches = {change for box in boxes for change in box.switches().values()}
    off = state[OFF] = tuple(change for change in state[OFF] if change in switches)
    after = rerun(view.translator, view.trace, (*view.trace.interventions, *off)) if off else view.trace
    box, positions = _place(view.trace, [box.name for box in boxes])
    state[AT] = {"box": box, "positions": positions}
    st.query_params[AT] = "~".join(map(str, (box, *positions.values())))
    if off:
        st.query_params[OFF] = encode(off)
    else:
        st.query_params.pop(OFF, "")
    return Shown(replace(view, trace=after), view.trace, off, box, positions)


def _linked_switches() -> tuple[Intervention, ...]:
    try:
        return decode(st.query_params.get(OFF, ""))
    except ValueError:
        return ()


def _place(trace: Trace, names: list[str]) -> tuple[str, dict[str, int]]:
    """Box and positions from the session or the link; the first box and the second token where they are missing."""
    name, *asked = st.query_params.get(AT, "").split("~")
    at = st.session_state.get(AT)
    if at is None:
        numbers = [int(text) if re.fullmatch("[0-9]{1,4}", text) else 1 for text in asked]
        at = {"box": name, "positions": dict(zip(trace.streams, numbers, strict=False))}
    box = at["box"] if at["box"] in names else names[0]
    positions = {
        stack: min(max(int(at["positions"].get(stack, 1)), 0), len(stream.tokens) - 1)
        for stack, stream in trace.streams.items()
    }
    return box, positions


def show_picture(shown: Shown) -> Drawing:
    """Draw the model; the picture answers with a move, a switch or a box whose page is asked for."""
    view = shown.view
    trace = view.trace
    *_, last = trace.streams
    rows = [
        Row(
            name,
            STACKS[name],
            stream.tokens.labels,
            stream.predicts.labels if stream.predicts else None,
            [[(c.token, c.probability) for c in row[:MOST_CANDIDATES]] for row in trace.candidates]
            if name == last
            else (),
        )
        for name, stream in trace.streams.items()
    ]
    switched = {
        box.name: [name for name, change in box.switches().items() if change in shown.off]
        for box in shown.boxes
        if box.part not in ("add", "add_norm")
    }
    opens = st.session_state.pop(OPEN, None)
    if opens:
        # Streamlit switches pages in Python only where no control is in the link, so the picture follows this link.
        with st.container(key=OPEN):
            links(**{opens.removesuffix(".py"): "Opening …"})
    drawing = whole_model(
        shown.boxes,
        rows,
        (shown.box, shown.positions),
        pages={box.name: page_of(_page_about(box, view)[0]).title for box in shown.boxes},
        memory=_memory_length(shown.boxes, trace),
        switched=Switched(
            shown.before.log_probability,
            trace.log_probability,
            {name: switches for name, switches in switched.items() if switches},
            shown.each_off or {},
        ),
        title=f"{shown_name(trace.checkpoint)} {trace.checkpoint_hash[:8]}, the whole model",
        follows=f"st-key-{OPEN}" if opens else "",
    )
    # The callbacks run before the page does, when widgets can still be set.
    callbacks = {
        "on_move_change": _move,
        "on_switch_change": lambda: _switch(shown),
        "on_open_change": lambda: _open(shown),
    }
    return draw(drawing, PICTURE, **callbacks)


def _memory_length(boxes: tuple[Box, ...], trace: Trace) -> float | None:
    if len(trace.streams) < 2:
        return None
    *_, top = (box for box in boxes if box.stack == "encoder")
    return float(top.values["out"].mean())


def _move() -> None:
    _go(_answer("move"))


def _answer(name: str) -> dict[str, Any]:
    """What the picture has sent; empty if the page was left meanwhile."""
    return dict(st.session_state.get(PICTURE, {}).get(name) or {})


def _go(asked: dict[str, Any]) -> None:
    """Put the token where the picture has it."""
    if asked:
        positions = {str(stack): int(position) for stack, position in asked["positions"].items()}
        st.session_state[AT] = {"box": str(asked["box"]), "positions": positions}


def _switch(shown: Shown) -> None:
    """Turn a switch of the box where the token is; one without a name turns everything on."""
    asked = _answer("switch")
    _go(asked)
    box = next((box for box in shown.boxes if box.name == asked.get("box")), None)
    change = box.switches().get(str(asked["switch"])) if box else None
    others = tuple(each for each in shown.off if each != change)
    if box:
        st.session_state[OFF] = () if change is None else others if change in shown.off else (*others, change)


def _open(shown: Shown) -> None:
    """Set what the other page will show, and remember to go there."""
    asked = _answer("open")
    _go(asked)
    if box := next((box for box in shown.boxes if box.name == asked.get("box")), None):
        position = st.session_state[AT]["positions"][box.stack]
        file, choices = _page_about(box, shown.view, position)
        st.session_state.update(choices)
        st.session_state[OPEN] = file


def _page_about(box: Box, view: View, position: int = 0) -> tuple[str, dict[str, object]]:
    """The page that explains a box, and the values of its controls."""
    layers = {"layers_stack": box.stack, "layers_token": position}
    if box.part in ("self_attn", "cross_attn"):
        kind = "cross" if box.part == "cross_attn" else f"{box.stack}_self"
        head = int(box.values["head"][position])
        return "attention_step_by_step.py", {"kind": kind, "layer": box.layer, "head": head}
    if box.part == "embedding":
        return "tokens_and_embeddings.py", {"side": SIDES[box.stack], "tokens_position": position}
    if box.part == "positions":
        return "positional_encoding.py", {"side": SIDES[box.stack]}
    if box.part == "softmax" and Need.CROSS_ATTENTION in view.translator.features:
        return "decoding.py", {"decoding-step": position}
    if box.part in ("output", "softmax") or box.layer is None:
        return "layer_by_layer.py", {**layers, "layers_tab": "Logit lens"}
    sublayers = view.trace.streams[box.stack].sublayers
    step = next(i for i, s in enumerate(sublayers, 1) if (s.layer, s.name) == (box.layer, box.sublayer))
    tab = "Neurons" if box.part == "feed_forward" else "Inside one sub-layer"
    return "layer_by_layer.py", {**layers, "layers_step": step, "layers_tab": tab}


def show_switches(shown: Shown) -> None:
    """What is switched off, in sentences, and what that does to the text's probability."""
    if shown.off:
        before, after = shown.before.log_probability, shown.view.trace.log_probability
        st.caption(
            f"{' '.join(map(describe, shown.off))} The same text, teacher-forced: log p "
            f"{signed(before, '.3f')} → {signed(after, '.3f')} nats. The picture shows the changed run.",
            help=define("teacher-forced", "nats"),
        )


def show_boxes(shown: Shown) -> None:
    """Every box as a row: shape, parameters, multiply-adds, and the chosen token's numbers."""
    boxes = shown.boxes
    table = pd.DataFrame(
        {
            "box": [_title(box) for box in boxes],
            "shape": [
                ", ".join(f"{name} {'×'.join(map(str, size))}" for name, size in box.matrices.items()) for box in boxes
            ],
            "parameters": [box.parameters for box in boxes],
            "multiply-adds": [box.multiply_adds for box in boxes],
            "length in": [_at(box, "in", shown) for box in boxes],
            "length out": [_at(box, "out", shown) if box.part != "softmax" else None for box in boxes],
            "share": [_at(box, "share", shown) for box in boxes],
        }
    )
    controls.table(table, height=420)
    chosen = [
        f"{STACKS[stack].lower()} “{as_markdown(labels(shown.view.trace.streams[stack].tokens.labels)[position])}”"
        for stack, position in shown.positions.items()
    ]
    total = sum(box.parameters for box in boxes if not box.shared)
    shared = (
        " What several boxes share, such as a tied output matrix and embedding, is counted once."
        if any(box.shared for box in boxes)
        else ""
    )
    whole = sum(shown.view.translator.parameters_by_part().values())
    others = (
        f" The model has {whole:,}: the others belong to parts without a box here, such as token types or a bias "
        "of the output."
        if whole != total
        else ""
    )
    st.caption(
        f"Lengths at the chosen token, {', '.join(chosen)}. Together {total:,} parameters.{shared}{others} "
        "Multiply-adds of all tokens of this run; masked cells are counted, because the model computes them before "
        "masking."
    )
    export_tab(shown.view, "boxes", Call(box_arrays, shown.view.translator, shown.view.trace), table=table)


def _at(box: Box, name: str, shown: Shown) -> float | None:
    return float(box.values[name][shown.positions[box.stack]]) if name in box.values else None


def _title(box: Box) -> str:
    inside = f" of {TITLES[box.sublayer][0].lower()}" if box.sublayer not in (None, box.part) else ""
    layer = "" if box.layer is None else f", layer {box.layer}"
    return f"{STACKS[box.stack]}{layer}: {TITLES[box.part][0].removeprefix('+ ')}{inside}"


def show_each_off(shown: Shown) -> None:
    """Each box off, and each residual off, in turn: log p of the same text."""
    view = replace(shown.view, trace=shown.before)
    found = compute_on_request(
        "Switch off each in turn",
        EACH_OFF,
        (view.translator, view.trace),
        lambda: (
            (1 - np.isnan([*each.values()]).mean(), each) for each in switch_off_each(view.translator, view.trace)
        ),
    )
    if found is None:
        st.caption("Runs the model once for each box without what it adds, and once without its residual connection.")
        return
    if shown.each_off is None:
        st.rerun()  # the picture above shows it, too
    plain = view.trace.log_probability
    boxes = [box for box in shown.boxes if f"{box.name} off" in found]
    columns = {"box": [_title(box) for box in boxes]}
    for switch, title in (("off", "off"), ("residual", "residual off")):
        values = [found.get(f"{box.name} {switch}") for box in boxes]
        columns[f"log p, {title}"] = values
        columns[f"change, {title}"] = [None if value is None else value - plain for value in values]
    table = pd.DataFrame(columns).convert_dtypes()
    controls.table(table, floats="%.2f", height=420)
    st.caption(
        f"log p in nats of the same text, teacher-forced; with everything on it is {signed(plain, '.3f')}. The picture "
        "can show the changes, too: “Losses in the picture”.",
        help=define("teacher-forced", "nats"),
    )
    export_tab(view, "each-box-off", Call(switch_off_each, view.translator, view.trace, result=found), table=table)
