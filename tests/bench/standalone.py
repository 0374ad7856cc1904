"""A picture in a window without Streamlit: a component of the app, or BertViz's HTML, which needs no network here."""

import base64
from dataclasses import dataclass
from importlib import resources

from viz.drawing import Drawing, sources


@dataclass(frozen=True)
class Page:
    """What a window has before the picture comes, the picture's data, and how it is drawn."""

    libraries: str
    """an HTML document"""
    data: str
    prepare: str
    """a JavaScript function that keeps `data` as window.picture, before the clock runs"""
    draw: str
    """JavaScript that draws window.picture"""


_REQUIRE = """
window.require = { config() {} };
window.requirejs = (names, run) => run(...names.map((name) => ({ jquery: window.jQuery, d3: window.d3 })[name]));
"""
"""All that BertViz needs of require.js: its libraries are there already when its script runs."""


def bertviz_page(html: str) -> Page:
    """The HTML that BertViz returns; what it would load from a network comes from Python packages."""
    jquery = resources.files("xstatic.pkg.jquery") / "data" / "jquery.min.js"
    d3 = resources.files("mpld3") / "js" / "d3.v5.min.js"
    script = "\n".join([jquery.read_text(encoding="utf-8"), d3.read_text(encoding="utf-8"), _REQUIRE])
    return Page(
        f'<!DOCTYPE html><meta charset="utf-8"><body><script>{script}</script>',
        html,
        "(data) => { window.picture = data; }",
        "document.body.innerHTML = window.picture;"
        "for (const script of document.body.querySelectorAll('script:not([src])')) (0, eval)(script.textContent);",
    )


def component_page(drawing: Drawing) -> Page:
    """The component in viz/canvas/js, with its data."""
    script, style = sources(drawing.component)
    module = script.replace("export default ", "") + "\nwindow.mount = mount;"
    return Page(
        f'<!DOCTYPE html><meta charset="utf-8"><style>{style}</style><body><script type="module">{module}</script>',
        base64.b64encode(drawing.data).decode(),
        "(data) => { window.picture = Uint8Array.from(atob(data), (letter) => letter.charCodeAt(0)).buffer; }",
        f"document.body.innerHTML = '<div class=\"{drawing.component} component\"></div>';"
        "window.mount({ parentElement: document.body, data: window.picture, setTriggerValue() {} });",
    )
