"""The whole model: figure 1 of the paper with the numbers of this run, and a token that travels through it."""

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd

from model.analysis.stream.residual_stream import measure_stream
from model.analysis.stream.whole_model import SIDES, Box, box_arrays, model_boxes, switch_off_each
from model.checkpoints.store import shown_name
from model.interventions import Intervention, NormOff, ResidualOff, SublayerOff, describe
from model.interventions.link import decode, encode
from model.language import Language, language, sentence_of, tr
from model.network.layers import DecoderLayer, EncoderLayer
from model.network.residual import Residual
from model.run import Run
from model.trace import Trace
from pages import page_of
from pages.views import Need, OnRequest, Result, answer, is_quick, view
from pages.views.chosen_token import row_in
from pages.views.controls import HEAD, KIND, LAYER, choice, pictured
from pages.views.model import layer_by_layer as layers
from pages.views.model.decoding import STEP as DECODING_STEP
from pages.views.model.tokens_and_embeddings import POSITION, SIDE
from pages.views.part_pictures import part_label
from pages.views.words import blocks_of
from viz.canvas.whole_model import About, StackRow, Switched, parts, whole_model
from viz.forms import Bars, Canvas
from viz.labels import say_label
from viz.tokens import labels

MOST_CANDIDATES = 5
STACKS = {"encoder": "Encoder", "decoder": "Decoder"}
SUMS = ("add", "add_norm", "norm")
"""boxes whose switches are those of their sub-layer"""
AT = pictured("Box and tokens", lambda _: ("", "decoder.softmax~1~1"), key="whole_at")
"""name of the box, and the position in each stack"""
OFF = pictured(
    "What is switched off",
    lambda run: (
        "",
        encode([make([*run.trace.streams][-1], 0, "feed_forward") for make in (SublayerOff, ResidualOff)]),
    ),
    key="whole_off",
)
"""as links have changes"""
LAYERS_TAB = choice("Tab", ("Inside one sub-layer", "Logit lens", "Neurons"), key="layers_tab")
OPENS = {
    "kind": KIND,
    "layer": LAYER,
    "head": HEAD,
    "side": SIDE,
    "position": POSITION,
    "written": DECODING_STEP,
    "stack": layers.STACK,
    "token": layers.TOKEN,
    "step": layers.STEP,
    "tab": LAYERS_TAB,
}
"""what the pages that explain a box show: name of a value in the picture's answer -> the control that it sets"""
NEEDS = (Need.FULL_ROWS, Need.STREAM, Need.LOGITS)


def _boxes(run: Run) -> tuple[Box, ...]:
    return run.compute(model_boxes, run.opened, run.trace)


def _switches(boxes: Sequence[Box], text: str) -> tuple[tuple[Intervention, ...], str]:
    """What is switched off, as far as this model has it; and why the text could not be read, if so."""
    try:
        changes = decode(text)
    except ValueError as error:
        return (), sentence_of(error)
    possible = {change for box in boxes for change in box.switches().values()}
    return tuple(change for change in changes if change in possible), ""


def _place(run: Run, boxes: Sequence[Box], at: str) -> tuple[Box, dict[str, int]]:
    """Box and positions; the first box and the chosen token where the model and the text lack what is asked for."""
    name, *asked = at.split("~")
    box = next((box for box in boxes if box.name == name), boxes[0])
    streams = run.trace.streams
    positions = {stack: row_in(run, stack) for stack in streams}
    numbers = zip(streams, asked, strict=False)
    positions |= {stack: int(text) for stack, text in numbers if re.fullmatch("[0-9]{1,4}", text)}
    return box, {stack: min(at, len(streams[stack].tokens) - 1) for stack, at in positions.items()}


def _switched(run: Run, off: str) -> tuple[Run, tuple[Intervention, ...], str]:
    """The run with its switches as they are, those that are off, and why they could not be read, if so."""
    changes, problem = _switches(_boxes(run), off)
    return run.forced(*run.trace.interventions, *changes) if changes else run, changes, problem


EACH_OFF = OnRequest(
    "Switch off each in turn",
    "whole-each-off",
    lambda run: ((1 - np.isnan([*each.values()]).mean(), each) for each in switch_off_each(run.opened, run.trace)),
    lambda run: (run.opened, run.trace),
    at_once=is_quick,
)


def _code(run: Run) -> tuple:
    own = (DecoderLayer if len(run.trace.streams) == 2 else EncoderLayer, Residual)
    shared = (model_boxes, measure_stream, SublayerOff, ResidualOff, NormOff)
    return (*own, *shared) if Need.OWN_LAYERS in run.opened.features else shared


@view("Figure 1, alive", code=_code, reads=EACH_OFF, needs=NEEDS)
def figure(run: Run, at: str = AT, off: str = OFF, outcome: dict[str, float] | None = None) -> Result:
    """Every box of the model with what it does to the chosen tokens, under the switches as they are."""
    return draw_model(run, at, off, outcome)


def draw_model(run: Run, at: str, off: str, outcome: dict[str, float] | None = None, counts: bool = False) -> Result:
    """The same, for other pages, too; with `counts` a box says at first how many parameters it has."""
    switched, changes, problem = _switched(run, off)
    trace, boxes = switched.trace, _boxes(switched)
    box, positions = _place(switched, boxes, at)
    states = Switched(
        before=run.trace.log_probability,
        after=trace.log_probability,
        off=_names_of(boxes, changes),
        changes=[_code_of(change) for change in changes],
        alone=outcome or {},
    )
    drawing = whole_model(
        boxes,
        _rows(switched),
        (box.name, positions),
        about={box.name: _about(run, box) for box in boxes},
        memory=_memory_length(boxes, trace),
        switched=states,
        counts=counts,
        title=f"{shown_name(trace.checkpoint)} {trace.checkpoint_hash[:8]}, {say_label('the whole model')}",
    )
    moves = {"move": AT, "switch": {"at": AT, "off": OFF}, "open": {"at": AT} | OPENS}
    last = trace.sublayers[-1]
    return Result(
        {"whole_model": Canvas(drawing, moves)},
        {
            "off": list(map(describe, changes)),
            "problem": problem,
            "totals": (states.before, states.after),
            "placement": last.placement,
            "multiplier": last.multiplier,
        },
        box_arrays(boxes, trace),
        drawn=switched,
    )


def _rows(run: Run) -> list[StackRow]:
    """The texts of the stacks; those that the last one predicts have the most probable tokens."""
    trace = run.trace
    *_, last = trace.streams
    best = run.compute(_best_tokens, trace)
    return [
        StackRow(
            name,
            STACKS[name],
            stream.tokens.labels,
            stream.predicts.labels if stream.predicts else None,
            best if name == last else (),
        )
        for name, stream in trace.streams.items()
    ]


def _best_tokens(trace: Trace) -> tuple[tuple[tuple[str, float], ...], ...]:
    """For each row that predicts the most probable tokens, with their probabilities."""
    return tuple(tuple((one.token, one.probability) for one in row[:MOST_CANDIDATES]) for row in trace.candidates)


@lru_cache(maxsize=1_000)
def _code_of(change: Intervention) -> str:
    """One change as it stands in the list of a link."""
    return encode((change,))[1:-1]


def _names_of(boxes: Sequence[Box], changes: tuple[Intervention, ...]) -> dict[str, list[str]]:
    """The switches that are off, by the name of their box."""
    names = {
        box.name: [name for name, change in box.switches().items() if change in changes]
        for box in boxes
        if box.part not in SUMS
    }
    return {box: switches for box, switches in names.items() if switches}


def _memory_length(boxes: Sequence[Box], trace: Trace) -> float | None:
    if len(trace.streams) < 2:
        return None
    *_, top = (box for box in boxes if box.stack == "encoder")
    return float(top.values["out"].mean())


def _about(run: Run, box: Box) -> About:
    """What a box is for, its switches, and the page that explains it, with what that shows by the names of OPENS."""
    name, values = _explained(run, box)
    switches = {name: _code_of(change) for name, change in box.switches().items()}
    return About(_purpose(run, box), tr(page_of(name).title), {"opens": name} | values, switches)


def _purpose(run: Run, box: Box) -> str:
    """One sentence, of pages/text/boxes.md."""
    *_, last = run.trace.streams
    kinds = [kind for kind in run.trace.kinds if kind.name == f"{box.stack}_self"]
    causal = any(kind.causal for kind in kinds)
    return _purpose_of(box.part, box.shared, box.layer is not None, box.stack == last, causal, language())


@lru_cache(maxsize=256)
def _purpose_of(part: str, shared: bool, inside: bool, last: bool, causal: bool, _spoken: Language) -> str:
    """The same: boxes that differ in none of this are for the same."""
    (sentence,) = blocks_of("boxes", part, {"shared": shared, "inside": inside, "last": last, "causal": causal})
    return sentence.text


def _explained(run: Run, box: Box) -> tuple[str, dict[str, Any]]:
    here = {"stack": box.stack, "token": ":position"}
    if box.part in ("self_attn", "cross_attn"):
        kind = "cross" if box.part == "cross_attn" else f"{box.stack}_self"
        return "attention_step_by_step", {"kind": kind, "layer": box.layer, "head": ":head"}
    if box.part == "embedding":
        return "tokens_and_embeddings", {"side": SIDES[box.stack], "position": ":position"}
    if box.part == "positions":
        return "positional_encoding", {"side": SIDES[box.stack]}
    if box.part == "softmax" and Need.CROSS_ATTENTION in run.opened.features:
        return "decoding", {"written": ":position"}
    if box.part in ("output", "softmax") or box.layer is None:
        return "layer_by_layer", here | {"tab": tr("Logit lens")}
    sublayers = run.trace.streams[box.stack].sublayers
    step = next(i for i, s in enumerate(sublayers, 1) if (s.layer, s.name) == (box.layer, box.sublayer))
    tab = tr("Neurons") if box.part == "feed_forward" else tr("Inside one sub-layer")
    return "layer_by_layer", here | {"step": step, "tab": tab}


@view("All boxes in numbers", code=(box_arrays,), needs=NEEDS)
def boxes(run: Run, at: str = AT, off: str = OFF) -> Result:
    """Every box as a row: shape, parameters, multiply-adds, and the chosen token's numbers."""
    switched, *_ = _switched(run, off)
    rows, trace = _boxes(switched), switched.trace
    _, positions = _place(switched, rows, at)

    def values(name: str, but: str = "") -> list[float | None]:
        there = (box.values.get(name) if box.part != but else None for box in rows)
        return [None if v is None else float(v[positions[box.stack]]) for v, box in zip(there, rows, strict=True)]

    shapes = [", ".join(f"{name} {'×'.join(map(str, size))}" for name, size in box.matrices.items()) for box in rows]
    table = pd.DataFrame(
        {
            "box": [_title(box) for box in rows],
            "shape": shapes,
            "parameters": [box.parameters for box in rows],
            "multiply-adds": [box.multiply_adds for box in rows],
            "length in": values("in"),
            "length out": values("out", but="softmax"),
            "share": values("share"),
        }
    )
    table.attrs["floats"] = "%.3g"
    chosen = [(STACKS[name].lower(), labels(trace.streams[name].tokens.labels)[at]) for name, at in positions.items()]
    return Result(
        {"boxes": table},
        {
            "chosen": chosen,
            "total": sum(box.parameters for box in rows if not box.shared),
            "whole": sum(run.opened.parameters_by_part().values()),
            "shares": any(box.shared for box in rows),
        },
        drawn=switched,
    )


def _title(box: Box) -> str:
    inside = f" of {parts()[box.sublayer]['title'].lower()}" if box.sublayer not in (None, box.part) else ""
    layer = "" if box.layer is None else f", layer {box.layer}"
    return f"{STACKS[box.stack]}{layer}: {parts()[box.part]['title'].removeprefix('+ ')}{inside}"


@view("Each box off", code=(switch_off_each,), on_request=EACH_OFF, needs=NEEDS)
def each_off(run: Run, outcome: dict[str, float] | None = None) -> Result:
    """Each box off, and each residual connection off, in turn: log p of the same text."""
    if outcome is None:
        return Result(facts={"done": False})
    plain = run.trace.log_probability
    rows = [box for box in _boxes(run) if f"{box.name} off" in outcome]
    columns: dict[str, Any] = {"box": [_title(box) for box in rows]}
    changes: dict[str, np.ndarray] = {}
    for switch, title in (("off", "off"), ("residual", "residual off"), ("norm", "norm off")):
        if switch == "norm" and not any(name.endswith(" norm") for name in outcome):
            continue
        values = np.array([outcome.get(f"{box.name} {switch}", np.nan) for box in rows])
        columns |= {f"log p, {title}": values, f"change, {title}": values - plain}
        changes[title] = values - plain
    table = pd.DataFrame(columns)
    table.attrs["floats"] = "%.2f"
    names = [
        part_label(" ".join(map(str, filter(lambda one: one is not None, (b.stack, b.layer, b.part))))) for b in rows
    ]
    bars = Bars(names, changes, ("box", "change in log p, nats"), number="+.2f", what="box", unit=" nats")
    return Result({"changes": bars, "each": table}, {"done": True, "plain": plain})


@answer
def one_line(run: Run) -> Result:
    """Sub-layers on the way of a token, and how long its vector is before and after them."""
    name = list(run.trace.streams)[-1]
    stream, row = run.trace.streams[name], row_in(run, name)
    norms = run.compute(measure_stream, run.trace, name).norm[row]
    token = labels(stream.tokens.labels)[row]
    return Result(facts={"token": token, "steps": len(norms) - 1, "first": norms[0], "last": norms[-1]})
