"""Downloads of exactly what a page shows; each file names the checkpoint and its hash."""

import io
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode, urlsplit

import numpy as np
import pandas as pd
import streamlit as st

from model.checkpoints.store import shown_name
from model.needs import Need
from model.proof.steps import states_in_words, verify_attention
from model.run import Run
from pages.views import Result
from pages.widgets.canvas import component
from pages.widgets.chart import run_in_file_names
from pages.widgets.snippet import notebook, snippet
from viz.drawing import Drawing, can_be_saved, standalone_html

LONGEST_SOURCE = 110
"""characters of the source under a saved picture"""

_COMPUTED = ("=", "+", "-", "@", "\t", "\r", "\n")
"""with what the cells begin that a spreadsheet takes for formulas"""


@dataclass(frozen=True)
class Picture:
    """A picture of the page, by the key that it was drawn with."""

    title: str
    key: str
    content: Any
    """a Plotly figure or a Drawing"""


def export_view(result: Result, pictures: tuple[Picture, ...]) -> None:
    """The export of a view: its pictures, all its arrays, and the call that makes them again.

    Args:
        result: of the view.
        pictures: those to be saved.
    """
    with st.container(border=True):
        _offer(result, pictures)


def _offer(result: Result, pictures: tuple[Picture, ...]) -> None:
    # The files are made when they are requested; by then the address is gone.
    view, run = result.view, result.drawn or result.run
    facts, trace = _facts(run) | {"view": _link()}, run.trace
    for control, other in result.values.items():
        if isinstance(other, Run):
            facts |= {f"{control}_{fact}": text for fact, text in (_facts(other) | {"head": other.place.title}).items()}
    name = f"{view.page}-{view.name}-{result.run.place.slug}"
    tokens = {"src_tokens": trace.src_tokens, "tgt_tokens": trace.tgt_tokens}
    stem = f"{name}-{run_in_file_names(trace.checkpoint, trace.checkpoint_hash)}"
    files = {"HTML: the pictures, to open without a network": ("html", lambda: _html(facts, name, pictures))}
    files = files if pictures else {}
    files["CSV: the table, for a spreadsheet"] = ("csv", lambda: _csv(facts, result.table()))
    files["NPZ: all arrays, for numpy.load"] = ("npz", lambda: _npz(facts | tokens, result.arrays()))
    program = snippet(result, f"Attention Explorer: the numbers of {name}\nThis view: {_link()}")
    files["IPYNB: the Python below, as a notebook"] = ("ipynb", lambda: notebook(program, name, facts).encode())
    if pictures:
        _save_buttons(run, stem, pictures)
    with st.container(horizontal=True):
        for label, (ending, content) in files.items():
            key = f"export-{name}-{ending}"
            st.download_button(label, data=content, file_name=f"{stem}.{ending}", key=key, on_click="ignore")
    st.caption("Python that computes these numbers again, to be run in the project's folder:")
    st.code(program, language="python", height=320)


def _save_buttons(run: Run, stem: str, pictures: tuple[Picture, ...]) -> None:
    targets = [
        {
            "title": picture.title,
            "key": picture.key,
            "component": picture.content.component if isinstance(picture.content, Drawing) else "",
            "file": stem if number == 0 else f"{picture.key}-{stem}",
        }
        for number, picture in enumerate(filter(_can_be_saved, pictures))
    ]
    data = {"targets": targets, "caption": _caption(run)}
    component("save")(key=f"save-{stem}", data=data)


def _can_be_saved(picture: Picture) -> bool:
    return not isinstance(picture.content, Drawing) or can_be_saved(picture.content.component)


def _caption(run: Run) -> list[str]:
    """The lines under a saved picture."""
    trace = run.trace
    source = " ".join(trace.source.split())
    changes = f", {len(trace.interventions)} changes in the model" if trace.interventions else ""
    return [
        source if len(source) <= LONGEST_SOURCE else f"{source[:LONGEST_SOURCE]}…",
        f"Checkpoint {shown_name(trace.checkpoint)}, SHA-256",
        trace.checkpoint_hash,
        f"In the sidebar: {run.place.title}, τ = {run.tau:g}{changes}",
    ]


def _link() -> str:
    """The view's address below the app's; ASCII without blanks."""
    return f"{urlsplit(st.context.url or '').path}?{urlencode(st.query_params.to_dict())}"


def _facts(run: Run) -> dict[str, str]:
    """What every file says of a run."""
    trace, place = run.trace, run.place
    steps = {}
    if run.checkpoint and Need.OWN_LAYERS not in run.opened.features:
        states = verify_attention(run.opened, trace, place.kind, place.layer)
        steps = {"steps_of_this_attention": states_in_words(states)}
    return {
        "checkpoint": shown_name(trace.checkpoint),
        "checkpoint_sha256": trace.checkpoint_hash,
        "source": trace.source,
        "translation": trace.translation,
        "interventions": "; ".join(map(repr, trace.interventions)) or "none",
        **steps,
    }


def _csv(facts: dict[str, str], table: pd.DataFrame) -> bytes:
    """With the mark by which spreadsheets know UTF-8; a text that one would compute begins with an apostrophe."""
    whole = table.assign(**facts)
    texts = whole.select_dtypes(["object", "string", "category"]).columns
    whole[texts] = whole[texts].astype(object).map(_inert)
    # A carriage return is quoted only where it may end a line: else it would begin a row, and perhaps a formula.
    return whole.rename(columns=_inert).to_csv(index=False, lineterminator="\r\n").encode("utf-8-sig")


def _inert(value: Any) -> Any:
    return f"'{value}" if isinstance(value, str) and value.startswith(_COMPUTED) else value


def _npz(facts: dict[str, Any], arrays: dict[str, np.ndarray]) -> bytes:
    file = io.BytesIO()
    np.savez_compressed(file, **{key: np.array(value) for key, value in facts.items()}, **arrays)
    return file.getvalue()


def _html(facts: dict[str, str], name: str, pictures: tuple[Picture, ...]) -> bytes:
    contents = [picture.content for picture in pictures]
    return standalone_html(f"Attention Explorer: {name}", contents, facts).encode()
