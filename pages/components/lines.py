"""Lines between the query tokens and the key tokens of a few heads."""

from pages.components.component import component


def token_lines(payload: bytes, key: str) -> None:
    """Draw the lines; which heads are shown and which token is isolated stays in the browser.

    Args:
        payload: from viz.lines.lines.
        key: unique in the app.
    """
    component("lines", ("layers.css", "colours.js", "lines_draw.js"))(key=key, data=payload)
