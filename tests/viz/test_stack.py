"""On a narrow screen, panels that stand beside each other stand below each other: the same ones, with their names."""

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from viz.figure import StableFigure, curve, figure, grid
from viz.forms import Map, Maps, Scale
from viz.heatmap import MOST_KEYS
from viz.stack import BESIDE_BAR, LEGEND, TALLEST, fold_titles, stack, thin

NAMES = [f"{place} token" for place in range(7)]
VALUES = np.linspace(0, 1, 49, dtype=np.float32).reshape(7, 7)


def maps(count: int, across: int | None) -> StableFigure:
    every = {f"map {n}": Map(VALUES, scale=Scale(0, 1 + n % 2, title=f"scale {n % 2}")) for n in range(count)}
    return Maps(NAMES, NAMES, every, across=across).draw()


def curves(count: int, across: int | None) -> StableFigure:
    lines = [curve([0, 1], [0, n], f"line {n}", "#000000", panel=n) for n in range(1, count + 1)]
    across = across or count
    return figure(lines, grid(-(-count // across), across, [f"map {n}" for n in range(count)]), height=300)


def of_axes(layout: Mapping[str, Any], letter: str) -> dict[str, Mapping[str, Any]]:
    return {name: axis for name, axis in layout.items() if name.startswith(f"{letter}axis") and "domain" in axis}


@pytest.mark.parametrize("draw", [maps, curves])
@pytest.mark.parametrize(("count", "across"), [(2, None), (3, None), (4, 2)])
def test_every_panel_has_the_whole_width_and_none_lies_over_another(draw: Any, count: int, across: int | None) -> None:
    before = draw(count, across)
    after = stack(before).to_dict()["layout"]
    assert of_axes(after, "x").keys() == of_axes(before.to_dict()["layout"], "x").keys()
    assert all(axis["domain"] == [0, 1] for axis in of_axes(after, "x").values())
    places = sorted(axis["domain"] for axis in of_axes(after, "y").values())
    assert len(places) == count
    assert places[0][0] == pytest.approx(0, abs=1e-9)
    assert places[-1][1] == 1
    assert all(low[0] < low[1] < high[0] for low, high in pairwise(places))
    plot = after["height"] - after["margin"]["t"] - after["margin"]["b"]
    assert max((high - low) * plot for low, high in places) <= TALLEST + 1


def test_an_empty_place_of_a_grid_takes_no_room() -> None:
    full, partly = (stack(curves(4, across)).to_dict()["layout"] for across in (2, 3))
    drawn = [axis["domain"] for axis in list(of_axes(partly, "y").values())[:4]]
    assert min(low for low, _ in drawn) == pytest.approx(0, abs=1e-9)
    assert partly["height"] == pytest.approx(full["height"], abs=2)


@pytest.mark.parametrize("draw", [maps, curves])
def test_titles_stand_at_their_panels_in_reading_order(draw: Any) -> None:
    after = stack(draw(4, 2)).to_dict()["layout"]
    tops = {f"map {n}": of_axes(after, "y")[f"yaxis{n + 1 if n else ''}"]["domain"][1] for n in range(4)}
    titles = {note["text"]: note["y"] for note in after["annotations"]}
    assert titles == tops
    assert [*titles] == sorted(titles, key=titles.__getitem__, reverse=True)


def test_every_map_names_its_rows_and_the_colour_bars_lie_below_the_last_one() -> None:
    figure = stack(maps(3, None))
    after = figure.to_dict()["layout"]
    assert all(axis.get("showticklabels", True) and axis["ticktext"] for axis in of_axes(after, "y").values())
    bars = [axis["colorbar"] for name, axis in after.items() if name.startswith("coloraxis")]
    assert len(bars) == 2
    assert all(bar["orientation"] == "h" and bar["y"] < 0 for bar in bars)
    assert len({bar["y"] for bar in bars}) == 2
    plot = after["height"] - after["margin"]["t"] - after["margin"]["b"]
    assert all(-bar["y"] * plot < after["margin"]["b"] for bar in bars), "inside the figure"


def test_the_numbers_stay_as_they_are_and_a_figure_with_one_panel_does_too() -> None:
    before = maps(3, None)
    assert stack(before).to_dict()["data"] == before.to_dict()["data"]
    one = maps(1, None)
    assert stack(one) is one


def test_the_legend_of_a_panel_moves_with_it_and_has_room_above_it() -> None:
    lines = [curve([0, 1], [0, n], f"line {n}", "#000000", panel=n, legend="legend2") for n in (1, 2)]
    drawn = figure(lines, grid(2, vertical_spacing=0.3), height=400, legend2={"y": 0.35, "yanchor": "bottom"})
    after = stack(drawn).to_dict()["layout"]
    upper, lower = (after[name]["domain"] for name in ("yaxis", "yaxis2"))
    assert after["legend2"]["y"] == lower[1]
    plot = after["height"] - after["margin"]["t"] - after["margin"]["b"]
    assert (upper[0] - lower[1]) * plot >= LEGEND


@pytest.mark.parametrize("count", [1, MOST_KEYS, MOST_KEYS + 1, 100])
def test_no_more_labels_stand_below_a_map_than_have_room_and_each_at_its_token(count: int) -> None:
    names = [f"{place} token" for place in range(count)]
    map_ = Map(np.linspace(0, 1, count * count, dtype=np.float32).reshape(count, count))
    axis = thin(Maps(names, names, {"": map_}).draw()).to_dict()["layout"]["xaxis"]
    assert 0 < len(axis["ticktext"]) <= BESIDE_BAR * MOST_KEYS
    assert axis["ticktext"] == [names[place] for place in axis["tickvals"]]
    assert axis["tickvals"][0] == 0


@pytest.mark.parametrize(
    ("said", "count", "most", "lines"),
    [
        *(("tokens that were read, in all.", count, most, 1) for count, most in ((1, 30), (2, 80))),
        *(("tokens that were read, in all.", count, most, 2) for count, most in ((1, 29), (2, 60))),
        ("Gleitkommaoperationen", 1, 9, 1),
    ],
)
def test_a_title_that_is_longer_than_its_axis_has_two_lines_of_the_same_whole_words(
    said: str, count: int, most: int, lines: int
) -> None:
    drawn = figure([curve([0], [0], "one", "#000000")], grid(1, count), xaxis={"title": said}).to_dict()
    title = fold_titles(StableFigure(drawn), most).to_dict()["layout"]["xaxis"]["title"]["text"]
    assert title.split("<br>") == ([said] if lines == 1 else ["tokens that were", "read, in all."])
