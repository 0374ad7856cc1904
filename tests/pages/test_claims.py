"""Claims about what is drawn, asked of every figure of every page, in every tab (design, section 6)."""

import io
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from model.checkpoints.store import DEFAULT_CHECKPOINT, checkpoint_path, sha256
from tests.pages.figures import numbers, tabs_of
from tests.pages.test_pages import ALL_PAGES, WITH_NUMBERS

if TYPE_CHECKING:
    from model.trace import Trace

pytest.importorskip("streamlit")
pytestmark = pytest.mark.usefixtures("valid_figures")

SOURCE, TARGET = "A dog runs and a cat sat.", "Ein Hund rennt."
KIND = "Decoder self-attention"
QUERY = {"source": SOURCE, "target": "Typed", "typed": TARGET, "kind": KIND, "layer": "1", "head": "2"}


@pytest.fixture(scope="module")
def trace(translator: Any) -> "Trace":
    return translator.trace(SOURCE, TARGET)


@dataclass
class Shown:
    """What a page drew and offered in one of its tabs."""

    tab: str | None
    figures: dict[str, dict[str, Any]]
    """by the end of their keys"""
    files: dict[str, bytes]
    """downloads by name"""
    words: str
    hash: str


@pytest.fixture(scope="module")
def walked() -> dict[str, list[Shown]]:
    """Pages that have been walked through: each once, for all claims."""
    return {}


@pytest.fixture
def shown(
    request: pytest.FixtureRequest, walked: dict, open_app: Callable, monkeypatch: pytest.MonkeyPatch
) -> list[Shown]:
    """The page of the test, in each of its tabs."""
    page = request.node.callspec.params["page"]
    if page not in walked:
        files: dict[str, bytes] = {}
        monkeypatch.setattr(
            "streamlit.download_button",
            lambda _label, data, file_name, **_: files.update({file_name: data() if callable(data) else data}),
        )
        walked[page] = [looked_at(tab, app, files) for tab, app in in_each_tab(page, open_app)]
    return walked[page]


def in_each_tab(page: str, open_app: Callable) -> Iterator[tuple[str, Any]]:
    first = open_app(page, **QUERY)
    key, tabs = tabs_of(first)
    yield tabs[0], first
    for tab in tabs[1:]:
        yield tab, open_app(page, **QUERY, **{key: tab})


def looked_at(tab: str, app: Any, files: dict[str, bytes]) -> Shown:
    assert not app.exception
    figures = {chart.proto.id.split("-", 2)[-1]: json.loads(chart.proto.spec) for chart in app.get("plotly_chart")}
    words = " ".join(element.value for kind in (app.markdown, app.caption, app.text) for element in kind)
    found = Shown(tab, figures, dict(files), words, sha256(checkpoint_path(DEFAULT_CHECKPOINT) / "model.safetensors"))
    files.clear()
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

    return [[colour for _, colour in get_colorscale(name)] for name in ("viridis", "cividis", "RdBu_r")]


@pytest.mark.parametrize("page", ALL_PAGES)
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
                assert low - rounding <= np.nanmin(z), (tab, key)
                assert np.nanmax(z) <= high + rounding, (tab, key)
        assert_compared_alike(figure, (tab, key))


def each_figure(shown: list[Shown]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    return ((look.tab, key, figure) for look in shown for key, figure in look.figures.items())


@pytest.mark.parametrize("page", ALL_PAGES)
def test_13_no_masked_cell_of_a_causal_head_has_a_colour_and_no_score_stands_for_minus_infinity(
    page: str, shown: list[Shown], trace: "Trace"
) -> None:
    pattern = trace.attention("decoder_self", 1).pattern[2]
    hidden = ~trace.attention("decoder_self", 1).mask[2]
    for tab, key, figure in each_figure(shown):
        for data, colours in heat_maps(figure):
            z = numbers(data["z"]).astype(float)
            assert not (z < -1e4).any(), (tab, key, "a large negative number is no mask")
            if is_scale(colours) and z.shape == pattern.shape and np.allclose(z[~hidden], pattern[~hidden], atol=1e-3):
                assert np.isnan(z[hidden]).all(), (page, tab, key)


@pytest.mark.parametrize("page", ALL_PAGES)
def test_12_every_map_of_the_chosen_heads_weights_has_queries_as_rows(
    page: str, shown: list[Shown], trace: "Trace"
) -> None:
    pattern = trace.attention("decoder_self", 1).pattern[2]
    lower = np.tril(np.ones_like(pattern, dtype=bool))
    for tab, key, figure in each_figure(shown):
        for data, _ in heat_maps(figure):
            z = np.nan_to_num(numbers(data["z"]).astype(float))
            if z.shape == pattern.shape:
                turned = np.allclose(z.T[lower], pattern[lower], atol=1e-3)
                assert not turned or np.allclose(z[lower], pattern[lower], atol=1e-3), (page, tab, key)


@pytest.mark.parametrize("page", ALL_PAGES)
def test_19_where_a_page_names_the_chosen_layer_and_head_it_uses_the_codes_numbers(
    page: str, shown: list[Shown]
) -> None:
    """The link asks for layer 1 and head 2 of 2 layers and 4 heads: counted from 1 they would be 2 and 3."""
    for look in shown:
        for layer, head in re.findall(r"[Ll]ayer (\d+), head (\d+)", look.words):
            assert int(layer) < 2, (page, look.tab)
            assert int(head) < 4, (page, look.tab)


@pytest.mark.parametrize("page", WITH_NUMBERS)
def test_20_every_export_names_the_checkpoint_and_the_whole_hash_of_its_weights(page: str, shown: list[Shown]) -> None:
    assert any(look.files for look in shown), page
    for look in shown:
        for name, content in look.files.items():
            if name.endswith(".pdf"):
                # The hash of a figure for a paper is in its metadata; PDF writes them as UTF-16 where it must.
                assert f"-{DEFAULT_CHECKPOINT}-" in name, (look.tab, name)
                assert any(look.hash.encode(code) in content for code in ("ascii", "utf-16-be")), (look.tab, name)
                continue
            assert f"-{DEFAULT_CHECKPOINT}-{look.hash[:8]}." in name, (look.tab, name)
            if name.endswith(".npz"):
                with np.load(io.BytesIO(content)) as arrays:
                    assert (str(arrays["checkpoint"]), str(arrays["checkpoint_sha256"])) == (
                        DEFAULT_CHECKPOINT,
                        look.hash,
                    )
            else:
                assert look.hash.encode() in content, (look.tab, name)
                assert DEFAULT_CHECKPOINT.encode() in content, (look.tab, name)


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
