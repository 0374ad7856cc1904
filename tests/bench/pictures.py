"""One picture of the app a visit, drawn again at each move of a slider: the script that tests.bench.views serves.

?view= names the picture, ?tokens= how many the sentence has; ?view=nothing is Streamlit as it comes. The data changes
with every move: runs of the model at several attention temperatures take turns, more of them than the browser keeps
pictures, so each comes over the wire. Everything is drawn by what the pages call.
"""

from dataclasses import replace
from functools import cache
from typing import Any

import streamlit as st

from model.analysis.heads.head_tables import TableOptions, head_tables
from model.checkpoints.store import DEFAULT_CHECKPOINT
from model.interventions import AttentionTemperature
from model.run import Place, Request, Run, force
from pages.compute import runs
from pages.compute.runs import compute, open_translator
from pages.frame.server.html_page import STYLE
from pages.views.attention.heads_and_layers import mosaic
from pages.views.attention.temperature import live, one_row
from pages.views.shared import axes
from pages.widgets.canvas import draw
from pages.widgets.chart import chart
from tests.bench.empty import draw_nothing, redraw
from tests.bench.sentences import text_of
from viz.drawing import Drawing
from viz.special.heads_and_layers import head_map
from viz.steps.head import Choice, head_of
from viz.steps.steps import all_steps, picture

LAYER, HEAD = 1, 3
TAUS = (1.0, 0.9, 0.8, 0.7, 0.6)
FIRST_BYTE = """
export default ({ parentElement, data }) => {
  parentElement.querySelector("div").textContent = new Uint8Array(data)[0];
};
"""
COLUMNS = [3, 2]
"""widths of heat map and lines, as on the page of heads and layers"""


def main() -> None:
    st.set_page_config(layout="wide")
    translator = open_translator(st.query_params.get("checkpoint", DEFAULT_CHECKPOINT), "cpu")
    text = text_of(translator.tokenizer, int(st.query_params["tokens"]))
    plain = runs.run(translator, Request(text, text, 1, ()))
    traces = [compute(force, translator, plain, (AttentionTemperature(tau),)) for tau in TAUS]
    made = [Run(translator, Request(text), trace, Place("encoder_self", LAYER, HEAD), text) for trace in traces]
    view = st.query_params["view"]
    if view != "nothing":  # Streamlit as it comes
        st.html(STYLE)
    st.fragment(redraw)(lambda moved: PICTURES[view](made[moved % len(made)], moved))


def _nothing(_run: Run, moved: int) -> None:
    draw_nothing(moved)


def _mosaic(run: Run, _moved: int) -> None:
    draw(_mosaic_of(run, every=True), "mosaic")


def _one_kind(run: Run, _moved: int) -> None:
    draw(_mosaic_of(run), "mosaic")


def _mosaic_of(run: Run, every: bool = False) -> Drawing:
    return mosaic._mosaic(run, mosaic._groups(run, TableOptions(), every), HEAD, high=1.0)


def _bytes(run: Run, moved: int) -> None:
    """What Streamlit takes to bring a picture's bytes: one of them is shown."""
    size = st.session_state.get("size") or st.session_state.setdefault("size", _mosaic_size(run))
    _first_byte()(key="bytes", data=bytes([moved % 256]) + bytes(size - 1))


@cache
def _first_byte() -> Any:
    """Registered once, as the pages' own components are."""
    return st.components.v2.component("bytes", html="<div></div>", js=FIRST_BYTE)


def _mosaic_size(run: Run) -> int:
    return len(_mosaic_of(run, every=True).data)


def _lines(run: Run, _moved: int) -> None:
    with st.columns(COLUMNS)[1]:
        tables, first = head_tables(run.trace, run.kind, TableOptions(), [LAYER]), list(range(8))
        draw(mosaic._lines(run, tables, first, first, 1.0, "lines"), "lines")


def _map(run: Run, _moved: int) -> None:
    with st.columns(COLUMNS)[0]:
        weights, mask = run.attention.pattern[HEAD], run.attention.mask[HEAD]
        chart(head_map(*axes(run.attention), weights, mask, "attention weight"), key="map", alt="One head")


def _temperature(run: Run, _moved: int) -> None:
    draw(live(replace(run, tau=1.0), row=0).shows["temperature"].drawing, "temperature")


def _matrices(run: Run, moved: int) -> None:
    head = head_of(run.attention, run.head)
    draw(picture(moved % len(all_steps()), head, Choice(2, 1, 0, 0), "a head"), "matrices")


def _row(run: Run, moved: int) -> None:
    row = moved % len(run.attention.query_tokens)
    chart(one_row(run, row=row).shows["row-panels"].draw(), key="row", alt="One row")


PICTURES = {
    "nothing": _nothing,
    "bytes": _bytes,
    "mosaic": _mosaic,
    "one-kind": _one_kind,
    "lines": _lines,
    "map": _map,
    "temperature": _temperature,
    "matrices": _matrices,
    "row": _row,
}

if __name__ == "__main__":
    main()
