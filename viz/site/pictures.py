"""What the page's pictures have in their headers whatever run they show: taken from Python's own pictures of a run."""

from collections.abc import Sequence
from typing import Any

from viz import notebook
from viz.canvas.beam_tree import tree_picture
from viz.drawing import Drawing, named
from viz.special.temperature import live_weights
from viz.steps.head import COLOURS
from viz.steps.table import table
from viz.theme import colour_scales

EMBEDDING = "src_embedding"
"""path of its three arrays"""
OF_RUN = ("labels", "notes", "path", "temperature")
"""of a header of matrices, what page.js fills in"""


def headers(trace: Any, taus: Sequence[float], scope: str) -> dict[str, Any]:
    """By picture, what its script draws besides arrays.

    Each step of a kind also has `arrays`: the names, at the attention, of those that it is drawn with.

    Args:
        trace: a model.trace.Trace of a translator.
        taus: temperatures that are offered for a run.
        scope: where they are set, in words.
    """
    kind = trace.kinds[0]
    live = {"title": "", "temperature": 1.0, "taus": taus, "row": 0, "scope": scope, "changes": 0}
    return {
        "steps": {
            kind.name: [_step(drawing) for drawing in notebook.steps(trace, kind.name).drawings] for kind in trace.kinds
        },
        "softmax": live_weights(trace.attention(kind.name, kind.layers[0]), 0, ((), ()), (), **live).header,
        "lines": {kind.name: notebook.lines(trace, kind.name).drawings[0].header for kind in trace.kinds},
        "heads": notebook.heads(trace).drawings[0].header,
        "positions": _positions(),
        "beam": tree_picture((), (), (), ((), ()), (), 0, trace.tgt_tokens[0]).data,
    }


def _step(drawing: Drawing) -> dict[str, Any]:
    header = drawing.header
    path = f"{header['path']}."
    names = (name.removeprefix(path).partition("[")[0] for name in drawing.names)
    return {part: value for part, value in header.items() if part not in OF_RUN} | {"arrays": [*dict.fromkeys(names)]}


def _positions() -> dict[str, Any]:
    """Embedding + position = what the encoder reads."""
    symbols = {"embedding": "embedding √d_model", "positional": "position", "sum": "sum"}
    row = {"rows": "query", "columns": "model"}
    embedding, position, total = (
        {"symbol": symbol, "array": name, "range": name} | row for name, symbol in symbols.items()
    )
    return {
        "title": "Embedding + position",
        "step": 0,
        "steps": 1,
        "chosen": {"query": 0, "model": 0},
        "path": EMBEDDING,
        "equations": [[embedding, "+", position, "=", total | {"result": True}]],
        "ranges": {name: {"robust": [name]} for name in symbols},
        "axes": table()["axes"] | {"query": {"title": "tokens"}},
        "arrays": [named(EMBEDDING, name) for name in symbols],
        "colours": COLOURS,
        "scales": colour_scales(),
    }
