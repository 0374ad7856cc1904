"""Lines between the query tokens and the key tokens of a few heads."""

from pages.components.component import draw
from viz.standalone import Drawing

FILES = ("layers.css", "header.js", "colours.js", "svg_pen.js", "save_picture.js", "lines_draw.js", "lines_picture.js")


def token_lines(payload: bytes, key: str) -> Drawing:
    """Draw the lines; which heads are shown and which token is isolated stays in the browser.

    Args:
        payload: from viz.lines.lines.
        key: unique in the app.
    """
    return draw(Drawing("lines", FILES, payload), key)
