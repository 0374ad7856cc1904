"""A draft becomes the figure that Plotly's own methods make of the same calls."""

from collections.abc import Callable
from copy import deepcopy

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import pytest
from plotly.subplots import make_subplots

from viz.figure import Draft, grid
from viz.theme import GREY, LOOK, OwnLook

LINE = {"color": "#7f7f7f", "width": 1}
TITLES = ("left", "", "below", "last")

ONE = {
    "traces": lambda figure: (figure.add_bar(x=[1, 2], y=[3, 4]), figure.add_scatter(x=[1], y=[2], mode="lines")),
    "layout twice": lambda figure: (
        figure.update_layout({"font": {"size": 13}}, margin={"l": 60, "t": 40}, height=300),
        figure.update_layout(margin={"t": 10}, font={"family": "serif"}),
    ),
    "axes": lambda figure: (figure.update_xaxes(title={"text": "key"}), figure.update_xaxes(title={"standoff": 4})),
    "a part by its path": lambda figure: (
        figure.update_layout(coloraxis={"cmin": 0, "colorbar": {"len": 0.6, "title": {"text": "weight"}}}),
        figure.update_layout(coloraxis_colorbar={"yref": "container"}, legend_traceorder="normal"),
        figure.update_yaxes(title={"text": "weight"}),
        figure.update_yaxes(title_standoff=4, title_font_size=11),
    ),
    "lines across": lambda figure: (figure.add_vline(2, line=LINE), figure.add_hline(3, line=LINE)),
    "a box": lambda figure: figure.add_vrect(1, 2, fillcolor="red", layer="below"),
    "shapes and words": lambda figure: (
        figure.add_shape(type="rect", x0=0, x1=1, y0=0, y1=1, line=LINE),
        figure.add_annotation(text="here", x=1, y=2, showarrow=False, font={"size": 16}),
        figure.update_annotations(font_size=12, xanchor="left"),
    ),
}

SEVERAL = {
    "titles": lambda figure: figure.update_annotations(x=0, xanchor="left", font_size=14),
    "a trace each": lambda figure: [
        figure.add_heatmap(z=[[row, col]], row=row, col=col) for row in (1, 2) for col in (1, 2)
    ],
    "all axes": lambda figure: figure.update_yaxes(autorange="reversed", matches="y"),
    "a row": lambda figure: figure.update_xaxes(title={"text": "key"}, row=2),
    "a column": lambda figure: figure.update_yaxes(showticklabels=False, col=2),
    "one of them": lambda figure: figure.update_xaxes(range=[0, 1], row=2, col=1),
    "a shape in one": lambda figure: figure.add_shape(type="line", x0=0, x1=1, y0=0, y1=1, row=1, col=2),
    "a picture in one's domain": lambda figure: figure.add_layout_image(
        {"source": "data:,", "xref": "x domain", "yref": "y domain"}, row=2, col=2
    ),
    "a line across one": lambda figure: (
        figure.add_bar(x=[1], y=[1], row=1, col=2),
        figure.add_vline(1, line=LINE, row=1, col=2),
    ),
}


def assert_same(draft: Draft, figure: go.Figure) -> None:
    plain = go.Figure({"data": draft.traces, "layout": draft.layout})
    drawn, own = (each.to_plotly_json() for each in (plain, figure))
    assert drawn["data"] == own["data"]
    assert without_empty(drawn["layout"]) == without_empty(own["layout"])


def without_empty(layout: dict) -> dict:
    return {name: value for name, value in layout.items() if value not in ({}, []) and name != "template"}


@pytest.mark.parametrize("calls", ONE.values(), ids=ONE)
def test_a_draft_is_what_plotly_makes_of_the_same_calls(calls: Callable) -> None:
    draft, figure = Draft(), go.Figure()
    calls(draft)
    calls(figure)
    assert_same(draft, figure)


@pytest.mark.parametrize("calls", SEVERAL.values(), ids=SEVERAL)
@pytest.mark.parametrize("shared", [False, True])
def test_a_grid_is_what_make_subplots_makes_of_the_same_calls(calls: Callable, shared: bool) -> None:
    room = {"shared_xaxes": shared, "horizontal_spacing": 0.03, "row_heights": [1, 3]}
    draft, figure = grid(2, 2, TITLES, **room), make_subplots(2, 2, subplot_titles=TITLES, **room)
    calls(draft)
    calls(figure)
    assert_same(draft, figure)


def test_what_one_draft_changes_no_other_sees() -> None:
    first = grid(1, 2, ("a", "b"))
    before = grid(1, 2, ("a", "b")).figure()
    look = {"title": {"text": "key"}}
    first.update_xaxes(**look, range=[0, 1])
    first.update_layout(xaxis={"title": {"standoff": 4}})
    assert look == {"title": {"text": "key"}}
    assert grid(1, 2, ("a", "b")).figure() == before


def test_plotly_says_so_where_it_does_not_know_a_property() -> None:
    with pytest.raises(ValueError, match="hight"):
        Draft().update_layout(hight=300).figure()


def test_what_a_draft_leaves_open_has_the_common_look_and_nothing_else_does() -> None:
    draft = grid(1, 2, ("a", "b"))
    draft.update_xaxes(title="key", tickfont={"size": 9}, col=2)
    layout = draft.figure().layout
    assert (layout.xaxis2.tickfont.size, layout.xaxis.tickfont.size) == (9, LOOK["xaxis"]["tickfont"]["size"])
    assert (layout.xaxis2.title.text, layout.xaxis2.title.font.color) == ("key", GREY)
    assert layout.annotations[0].font.size == 16


def test_figures_are_the_same_to_plotly_if_and_only_if_they_show_the_same() -> None:
    def drawn(*values: float) -> OwnLook:
        return Draft().add_heatmap(z=np.array([values]), x=["a", "b"]).figure()

    assert drawn(1, 2).to_dict() == drawn(1, 2).to_dict()
    assert drawn(1, 2).layout.datarevision != drawn(1, 3).layout.datarevision
    assert "template" not in drawn(1, 2).to_dict()["layout"]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ([1, 23], [12, 3]),
        ([[1, 2]], [[1], [2]]),
        (np.array(["a", 1], dtype=object), np.array(["b", 1], dtype=object)),
        (np.arange(6).reshape(2, 3), np.arange(6).reshape(3, 2)),
        (pd.Series(range(2000)), pd.Series([*range(1999), 0])),
        (np.arange(2000), np.arange(2000) + (np.arange(2000) == 1000)),
    ],
)
def test_what_only_looks_the_same_is_drawn_again(one: object, other: object) -> None:
    first, second, again = (Draft().add_scatter(customdata=each).figure() for each in (one, other, deepcopy(one)))
    assert first.layout.datarevision != second.layout.datarevision
    assert first.layout.datarevision == again.layout.datarevision


def test_what_a_call_was_given_stays_as_it_was() -> None:
    font = {"size": 16}
    Draft().add_annotation(text="here", font=font).update_annotations(font_size=12)
    assert font == {"size": 16}
