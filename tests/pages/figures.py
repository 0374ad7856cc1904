"""Reading back what a figure of a page shows."""

import base64
import json
from typing import Any

import numpy as np


def figure(app: Any, key: str) -> dict[str, Any]:
    """The figure of the chart with this key, as it goes to the browser."""
    found = [chart.proto for chart in app.get("plotly_chart") if chart.proto.id.endswith(f"-{key}")]
    assert len(found) == 1, f"{len(found)} charts have the key {key!r}"
    return json.loads(found[0].spec)


def numbers(values: Any) -> np.ndarray:
    """An array of a figure: a list, or Plotly's base64 of a numpy array."""
    if isinstance(values, dict):
        flat = np.frombuffer(base64.b64decode(values["bdata"]), dtype=values["dtype"])
        shape = values.get("shape")
        return flat.reshape([int(n) for n in str(shape).split(",")]) if shape else flat
    return np.array(values)
