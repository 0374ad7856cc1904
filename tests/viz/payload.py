"""Reads the data of drawings as js/shared/payload.js does."""

import json
import math
import struct
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np

from viz.drawing import Drawing

KINDS = ("encoder_self", "decoder_self", "cross")
PLACES = [*product(KINDS, (0, 1), range(4))]
"""kind, layer and head of every attention of the tiny model"""


def unpack(drawing: bytes | Drawing) -> tuple[dict[str, Any], Callable[[str, tuple[int, ...]], np.ndarray]]:
    """The header, and `take(dtype, shape)`, which gives the next array."""
    payload = drawing.data if isinstance(drawing, Drawing) else drawing
    (length,) = struct.unpack("<I", payload[:4])
    place = 4 + length

    def take(dtype: str, shape: tuple[int, ...]) -> np.ndarray:
        nonlocal place
        assert place % 4 == 0, "a browser needs aligned numbers"
        array = np.frombuffer(payload, dtype, math.prod(shape), place).reshape(shape)
        place += -(-array.nbytes // 4) * 4
        return array

    return json.loads(payload[4 : 4 + length]), take


def decode(payload: bytes | Drawing) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """What `pack_equations` wrote: the header, and matrices by symbol, with `values` and `allowed` or None."""
    header, take = unpack(payload)
    found = {}
    for part in (part for equation in header["equations"] for part in equation if isinstance(part, dict)):
        shape = part["rows"]["size"], part["columns"]["size"]
        values = take("<f4", shape)
        allowed = take("u1", shape).astype(bool) if part["masked"] else None
        found[part["symbol"]] = part | {"values": values, "allowed": allowed}
    return header, found
