"""Views without Streamlit: as HTML that opens from a file and in a notebook, and as JSON. Nothing is loaded."""

import html
import json
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from latex2mathml.converter import convert
from markdown_it import MarkdownIt
from markdown_it.rules_inline import StateInline

from model.language import language, tr
from pages.views import Result, Run
from pages.views.words import Block
from viz import drawing
from viz.forms import Canvas, Document, Form, Outcome, Table, Texts
from viz.html import word_diff
from viz.labels import say_label, say_table
from viz.notebook import FIT, framed

STYLE = Path(__file__).with_name("standalone.css")
COLOUR = re.compile(r":(?:green|orange|red|small)\[((?:\\.|[^\]\\])*)\]")
"""Streamlit's Markdown for coloured words, and the empty one that parts what Streamlit would replace"""
FORMULA = re.compile(r"\$(?=\S)((?:\\.|[^$\\\n])+)(?<=\S)\$")
"""in a line of text; an escaped dollar sign is one of the text"""


def _read_formula(state: StateInline, silent: bool) -> bool:
    """A rule of Markdown for what stands between two dollar signs."""
    found = FORMULA.match(state.src, state.pos)
    if not found:
        return False
    if not silent:
        state.push("formula", "", 0).content = found[1]
    state.pos = found.end()
    return True


def _add_formulas(markdown: MarkdownIt) -> None:
    markdown.inline.ruler.after("escape", "formula", _read_formula)
    markdown.add_render_rule("formula", lambda _, tokens, at, *__: convert(tokens[at].content))


MARKDOWN = MarkdownIt("commonmark", {"html": False}).enable("table").use(_add_formulas)


def as_output(result: Result) -> str:
    """The output of a notebook's cell: a page of its own in an <iframe>, as of viz.notebook."""
    return framed(result.view.title, to_html(result.view.title, [result], FIT, _plotly_of_cell))


def _plotly_of_cell() -> str:
    """The script of an output that draws with Plotly: the first such cell of a notebook brings it, whenever it runs.

    So does every cell where the kernel is not told which one it runs, or where outputs cannot reach one another.
    """
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    header = getattr(shell, "parent_header", None) or {}
    cell = header.get("metadata", {}).get("cellId")
    if cell is None or "google.colab" in sys.modules or vars(shell).setdefault("cell_with_plotly", cell) == cell:
        return drawing.packed_plotly_script()
    missing = tr("The cell that brings Plotly is gone. Restart the kernel and run this cell again.")
    return drawing.borrowed_plotly_script(missing)


def to_html(
    title: str, results: Sequence[Result], more: str = "", plotly: Callable[[], str] = drawing.plotly_script
) -> str:
    """One HTML page, complete, with results of views of one run, and with `more` HTML at its end. `plotly` makes the
    script that has Plotly, if anything is drawn with it."""
    drawings: dict[int, drawing.Drawing] = {}
    body = ""
    for result in results:
        inside = "".join(_block(block, result, drawings) for block in result.blocks)
        body += f"<section><h2>{html.escape(tr(result.view.title))}</h2>{inside}</section>"
    others = (value for result in results for value in result.values.values() if isinstance(value, Run))
    traces = {id(run.trace): run.trace for run in (results[0].run, *others)}
    feet = (
        f"{t.source} → {t.translation} · checkpoint {t.checkpoint}, SHA-256 {t.checkpoint_hash}"
        for t in traces.values()
    )
    footer = "".join(f"<footer dir='auto'>{html.escape(foot)}</footer>" for foot in feet)
    script = plotly() if "Plotly.newPlot(" in body else ""
    style = f"<style>\n{STYLE.read_text(encoding='utf-8')}</style>"
    return drawing.html_page(title, f"{body}{footer}{drawing.mounting_scripts(drawings)}{more}", f"{script}{style}")


def to_json(result: Result) -> str:
    """Title, facts, text and arrays of a view, and the place in the run that it shows."""
    trace, place = result.run.trace, result.run.place
    return json.dumps(
        {
            "view": f"{result.view.page}.{result.view.name}",
            "title": result.view.title,
            "checkpoint": trace.checkpoint,
            "checkpoint_sha256": trace.checkpoint_hash,
            "source": trace.source,
            "interventions": [repr(change) for change in trace.interventions],
            "place": vars(place),
            "values": {name: _plain(value) for name, value in result.values.items() if name in result.view.controls},
            "facts": {name: _plain(fact) for name, fact in result.facts.items()},
            "text": texts_of(result.blocks),
            "arrays": {name: _plain(array) for name, array in result.arrays().items()},
            "lacks": result.lacks,
        },
        ensure_ascii=False,
    )


def texts_of(blocks: Sequence[Block]) -> list[str]:
    """What all blocks say, in the order of the page."""
    return [
        text for block in blocks for text in (block.text, *texts_of(block.items if block.holds_blocks else ())) if text
    ]


def _plain(value: Any) -> Any:
    """A value as JSON has it: no NaN, no infinity; a record of the model's as its text."""
    match value:
        case np.ndarray() if value.dtype.kind == "f":
            plain = value.astype(object)
            plain[~np.isfinite(value)] = None
            return plain.tolist()
        case np.ndarray() if value.dtype.kind in "biuU":
            return value.tolist()
        case np.ndarray() | np.generic():
            return _plain(value.tolist())
        case float():
            return value if np.isfinite(value) else None
        case None | bool() | int() | str():
            return value
        case dict():
            return {str(name): _plain(part) for name, part in value.items()}
        case list() | tuple():
            return [_plain(part) for part in value]
        case Run():
            trace = value.trace
            return {"checkpoint": trace.checkpoint, "source": trace.source, "place": vars(value.place)}
    return _plain(vars(value)) if hasattr(value, "__dict__") else str(value)


def _block(block: Block, result: Result, drawings: dict[int, drawing.Drawing]) -> str:
    match block.kind:
        case "text" | "caption" | "note":
            plain = COLOUR.sub(r"\1", block.text)
            return f'<div class="{block.kind}">{MARKDOWN.render(plain)}</div>'
        case "formula":
            aligned = r"\begin{aligned}" in block.text
            parts = [block.text] if aligned else block.text.split(r"\qquad")
            return "".join(convert(part, display="block") for part in parts)
        case "plain":
            return f"<p dir='auto'>{html.escape(block.text)}</p>"
        case "rule":
            return "<hr>"
        case "box" | "explained" | "offer":
            return f'<div class="box">{"".join(_block(part, result, drawings) for part in block.items)}</div>'
        case "closed":
            inside = "".join(_block(part, result, drawings) for part in block.items)
            return f'<details class="box"><summary>{html.escape(block.text)}</summary>{inside}</details>'
        case "shows":
            parts = (_picture(result.shows[name], alt, drawings) for name, alt, _ in block.items)
            return _beside(len(block.items), "".join(f"<figure>{part}</figure>" for part in parts))
    return ""  # controls, buttons and links belong to the app


def _beside(count: int, parts: str) -> str:
    """Columns of one width; their number is given, as a picture measures its room before the next one is there."""
    return f'<div class="beside" style="grid-template-columns: repeat({count}, minmax(0, 1fr))">{parts}</div>'


def _text(picture: Texts, text: str) -> str:
    return word_diff(picture.first, text) if picture.compared else f"<p dir='auto'>{html.escape(text)}</p>"


def _picture(picture: Any, alt: str, drawings: dict[int, drawing.Drawing]) -> str:
    match picture:
        case Canvas():
            number = len(drawings)
            drawings[number] = picture.drawing
            return f'<div id="picture-{number}" role="img" aria-label="{html.escape(alt)}"></div>'
        case Texts():
            boxes = (
                f'<div class="box"><p class="caption">{html.escape(say_label(title))}</p>{_text(picture, text)}</div>'
                for title, text in picture.texts.items()
            )
            return _beside(len(picture.texts), "".join(boxes))
        case Outcome():
            numbers = " · ".join(
                f"{say_label(name)} <b>{say_label(text)}</b>" for name, text in picture.words().items()
            )
            words = word_diff(picture.before, picture.after)
            return f'<div class="box"><p class="caption">{say_label(picture.title)}</p>{words}<p>{numbers}</p></div>'
        case Document():
            return MARKDOWN.render(picture.calm)
        case pd.DataFrame() | Table():
            frame = say_table(picture.frame if isinstance(picture, Table) else picture)
            written = frame.to_html(index=False, float_format=lambda n: language().number(f"{n:.5g}"), border=0)
            return f'<div class="scrolls">{written}</div>'
    figure = picture.draw() if isinstance(picture, Form) else picture
    return f'<div role="img" aria-label="{html.escape(alt)}">{drawing.figure_html(figure)}</div>'
