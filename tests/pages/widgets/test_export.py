"""What a page gives away: its pictures, its numbers, and the Python that computes them again."""

import csv
import io
import json
import re
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import numpy as np
import pandas as pd
import pytest

from model.checkpoints.store import MODELS_VARIABLE, load_checkpoint, offer_models
from model.run import Run
from pages import Page, page_of
from pages.views.experiment.who_chose import which_head
from pages.widgets import export
from pages.widgets.export import _csv
from tests.model.checkpoints.huggingface.folders import save_chat_model, save_family, save_many_languages
from tests.pages.figures import numbers
from tests.pages.test_pages import EVERY_PAGE, WITHOUT_NUMBERS, assert_checked, missing_at

pytestmark = pytest.mark.usefixtures("open_feet")

SOURCE = "A dog runs and a cat sat."
WITH_ARRAYS = {"pages/since_2017.py": {"since": "RMSNorm"}, "pages/training.py": {"training": "Label smoothing"}}
"""by page, what opens a tab that has arrays, where the first one is a table or reads a training's log"""
TITLE = "# Attention Explorer: the numbers of "


@pytest.fixture
def files(monkeypatch: pytest.MonkeyPatch) -> dict[str, bytes]:
    """Downloads by name, as soon as a page is opened; figures for papers are left out."""
    found: dict[str, bytes] = {}

    def save(_label: str, data: Any, file_name: str, **_: Any) -> None:
        if not file_name.endswith((".pdf", ".zip")):
            found[file_name] = data() if callable(data) else data

    monkeypatch.setattr("streamlit.download_button", save)
    return found


def programs_of(app: Any) -> dict[str, str]:
    """The Python in each export box of the page, by the name that its files begin with."""
    codes = [code.value for code in app.code]
    found = {re.match(f"{TITLE}(.+)\n", code): code for code in codes}
    return {match[1]: code for match, code in found.items() if match}


def result_of(program: str) -> dict[str, Any]:
    """The arrays that the program names, in a namespace of its own."""
    namespace: dict[str, Any] = {}
    exec(compile(program, "snippet", "exec"), namespace)
    return namespace


@pytest.mark.parametrize(
    ("page", "query"),
    [
        ("pages/what_if.py", {"changes": "gate:0:mean@cross.1.2;mask:0-1,1-0:@cross.0"}),
        ("pages/what_if.py", {"changes": "unscaled@encoder_self", "target": "Greedy"}),
        ("pages/decoding.py", {"part": "Beam", "tau": "2"}),
        ("pages/positional_encoding.py", {"part": "Your sentence", "side": "target"}),
        ("pages/temperature.py", {"tau": "0.5"}),
    ],
)
def test_the_python_computes_the_arrays_of_a_view_that_was_changed(
    page: str, query: dict[str, str], open_app: Callable, files: dict[str, bytes]
) -> None:
    app = open_app(page, source=SOURCE, **query)
    if "changes" in query:
        assert ".forced(" in "".join(programs_of(app).values())
    assert_programs_compute_files(programs_of(app), files)


def assert_programs_compute_files(programs: dict[str, str], files: dict[str, bytes]) -> dict[str, str]:
    """The Python of each view gives the arrays of the view's file; the programs by view."""
    for title, program in programs.items():
        (file,) = [file for file in files if file.startswith(f"{title}-") and file.endswith(".npz")]
        assert_equal_to_file(program, files[file])
    return programs


def assert_equal_to_file(program: str, content: bytes) -> None:
    found = result_of(program)["arrays"]
    with np.load(io.BytesIO(content)) as file:
        stored = {name: file[name] for name in file.files}
    assert found
    for name, array in found.items():
        if not name.endswith("_seconds"):  # no two runs take the same
            np.testing.assert_array_equal(np.asarray(array), stored[name], err_msg=name)


def test_files_link_and_python_have_the_languages_that_are_chosen(
    open_app: Callable, files: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = str(save_many_languages(tmp_path / "m2m", "M2M100"))
    monkeypatch.setenv(MODELS_VARIABLE, folder)
    chosen = {"source_language": "fr", "target_language": "de"}
    app = open_app("pages/masks.py", checkpoint=folder, source=SOURCE, **chosen)
    for program in assert_programs_compute_files(programs_of(app), files).values():
        assert "source_language='fr', target_language='de'" in program
    contents = [content for name, content in files.items() if name.endswith(".npz")]
    assert contents
    for content in contents:
        with np.load(io.BytesIO(content)) as file:
            assert {key: file[key].item() for key in chosen} == chosen
            assert urlencode(chosen) in file["view"].item()


def test_a_closed_box_draws_nothing_and_an_open_one_all_that_is_in_it(
    open_app: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    import streamlit as st

    monkeypatch.setattr(st, "expander", st.expander.func)  # as it was before the fixture that opens all boxes
    monkeypatch.setattr(st, "pills", st.pills.__wrapped__)
    app = open_app(source=SOURCE)
    assert not app.code
    app.session_state["foot-translate-explore"] = ["export"]
    programs = programs_of(app.run()).values()
    assert any("alignment(run" in program for program in programs)


def test_tokens_as_buttons_are_in_the_html_and_are_no_picture_to_save(
    open_app: Callable, files: dict[str, bytes]
) -> None:
    app = open_app("pages/tokens_and_embeddings.py", source=SOURCE)
    (what,) = [box for box in app.selectbox if box.label == "What"]
    assert [option for option in what.options if option.startswith("This figure")] == ["This figure: The chosen token"]
    pages = [content for name, content in files.items() if name.endswith("html") and "embeddings-tokens-" in name]
    assert [b"data-position" in page for page in pages] == [True]


@pytest.mark.parametrize("page", [page.path for page in EVERY_PAGE])
def test_an_archive_holds_each_figure_of_the_tab_or_of_all_tabs_under_a_name_of_its_own(
    page: str, open_app: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    saved: dict[str, Callable[[], bytes]] = {}
    monkeypatch.setattr("streamlit.download_button", lambda _, data, file_name, **__: saved.update({file_name: data}))
    monkeypatch.setattr(export, "_file", lambda _run, picture, _paper: picture.title.encode())
    app = open_app(page, source=SOURCE)
    for what in [box for box in app.selectbox if box.label == "What"]:
        held: dict[str, list[bytes]] = {}
        for choice in what.options[-2:]:
            if choice.startswith(("This tab", "The page")):
                saved.clear()
                what.select(choice).run()
                for archive in [data() for name, data in saved.items() if name.endswith(".zip")]:
                    with zipfile.ZipFile(io.BytesIO(archive)) as opened:
                        assert len({*opened.namelist()}) == len(opened.namelist()) > 0, choice
                        held[choice[:8]] = [opened.read(name) for name in opened.namelist()]
        if len(held) == 2:
            assert {*held["This tab"]} <= {*held["The page"]}


TABS = {
    page.name: (page.tabs_key, *dict.fromkeys(view.tab or view.title for view in page.views))
    for page in EVERY_PAGE
    if len({view.tab or view.title for view in page.views}) > 1 and not page.stacked and page.name != "learn"
}
"""by page, the query parameter of its tabs and their titles; a model lacks what some are about, and Learn has none"""
ELSEWHERE = [("fill_in", "mlm", tab) for tab in TABS["fill_in"][1:]]
ELSEWHERE += [("positional_encoding", "lm", tab) for tab in ("Rotation of q and k", "Distance", "Wavelengths")]
"""page, model and tab"""


@pytest.mark.parametrize(("page", "checkpoint", "tab"), ELSEWHERE)
def test_a_tab_that_a_translator_lacks_exports_the_numbers_that_it_draws(
    page: str, checkpoint: str, tab: str, open_family: Callable, files: dict[str, bytes]
) -> None:
    """All others are asked in tests/pages/test_claims.py."""
    query = {"checkpoint": checkpoint, "new_tokens": "4", TABS[page][0]: tab}
    app = open_family(f"pages/{page}.py", source="Two dogs run.", **query)
    assert_exported(numbers_drawn(next(one for one in app.tabs if one.label == tab)), files, 0.9, 0.9)
    assert_programs_compute_files(programs_of(app), files)


def assert_exported(drawn: np.ndarray, files: dict[str, bytes], in_npz: float, in_csv: float) -> None:
    """More than a share of what is drawn is in files of each kind."""
    for ending, read, share in (("npz", numbers_in_npz, in_npz), ("csv", numbers_in_csv, in_csv)):
        exported = np.concatenate([read(content) for name, content in files.items() if name.endswith(ending)])
        if len(drawn):
            assert share_among(drawn, exported) > share, ending


def numbers_drawn(tab: Any) -> np.ndarray:
    """The fractions in the charts of a tab, or in its tables if it has no chart; whole numbers if there are none."""
    values = []
    for chart in tab.get("plotly_chart"):
        for trace in json.loads(chart.proto.spec)["data"]:
            values += [numbers(trace[axis]) for axis in ("x", "y", "z") if axis in trace]
            if trace.get("mode") == "markers+text" and isinstance(trace["marker"]["size"], dict | list):
                # The area of a point is the number that it says.
                values.append(np.array([number for *_, number in trace["customdata"]]))
    values = values or [table.value.select_dtypes("number").to_numpy(float, na_value=np.nan) for table in tab.dataframe]
    flat = [array.astype(float).ravel() for array in values if array.dtype.kind in "fiu"]
    found = np.unique(np.concatenate([np.empty(0), *flat]))
    found = found[np.isfinite(found)]
    fractions = found[found != np.round(found)]
    return fractions if len(fractions) else found


def numbers_in_npz(content: bytes) -> np.ndarray:
    with np.load(io.BytesIO(content)) as file:
        return np.concatenate(
            [file[name].astype(float).ravel() for name in file.files if file[name].dtype.kind in "fiub"]
        )


def numbers_in_csv(content: bytes) -> np.ndarray:
    columns = pd.read_csv(io.BytesIO(content), low_memory=False).apply(pd.to_numeric, errors="coerce")
    return columns.to_numpy(float).ravel()


def share_among(drawn: np.ndarray, exported: np.ndarray) -> float:
    """The share of the numbers drawn that are among those exported, to four digits."""
    exported = np.unique(np.abs(exported[np.isfinite(exported)]))
    if not len(drawn) or not len(exported):
        return 0.0
    sizes = np.abs(drawn)
    at = np.searchsorted(exported, sizes).clip(1, len(exported) - 1)
    nearest = np.minimum(np.abs(exported[at] - sizes), np.abs(exported[at - 1] - sizes))
    return float((nearest <= 1e-4 * sizes).mean())


@pytest.mark.parametrize(
    ("page", "name"),
    [(page, ("mlm", "lm", "GPT-2")[number % 3]) for number, page in enumerate(EVERY_PAGE)],
    ids=lambda value: getattr(value, "name", value),
)
def test_a_page_of_another_family_is_checked_and_its_python_computes_its_file_or_it_says_what_it_needs(
    page: Page,
    name: str,
    open_app: Callable,
    files: dict[str, bytes],
    families: Path,
    others: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each page with one family, each family on many pages; test_views.py has every view in every family."""
    monkeypatch.setenv("ATTENTION_EXPLORER_CHECKPOINTS", str(families))
    checkpoint = others.get(name, name)
    if name in others:
        monkeypatch.setenv(MODELS_VARIABLE, checkpoint)
    query = {"checkpoint": checkpoint, "source": "Two dogs run. 🤖", "new_tokens": "4"}
    app = open_app(page.path, **query, **WITH_ARRAYS.get(page.path, {}))
    missing = missing_at(page, load_checkpoint(checkpoint, "cpu").features)
    assert_checked(app, missing)
    programs = assert_programs_compute_files(programs_of(app), files)
    assert bool(programs) == (not missing and page.path not in WITHOUT_NUMBERS)


@pytest.mark.parametrize("page", ["continue_text", "masks"])
def test_the_python_of_a_chat_computes_the_arrays_of_its_file(
    page: str, open_app: Callable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: dict[str, bytes]
) -> None:
    checkpoint = str(save_chat_model(tmp_path / "chat"))
    monkeypatch.setenv(MODELS_VARIABLE, checkpoint)
    chat = {"chat": "true", "turns": "System: Go.\nUser: Hi'\"\n  there\nAssistant: Ja."}
    app = open_app(f"pages/{page}.py", checkpoint=checkpoint, source="Two dogs.", new_tokens="4", **chat)
    programs = assert_programs_compute_files(programs_of(app), files)
    assert programs
    assert all("chat='System: Go." in program for program in programs.values())


def test_a_csv_is_for_spreadsheets_its_letters_are_read_and_no_text_is_computed() -> None:
    texts = ["=1+1", "+1", "-t", "@SUM(A1)", "\t=1", "\r=1", "Männer", "5-3", ""]
    table = pd.DataFrame({"token": texts, "=column": range(len(texts)), "number": -np.arange(len(texts), dtype=float)})
    written = _csv({"source": "=typed"}, table.assign(kind=pd.Categorical(texts), mixed=[-1, *texts[1:]]))
    assert written.startswith("\ufeff".encode())
    rows = list(csv.DictReader(io.StringIO(written.decode("utf-8-sig"), newline="")))
    marked = [f"'{text}" for text in texts[:6]] + texts[6:]
    assert [row["token"] for row in rows] == [row["kind"] for row in rows] == marked
    assert [row["mixed"] for row in rows] == ["-1", *marked[1:]]
    assert [row["source"] for row in rows] == ["'=typed", *[""] * (len(rows) - 1)], "said once"
    assert [float(row["number"]) for row in rows] == table["number"].tolist(), "a number stays a number"
    assert [int(row["'=column"]) for row in rows] == list(range(len(texts)))


@pytest.mark.parametrize("page", ["attention_step_by_step", "model_card"])
def test_visitors_see_as_much_of_a_models_path_as_tells_it_apart_and_links_and_files_have_it(
    page: str, open_app: Callable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: dict[str, bytes]
) -> None:
    paths = [str(save_family(tmp_path / folder / "a model", "GPT-2")) for folder in ("secret", "hidden")]
    monkeypatch.setenv(MODELS_VARIABLE, ",".join(paths))
    monkeypatch.setattr("pages.widgets.snippet.st.get_option", lambda _: "0.0.0.0")
    app = open_app(f"pages/{page}.py", checkpoint="hidden/a model", source="Two dogs run.", new_tokens="3")
    assert app.selectbox(key="checkpoint").value == paths[1]
    assert list(app.selectbox(key="checkpoint").options[:2]) == ["secret/a model", "hidden/a model"]
    assert app.query_params["checkpoint"] == "hidden/a model"
    protos = (getattr(node, "proto", None) for node in app._tree)
    shown = b" ".join(proto.SerializeToString() for proto in protos if hasattr(proto, "SerializeToString"))
    assert b"hidden/a model" in shown
    assert str(tmp_path).encode() not in shown
    assert files
    assert all(re.fullmatch(r"[\w.-]+-hidden-a-model-[0-9a-f]{8}\.\w+", name) for name in files)
    for name, content in files.items():
        assert str(tmp_path).encode() not in content, name
        if name.endswith(".npz"):
            arrays = np.load(io.BytesIO(content))
            assert not any(str(tmp_path) in str(arrays[key]) for key in arrays if arrays[key].dtype.kind == "U")


@pytest.mark.parametrize(("page", "name"), [("masks", "GPT-2"), ("heads_and_layers", "BERT"), ("translate", "BART")])
def test_the_python_of_a_hugging_face_folder_runs_where_no_app_offers_it(
    page: str, name: str, open_app: Callable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: dict[str, bytes]
) -> None:
    folder = str(save_family(tmp_path / "my model, v2", name))
    monkeypatch.setenv(MODELS_VARIABLE, "")
    offer_models([folder])
    app = open_app(f"pages/{page}.py", checkpoint=folder, source="Two dogs run.", new_tokens="4")
    monkeypatch.delenv(MODELS_VARIABLE)
    programs = assert_programs_compute_files(programs_of(app), files)
    assert programs
    assert all(folder in program for program in programs.values())
    for content in (content for file, content in files.items() if file.endswith(".npz")):
        assert str(np.load(io.BytesIO(content))["steps_of_this_attention"]) == "all read"
    cells = [content for file, content in files.items() if file.endswith(".ipynb")]
    assert all(folder in json.loads(content)["cells"][2]["source"] for content in cells)


@pytest.mark.parametrize(("page", "of_head"), [("masks", True), ("who_chose", False)])
def test_files_name_the_head_where_the_view_reads_it_and_hold_the_words_of_the_headline(
    page: str, of_head: bool, open_app: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    saved: list[tuple[str, list[str], str]] = []

    def save(_picture: Any, _paper: Any, title: str, caption: list[str], _origin: str) -> bytes:
        saved.append((title, caption, ""))
        return b""

    names: list[str] = []

    def offer(_label: str, data: Any, file_name: str, **_: Any) -> None:
        names.append(file_name)
        if file_name.endswith(".pdf"):
            data()

    long = " ".join(["a dog and a cat"] * 8)
    monkeypatch.setattr(export, "save", save)
    monkeypatch.setattr("streamlit.download_button", offer)
    app = open_app(f"pages/{page}.py", source=long)
    assert names
    assert all(("layer" in name or "-L0H0" in name) == of_head for name in names if not name.endswith(".zip")), names
    (title, caption, _), *_ = saved
    assert ("layer 0, head 0" in title) == ("layer 0, head 0" in " ".join(caption)) == of_head
    assert "changes" not in caption[-1], "there are none"
    answer = page_of(f"{page}.py").answer
    headline = next(one.value for one in app.markdown if one.value.startswith(("In ", "Of all heads")))
    assert answer
    assert headline.replace("**", "").replace("\\", "") == caption[0]
    assert long in caption[1]


def test_maps_and_bars_have_the_names_of_their_axes_beside_them(translator: Any) -> None:
    run = Run.of(translator, translator.trace("a dog and a cat", "Ein Hund"), "cross", 1, 2)
    result = which_head(run, row=1, outcome=None)
    arrays, sources = result.arrays(), result.shows["sources"]
    (values,) = (array for name, array in arrays.items() if name == "sources")
    assert values.shape == (len(arrays["sources_rows"]), len(arrays["sources_columns"]))
    assert arrays["sources_columns"].tolist() == list(sources.columns)
    assert arrays["parts_names"].tolist() == list(result.shows["parts"].names)
