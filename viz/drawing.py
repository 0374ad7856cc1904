"""A picture of our own, for the app's page; and pictures as one HTML file that opens without a network."""

import base64
import html
import json
import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from plotly.offline import get_plotlyjs

SCRIPTS = Path(__file__).parent / "canvas/js"
"""a folder for each component; `shared` has what several of them need"""
POLICY = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:"
"""content security policy: the file runs its own scripts and loads nothing"""
STYLE = """
:root { --st-text-color: #31333f; --st-background-color: #ffffff; --st-secondary-background-color: #f0f2f6;
  --st-primary-color: #1c6fd1; --st-border-color: rgba(49, 51, 63, 0.25); --st-font: system-ui, sans-serif;
  color-scheme: light; }
body { max-width: 1200px; margin: 24px auto; padding: 0 16px; color: #31333f; background: #ffffff;
  font: 15px/1.5 system-ui, sans-serif; }
h1 { font-size: 22px; }
section { margin: 20px 0; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 2px 16px; font-size: 13px; }
dt { opacity: 0.75; }
dd { margin: 0; overflow-wrap: anywhere; white-space: pre-wrap; }
"""


@dataclass(frozen=True)
class Drawing:
    """A picture drawn by one of our components."""

    component: str
    """the name of its script"""
    data: bytes | Mapping[str, Any]
    """what the script draws"""

    @classmethod
    def pack(cls, component: str, header: Mapping[str, Any], arrays: Iterable[np.ndarray]) -> "Drawing":
        """One whose data are bytes: four with the header's length, the header as JSON, and the arrays row by row.

        js/shared/payload.js reads them. Header and arrays are filled up to a multiple of four bytes each, so that a
        browser can use the numbers in place. Their types are little-endian: "<f4", "<u2" or uint8.
        """
        text = _aligned(json.dumps(header).encode(), b" ")
        numbers = b"".join(_aligned(array.tobytes(), b"\0") for array in arrays)
        return cls(component, struct.pack("<I", len(text)) + text + numbers)


def _aligned(data: bytes, filler: bytes) -> bytes:
    return data + filler * (-len(data) % 4)


def sources(component: str) -> tuple[str, str]:
    """Script and style of a component, with the files that they need before them.

    A script names the files that it needs in its first line, `// needs: shared/mount.js ...`, and so do those.
    """
    (own,) = SCRIPTS.glob(f"*/{component}.js")
    files: list[Path] = []
    _collect(own, files)
    files.append(own.with_suffix(".css"))
    script, style = (
        "\n".join(file.read_text(encoding="utf-8") for file in files if file.suffix == ending)
        for ending in (".js", ".css")
    )
    return script, style


def can_be_saved(component: str) -> bool:
    """Whether its script saves the picture as PNG and SVG; that of tokens as buttons does not."""
    return "save-picture" in sources(component)[0]


def _collect(file: Path, files: list[Path]) -> None:
    """Append the files that `file` needs, and then `file`, unless they are there already."""
    if file in files:
        return
    first, _, _ = file.read_text(encoding="utf-8").partition("\n")
    if first.startswith("// needs:"):
        for name in first.removeprefix("// needs:").split():
            _collect(SCRIPTS / name, files)
    files.append(file)


def standalone_html(title: str, pictures: Sequence[Any], facts: Mapping[str, str]) -> str:
    """An HTML page with the pictures, the scripts that draw them, and `facts` below.

    Args:
        title: above the pictures.
        pictures: Plotly figures and Drawings, in the order of the page.
        facts: name -> text. Title and facts are plain text; they are escaped here.
    """
    plotly = any(not isinstance(picture, Drawing) for picture in pictures)
    drawings = {number: picture for number, picture in enumerate(pictures) if isinstance(picture, Drawing)}
    places = (
        f'<div id="picture-{number}"></div>' if number in drawings else figure_html(picture)
        for number, picture in enumerate(pictures)
    )
    body = "".join(f"<section>{place}</section>\n" for place in places)
    entries = ((html.escape(name), html.escape(text)) for name, text in facts.items())
    rows = "".join(f"<dt>{name}</dt><dd dir='auto'>{text}</dd>" for name, text in entries)
    return html_page(
        title,
        f"<h1>{html.escape(title)}</h1>\n{body}<dl>{rows}</dl>{mounting_scripts(drawings)}",
        plotly_script() if plotly else "",
    )


def html_page(title: str, body: str, head: str = "") -> str:
    """An HTML page that may load nothing; `title` is plain text, `body` and `head` are HTML."""
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>{html.escape(title)}</title><style>{STYLE}</style>{head}</head>\n"
        f"<body>{body}</body></html>\n"
    )


def mounting_scripts(drawings: Mapping[int, Drawing]) -> str:
    """Scripts that draw each picture in the page's element `picture-{number}`; one for all that a component draws.

    As in the app, each has a shadow root of its own; what it sends to the app is ignored.
    """
    by_component: dict[str, dict[int, Drawing]] = {}
    for number, drawing in drawings.items():
        by_component.setdefault(drawing.component, {})[number] = drawing
    return "".join(_mounting_script(name, group) for name, group in by_component.items())


def plotly_script() -> str:
    """Plotly itself, for the head of a page with its figures."""
    return f"<script>{get_plotlyjs()}</script>"


def figure_html(figure: Any) -> str:
    """A Plotly figure as an element of such a page."""
    config = {"displaylogo": False, "toImageButtonOptions": {"format": "svg"}}
    return figure.to_html(full_html=False, include_plotlyjs=False, config=config)


def _mounting_script(component: str, drawings: Mapping[int, Drawing]) -> str:
    script, style = sources(component)
    inside = json.dumps(f"<style>{style}</style><div class='{component} component'></div>")
    pictures = ", ".join(f"[{number}, {_data(drawing)}]" for number, drawing in drawings.items())
    return (
        f'<script type="module">\n{script}\nfor (const [number, data] of [{pictures}]) {{\n'
        "  const host = document.getElementById(`picture-${number}`);\n"
        "  const parentElement = host.attachShadow({ mode: 'open' });\n"
        f"  parentElement.innerHTML = {inside};\n"
        "  mount({ parentElement, data, setTriggerValue() {}, setStateValue() {} });\n}\n</script>"
    )


def _data(drawing: Drawing) -> str:
    """What the script draws, as JavaScript."""
    if isinstance(drawing.data, bytes):
        code = base64.b64encode(drawing.data).decode()
        return f"Uint8Array.from(atob('{code}'), (letter) => letter.charCodeAt(0)).buffer"
    # Inside a script: typed text must not be able to close it.
    return json.dumps(drawing.data).replace("<", "\\u003c")
