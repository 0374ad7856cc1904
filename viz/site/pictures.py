"""What the page's pictures have in their headers whatever run they show: taken from Python's own pictures of a run.

Its words are in the language of the run that asks.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from model.language import tr
from viz import notebook
from viz.canvas.beam_tree import tree_picture
from viz.canvas.long_map import LongWindow, long_map
from viz.canvas.own_vectors import own_vectors
from viz.drawing import Drawing, named
from viz.html import chips
from viz.labels import say_header, say_label
from viz.special.temperature import live_weights
from viz.steps.head import COLOURS
from viz.steps.table import table
from viz.theme import DECODER, ENCODER, colour_scales

EMBEDDINGS = {"encoder": "src_embedding", "decoder": "tgt_embedding"}
"""stack -> path of its three arrays"""
OF_RUN = ("labels", "notes", "path", "temperature")
"""of a header of matrices, what the page fills in"""


def headers(trace: Any, taus: Sequence[float], scope: str) -> dict[str, Any]:
    """By picture, what its script draws besides arrays.

    Each step of a kind also has `arrays`: the names, at the attention, of those that it is drawn with.

    Args:
        trace: a model.trace.Trace of a translator or of a language model.
        taus: temperatures that are offered for a run.
        scope: where they are set, in words.
    """
    kind, first = trace.kinds[0], next(iter(trace.streams.values()))
    colour = ENCODER if first.name == "encoder" else DECODER
    own = {}
    if adds_positions(first):
        own["positions"] = _positions(EMBEDDINGS[first.name])
    if "encoder" in trace.streams:
        own["beam"] = tree_picture((), (), (), ((), ()), (), 0, trace.tgt_tokens[0]).data
    live = {"title": "", "temperature": 1.0, "taus": taus, "row": 0, "scope": scope, "changes": 0}
    return {
        "steps": {
            kind.name: [_step(drawing) for drawing in notebook.steps(trace, kind.name).drawings] for kind in trace.kinds
        },
        "softmax": live_weights(trace.attention(kind.name, kind.layers[0]), 0, ((), ()), (), **live).header,
        "lines": {kind.name: notebook.lines(trace, kind.name).drawings[0].header for kind in trace.kinds},
        "heads": notebook.heads(trace).drawings[0].header,
        "tokens": chips(tr("Tokens"), first.tokens.labels[:1], first.tokens.ids[:1], colour, chosen=-1),
        "move": _move(trace.attention(kind.name, kind.layers[0]), taus),
        "map": _map(),
    } | own


def adds_positions(stream: Any) -> bool:
    """Whether a stack reads embeddings to which positions were added; a rotated model's table is empty."""
    terms = stream.embedded.terms
    return "positional" in terms and bool(terms["positional"].any())


def _step(drawing: Drawing) -> dict[str, Any]:
    header = drawing.header
    path = f"{header['path']}."
    names = (name.removeprefix(path).partition("[")[0] for name in drawing.names)
    return {part: value for part, value in header.items() if part not in OF_RUN} | {"arrays": [*dict.fromkeys(names)]}


def _move(attention: Any, taus: Sequence[float]) -> dict[str, Any]:
    own = {"path": "", "head": 0, "typed": None, "taus": taus, "softcap": attention.softcap, "sink": attention.sink}
    header = own_vectors({"bias": attention.bias}, [np.zeros((2, 1))] * 2, ((), ()), **own).header
    return {name: header[name] for name in ("biased", "colours", "roles", *own)}


def _map() -> dict[str, Any]:
    """The arrays are `map`, a head's weights, and `row`, those of the chosen query."""
    header = long_map([LongWindow(np.zeros((1, 1)), 0, 0)], [""]).header
    looks = [look | {"array": "map"} for look in header["looks"]]
    return {name: header[name] for name in ("measure", "scale")} | {"looks": looks, "weights": "row"}


def _positions(path: str) -> dict[str, Any]:
    """Embedding + position = what the first layer reads."""
    names = {"embedding": say_label("embedding √d_model"), "positional": say_label("position"), "sum": say_label("sum")}
    row = {"rows": "query", "columns": "model"}
    embedding, position, total = (
        {"symbol": symbol, "array": name, "range": name} | row for name, symbol in names.items()
    )
    header = {
        "title": tr("Embedding + position"),
        "step": 0,
        "steps": 1,
        "chosen": {"query": 0, "model": 0},
        "path": path,
        "equations": [[embedding, "+", position, "=", total | {"result": True}]],
        "ranges": {name: {"robust": [name]} for name in names},
        "axes": table()["axes"] | {"query": {"title": say_label("tokens")}},
        "arrays": [named(path, name) for name in names],
        "colours": COLOURS,
        "scales": colour_scales(),
    }
    return say_header(header)
