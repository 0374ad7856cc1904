"""A picture of our own, for the app's page; and pictures as one HTML file that opens without a network."""

import base64
import gzip
import html
import json
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any, Literal

import numpy as np
from plotly.offline import get_plotlyjs

from model.language import Language, language
from viz.labels import say_header

SCRIPTS = Path(__file__).parent / "canvas/js"
"""a folder for each component; `shared` has what several of them need"""
POLICY = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:"
"""content security policy: the file runs its own scripts and loads nothing"""
LARGEST = 1e6
"""of coded numbers"""
LEAST = 1e-30
"""where the largest number is smaller, all are sent as 0: there is no single-precision unit to count them in"""
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
class Coded:
    """An array that is sent as whole numbers: 0 for NaN, else 1 + value / unit, with one unit for all of a picture.

    With 16 bits a value is off by less than 0.00001 of the picture's largest one; with 8 bits, which are for numbers
    from 0 to 1, by less than 0.002.
    """

    values: np.ndarray
    """none negative; NaN where there is nothing"""
    bits: Literal[8, 16] = 16


@dataclass(frozen=True)
class Drawing:
    """A picture drawn by one of our components: numbers of a run by name, and a header; its script makes the rest."""

    component: str
    """the name of its script"""
    data: bytes | Mapping[str, Any]
    """what the script draws: header and arrays as `pack` writes them; of a picture without arrays, the header alone"""

    @classmethod
    def pack(cls, component: str, header: Mapping[str, Any], arrays: Mapping[str, np.ndarray | Coded]) -> "Drawing":
        """One whose data are bytes: four with the length of a JSON text, the text, and the arrays row by row.

        js/shared/payload.js reads them, and says what a page without Python gives in their place. The text is
        [header, [name, type, shape, unit] of each array]. Types are f4 (float32), u1 and u2 (`Coded`), and bits (truth
        values, eight a byte). Text and arrays are filled up to a multiple of four bytes each, so that a browser can use
        the numbers in place.

        Args:
            component: that draws it.
            header: what the script needs besides: labels, the chosen place, options; as JSON.
            arrays: by hook path, such as decoder.layers.1.cross_attn.pattern, or a part of it in NumPy's notation,
                decoder.layers.1.cross_attn.pattern[3].

        Raises:
            ValueError: an array that is to be coded has negative or too large numbers.
        """
        units = _units(arrays)
        encoded = {name: _encode(array, units) for name, array in arrays.items()}
        described = [[name, *described] for name, (*described, _) in encoded.items()]
        text = json.dumps([say_header(header), described], separators=(",", ":")).encode()
        text += b" " * (-len(text) % 4)
        numbers = ((np.ascontiguousarray(array), b"\0" * (-array.nbytes % 4)) for *_, array in encoded.values())
        return cls(component, b"".join([struct.pack("<I", len(text)), text, *chain.from_iterable(numbers)]))

    @property
    def header(self) -> Mapping[str, Any]:
        """What the script draws besides arrays."""
        return self._text[0]

    @property
    def names(self) -> list[str]:
        """Of its arrays, in the order in which they are sent."""
        return [name for name, *_ in self._text[1]]

    @property
    def _text(self) -> tuple[Mapping[str, Any], list]:
        if not isinstance(self.data, bytes):
            return self.data, []
        (length,) = struct.unpack_from("<I", self.data)
        return json.loads(self.data[4 : 4 + length])


def named(path: str, name: str, *index: int | str) -> str:
    """The name of an array at `path`, or of its part at `index`: decoder.layers.1.cross_attn.pattern[3]."""
    part = f"[{', '.join(map(str, index))}]" if index else ""
    return f"{path}.{name}{part}" if path else f"{name}{part}"


def _units(arrays: Mapping[str, np.ndarray | Coded]) -> dict[int, float]:
    """By number of bits, what a code counts, so that the largest value of all arrays gets the largest code."""
    largest = {8: 1.0, 16: 0.0}
    for name, array in arrays.items():
        if isinstance(array, Coded):
            least, most = (float(end.reduce(array.values, axis=None, initial=0)) for end in (np.fmin, np.fmax))
            if least < 0 or most > LARGEST:
                raise ValueError(
                    f"{name} has numbers from {least:.4g} to {most:.4g}; 0 to {LARGEST:,.0f} can be drawn."
                )
            largest[array.bits] = max(largest[array.bits], most)
    return {bits: (most if most > LEAST else 1.0) / (2**bits - 2) for bits, most in largest.items()}


def _encode(array: np.ndarray | Coded, units: Mapping[int, float]) -> tuple[Any, ...]:
    """Type and shape, the unit of codes, and the array as it is sent."""
    if isinstance(array, Coded):
        unit = units[array.bits]
        codes = np.multiply(array.values, np.float32(1 / unit), dtype=np.float32)
        codes += np.float32(1.5)
        np.fmax(codes, 0, out=codes)  # of NaN: 0
        return f"u{array.bits // 8}", codes.shape, unit, codes.astype(f"<u{array.bits // 8}")
    if array.dtype == bool:
        return "bits", array.shape, np.packbits(array, bitorder="little")
    return "f4", array.shape, array.astype("<f4")


def sources(component: str) -> tuple[str, str]:
    """Script, in the language of this run, and style of a component, with the files that they need before them.

    A script names the files that it needs in its first line, `// needs: shared/mount.js ...`, and so do those.
    """
    files = files_of(component)
    script, style = (
        "\n".join(file.read_text(encoding="utf-8") for file in files if file.suffix == ending)
        for ending in (".js", ".css")
    )
    return f"const WORDS = {_words_of(script)};\nconst SIGNS = {signs(language())};\n{script}", style


def signs(spoken: Language) -> str:
    """How a language writes numbers, and its quotation marks, as JavaScript."""
    return json.dumps({".": spoken.decimal, ",": spoken.group, "%": spoken.percent, "“”": spoken.quotes})


def _words_of(script: str) -> str:
    """What a script says, as JavaScript: English -> the language of this run, where it has it."""
    own = {
        text: said
        for text, said in language().strings.items()
        if f"tr({json.dumps(text, ensure_ascii=False)}" in script
    }
    # Inside a script: words must not be able to close it.
    return json.dumps(own, ensure_ascii=False).replace("<", "\\u003c")


def files_of(component: str) -> list[Path]:
    """Scripts and styles of a component, each after those that it needs."""
    (own,) = SCRIPTS.glob(f"*/{component}.js")
    files: list[Path] = []
    _collect(own, files)
    return [*files, own.with_suffix(".css")]


@cache
def can_be_saved(component: str) -> bool:
    """Whether its script saves the picture as PNG and SVG; that of tokens as buttons does not."""
    return any("save-picture" in file.read_text(encoding="utf-8") for file in files_of(component))


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
        f'<!DOCTYPE html>\n<html lang="{language().code}"><head><meta charset="utf-8">'
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


UNPACK = """
const waiting = [];
window.Plotly = { newPlot: (...figure) => new Promise((drawn) => waiting.push([figure, drawn])) };
async function unpack(code) {
  const bytes = Uint8Array.from(atob(code), (letter) => letter.charCodeAt(0));
  const unpacked = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  const script = document.createElement("script");
  script.textContent = await new Response(unpacked).text();
  delete window.Plotly;
  document.head.append(script);
  for (const [figure, drawn] of waiting) drawn(Plotly.newPlot(...figure));
}
"""


SHARE = """
// A frame that may not look at the window around it has its own.
const shared = () => { try { return (parent.attentionExplorer ??= {}); } catch { return {}; } };
function bring(code) {
  shared().plotly = code;
  unpack(code);
}
async function borrow(missing) {
  for (let asked = 0; asked < 100 && !shared().plotly; asked += 1) await new Promise((again) => setTimeout(again, 100));
  if (shared().plotly) await unpack(shared().plotly);
  else for (const [[place]] of waiting) document.getElementById(place).textContent = missing;
}
"""


def plotly_script() -> str:
    """Plotly itself, for the head of a page with its figures."""
    return f"<script>{get_plotlyjs()}</script>"


def packed_plotly_script() -> str:
    """The same in a third of the bytes; browsers since 2023 unpack it, and what was to be drawn waits for that.

    Pages in other frames of the window have it, too: see `borrowed_plotly_script`.
    """
    packed = base64.b64encode(gzip.compress(get_plotlyjs().encode(), mtime=0)).decode()
    return f"<script>{UNPACK}{SHARE}bring('{packed}');</script>"


def borrowed_plotly_script(missing: str) -> str:
    """Plotly from a page in another frame of the same window, as soon as it is there.

    Args:
        missing: the sentence that stands in place of the figures where no page brings it.
    """
    return f"<script>{UNPACK}{SHARE}borrow({json.dumps(missing)});</script>"


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
