"""Plotly figures, a file a page."""
