"""Claims about what is drawn, asked of every figure of every page, in every tab (design, section 6)."""

import html
import io
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import pytest

from model.checkpoints.store import DEFAULT_CHECKPOINT, checkpoint_path, sha256
from model.needs import Need
from model.trace import Trace
from pages import page_of
from pages.widgets import export
from tests.pages.figures import numbers, tabs_of, words
from tests.pages.test_pages import ALL_PAGES, WITH_NUMBERS
from tests.pages.widgets.test_export import (
    TABS,
    assert_exported,
    assert_programs_compute_files,
    numbers_drawn,
    programs_of,
)
from viz.figure import StableFigure

pytestmark = pytest.mark.usefixtures("valid_figures", "open_feet")

SOURCE, TARGET = "Two dogs run.", "Ein Hund."
KIND = "Decoder self-attention"
QUERY = {"source": SOURCE, "target": "Typed", "typed": TARGET, "kind": KIND, "layer": "1", "head": "2"}
NO_NUMBERS = {
    *("Rules and formulas", "All claims in plain words", "Data, terms, limits"),
    *("The whole program", "Authors and references"),
    *("Attention through training", "Which head moved most", "Measured", "Sinks", "Long text", "The five parts"),
    *("Loss and score", "Scores", "Terms", "Interview questions", "Revisions", "Trained, fine-tuned, prompted"),
    "An induction head forms",
}
"""tabs of text alone, or before a button is pressed; the tests' checkpoint has no snapshots and is no language model,
the small model that gets an induction head is not beside it, and timings do not repeat"""
BUTTONS = {
    "Patterns": ("pattern_sweep",),
    "Which heads align words": ("align_heads",),
    "Which heads matter": ("which_go",),
    "Many temperatures": ("temperature-run-many",),
    "Broken on purpose": ("mistake_check",),
}
TWO_TEXTS = {"side_mode": "Sentences", "side_sentence": "A dog sleeps."}
OF_TAB = {"Patch": TWO_TEXTS, "One word in two sentences": TWO_TEXTS, "Word pairs": TWO_TEXTS}
"""of tabs that compare two sentences"""
CHANGED = {"pages/what_if.py": {"changes": "gate:0:zero@encoder_self.0.1"}}


@pytest.fixture(scope="module")
def trace(translator: Any) -> Trace:
    return translator.trace(SOURCE, TARGET)


@dataclass
class Shown:
    """What a page drew and offered in one of its tabs."""

    tab: str | None
    figures: dict[str, dict[str, Any]]
    """by the end of their keys"""
    files: dict[str, bytes | None]
    """downloads by name; None: a figure for a paper of a kind that another page drew"""
    saved: list[Any]
    """pictures whose saving is offered"""
    words: str
    hash: str
    drawn: np.ndarray
    """the numbers in its charts or tables"""
    programs: dict[str, str]
    """the Python of each export"""


@pytest.fixture(scope="module")
def walked() -> dict[str, list[Shown]]:
    """Pages that have been walked through: each once, for all claims."""
    return {}


@pytest.fixture(scope="module")
def on_paper() -> list[type]:
    """Types of what was drawn for a paper: that takes a second, so one stands for all of its kind."""
    return []


@pytest.fixture
def shown(
    request: pytest.FixtureRequest,
    walked: dict,
    on_paper: list[type],
    open_app: Callable,
    monkeypatch: pytest.MonkeyPatch,
) -> list[Shown]:
    """The page of the test, in each of its tabs."""
    page = request.node.callspec.params["page"]
    if page not in walked:
        files: dict[str, bytes] = {}
        saved: list[Any] = []
        offer = export._offer_figures

        def offer_figures(parts: Any, page: Any) -> None:
            saved.extend(export._saveable(parts))
            offer(parts, page)

        def save(_label: str, data: Any, file_name: str, **_: Any) -> None:
            files[file_name] = data() if callable(data) else data

        draw = export._file

        def draw_one_of_a_kind(run: Any, picture: Any, paper: Any) -> bytes | None:
            kind = type(picture.content)
            if kind in on_paper:
                return None
            on_paper.append(kind)
            return draw(run, picture, paper)

        monkeypatch.setattr(export, "_file", draw_one_of_a_kind)
        monkeypatch.setattr(export, "_offer_figures", offer_figures)
        monkeypatch.setattr("streamlit.download_button", save)
        walked[page] = []
        for tab, app in in_each_tab(page, open_app):
            for button in BUTTONS.get(tab, ()):
                files.clear()
                saved.clear()
                app.button(key=button).click().run()
            walked[page].append(looked_at(tab, app, files, saved))
    return walked[page]


def in_each_tab(page: str, open_app: Callable) -> Iterator[tuple[str | None, Any]]:
    query = QUERY | CHANGED.get(page, {})
    first = open_app(page, **query)
    key, tabs = tabs_of(first)
    expected, *titles = TABS.get(page_of(page).name, (key,))
    assert key == expected
    assert [tab for tab in tabs if tab in titles] == [title for title in titles if title in tabs]
    opened = page_of(page).first_tab or tabs[0]
    yield opened, first
    for tab in (tab for tab in tabs if tab != opened):
        yield tab, open_app(page, **query, **OF_TAB.get(tab, {}), **{key: tab})


def looked_at(tab: str | None, app: Any, files: dict[str, bytes], saved: list[Any]) -> Shown:
    figures = {chart.proto.id.split("-", 2)[-1]: json.loads(chart.proto.spec) for chart in app.get("plotly_chart")}
    words = " ".join(element.value for kind in (app.markdown, app.caption, app.text) for element in kind)
    weights = sha256(checkpoint_path(DEFAULT_CHECKPOINT) / "model.safetensors")
    drawn = numbers_drawn(next((one for one in app.tabs if one.label == tab), app.main))
    found = Shown(tab, figures, dict(files), list(saved), words, weights, drawn, programs_of(app))
    files.clear()
    saved.clear()
    return found


def heat_maps(figure: dict[str, Any]) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Each heat map, and what holds its colours: an axis that it shares, or itself."""
    maps = [data for data in figure["data"] if data["type"] == "heatmap"]
    return [(data, figure["layout"][data["coloraxis"]] if "coloraxis" in data else data) for data in maps]


def limits(colours: dict[str, Any]) -> tuple[float | None, float | None]:
    return tuple(colours.get(f"c{end}", colours.get(f"z{end}")) for end in ("min", "max"))


def is_scale(colours: dict[str, Any]) -> bool:
    """Whether colours stand for numbers at all: one colour alone marks a place."""
    return len({colour for _, colour in colours["colorscale"]}) > 1


def allowed_scales() -> list[list[str]]:
    from plotly.colors import get_colorscale

    of_numbers = [[colour for _, colour in get_colorscale(name)] for name in ("viridis", "cividis", "RdBu_r")]
    return [*of_numbers, ["#ffffff", "#000000"]]  # the last: ink on paper


MOST_BEYOND = 0.1
"""share of a map's numbers, at most, that lie beyond the range of its colours"""


@pytest.mark.parametrize("page", ALL_PAGES, scope="module")
def test_18_colours_that_are_compared_have_one_stated_range_of_a_scale_that_everybody_can_read(
    page: str, shown: list[Shown]
) -> None:
    assert shown, page
    for tab, key, figure in each_figure(shown):
        for data, colours in heat_maps(figure):
            if is_scale(colours):
                low, high = limits(colours)
                assert low is not None, (tab, key)
                assert low < high, (tab, key)
                assert [colour for _, colour in colours["colorscale"]] in allowed_scales(), (tab, key)
                z = numbers(data["z"]).astype(float)
                # The limit and the cell may be the same number, one of them rounded to float32.
                rounding = np.finfo(np.float32).eps * max(abs(low), abs(high))
                # A range that leaves out a few says so at its end.
                ends = colours.get("colorbar", {}).get("ticktext") or ("", "")
                assert "≤" in ends[0] or low - rounding <= np.nanmin(z), (tab, key)
                assert "≥" in ends[-1] or np.nanmax(z) <= high + rounding, (tab, key)
                assert np.mean((z < low - rounding) | (z > high + rounding)) <= MOST_BEYOND, (tab, key)
        assert_compared_alike(figure, (tab, key))


def each_figure(shown: list[Shown]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    return ((look.tab, key, figure) for look in shown for key, figure in look.figures.items())


@pytest.mark.parametrize("page", ALL_PAGES, scope="module")
def test_12_13_maps_of_the_chosen_heads_weights_have_queries_as_rows_and_no_colour_in_masked_cells(
    page: str, shown: list[Shown], trace: Trace
) -> None:
    pattern, mask = trace.attention("decoder_self", 1).pattern[2], trace.attention("decoder_self", 1).mask[2]
    for tab, key, figure in each_figure(shown):
        for data, colours in heat_maps(figure):
            z = numbers(data["z"]).astype(float)
            assert not (z < -1e4).any(), (tab, key, "a large negative number is no mask")
            if z.shape == pattern.shape:
                upright, turned = (np.allclose(np.nan_to_num(one)[mask], pattern[mask], atol=1e-3) for one in (z, z.T))
                assert upright or not turned, (page, tab, key)
                assert not (upright and is_scale(colours)) or np.isnan(z[~mask]).all(), (tab, key)


@pytest.mark.parametrize("page", ALL_PAGES, scope="module")
def test_19_where_a_page_names_the_chosen_layer_and_head_it_uses_the_codes_numbers(
    page: str, shown: list[Shown]
) -> None:
    """The link asks for layer 1 and head 2 of 2 layers and 4 heads: counted from 1 they would be 2 and 3."""
    for look in shown:
        for layer, head in re.findall(r"[Ll]ayer (\d+), head (\d+)", look.words):
            assert int(layer) < 2, (page, look.tab)
            assert int(head) < 4, (page, look.tab)


@pytest.mark.parametrize("page", WITH_NUMBERS, scope="module")
def test_20_every_export_names_its_run_its_view_and_the_whole_hash_of_the_weights(
    page: str, shown: list[Shown]
) -> None:
    endings = {name.rsplit(".", 1)[1] for look in shown for name in look.files}
    assert endings >= {"csv", "npz", "ipynb"}
    assert "html" in endings or page in WITHOUT_PICTURES
    for look in shown:
        for name, content in look.files.items():
            if name.endswith(".pdf"):
                # The hash of a figure for a paper is in its metadata; PDF writes them as UTF-16 where it must.
                # What follows is the head, where the view reads one.
                assert re.search(rf"-{DEFAULT_CHECKPOINT}[-.]", name), (look.tab, name)
                said = content is None or any(look.hash.encode(code) in content for code in ("ascii", "utf-16-be"))
                assert said, (look.tab, name)
                continue
            assert f"-{DEFAULT_CHECKPOINT}-{look.hash[:8]}." in name, (look.tab, name)
            if name.endswith(".py"):  # the whole program, which is of no run
                assert look.hash.encode() in content, (look.tab, name)
                continue
            said = facts_in(name, content)
            assert (said["checkpoint"], said["checkpoint_sha256"]) == (DEFAULT_CHECKPOINT, look.hash), (look.tab, name)
            assert said["source"] == SOURCE, (look.tab, name)
            assert "source=Two+dogs+run" in said["view"], (look.tab, name)


@pytest.mark.parametrize("page", [page for page in WITH_NUMBERS if page_of(page).name in TABS], scope="module")
def test_20_every_tab_exports_the_numbers_that_it_draws_and_the_python_that_computes_them(
    page: str, shown: list[Shown], open_app: Callable
) -> None:
    key, *titles = TABS[page_of(page).name]
    looks = [look for look in shown if look.tab in titles]
    for look in (look for look in looks if look.tab not in NO_NUMBERS):
        assert_exported(look.drawn, look.files, 0.25, 0.9 if look.tab in ("Ablations", "Query by query") else 0.25)
        assert_programs_compute_files(look.programs, look.files)
    for tab in {*titles} - {look.tab for look in looks} - NO_NUMBERS:
        needs = [need for view in page_of(page).views if view.title == tab for need in view.needs]
        said = words(open_app(page, source=SOURCE, **{key: tab}))
        assert (f"The tab “{tab}” needs" in said) == any(isinstance(need, Need) for need in needs)


WITHOUT_PICTURES = ("pages/training.py", "pages/learn.py")
"""a training without a log has no curves, and the list of lessons has no picture"""


def facts_in(name: str, content: bytes) -> Any:
    """What a file says of its run."""
    if name.endswith(".npz"):
        with np.load(io.BytesIO(content)) as file:
            return {key: str(file[key]) for key in ("source", "view", "checkpoint", "checkpoint_sha256")}
    if name.endswith(".csv"):
        return pd.read_csv(io.BytesIO(content), nrows=1).iloc[0]
    if name.endswith(".ipynb"):
        return json.loads(content)["metadata"]["attention_explorer"]
    entries = re.findall(r"<dt>(.*?)</dt><dd dir='auto'>(.*?)</dd>", content.decode(), re.DOTALL)
    return {key: html.unescape(value) for key, value in entries}


@pytest.mark.parametrize("page", WITH_NUMBERS, scope="module")
def test_the_pictures_that_are_saved_are_those_of_the_page(page: str, shown: list[Shown]) -> None:
    assert any(look.saved for look in shown) or page in WITHOUT_PICTURES
    for look in shown:
        for picture in (each for each in look.saved if isinstance(each.content, StableFigure)):
            drawn = look.figures[picture.key]["data"]
            saved = go.Figure(picture.content).data
            assert [trace["type"] for trace in drawn] == [trace.type for trace in saved], (look.tab, picture.key)


def assert_compared_alike(figure: dict[str, Any], where: object) -> None:
    """Maps of one figure that have one scale and one title have one range; each range is written beside a bar."""
    maps = [(data, colours) for data, colours in heat_maps(figure) if is_scale(colours)]
    for (one, first), (other, second) in pairwise(maps):
        if "coloraxis" not in one and "coloraxis" not in other and first["colorscale"] == second["colorscale"]:
            assert limits(first) == limits(second), where
    for _, colours in maps:
        bars = [c for _, c in maps if limits(c) == limits(colours)]
        title = figure["layout"].get("xaxis", {}).get("title", {}).get("text", "")
        assert any(states(c, title, limits(colours)) for c in bars), where


def states(colours: dict[str, Any], title: str, ends: tuple[float, float]) -> bool:
    """Whether the bar's title, or its ticks, or the axis below the map, name both ends of the range."""
    bar = colours.get("colorbar", {})
    said = " ".join((title, bar.get("title", {}).get("text", ""), *map(str, bar.get("ticktext", ())))).replace("−", "-")
    found = [float(number) for number in re.findall(r"-?\d+(?:\.\d+)?(?:e[-+]?\d+)?", said)]
    found += [-float(number) for number in re.findall(r"±(\d+(?:\.\d+)?(?:e[-+]?\d+)?)", said)]
    return all(any(np.isclose(end, number, rtol=0.02, atol=1e-9) for number in found) for end in ends)
