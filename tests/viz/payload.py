"""Reads the payload of the matrices component, as the component does."""

import json
import struct
from itertools import product
from typing import Any

import numpy as np

KINDS = ("encoder_self", "decoder_self", "cross")
PLACES = [*product(KINDS, (0, 1), range(4))]
"""kind, layer and head of every attention of the tiny model"""


def decode(payload: bytes) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """The header, and every matrix by symbol with its `values` and, where it is masked, `allowed`."""
    (length,) = struct.unpack("<I", payload[:4])
    header = json.loads(payload[4 : 4 + length])
    body = payload[4 + length :]
    found = {}
    for part in (part for equation in header["equations"] for part in equation if isinstance(part, dict)):
        shape = part["rows"]["size"], part["columns"]["size"]
        assert part["offset"] % 4 == 0
        values = np.frombuffer(body, "<f4", shape[0] * shape[1], part["offset"]).reshape(shape)
        allowed = None
        if part["masked"]:
            allowed = np.frombuffer(body, np.uint8, values.size, part["allowed_offset"]).reshape(shape).astype(bool)
        found[part["symbol"]] = part | {"values": values, "allowed": allowed}
    return header, found
