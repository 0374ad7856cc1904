"""A figure is what Plotly's own methods make of the same content, and equal content gives equal figures."""

import json
from copy import deepcopy

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import pytest
from plotly.io import to_json
from plotly.subplots import make_subplots

from viz.figure import (
    StableFigure,
    bar,
    darken,
    enlarge,
    escape,
    figure,
    frame,
    grid,
    heatmap,
    hline,
    merge,
    panels,
    scatter,
    selectable,
    text,
    vline,
)
from viz.theme import FAINT, GREY, LOOK, SIGNED, SIGNED_ON_DARK, WEIGHTS
from viz.tokens import axis_ticks

LINE = {"color": "#7f7f7f", "width": 1, "dash": "solid"}
TITLES = ("left", "", "below", "last")


def layout_of(shown: go.Figure) -> dict:
    """The layout without what is empty, the template, and the checksum."""
    whole = shown.to_plotly_json()["layout"]
    return {name: value for name, value in whole.items() if name not in ("template", "datarevision") and value}


@pytest.mark.parametrize("shared", [False, True])
def test_a_grid_has_the_axes_and_titles_of_make_subplots(shared: bool) -> None:
    spacing = {"shared_xaxes": shared, "horizontal_spacing": 0.03, "row_heights": [1, 3]}
    plotly = make_subplots(2, 2, subplot_titles=TITLES, **spacing)
    ours = go.Figure({"layout": grid(2, 2, TITLES, **spacing)})
    assert layout_of(ours) == layout_of(plotly)


def test_traces_and_shapes_stand_where_plotly_puts_them() -> None:
    plotly = make_subplots(1, 2)
    plotly.add_bar(x=[1], y=[2], row=1, col=2)
    plotly.add_vline(1, line=LINE, row=1, col=2)
    plotly.add_hline(2, line=LINE, row=1, col=2)
    plotly.add_shape(type="rect", x0=-0.5, x1=1.5, y0=1.5, y1=2.5, line={"color": "red", "width": 2}, row=1, col=2)
    shapes = [vline(1, 2, **LINE), hline(2, 2, **LINE), frame((0, 1), (2, 2), "red", panel=2)]
    ours = go.Figure({"data": [bar(panel=2, x=[1], y=[2])], "layout": grid(1, 2) | {"shapes": shapes}})
    assert [shape.to_plotly_json() for shape in ours.layout.shapes] == [
        shape.to_plotly_json() for shape in plotly.layout.shapes
    ]
    assert (ours.data[0].xaxis, ours.data[0].yaxis) == (plotly.data[0].xaxis, plotly.data[0].yaxis) == ("x2", "y2")


def test_layouts_are_merged_in_depth_and_lists_are_joined() -> None:
    first = {"xaxis": {"title": "key", "range": [0, 1]}, "annotations": [text("one")]}
    second = {"xaxis": {"title": {"standoff": 4}, "range": [0, 2]}, "annotations": [text("two")]}
    whole = merge(first, second)
    assert whole["xaxis"] == {"title": {"text": "key", "standoff": 4}, "range": [0, 2]}
    assert [note["text"] for note in whole["annotations"]] == ["one", "two"]
    assert first == {"xaxis": {"title": "key", "range": [0, 1]}, "annotations": [text("one")]}


def test_one_figure_changes_nothing_of_another() -> None:
    before = figure([], grid(1, 2, ("a", "b")))
    changed = grid(1, 2, ("a", "b"))
    changed["xaxis"]["domain"] = [0, 0.1]
    changed["annotations"][0]["text"] = "c"
    figure([], changed, xaxis={"title": "key"})
    assert figure([], grid(1, 2, ("a", "b"))) == before


def test_what_is_sent_is_what_plotly_itself_would_send_but_rows_of_numbers_as_lists() -> None:
    """Plotly takes another array of the same numbers for other numbers, and draws again; it compares lists."""
    numbers, names = np.arange(6.0).reshape(2, 3), np.array(["a", "b", "c"], dtype=object)
    drawn = figure(
        [heatmap(z=numbers, x=names, colorscale="greys", customdata=None), bar(y=np.arange(3), x=(1, 2, 3))],
        grid(1, 2, ("one", "two")),
        xaxis={"range": np.array([0, 2]), "tickvals": [0, 1]},
        coloraxis={"colorscale": [[0, "red"], [1, "blue"]]},
    )
    sent = json.loads(to_json(drawn.to_dict(), validate=False))
    assert drawn.layout.coloraxis.colorscale == ((0, "red"), (1, "blue")), "read, and so validated"
    plotly = json.loads(to_json(drawn.to_dict(), validate=False))
    assert (sent["data"][1].pop("y"), plotly["data"][1].pop("y")["dtype"]) == ([0, 1, 2], "i1")
    assert sent == plotly


def test_a_chart_that_can_be_clicked_has_its_modes_before_it_is_drawn_and_keeps_its_own() -> None:
    drawn = figure([scatter(x=[1], y=[1])], hovermode="y")
    clicked = selectable(drawn).to_dict()["layout"]
    assert (clicked["clickmode"], clicked["dragmode"], clicked["hovermode"]) == ("event+select", "pan", "y")
    assert "clickmode" not in drawn.to_dict()["layout"]


@pytest.mark.parametrize(("rows", "columns", "roomy"), [(1, 1, False), (3, 1, False), (1, 2, True), (2, 2, True)])
def test_panels_beside_each_other_need_room_and_those_below_each_other_do_not(
    rows: int, columns: int, roomy: bool
) -> None:
    assert figure([scatter(x=[0], y=[1])], grid(rows, columns)).roomy is roomy


def test_a_property_that_plotly_does_not_know_is_an_error() -> None:
    with pytest.raises(ValueError, match="hight"):
        figure([], hight=300).layout  # noqa: B018 - read in Python


def test_the_common_look_fills_in_what_is_not_given() -> None:
    shown = figure(
        [heatmap(z=[[1]])], grid(1, 2, ("a", "b")), panels("xaxis", [2], {"title": "key", "tickfont": {"size": 9}})
    ).layout
    assert (shown.xaxis2.tickfont.size, shown.xaxis.tickfont.size) == (9, LOOK["xaxis"]["tickfont"]["size"])
    assert (shown.xaxis2.title.text, shown.xaxis2.title.font.color) == ("key", GREY)
    assert (shown.xaxis.tickcolor, shown.yaxis.tickcolor, shown.xaxis2.tickcolor) == (FAINT, FAINT, None)
    assert shown.annotations[0].font.size == 16


def test_equal_content_gives_equal_figures_and_other_content_others() -> None:
    def draw(*values: float) -> StableFigure:
        return figure([heatmap(z=np.array([values]), x=["a", "b"])])

    assert draw(1, 2).to_dict() == draw(1, 2).to_dict()
    assert draw(1, 2).layout.datarevision != draw(1, 3).layout.datarevision
    assert "template" not in draw(1, 2).to_dict()["layout"]


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
def test_similar_content_is_told_apart_and_a_copy_is_not(one: object, other: object) -> None:
    first, second, copy = (figure([scatter(customdata=each)]) for each in (one, other, deepcopy(one)))
    assert first.layout.datarevision != second.layout.datarevision
    assert first.layout.datarevision == copy.layout.datarevision


def test_equal_names_give_one_checksum_whether_or_not_they_are_one_object() -> None:
    name = "".join(("key", "s"))
    same, copies = [name, name], ["".join(("key", "s")), "".join(("ke", "ys"))]
    assert figure([bar(x=same)]).layout.datarevision == figure([bar(x=copies)]).layout.datarevision


def test_markup_is_escaped_on_an_axis_and_quotation_marks_stay():
    """Plotly reads `&lt;`, but would show `&quot;` letter by letter."""
    names = ["<b>x</b>", '"Oh"', "didn't"]
    assert axis_ticks(names)["ticktext"] == escape(names) == ["&lt;b&gt;x&lt;/b&gt;", '"Oh"', "didn't"]


def test_on_a_dark_page_signed_numbers_are_brighter_the_further_from_0_and_weights_keep_their_colours() -> None:
    """On a colour axis and in a trace; the picture itself, which may be on a light page, too, stays as it is."""
    traces = [heatmap(z=np.eye(2), coloraxis="coloraxis"), heatmap(z=np.eye(2), colorscale=SIGNED)]
    light = figure(traces, coloraxis={"colorscale": SIGNED}, coloraxis2={"colorscale": WEIGHTS})
    before = light.to_dict()
    dark = darken(light).to_dict()
    assert light.to_dict() == before
    assert dark["layout"]["coloraxis2"] == before["layout"]["coloraxis2"]
    scale = dark["layout"]["coloraxis"]["colorscale"]
    assert dark["data"][1]["colorscale"] == scale
    for_projector = darken(enlarge(light)).to_dict()
    assert for_projector["layout"]["coloraxis"]["colorscale"] == for_projector["data"][1]["colorscale"] == scale
    assert [place for place, _ in scale] == pytest.approx(np.linspace(0, 1, len(scale)))
    brightness = np.array(SIGNED_ON_DARK) @ [0.2126, 0.7152, 0.0722]
    middle = len(scale) // 2
    assert np.all(np.diff(brightness[middle:]) > 0)
    assert np.all(np.diff(brightness[: middle + 1]) < 0)
    assert go.Figure(dark)
