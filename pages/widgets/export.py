"""Downloads of exactly what a page shows; each file names the checkpoint and its hash."""

import io
import zipfile
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from textwrap import wrap
from typing import Any
from urllib.parse import urlencode, urlsplit

import numpy as np
import pandas as pd
import streamlit as st

from model.checkpoints.store import shown_name
from model.language import Sentence, later, sentence, series, tr
from model.needs import Need
from model.proof.steps import states_in_words, verify_attention
from model.run import LANGUAGES, Run
from pages.views import Result
from pages.widgets.canvas import component
from pages.widgets.chart import checkpoint_in_file_names, run_in_file_names
from pages.widgets.snippet import notebook, snippet
from viz.drawing import Drawing, can_be_saved, standalone_html
from viz.forms import Texts
from viz.paper.page import COLUMNS, Paper, reason_not_to_draw, save
from viz.tokens import visible

LINE = 110
"""characters of a line under a saved picture"""

TAB, PAGE = "tab", "page"
_COMPUTED = ("=", "+", "-", "@", "\t", "\r", "\n")
"""with what the cells begin that a spreadsheet takes for formulas"""


@dataclass(frozen=True)
class Picture:
    """A picture of the page, by the key that it was drawn with."""

    title: str
    key: str
    content: Any
    """a Plotly figure, a Drawing, or Texts"""
    headline: str = ""
    """the line that answers the page's question, where it is about this picture"""
    of_head: bool = True
    """whether it is about the chosen head"""


@dataclass(frozen=True)
class Part:
    """A view of the page, and those of its pictures that can be saved."""

    result: Result
    pictures: tuple[Picture, ...]


def export_view(result: Result, pictures: tuple[Picture, ...]) -> None:
    """Draw the export of one view."""
    export([Part(result, pictures)])


def export(parts: Sequence[Part], page: Callable[[], Sequence[Part]] | None = None) -> None:
    """Draw what saves figures for a paper, all arrays, and the call that makes them again.

    `parts` are the views that are drawn; `page` computes those of all tabs, None where they are drawn.
    """
    with st.container(border=True):
        if _saveable(parts):
            _offer_figures(parts, page)
        for part in parts:
            if len(parts) > 1:
                st.markdown(f"**{tr(part.result.view.title)}**")
            _offer_numbers(part.result, part.pictures)


def _offer_figures(parts: Sequence[Part], page: Callable[[], Sequence[Part]] | None) -> None:
    """What to save, as which kind of file, and the button that saves it."""
    run, view = parts[0].result.drawn or parts[0].result.run, parts[0].result.view
    key, pictures = f"paper-{view.page}-{view.name}", _saveable(parts)
    names: dict[Any, str] = {
        number: tr("This figure: {title}", title=picture.title) for number, picture in enumerate(pictures)
    }
    names |= {TAB: tr("This tab: its {count} figures, as ZIP", count=len(pictures))} if len(pictures) > 1 else {}
    names |= {PAGE: tr("The page: the figures of all its tabs, as ZIP")} if page else {}
    what = st.selectbox(tr("What"), list(names), format_func=names.__getitem__, key=f"{key}-what")
    if what in names and what not in (TAB, PAGE) and (reason := _reason(pictures[what])):
        st.caption(tr("The browser saves this one, as SVG or as an image, because {reason}.", reason=tr(reason)))
        _save_buttons(run, pictures[what])
        return
    paper = _choose_paper(key)
    chosen = [pictures[what]] if what not in (TAB, PAGE) else pictures
    if what == PAGE and page:
        chosen = _saveable(_named_apart(page()))
    drawable = [picture for picture in chosen if not _reason(picture)]
    if left := len(chosen) - len(drawable):
        st.caption(
            tr("Without one that the browser draws: choose it above to save an SVG.")
            if left == 1
            else tr("Without {count} that the browser draws: choose each above to save an SVG.", count=left)
        )
    if len(chosen) == 1 and drawable:
        name, content = f"{_stem(run, chosen[0])}.{paper.format}", partial(_file, run, chosen[0], paper)
    else:
        name, content = f"{_stem(run, None, view.page)}.zip", partial(_archive, run, drawable, paper)
    if drawable:
        label = tr("Save {file}", file=name)
        st.download_button(label, data=content, file_name=name, key=f"{key}-save", on_click="ignore", type="primary")


def _saveable(parts: Sequence[Part]) -> list[Picture]:
    every = (picture for part in parts for picture in part.pictures)
    return [one for one in every if not isinstance(one.content, Drawing) or can_be_saved(one.content.component)]


def _named_apart(parts: Sequence[Part]) -> list[Part]:
    """The same pictures; where two views call theirs alike, the name of the view follows in their keys."""
    often = Counter(picture.key for part in parts for picture in part.pictures)
    return [
        replace(
            part,
            pictures=tuple(
                replace(picture, key=f"{picture.key}-{part.result.view.name}") if often[picture.key] > 1 else picture
                for picture in part.pictures
            ),
        )
        for part in parts
    ]


def _choose_paper(key: str) -> Paper:
    with st.container(horizontal=True, vertical_alignment="bottom"):
        kinds = {"svg": "SVG", "pdf": "PDF", "png": "PNG, 300 dpi"}
        chosen = st.segmented_control(tr("Format"), kinds, default="pdf", format_func=kinds.get, key=f"{key}-format")
        widths = {1: tr("1 column, {width} in", width=COLUMNS[1]), 2: tr("2 columns, {width} in", width=COLUMNS[2])}
        columns = st.segmented_control(tr("Width"), widths, default=2, format_func=widths.get, key=f"{key}-columns")
        captions = {"below": tr("Below"), "metadata": tr("In the metadata"), "none": tr("None")}
        caption = st.segmented_control(
            tr("Caption"), captions, default="below", format_func=captions.get, key=f"{key}-caption"
        )
    # A choice that is taken back is the first one.
    return Paper(chosen or "pdf", columns or 2, caption or "below")


def _reason(picture: Picture) -> str:
    """Why the server cannot draw it."""
    if isinstance(picture.content, Drawing):
        return later("it is drawn there")
    return reason_not_to_draw(picture.content)


def _stem(run: Run, picture: Picture | None, page: str = "") -> str:
    """Name of a file without ending: masks-maps-en-de-L1H2."""
    name = (picture.key if picture else page).replace("_", "-")
    checkpoint = checkpoint_in_file_names(run.trace.checkpoint)
    return f"{name}-{checkpoint}" + (f"-L{run.place.layer}H{run.place.head}" if picture and picture.of_head else "")


def _file(run: Run, picture: Picture, paper: Paper) -> bytes:
    origin = f"Checkpoint {shown_name(run.trace.checkpoint)}, SHA-256 {run.trace.checkpoint_hash}"
    title = f"{picture.title}. {run.place.title}" if picture.of_head else picture.title
    return save(picture.content, paper, title, paper_caption(run, picture.of_head, picture.headline), origin)


def _archive(run: Run, pictures: Sequence[Picture], paper: Paper) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for picture in pictures:
            archive.writestr(f"{_stem(run, picture)}.{paper.format}", _file(run, picture, paper))
    return file.getvalue()


def paper_caption(run: Run, of_head: bool = True, headline: str = "") -> list[str]:
    """The lines below a figure of a paper, or in its metadata; the text is whole."""
    source = " ".join(run.trace.source.split())
    translation = visible(" ".join(run.trace.translation.split()))
    name = shown_name(run.trace.checkpoint)
    return [
        *([headline] if headline else []),
        visible(source) + (f" → {translation}" if translation else ""),
        tr(
            "{place}. Checkpoint {name}, SHA-256 {sha}.",
            place=_settings(run, of_head),
            name=name,
            sha=run.trace.checkpoint_hash[:12],
        ),
    ]


def _offer_numbers(result: Result, pictures: tuple[Picture, ...]) -> None:
    # The files are made when they are requested; by then the address is gone.
    view, run = result.view, result.drawn or result.run
    facts, trace = _facts(run) | {"view": _link()}, run.trace
    for control, other in result.values.items():
        if isinstance(other, Run):
            facts |= {f"{control}_{fact}": text for fact, text in (_facts(other) | {"head": other.place.title}).items()}
    name = f"{view.page}-{view.name}" + (f"-{result.run.place.slug}" if view.reads_head else "")
    tokens = {"src_tokens": trace.src_tokens, "tgt_tokens": trace.tgt_tokens}
    stem = f"{name}-{run_in_file_names(trace.checkpoint, trace.checkpoint_hash)}"
    files = {tr("HTML: the pictures, to open without a network"): ("html", lambda: _html(facts, name, pictures))}
    pictures = tuple(picture for picture in pictures if not isinstance(picture.content, Texts))
    files = files if pictures else {}
    files[tr("CSV: the table, for a spreadsheet")] = ("csv", lambda: _csv(facts, result.table()))
    files[tr("NPZ: all arrays, for numpy.load")] = ("npz", lambda: _npz(facts | tokens, result.arrays()))
    program = snippet(result, f"Attention Explorer: the numbers of {name}\nThis view: {_link()}")
    files[tr("IPYNB: the Python below, as a notebook")] = ("ipynb", lambda: notebook(program, name, facts).encode())
    with st.container(horizontal=True):
        for label, (ending, content) in files.items():
            key = f"export-{name}-{ending}"
            st.download_button(label, data=content, file_name=f"{stem}.{ending}", key=key, on_click="ignore")
    st.caption(tr("Python that computes these numbers again, to be run in the project's folder:"))
    st.code(program, language="python", height=320)


def _save_buttons(run: Run, picture: Picture) -> None:
    stem = _stem(run, picture)
    target = {"title": picture.title, "key": picture.key, "file": stem}
    target["component"] = picture.content.component if isinstance(picture.content, Drawing) else ""
    component("save")(key=f"save-{stem}", data={"targets": [target], "caption": _caption(run)})


def _caption(run: Run) -> list[str]:
    """The lines under a saved picture."""
    trace = run.trace
    return [
        *wrap(" ".join(trace.source.split()), LINE),
        f"Checkpoint {shown_name(trace.checkpoint)}, SHA-256",
        trace.checkpoint_hash,
        tr("In the sidebar: {settings}", settings=_settings(run)),
    ]


def _settings(run: Run, of_head: bool = True) -> Sentence:
    """`Cross-attention, layer 3, head 0, τ = 1, 2 changes in the model`; without the head where that is not shown."""
    tau = sentence("τ = {tau:g}", tau=run.tau)
    place = sentence("{place}, τ = {tau:g}", place=run.place.title, tau=run.tau) if of_head else tau
    if not run.trace.interventions:
        return place
    count = len(run.trace.interventions)
    changes = sentence("1 change in the model") if count == 1 else sentence("{count} changes in the model", count=count)
    return series([place, changes])


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
        **dict(zip(LANGUAGES, trace.languages or (), strict=False)),
        **steps,
    }


def _csv(facts: dict[str, str], table: pd.DataFrame) -> bytes:
    """With the mark by which spreadsheets know UTF-8; a text that one would compute begins with an apostrophe."""
    # What the table is of stands once, in its first row.
    once = {name: [text, *[""] * (len(table) - 1)][: len(table)] for name, text in facts.items()}
    whole = table.assign(**once)
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
