"""A figure as one file that opens without a network."""

import html
import json

import plotly.graph_objects as go
from plotly.offline import get_plotlyjs


def standalone_html(figure: go.Figure, caption: str) -> str:
    """An HTML page with the figure, Plotly itself and `caption` (plain text, escaped) under it."""
    chart = go.Figure(figure)
    config = {"displaylogo": False, "toImageButtonOptions": {"format": "svg"}}
    body = chart.to_html(full_html=False, include_plotlyjs=False, config=json.loads(json.dumps(config)))
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>Attention Explorer</title>'
        f"<script>{get_plotlyjs()}</script></head>\n<body>{body}<p>{html.escape(caption)}</p></body></html>\n"
    )
