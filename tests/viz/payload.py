"""Reads the data of drawings as js/shared/payload.js does."""

import json
import math
import re
import struct
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from viz.drawing import Drawing, named
from viz.steps.table import equations_of, values

if TYPE_CHECKING:
    from model.trace import Trace

KINDS = ("encoder_self", "decoder_self", "cross")
PLACES = [*product(KINDS, (0, 1), range(4))]
"""kind, layer and head of every attention of the tiny model"""
PLACE = re.compile(r"(?:encoder|decoder)\.layers\.\d+\.(?:self|cross)_attn\.[\w.]+")
"""the path of an array of an attention"""


def unpack(drawing: bytes | Drawing) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """The header, and the arrays by name: float32, bool, and of codes float64 with NaN."""
    payload = drawing.data if isinstance(drawing, Drawing) else drawing
    (length,) = struct.unpack("<I", payload[:4])
    header, described = json.loads(payload[4 : 4 + length])
    place, arrays = 4 + length, {}
    for name, kind, shape, *unit in described:
        assert place % 4 == 0, "a browser needs aligned numbers"
        count = math.prod(shape)
        sent = np.frombuffer(
            payload, {"bits": "u1"}.get(kind, f"<{kind}"), -(-count // 8) if kind == "bits" else count, place
        )
        place += -(-sent.nbytes // 4) * 4
        if kind == "bits":
            sent = np.unpackbits(sent, count=count, bitorder="little").astype(bool)
        arrays[name] = (np.where(sent, (sent.astype(float) - 1) * unit[0], np.nan) if unit else sent).reshape(shape)
    assert place == len(payload), "what is sent has a name"
    return header, arrays


def part_of(arrays: dict[str, np.ndarray], name: str) -> np.ndarray:
    """The array of that name, cut from a whole one or multiplied if it was not sent, as `arrayAt` does."""
    if name in arrays:
        return arrays[name]
    if " @ " in name:
        one, other = (part_of(arrays, factor).astype(float) for factor in name.split(" @ "))
        return (one @ other).astype(np.float32)
    path, _, index = name.partition("[")
    return arrays[path][index_of(index)]


def index_of(index: str) -> tuple[int | slice, ...]:
    """Of "3, 7]" or ":, 7]"."""
    return tuple(
        slice(*(int(end) if end else None for end in part.split(":"))) if ":" in part else int(part)
        for part in index.rstrip("]").split(", ")
    )


def in_trace(trace: "Trace", name: str) -> np.ndarray | None:
    """What an array's name says, read from the trace; None: the name is of no array of an attention."""
    if " @ " in name:
        whole, _, row = name.removeprefix("(").partition(")[")
        one, other = (in_trace(trace, factor) for factor in whole.split(" @ "))
        return (one @ other).astype(np.float32)[index_of(row) if row else slice(None)]
    path, _, index = name.partition("[")
    if not PLACE.fullmatch(path):
        return None
    try:
        array = trace.array(path)
    except ValueError:
        return None
    return array[index_of(index)] if index else array


def decode(payload: bytes | Drawing) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """What a picture of equations draws: the header, and its rows by symbol, with `values` and `allowed` or None."""
    header, sent = unpack(payload)

    def at(name: str) -> np.ndarray:
        return part_of(sent, " @ ".join(named(header.get("path", ""), factor) for factor in name.split(" @ ")))

    def axis(name: str) -> dict[str, Any]:
        labelled = {field: header[field].get(name, []) for field in ("labels", "notes")}
        return {"name": name} | header["axes"][name] | labelled

    equations = equations_of(header["equations"], header.get("facts", {}))
    found = {}
    for row in (part for equation in equations for part in equation if not isinstance(part, str)):
        allowed = at(row["mask"]).reshape(-1, at(row["mask"]).shape[-1]) if "mask" in row else None
        found[row["symbol"]] = row | {"values": values(row, at), "allowed": allowed}
        sizes = zip(("rows", "columns"), found[row["symbol"]]["values"].shape, strict=True)
        found[row["symbol"]] |= {side: axis(row[side]) | {"size": size} for side, size in sizes}
    return header, found
