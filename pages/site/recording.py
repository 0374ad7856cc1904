"""The run that the page shows before its weights have come: every array that its pictures draw, as base64."""

import base64
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from model.analysis.stream.whole_model import Box
from model.trace import Trace
from pages.views.model.whole_model import MOST_CANDIDATES
from viz.drawing import named
from viz.site.pictures import EMBEDDINGS, adds_positions

LEARNED = ("w_q", "b_q", "w_k", "b_k", "w_v", "b_v")
"""arrays of which the recording has the part of one head; the rest would be most of it"""
OF_EVERY_HEAD = ("pattern", "mask")
MASKING = 3
"""number of the step whose picture is one of the decoder's own attention"""
Place = tuple[str, int, int]
"""kind, layer, head"""


def recording(
    trace: Trace,
    place: Place,
    steps: Mapping[str, Sequence[Mapping[str, Any]]],
    boxes: Sequence[Box],
    said: Mapping[str, Any],
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The run of one text as the page reads it: texts, ids, pieces, and arrays by hook path.

    Two parts: what the first picture needs, and the arrays of the other pictures, which stand further on in the page.
    `steps` has by kind the headers of a head's pictures, as viz.site.pictures gives them; `said` the `text` that was
    typed, what the model has `written`, and of a language model, how many tokens of its run are the `prompt`.
    """
    values = {named(box.name, "values"): np.array([*box.values.values()]) for box in boxes}
    paths = [path for each in trace.kinds for path in map(each.path, each.layers)]
    first = {named(path, name): trace.array(named(path, name)) for path in paths for name in OF_EVERY_HEAD} | values
    others = {path: array for path, array in _of_one_head(trace, place, steps) if path not in first}
    return {
        **said,
        "source": trace.src_ids,
        "target": trace.next_ids,
        "tokens": {"source": trace.src_tokens, "target": trace.tgt_tokens, "next": trace.next_tokens},
        "candidates": [
            # With as many digits as single precision needs.
            [[each.token, float(str(np.float32(each.probability)))] for each in row[:MOST_CANDIDATES]]
            for row in trace.candidates
        ],
        "score": dict.fromkeys(("before", "after"), trace.log_probability),
    } | _packed(first), _packed(others)


def _packed(arrays: Mapping[str, np.ndarray]) -> dict[str, Any]:
    described, parts = [], []
    for path, array in arrays.items():
        kind = _kind(array)
        described.append([path, kind, list(array.shape)])
        data = (np.packbits(array, bitorder="little") if kind == "bits" else array.astype(f"<{kind}")).tobytes()
        parts.append(data + bytes(-len(data) % 4))
    return {"described": described, "bytes": base64.b64encode(b"".join(parts)).decode()}


def _of_one_head(trace: Trace, place: Place, steps: Mapping[str, Any]) -> Iterator[tuple[str, np.ndarray]]:
    kind, layer, head = place
    stack, stream = next(iter(trace.streams.items()))
    if adds_positions(stream):
        # The page adds their sum, as the model does, in single precision.
        terms = stream.embedded.terms
        yield from ((named(EMBEDDINGS[stack], name), terms[name]) for name in ("embedding", "positional"))
    masked = trace.attention("decoder_self", layer)
    yield from ((named(masked.path, name), masked.array(name)) for name in steps["decoder_self"][MASKING]["arrays"])
    attention = trace.attention(kind, layer)
    yield named(attention.path, "temperature"), attention.array("temperature")
    for name in (name for step in steps[kind] for name in step["arrays"]):
        array = attention.array(name)
        yield (
            (named(attention.path, name, head), array[head])
            if name in LEARNED
            else (named(attention.path, name), array)
        )


def _kind(array: np.ndarray) -> str:
    """Half precision where it says the same number, as of weights from a file in half precision."""
    if array.dtype == bool:
        return "bits"
    return "f2" if np.array_equal(array.astype(np.float16).astype(np.float32), array.astype(np.float32)) else "f4"
