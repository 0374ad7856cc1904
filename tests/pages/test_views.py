"""Every view, for every family, at two temperatures and at the ends of its controls: its text says all that it has to
say and shows all that there is to see; what is drawn is exported; and the same view is HTML and JSON without Streamlit.
"""

import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import wraps
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import pytest
from jinja2 import UndefinedError

from model.background import attention_costs, stopwatch, studies
from model.checkpoints.checkpoint import Checkpoint
from model.checkpoints.store import CHECKPOINTS_VARIABLE, MODELS_VARIABLE, load_checkpoint
from model.interventions import AttentionTemperature, HeadGate
from model.language import ENGLISH, Language, speaking
from model.needs import Need
from model.run import Place, Request, Run, decode
from model.trace import Trace
from pages import Page, page_of
from pages.compute.cache import key_of
from pages.frame import render
from pages.text import STRINGS, languages
from pages.views import Control, Result, View, call, controls, words
from pages.views.controls import slider
from pages.views.model import decoding
from pages.views.standalone import texts_of, to_html, to_json
from pages.views.words import Block, pictures
from pages.widgets.controls import LABELLED, LOOKS
from tests.model.checkpoints.huggingface.folders import save_family
from tests.pages.test_languages import english_of_the_code
from tests.pages.test_pages import EVERY_PAGE
from tests.pages.widgets.test_export import TABS
from tests.viz.payload import in_trace, unpack
from viz.canvas.explore import Part, whole_or_row
from viz.drawing import Drawing
from viz.figure import StableFigure
from viz.forms import TALLEST, Canvas, Document, Form, Map, Maps, Outcome, Table, Texts
from viz.labels import OURS, TYPED, labels_in, lacks, say_table
from viz.paper.look import load_matplotlib
from viz.paper.page import Paper, draw
from viz.tokens import Verbatim

ROOT = Path(__file__).parents[2]
VIEWS = [view for page in EVERY_PAGE for view in (*page.views, *filter(None, [page.answer]))]
STEPS = next(view for view in VIEWS if view.name == "steps")
FAMILIES = "translator", "unscaled", "lm", "mlm", "GPT-2", "Gemma 2", "ModernBERT"
TRANSLATED = [one for one in languages().values() if one != ENGLISH]
AT_ENDS = "translator", "lm"
"""two that differ in all: in one of these, in turn, each control is at both of its ends; in any if neither has it"""
TEXT = "Two dogs run and a cat sleeps in the snow."
SLIPS = re.compile(r"\b(nan|None|True|False|inf|Undefined)\b|^% |\{%|\{\{ | \}\}|<Macro ", re.MULTILINE)
"""that a value which is not there, a statement that was not read, or a macro named as a fact leaves in a text"""


NOTATION = re.compile(r"(?<![#\w.])\d[\d.,]*e[+−-]?\d|\d (?:self_attn|cross_attn|feed_forward)\b|√d_k")
"""what no text or label has: powers of ten, sub-layers and symbols as a program writes them"""


def as_once() -> Callable[..., Any]:
    """`Run.compute` that computes each case once, as the app's cache does."""
    results: dict[Any, Any] = {}

    def compute(function: Callable, *args: Any) -> Any:
        key = function, key_of(args)
        if key not in results:
            results[key] = function(*args)
        return results[key]

    return compute


def runs_of(opened: Checkpoint, text: str) -> list[Run]:
    """In the layer that masks most: each kind of attention as trained; one with a temperature and without a head."""
    target = ("Ein Hund." if text == TEXT else "Ein") if Need.CROSS_ATTENTION in opened.features else None
    compute, runs, kind = as_once(), [], opened.kinds[0]
    without = HeadGate(0.0, kind=kind.name, layer=kind.layers[-1], head=2)
    for tau in (1.0, 0.5):
        changes = () if tau == 1 else (AttentionTemperature(tau), without)
        request = Request(text, target, interventions=changes)
        trace = opened.trace(text, target, interventions=changes)
        for kind in trace.kinds if tau == 1 else trace.kinds[:1]:
            masked = {layer: -trace.attention(kind.name, layer).mask.mean() for layer in kind.layers}
            place = Place(kind.name, max(masked, key=masked.__getitem__), 1)
            runs.append(Run(opened, request, trace, place, text, tau, "everywhere", compute=compute))
    return runs


@pytest.fixture(scope="session")
def runs(
    families: Path, others: dict[str, str], saved_checkpoints: Path, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str], list[Run]]:
    """The runs of a family, made once; those of one family on one word."""
    made: dict[str, list[Run]] = {}
    windowed = {"ModernBERT": str(save_family(tmp_path_factory.mktemp("windowed") / "ModernBERT", "ModernBERT"))}

    def runs(family: str) -> list[Run]:
        if family not in made:
            folder = (others | windowed).get(family, "")
            with pytest.MonkeyPatch.context() as patch:
                patch.setenv(MODELS_VARIABLE, folder)
                patch.setenv(CHECKPOINTS_VARIABLE, str(saved_checkpoints if family == "translator" else families))
                opened = load_checkpoint(folder or {"translator": "en-de"}.get(family, family), "cpu")
                made[family] = runs_of(opened, "A" if family == "unscaled" else TEXT)
        return made[family]

    return runs


def results(view: View, run: Run, ends: bool, work: bool) -> Iterator[Result]:
    """As it opens, or with `ends` at both ends of each control, and beside other runs; with `work` on request, which is
    done once for all, and beside other runs, too.

    What our own pictures take is compared with the trace where nothing is chosen.
    """
    for chosen in view.extremes(run) if ends else [{}]:
        yield (result := view(run, **chosen, **({"outcome": None} if view.on_request else {})))
        if not chosen and not (view.on_request and view.on_request.alone):
            for drawing in canvases(result):
                check_arrays(drawing, run)
    beside = [name for name, offer in view.offers(run).items() if isinstance(offer.start, Run)] if ends or work else []
    for name in beside:
        other = run.compute(decode, run.opened, replace(run.request, source="Two dogs run."))
        # What if compares two runs on the same tokens.
        same = run.forced(*run.trace.interventions, HeadGate(0.5, run.kind, run.layer, run.head))
        yield view(run, **{name: same if view.page == "what_if" else replace(run, trace=other)})
    if work and view.on_request and not view.on_request.alone:
        first, *others = (one for one in VIEWS if one.on_request == view.on_request)
        if view is first:
            yield (done := view(run))
            yield from (other(run, outcome=done.values["outcome"]) for other in others)


def links(blocks: list[Block]) -> Iterator[str]:
    """Where the text leads to."""
    for block in blocks:
        if block.kind == "link":
            yield block.items[0]
        elif block.holds_blocks:
            yield from links(list(block.items))


def check(result: Result, by_plotly: bool = True, number: int | None = None) -> None:
    """The text shows what there is, and nothing else; no value is missing in it; its links lead to pages and tabs that
    there are; what is drawn is exported.

    With `by_plotly`, Plotly reads the figures, too, and the arrays become JSON, which takes longer than all else. Of
    many results of a view, each has a `number`, by which the languages are dealt: English, and one of the others.
    """
    assert result.blocks
    check_languages(result, TRANSLATED if number is None else [TRANSLATED[number % len(TRANSLATED)]])
    folder = Path(result.run.trace.checkpoint).parent
    for text in json.loads(to_json(result if by_plotly else without_arrays(result)))["text"]:
        assert not SLIPS.search(text), text
        assert not NOTATION.search(text), text
        assert folder == Path() or str(folder) not in text, "where a model lies is the server's business"
    for address in links(result.blocks):
        name, _, query = address.partition("?")
        key, *tabs = TABS.get(page_of(f"{name}.py").name, ("",))
        assert [tab for one, tab in parse_qsl(query) if one == key and tab not in tabs] == [], address
    arrays = result.arrays()
    assert all(isinstance(array, np.ndarray) and array.dtype != object for array in arrays.values())
    assert len(result.table().columns)
    for name, picture in result.shows.items():
        if isinstance(picture, Form):
            figure = picture.draw().to_dict()
            assert not by_plotly or go.Figure(figure)
        if not isinstance(picture, Canvas | Texts | Document | go.Figure):
            assert any(array.startswith(name) for array in arrays)


def without_arrays(result: Result) -> Result:
    """Its text, facts and values alone."""
    return replace(result, shows={}, numbers={})


def check_languages(result: Result, translated: list[Language]) -> None:
    """In each language the text shows what there is, no value is missing in it, and no label of a picture."""
    labels = set(labels_of(result))
    for one in (ENGLISH, *translated):
        with speaking(one):
            blocks = replace(result).blocks if one != ENGLISH else result.blocks
        assert sorted(name for name, *_ in pictures(blocks)) == sorted(result.shows), one
        assert [address.partition("?")[0] for address in links(blocks)] == [
            address.partition("?")[0] for address in links(result.blocks)
        ], one
        assert not [text for text in texts_of(blocks) if SLIPS.search(text)], one
        with speaking(one):
            assert sorted(text for text in labels if lacks(text)) == [], f"{STRINGS} of {one.code} has no [labels] for"
    assert [text for text in labels if NOTATION.search(text) and not isinstance(text, Verbatim)] == []


def labels_of(result: Result) -> Iterator[str]:
    """What is written in figures and in the heads of tables."""
    for picture in result.shows.values():
        match picture:
            case Table() | pd.DataFrame():
                frame = picture.frame if isinstance(picture, Table) else picture
                typed = frame.attrs.get(TYPED, ())
                yield from (name for name in frame if name not in typed)
                yield from (cell for name in OURS & set(frame) for cell in frame[name] if isinstance(cell, str))
                yield from picture.helps.values() if isinstance(picture, Table) else ()
            case Texts():
                yield from picture.texts
            case Outcome():
                yield from (picture.title, *picture.scores)
            case Form():
                yield from labels_in(picture.draw().content)
            case StableFigure():
                yield from labels_in(picture.content)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("view", VIEWS, ids=lambda view: f"{view.page}.{view.name}")
def test_every_view_says_and_shows_all_of_every_family(
    view: View, family: str, runs: Callable[[str], list[Run]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """In turn as trained, of each kind of attention, and changed; also, in one family, at the ends of its controls, and
    in one after its work on request.
    """
    # As in an app that offers it.
    monkeypatch.setenv(MODELS_VARIABLE, runs(family)[0].trace.checkpoint)
    if view.missing(runs(family)[0]):
        with pytest.raises(ValueError, match="needs"):
            view(runs(family)[0])
        return
    turn = VIEWS.index(view) + FAMILIES.index(family)
    having = [one for one in AT_ENDS if not view.missing(runs(one)[0])] or [family]
    ends = family == having[VIEWS.index(view) % len(having)]
    able = [one for one in FAMILIES if not view.missing(runs(one)[0])]
    works = family == able[VIEWS.index(view) % len(able)]
    *trained, changed = runs(family)
    run = changed if turn % 2 else trained[turn // 2 % len(trained)]
    for number, result in enumerate(results(view, run, ends, works)):
        check(result, number == 0 and turn % 3 == 0, number + turn)


@pytest.mark.parametrize("family", AT_ENDS)
@pytest.mark.parametrize(
    "view", [view for view in VIEWS if view.on_request and view.on_request.alone], ids=lambda view: view.name
)
def test_what_is_measured_on_request_is_said_and_shown_in_every_language(
    view: View, family: str, runs: Callable[[str], list[Run]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """After the fewest repetitions: the tests above leave out what takes seconds by design."""
    for module, name in ((stopwatch, "PATIENCE"), (stopwatch, "FEWEST_ROUNDS"), (decoding, "REPETITIONS")):
        monkeypatch.setattr(module, name, 1)
    monkeypatch.setattr(decoding, "LONGEST", 8)
    monkeypatch.setattr(attention_costs, "MEASURED", attention_costs.MEASURED[:3])
    run = runs(family)[0]
    if view.missing(run):
        pytest.skip(f"{family} does not have it")
    before = view(run, outcome=None)
    result = view(run)
    check(result)
    assert len(result.shows) > len(before.shows)


def test_without_the_tables_of_our_own_trainings_the_views_that_show_them_say_so(
    runs: Callable[[str], list[Run]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    of_studies = ("training", "since_2017", "paper", "often_told_wrong")
    views = [view for view in VIEWS if view.page in of_studies and not view.on_request]
    before = {view: len(view(runs("translator")[0]).shows) for view in views}
    monkeypatch.setattr(studies, "STUDIES", tmp_path)
    for view in views:
        result = view(runs("translator")[0])
        assert texts_of(result.blocks), view.title
        before[view] -= len(result.shows)
    assert sum(less > 0 for less in before.values()) >= 5, "they do show fewer pictures"


@pytest.mark.parametrize("name", ["en-de", "everyday-lm", "everyday-lm-2017", "everyday-mlm", "multi30k-tiny"])
def test_the_curves_of_each_shipped_model_are_said_in_every_language(name: str) -> None:
    opened = load_checkpoint(str(ROOT / "checkpoints" / name), "cpu")
    run = Run.of(opened, opened.trace("Two dogs run."))
    curves = next(view for view in VIEWS if (view.page, view.name) == ("training", "curves"))
    check_languages(curves(run), TRANSLATED)


@pytest.mark.parametrize("family", AT_ENDS)
def test_a_link_names_the_same_option_in_every_language(family: str, runs: Callable[[str], list[Run]]) -> None:
    run = runs(family)[0]
    for view in (view for view in VIEWS if not view.missing(run)):
        values: dict[str, Any] = {}
        for name, control in view.controls.items():
            offer = control.offer(run, values)
            for one in languages().values() if offer and control.look in LABELLED else ():
                with speaking(one):
                    labels = control.offer(run, values).options
                for value, label in labels.items():
                    (named,) = control.named(run, values, label)
                    assert named == value or labels[named] == label, (view.title, name, one.code, label)
            values[name] = offer.start if offer else None


@pytest.fixture(scope="session")
def long(runs: Callable[[str], list[Run]]) -> list[Run]:
    """A translator on about a hundred odd tokens: of both stacks, and with a high temperature."""
    opened, made = runs("translator")[0].opened, []
    for kind, tau in (("encoder_self", 1.0), ("decoder_self", 1.0), ("decoder_self", 20.0)):
        changes = () if tau == 1 else (AttentionTemperature(tau),)
        request = Request("A dog. 🦖 \u2581 <b>\u202e " * 5, beam_size=1, interventions=changes)
        compute, place = as_once(), Place(kind, 1, 1)
        made.append(replace(Run.start(opened, request, place, tau, "everywhere"), compute=compute))
    return made


@pytest.mark.parametrize("view", VIEWS, ids=lambda view: f"{view.page}.{view.name}")
def test_every_view_shows_a_hundred_tokens_its_first_picture_no_higher_than_a_screen(
    view: View, long: list[Run]
) -> None:
    """Of Plotly's: at 1280 x 720 the heading and the tabs stand above it."""
    run = long[VIEWS.index(view) % len(long)]
    if not view.missing(run):
        result = view(run, **({"outcome": None} if view.on_request else {}))
        check(result, False, VIEWS.index(view))
        shown = [result.shows[name] for name, _, _ in pictures(result.blocks)]
        first = next((one for one in shown if isinstance(one, Form | StableFigure | Canvas)), None)
        drawn = first.draw() if isinstance(first, Form) else first
        if isinstance(drawn, StableFigure):
            assert drawn.content["layout"]["height"] <= TALLEST


def test_what_a_view_shortens_on_the_screen_is_whole_in_a_file(runs: Callable[[str], list[Run]]) -> None:
    load_matplotlib()
    from matplotlib.text import Text

    opened, shortened = runs("translator")[0].opened, {}
    trace = opened.trace("A word-that-goes-on-and-on-and-on. A dog.", "Ein Wort-das-nicht-aufhört-und-nicht-aufhört.")
    run = replace(Run.of(opened, trace), compute=as_once())
    # The only page with words at the sides of small maps.
    for view in (view for view in VIEWS if view.page == "heads_and_layers" and not view.on_request):
        for chosen in view.extremes(run) if not view.missing(run) else ():
            for name, shown in view(run, **chosen).shows.items():
                drawn = shown.draw() if isinstance(shown, Form) else shown
                if isinstance(drawn, StableFigure) and any(text.endswith("…") for text in ticks_of(drawn)):
                    shortened[view.title, name] = drawn
    assert shortened
    for name, drawn in shortened.items():
        texts = [text.get_text() for text in draw(drawn, Paper("svg"), "").findobj(Text)]
        assert [text for text in texts if text.endswith("…")] == [], name


def ticks_of(figure: StableFigure) -> Iterator[str]:
    """The texts at the ticks of its axes."""
    for name, part in figure.content["layout"].items():
        if name[1:5] == "axis":
            yield from map(str, part.get("ticktext") or ())


@pytest.mark.parametrize("family", [*AT_ENDS, "mlm"])
def test_all_views_of_a_run_are_one_page_that_loads_nothing(family: str, runs: Callable[[str], list[Run]]) -> None:
    run = replace(runs(family)[0], trace=runs(family)[0].trace)
    views = [view for view in VIEWS if not view.on_request and not view.missing(run)]
    page = to_html("Views", [view(run) for view in views])
    assert page.count("<section>") == len(views)
    for tag in re.findall(r"<(?:script|img|link|iframe)\b[^>]*>", page):
        assert not re.search(r"\b(?:src|href)=[\"']?https?:", tag)
    # No formula is left as LaTeX, and no sign of Streamlit's own Markdown; tokens and texts may have any.
    written = re.sub(r"<(script|style|code|footer|td)\b.*?</\1>|<p dir='auto'>.*?</p>", "", page, flags=re.DOTALL)
    assert re.findall(r".{0,40}\$.{0,40}|:[a-z]+\[.{0,40}|\\[a-z]+\b.{0,40}", written) == []


TAKES = {
    "mosaic": {"A.pattern", "A.mask"},
    "lines": {"A.pattern[i]", "A.mask[i]", "alignment.pattern[i]", "paper.pattern[i]", "paper.mask[i]"},
    "temperature": {"A.pattern[i]", "A.mask[i]", "A.scaled[i]", "A.pre_softmax[i]"},
    "own_vectors": {
        *(f"{path}.{name}[i]" for path in ("A", "typed") for name in ("q", "k", "v", "mask", "pattern", "z", "bias")),
        *("plane.key_axes", "plane.value_axes"),
    },
    "matrices": {
        *("A.query_input", "A.key_input", "A.w_q[i]", "A.w_k[i]", "A.w_v[i]", "A.b_q[i]", "A.b_k[i]", "A.b_v[i]"),
        *("A.rotary.q[i]", "A.rotary.k[i]", "A.qk_norm.q[i]", "A.qk_norm.k[i]", "A.q[i]", "A.k[i]", "A.v[i]"),
        *("A.scores[i]", "A.scaled[i]", "A.pre_softmax[i]", "A.mask[i]", "A.pattern[i]", "A.z[i]"),
        *("A.z", "A.w_o", "A.b_o", "A.out"),
    },
    "explore": {
        *("A.query_input", "A.q[i]", "A.k[i]", "A.v[i]", "A.scores[i]", "A.scaled[i]", "A.pre_softmax[i]", "A.mask[i]"),
        *("A.pattern[i]", "A.z[i]", "A.z[i] @ A.w_o[i]", "A.out", "A.pattern[:, i]", "A.mask[:, i]"),
        *("encoder.embedding", "encoder.positional", "decoder.embedding", "decoder.positional"),
    },
    "whole_model": {"box.values", "A.pattern", "A.largest of blocks of pattern"},
    "chips": set(),
    "beam_tree": set(),
    "arithmetic": set(),
}
"""component -> the arrays that it takes by default, where A is the path of an attention, i an index"""


BYTES = {
    "explore": 57_076,
    "lines": 15_964,
    "matrices": 34_228,
    "temperature": 10_792,
    "own_vectors": 11_500,
    "mosaic": 14_372,
    "whole_model": 81_224,  # two views
}
"""component -> bytes of its pictures in the translator's first run, when each canvas was sent what it drew"""
MOST_GROWTH = 1.2


def kind_of(name: str) -> str:
    """A name without its numbers."""
    if name.endswith(".values"):
        return "box.values"
    name = re.sub(r"(encoder|decoder)\.layers\.\d+\.(self|cross)_attn", "A", name)
    return re.sub(r"\d+", "i", name)


@pytest.mark.parametrize("family", FAMILIES)
def test_every_step_takes_the_arrays_of_the_trace_by_their_paths(family: str, runs: Callable[[str], list[Run]]) -> None:
    """As do all pictures where nothing is chosen, above."""
    for run in runs(family):
        for drawing in (drawing for step in range(2, 8) for drawing in drawings(STEPS, run, step=step)):
            check_arrays(drawing, run)


def check_arrays(drawing: Drawing, run: Run) -> None:
    """One of our own pictures takes what it takes by default, and each array is that of the trace."""
    header, arrays = unpack(drawing) if isinstance(drawing.data, bytes) else (drawing.data, {})
    names = [kind_of(name) for name in arrays]
    assert set(names) <= TAKES[drawing.component], drawing.component
    for name, sent in arrays.items():
        expected = in_trace(run.trace, name)
        if expected is None:
            continue
        if sent.dtype == float:  # codes
            step = 1 / 254 if drawing.component == "whole_model" else 1 / 65534
            expected = np.where(np.isnan(sent), np.nan, expected)
            np.testing.assert_allclose(sent, expected, rtol=0, atol=0.51 * step, err_msg=name)
        else:
            np.testing.assert_array_equal(sent, expected, err_msg=f"{drawing.component}: {name}")
    if drawing.component == "explore":
        assert ("A.scaled[i]" in names) == (run.attention.scale != 1 or run.attention.reads_scaled)
        assert ("A.pre_softmax[i]" in names) != run.attention.reads_scaled
        assert ("A.out" in names) == (run.attention.projections is not None)
        first = header["boxes"][0]["title"] == "x = embedding + position"
        assert first == any(name.endswith(".positional") for name in names)


def test_arrays_by_path_take_hardly_more_bytes_than_what_was_drawn(runs: Callable[[str], list[Run]]) -> None:
    sizes: Counter[str] = Counter()
    of_the_run = [view for view in VIEWS if view.page != "paper"]  # its lines are of the paper's own sentences
    for drawing in (drawing for view in of_the_run for drawing in drawings(view, runs("translator")[0])):
        sizes[drawing.component] += len(drawing.data) if drawing.component in BYTES else 0
    assert {name: size for name, size in sizes.items() if size > MOST_GROWTH * BYTES.get(name, 0)} == {}


def drawings(view: View, run: Run, **chosen: Any) -> Iterator[Drawing]:
    """Our own pictures in a view, as it opens, or with what is chosen."""
    if view.missing(run) or (view.on_request and view.on_request.alone):
        return
    yield from canvases(view(run, **chosen, **({"outcome": None} if view.on_request else {})))


def canvases(result: Result) -> Iterator[Drawing]:
    """Our own pictures in what a view shows."""
    return (shown.drawing for shown in result.shows.values() if isinstance(shown, Canvas))


def test_a_large_matrix_is_sent_as_the_row_of_the_chosen_word() -> None:
    values, mask = np.arange(300.0 * 300).reshape(300, 300), np.arange(300 * 300).reshape(300, 300) > 5
    large = Part("scores", "a.scores[1]", values, "query", "key", mask=("a.mask[1]", mask))
    row = whole_or_row(large, 7)
    assert (row.name, row.mask[0], row.row()["place"]) == ("a.scores[1, 7]", "a.mask[1, 7]", 7)
    assert whole_or_row(replace(large, name="a.z[1] @ a.w_o[1]"), 7).name == "(a.z[1] @ a.w_o[1])[7]"
    assert row.row()["range"] == (-values.max(), values.max()), "of the whole matrix"
    np.testing.assert_array_equal(row.values, values[7])
    np.testing.assert_array_equal(row.mask[1], mask[7])
    small = replace(large, values=values[:, :9], mask=None)
    assert whole_or_row(small, 7) is small


def planted(view: View, change: Callable[[Result], Result]) -> View:
    """The view with a fault in its result."""

    @wraps(view.function)
    def function(run: Run, **values: Any) -> Result:
        return change(view.function(run, **values))

    return replace(view, function=function)


def test_a_renamed_fact_and_a_picture_that_the_text_forgets_or_does_not_get_fail(
    runs: Callable[[str], list[Run]],
) -> None:
    orders, masks = (next(view for view in VIEWS if view.name == name) for name in ("orders", "masks"))
    run = runs("lm")[0]

    def rename(result: Result) -> Result:
        return replace(result, facts={f"{name}_" if name == "lost" else name: f for name, f in result.facts.items()})

    with pytest.raises(UndefinedError, match="lost"):
        check(planted(orders, rename)(run))
    for change in (lambda shows: shows | {"more": shows["maps"]}, lambda _: {}):
        broken = planted(masks, lambda result, change=change: replace(result, shows=change(result.shows)))
        with pytest.raises(AssertionError):
            check(broken(run))


def test_a_word_that_one_family_lacks_fails_in_that_one(
    runs: Callable[[str], list[Run]], monkeypatch: pytest.MonkeyPatch
) -> None:
    view, read = next(view for view in VIEWS if view.name == "masks"), words._read
    lines = f"# {view.title}\n\n{{% if not attention.causal %}}{{{{ both_ways }}}}{{% endif %}}\n"
    monkeypatch.setattr(words, "_sections", words._sections.__wrapped__)
    monkeypatch.setattr(words, "_read", lambda name: read(name).replace(f"# {view.title}\n", lines))
    check(view(runs("lm")[0]))
    with pytest.raises(UndefinedError, match="both_ways"):
        check(view(runs("mlm")[0]))


def test_a_trace_alone_is_enough_for_a_view_that_does_not_run_the_model_again(
    runs: Callable[[str], list[Run]],
) -> None:
    trace: Trace = runs("lm")[0].trace
    views = {view.name: view for view in VIEWS}
    result = views["orders"](trace, row=1)
    attention = trace.attention("decoder_self", 0)
    assert np.array_equal(result.arrays()["orders_masked_before"], attention.pattern[0][1])
    assert result._repr_html_().startswith("<iframe")
    with pytest.raises(ValueError, match=r"Run\.of\(load_checkpoint\('lm'\), trace\)"):
        views["padding"](trace)


def test_a_run_of_a_trace_knows_the_temperature_at_its_place(runs: Callable[[str], list[Run]]) -> None:
    opened = runs("translator")[0].opened
    gate = HeadGate(0.5, kind="cross", layer=0, head=0)
    place = {"kind": "cross", "layer": 1}
    for scope, address in (("head", place | {"head": 2}), ("layer", place), ("everywhere", {})):
        changes = (AttentionTemperature(0.3, **address), gate)
        run = Run.of(opened, opened.trace(TEXT, "Ein Hund.", interventions=changes), "cross", 1, 2)
        assert (run.tau, run.scope, run.kept) == (0.3, scope, (gate,))
        assert Run.of(opened, run.trace, "encoder_self", 0).tau == (0.3 if scope == "everywhere" else 1)


@pytest.mark.parametrize(
    ("chosen", "error"),
    [
        ({"row": 99}, "row is a number from 0 to"),
        ({"row": "x"}, "not 'x'"),
        ({"rows": 1}, "no control rows; it has row"),
    ],
)
def test_a_value_that_is_not_offered_is_refused_with_what_is(
    chosen: dict[str, Any], error: str, runs: Callable[[str], list[Run]]
) -> None:
    view = next(view for view in VIEWS if view.name == "orders")
    with pytest.raises((ValueError, TypeError), match=error):
        view(runs("lm")[0], **chosen)


def test_each_kind_of_control_that_views_have_is_drawn_and_no_other() -> None:
    assert {control.look for view in VIEWS for control in view.controls.values()} == {*LOOKS}


def test_a_slider_of_fractions_reads_fractions_and_one_of_integers_reads_and_takes_integers() -> None:
    fractions, integers = controls.steps("α", controls.decimals(0.0, 2.0, 0.1), 0.6), slider("Step", (0, 3))
    assert [fractions.offer(None, {}).read(text) for text in ("1.5", "2", "2.0", "x")] == [1.5, 2.0, 2.0, "x"]
    assert [integers.offer(None, {}).read(text) for text in ("3", "-1", "1.5")] == [3, -1, "1.5"]
    assert integers.take("2") == 2
    assert [fractions.take(value) for value in ("0.57", "0", -3, 1e300, float("inf"))] == [0.6, 0.0, 0.0, 2.0, 2.0]


@pytest.mark.parametrize(
    ("offer", "values", "refused"),
    [
        (controls.several("Pairs", range(4), [0], 2), {"": [], "3": [3], "1, 3": [1, 3]}, [1, [4], [0, 1, 2]]),
        (controls.text("Order", ("", "1 0")), {}, [None, 3]),
    ],
)
def test_several_options_and_texts_are_read_and_checked(
    offer: Control, values: dict[str, Any], refused: list[Any]
) -> None:
    offered = offer.offer(None, {})
    for written, value in values.items():
        assert offered.read(written) == value
        offered.check("pairs", value)
    for end in (offered.start, *offered.ends):
        offered.check("pairs", end)
    for value in refused:
        with pytest.raises(ValueError, match="pairs is a"):
            offered.check("pairs", value)


@pytest.mark.parametrize(("kind", "layer", "head"), [("cross", 0, 0), ("decoder_self", 9, 0), ("decoder_self", 0, -1)])
def test_a_place_that_is_not_in_the_trace_is_refused(
    kind: str, layer: int, head: int, runs: Callable[[str], list[Run]]
) -> None:
    with pytest.raises(ValueError, match=r"there are|has heads 0 to"):
        Run.of(None, runs("lm")[0].trace, kind, layer, head)


@pytest.mark.parametrize(("cell", "row"), [((2, 0), 2), ((0, 3), 0)])
def test_a_click_on_a_cell_sets_the_control_that_the_form_names(
    cell: tuple[int, int], row: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    view, values = next(view for view in VIEWS if view.name == "orders"), {}
    monkeypatch.setattr(render, "clicked_point", lambda key: {"customdata": [*cell, "0.5"]} if key == "map" else None)
    monkeypatch.setattr(render, "set_controls", values.update)
    form = Maps(["a"] * 3, ["b"] * 4, {"": Map(np.ones((3, 4)))}, sets={"row": view.controls["row"]})
    render._take_click(view, "map", form)
    assert values == {"query": row}
    render._take_click(view, "another", form)
    assert values == {"query": row}


@pytest.mark.parametrize(
    "text",
    ["a -> b", "http://a.b www.x a@b", ":smile: :small[]", "a*b_c", r"\n \* \\<b>", "# 1. $x$ `y`"],
)
def test_a_fact_in_plain_text_stands_as_it_was_typed(text: str) -> None:
    lines = words._engine().from_string("```\nRow {{ text }}\n```\n").render(text=text).splitlines()
    (block,) = words._blocks(iter(lines))
    assert (block.kind, block.text) == ("plain", f"Row {text}")


def test_every_section_of_a_text_is_a_view_and_every_view_has_one() -> None:
    for page in (page for page in EVERY_PAGE if page.views_module):
        views = [*page.views, *filter(None, [page.answer])]
        assert list(words._sections(page.name)) == [view.title for view in views]


@pytest.mark.parametrize("family", AT_ENDS)
@pytest.mark.parametrize("page", EVERY_PAGE, ids=lambda page: page.name)
def test_a_page_answers_its_question_in_one_line_with_a_number(
    page: Page, family: str, runs: Callable[[str], list[Run]]
) -> None:
    """One without an answer of its own begins with it: the first line of its first view."""
    run = runs(family)[0]
    if not set(page.needs) <= set(run.opened.features):
        return
    first, *more = (page.answer or page.views[0])(run).blocks
    assert page.heading.endswith("?")
    assert first.kind == "text"
    assert re.search(r"\d", first.text)
    assert page.answer is None or not more


def test_the_answer_is_of_this_run(runs: Callable[[str], list[Run]]) -> None:
    """Of another head, other weights; under a mask, fewer keys."""
    one, other = (replace(runs("lm")[0], place=Place("decoder_self", 0, head)) for head in (0, 1))
    line = {page.name: page.answer for page in EVERY_PAGE}["attention_step_by_step"]
    assert line(one).blocks[0].text != line(other).blocks[0].text
    facts = {page.name: page.answer for page in EVERY_PAGE}["masks"](one).facts
    assert facts["sees"] == np.tril(np.ones((facts["keys"],) * 2)).sum(axis=-1).mean()


@pytest.mark.parametrize(
    ("text", "sections"),
    [
        ("> [“A”](https://arxiv.org/abs/1706.03762), section 3.2.3", ["3.2.3"]),
        ("::: explained\n> [“A”](https://arxiv.org/abs/1706.03762), sections 3, 3.4 and 6.1\n:::", ["3", "3.4", "6.1"]),
        ("> [“A”](https://arxiv.org/abs/1706.03762), section 6.1 (beam 4, α = 0.6)", ["6.1"]),
        ("> [“B”](https://arxiv.org/abs/2104.09864), section 3.2.3", []),
    ],
)
def test_what_is_cited_are_the_sections_of_the_paper_that_the_text_names(text: str, sections: list[str]) -> None:
    assert words.cited_sections(list(words._blocks(iter(text.splitlines())))) == sections


@pytest.mark.parametrize(
    ("imported", "loaded"),
    [
        ("pages", ("torch", "streamlit", "plotly")),
        ("pages.views.standalone, pages.views.attention.masks", ("streamlit",)),
    ],
)
def test_the_list_of_pages_loads_no_library_and_views_load_no_server(imported: str, loaded: tuple[str, ...]) -> None:
    program = f"import sys, {imported}; sys.exit(str([m for m in {loaded!r} if m in sys.modules] or ''))"
    run = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False)
    assert run.stderr.strip() == ""


UNREAD = ("legendgroup", "textposition", "arrays")
"""of a figure or a header, whose texts nobody reads"""
NAMES = re.compile(r"^(en|de)coder\.| \(\d{4}\)$")
"""hook paths, and what a paper cites"""


def texts_in(content: Any) -> Iterator[str]:
    """All texts in a picture or a header but those that a person or a vocabulary wrote."""
    if isinstance(content, str):
        yield from () if isinstance(content, Verbatim) else (str(content),)
    elif isinstance(content, Mapping):
        yield from (text for name, part in content.items() if name not in UNREAD for text in texts_in(part))
    elif isinstance(content, list | tuple):
        yield from (text for part in content for text in texts_in(part))
    elif isinstance(content, np.ndarray) and content.dtype == object:
        yield from texts_in(content.tolist())


def seen_in(result: Result) -> Iterator[str]:
    """What a visitor reads in pictures and tables: of figures also the hover texts, of our own pictures the header."""
    for picture in result.shows.values():
        match picture:
            case Table() | pd.DataFrame():
                frame = say_table(picture.frame if isinstance(picture, Table) else picture)
                yield from texts_in([*frame, *(cell for name in frame for cell in frame[name])])
            case Canvas():
                yield from texts_in(picture.drawing.header)
            case Form() | StableFigure():
                yield from texts_in((picture.draw() if isinstance(picture, Form) else picture).content)


@pytest.mark.parametrize("page", EVERY_PAGE, ids=lambda page: page.name)
def test_pictures_and_tables_leave_no_english_of_the_code_in_any_language(
    page: Page, runs: Callable[[str], list[Run]]
) -> None:
    """What two languages write alike is a name, a token or English, which must not be a text of several words of the
    code; and a negative number has a minus sign, no hyphen.

    A view that two families have is looked at in one of them, in turn.
    """
    found = []
    code = [text for text in english_of_the_code() if re.search(r"[A-Za-z]{2,} [a-z]{2,} [a-z]{2,}", text)]
    for number, view in enumerate(page.views):
        having = [run for run in (runs(family)[0] for family in AT_ENDS) if not view.missing(run)]
        if not having:
            continue
        run, seen = having[number % len(having)], []
        for one in TRANSLATED:
            with speaking(one):
                seen.append(set(seen_in(view(run, **({"outcome": None} if view.on_request else {})))))
        alike = {text for text in set.intersection(*seen) if not NAMES.search(text)} - {view.title for view in VIEWS}
        found += [text for text in alike if text in english_of_the_code() or any(part in text for part in code)]
        found += [text for text in set.union(*seen) if re.fullmatch(r"-\d[\d.,e-]*|-\d\S* (to|bis|到) .*", text)]
    assert not found, "\n".join(sorted(found))


FIRST = "translator", "lm", "mlm"
"""families of which one has what a view needs"""
READ = {
    "heads_and_layers": ("All heads in numbers", "Find a head", "Grammar and meaning"),
    "whole_model": ("All boxes in numbers",),
    "tokens_and_embeddings": ("Pieces and bytes",),
    "layer_by_layer": ("Parameters",),
    "model_card": ("Scores", "Configuration", "Data, terms, limits"),
    "verification": ("Measured on this run", "All claims in plain words", "Every step of this run"),
    "side_by_side": ("In numbers",),
    "paper": ("The whole program", "Authors and references"),
    "glossary": ("Terms", "Interview questions"),
    "family_tree": ("Then and now",),
}
"""tabs that are to be read: tables, files and texts by what they are about"""
ELSEWHERE = {
    "heads_and_layers": ("Over many sentences", "One head over many sentences", "Which heads align words"),
    "positional_encoding": ("Scores",),
    "training": ("Attention through training", "Which head moved most"),
}
"""tabs of what only shipped checkpoints or another scheme of positions have"""


def at_first(view: View, run: Run) -> Result:
    """As a page opens it: of its work on request only what starts by itself is done."""
    if not view.on_request:
        return view(run)
    before = view(run, outcome=None)
    starts = view.on_request.at_once
    if starts is None or not call(starts, run, before.values):
        return before
    return view(run, outcome=view._work(run, before.values))


def tabs(page: Page) -> Iterator[tuple[str, list[View]]]:
    """The title and the views of each tab; a page without tabs is one."""
    together: dict[str, list[View]] = {}
    for view in page.views:
        together.setdefault("" if page.stacked else view.tab or view.title, []).append(view)
    yield from together.items()


@pytest.mark.parametrize("page", [page for page in EVERY_PAGE if page.name != "learn"], ids=lambda page: page.name)
def test_no_tab_is_without_a_picture_where_the_model_has_what_it_needs(
    page: Page, runs: Callable[[str], list[Run]]
) -> None:
    """Learn has no tabs: its views stand in stations, after a question."""
    without = set()
    for title, views in tabs(page):
        pictures = (
            shown
            for family in FIRST
            for run in runs(family)[:2]
            if {*page.needs} <= run.opened.features
            for view in views
            if not view.missing(run)
            for shown in at_first(view, run).shows.values()
        )
        if not any(isinstance(shown, Canvas | Form | StableFigure) for shown in pictures):
            without.add(title)
    assert without - {*ELSEWHERE.get(page.name, ())} == {*READ.get(page.name, ())}
