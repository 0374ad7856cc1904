"""Efficient attention, tab "Long text": what is drawn are the weights of the long run."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from model.analysis.long.long_run import (
    LongRun,
    allowed,
    bits_by_position,
    largest,
    long_run,
    open_row,
    open_window,
    weight_on_first,
    weights,
)
from model.analysis.long.streaming import strategies, stream
from model.checkpoints.store import CHECKPOINTS_VARIABLE, load_checkpoint
from model.run import Place, Request, Run
from pages.views.beyond.long_text import streaming, window
from tests.model.checkpoints.test_language_model import MODERN
from tests.model.tiny import SENTENCES
from tests.pages.conftest import save_random
from tests.pages.figures import canvases, figure, numbers, words
from tests.pages.widgets.test_export import programs_of, result_of
from tests.viz.canvas.test_lines import decode as decode_lines
from tests.viz.canvas.test_mosaic import decode as decode_mosaic
from tests.viz.payload import unpack

PAGE = "pages/efficient_attention.py"
TEXT = " ".join(source for source, _ in SENTENCES * 4)
"""several hundred tokens"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A language model and a masked one, built for 48 positions."""
    folder = tmp_path_factory.mktemp("long")
    for name, layers in {"lm": (0, 2), "mlm": (2, 0)}.items():
        save_random(folder / name, replace(MODERN, max_len=48), *layers)
    return folder


@pytest.fixture
def open_long(open_app: Callable, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Callable:
    monkeypatch.setenv(CHECKPOINTS_VARIABLE, str(folder))

    def open_long(name: str, **query: str):
        query = {"source": TEXT, "layer": "1", "head": "2", "efficient": "Long text", **query}
        app = open_app(PAGE, checkpoint=name, **query)
        return app, long_run(load_checkpoint(name, "cpu"), TEXT)

    return open_long


def a_run(folder: Path, name: str) -> Run:
    """Of a short text; the views read a long one."""
    opened = load_checkpoint(str(folder / name), "cpu")
    return Run.start(opened, Request("A dog."), Place(opened.kinds[0].name, 1, 2))


def place_of(run: LongRun) -> tuple[str, int]:
    return run.kinds[0].name, 1


@pytest.mark.parametrize("name", ["lm", "mlm"])
def test_pictures_show_the_largest_weight_of_every_square(open_long: Callable, name: str) -> None:
    app, run = open_long(name)
    place, whole = place_of(run), (0, len(run))
    heads, head, _ = canvases(app)
    header, (sent,) = decode_mosaic(heads)
    size = header["groups"][0]["pool"]
    assert size == -(-len(run) // 96) > 1
    seen = allowed(run, place, whole, whole, size)
    for layer in (0, 1):
        expected = np.where(seen, largest(run, (place[0], layer), slice(None), whole, whole, size), np.nan)
        np.testing.assert_allclose(sent[layer], expected, atol=1e-4)
    header, arrays = unpack(head)
    (look,) = header["looks"]
    assert look["size"] == -(-len(run) // 256)
    expected = largest(run, place, slice(2, 3), whole, whole, look["size"])[0]
    expected = np.where(allowed(run, place, whole, whole, look["size"]), expected, np.nan)
    np.testing.assert_allclose(arrays[look["array"]], expected, atol=1e-4)
    assert header["row"] is None
    first = weight_on_first(run)
    layer, head = np.unravel_index(first.argmax(), first.shape)
    assert f"in layer {layer}, head {head}: {first.max():.1%}" in words(app)
    if name == "lm":
        surprise = figure(app, "long-surprise")
        bits = numbers(surprise["data"][0]["y"])
        assert bits.mean() == pytest.approx(-run.log_probabilities.mean() / np.log(2), rel=0.02)
        assert surprise["layout"]["shapes"][0]["x0"] == 48, "the trained length"


@pytest.mark.parametrize("name", ["lm", "mlm"])
def test_a_window_has_its_own_weights_and_the_sum_of_all_others(open_long: Callable, name: str) -> None:
    app, run = open_long(name, long_window="16", long_first="40", long_tau="0.5", long_query="55")
    place, window = place_of(run), (40, 56)
    opened = open_window(run, place, 2, window, 0.5)
    drawn = numbers(figure(app, "long-window-map")["data"][0]["z"])
    np.testing.assert_allclose(drawn[:, 0], opened.before, rtol=1e-5)
    np.testing.assert_allclose(np.nan_to_num(drawn[:, 1:17]), opened.weights, rtol=1e-5)
    if name == "mlm":
        np.testing.assert_allclose(drawn[:, 17], opened.after, rtol=1e-5)
    outside = opened.before + opened.after
    assert f"On average {outside.mean():.1%}" in words(app)
    assert f"at most {outside.max():.1%}" in words(app)
    _, (lines,) = decode_lines(canvases(app)[2])
    np.testing.assert_array_equal(lines, drawn.astype(np.float32))
    row, shown = open_row(run, place, 2, 55, window, 0.5), app.dataframe[0].value["weight"].astype(float)
    best = np.argsort(-row.exponentials, kind="stable")[:8]
    np.testing.assert_allclose(shown[: len(best)], row.weights[best], rtol=1e-3)
    assert shown.sum() == pytest.approx(1, abs=1e-3)


@pytest.mark.parametrize(
    "look", [{"top": 10, "left": 4, "span": 40, "row": 30}, {"top": -9, "left": 10**9, "span": 40}]
)
def test_what_is_zoomed_into_comes_in_detail(open_long: Callable, look: dict) -> None:
    app, run = open_long("lm")
    app.session_state["long-look"] = ((load_checkpoint("lm", "cpu").hash, TEXT, Place(*place_of(run), 2)), look)
    app.run()
    header, arrays = unpack(canvases(app)[1])
    _, detail = header["looks"]
    sent = arrays[detail["array"]]
    top, left = detail["top"], detail["left"]
    assert (detail["size"], sent.shape) == (1, (40, 40))
    assert detail["array"] == f"decoder.layers.1.self_attn.pattern[2, {top}:{top + 40}, {left}:{left + 40}]"
    assert 0 <= top <= len(run) - 40
    assert 0 <= left <= len(run) - 40
    exact = weights(run, place_of(run), slice(2, 3), (0, len(run)))[0]
    expected = exact[top : top + 40, left : left + 40]
    seen = allowed(run, place_of(run), (top, top + 40), (left, left + 40))
    np.testing.assert_allclose(np.nan_to_num(sent), np.where(seen, expected, 0), atol=1e-4)
    assert header["row"] == look.get("row")
    if "row" in look:
        np.testing.assert_allclose(arrays["decoder.layers.1.self_attn.pattern[2, 30]"], exact[30], rtol=1e-4, atol=1e-7)
        assert "Query 30" in words(app)


@pytest.mark.usefixtures("open_feet")
def test_streaming_draws_each_way_to_cut_the_cache_and_its_program_computes_it(open_long: Callable) -> None:
    app, run = open_long("lm", long_stream="64")
    app.button(key="long_compare").click().run()
    checkpoint = load_checkpoint("lm", "cpu")
    drawn = figure(app, "long-streaming")["data"]
    expected = {kept.name: stream(checkpoint, TEXT, kept) for kept in strategies(64)}
    assert [line["name"] for line in drawn] == list(expected)
    for line, found in zip(drawn, expected.values(), strict=True):
        np.testing.assert_allclose(numbers(line["y"]), bits_by_position(found)[1], rtol=1e-3)
        assert f"{-found[48:].mean() / np.log(2):.2f}" in words(app)
    programs = {name: result_of(program) for name, program in programs_of(app).items()}
    (streamed,) = (found for name, found in programs.items() if name.startswith("long_text-streaming"))
    for i, found in enumerate(expected.values()):
        np.testing.assert_allclose(streamed["arrays"][f"log_probabilities_{i}"], found, rtol=1e-3)
    (long,) = (found for name, found in programs.items() if name.startswith("long_text-window"))
    np.testing.assert_allclose(long["arrays"]["log_probabilities"], run.log_probabilities, rtol=1e-3)
    size = len(run) - 32
    window = open_window(run, place_of(run), 2, (size, len(run)))
    np.testing.assert_allclose(long["arrays"]["window"], window.weights, rtol=1e-3, atol=1e-6)


def test_a_window_in_a_notebook_has_the_same_numbers_and_streaming_says_why_not(folder: Path) -> None:
    run = a_run(folder, "lm")
    read, result = long_run(run.opened, TEXT), window(run, text=TEXT, size=16, start=0, tau=0.5)
    opened = open_window(read, place_of(read), 2, (0, 16), 0.5)
    np.testing.assert_array_equal(result.arrays()["window"], opened.weights)
    np.testing.assert_array_equal(result.arrays()["ids"], read.tokens.ids)
    assert result.facts["most"] == (opened.before + opened.after).max()
    assert not streaming(run, text=TEXT, window=64, outcome=None).facts["done"]
    assert "too short" in streaming(run, text="A dog.").facts["reason"]
    assert "left to right" in streaming(a_run(folder, "mlm"), text=TEXT).facts["reason"]


@pytest.mark.parametrize(
    ("chosen", "sentence"),
    [
        ({"size": 7}, "size is one of 16, 32, 64, 128"),
        ({"start": -1}, "start is a number from 0"),
        ({"text": " "}, "Type at least one word"),
        ({"tau": 0}, "tau is one of 0.1"),
    ],
)
def test_a_window_that_is_not_there_is_refused(folder: Path, chosen: dict, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        window(a_run(folder, "lm"), **({"text": TEXT} | chosen))
