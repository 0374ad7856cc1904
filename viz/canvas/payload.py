"""A component's data as bytes: a JSON header and the arrays that it describes."""

import json
import struct
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np


def pack(header: Mapping[str, Any], arrays: Iterable[np.ndarray]) -> bytes:
    """Four bytes with the header's length, the header, the arrays row by row; read by js/shared/payload.js.

    Header and arrays are filled up to a multiple of four bytes each, so that a browser can use the numbers in place.
    Their types are little-endian: "<f4", "<u2" or uint8.
    """
    text = _aligned(json.dumps(header).encode(), b" ")
    return struct.pack("<I", len(text)) + text + b"".join(_aligned(array.tobytes(), b"\0") for array in arrays)


def _aligned(data: bytes, filler: bytes) -> bytes:
    return data + filler * (-len(data) % 4)
