"""What a page gives away: its pictures, its numbers, and the Python that computes them again."""

import html
import io
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import pytest

from tests.pages.figures import figure
from tests.pages.test_pages import ALL_PAGES
from viz.drawing import Drawing

pytest.importorskip("streamlit")

SOURCE, TARGET = "A dog runs and a cat sat.", "Ein Hund rennt."
QUERIES = {
    "own translation": {"source": SOURCE, "layer": "1", "head": "2"},
    "typed, with a temperature": {
        "source": 'He said "it\'s \\n" 🐕 אב\u202e <b>',
        "target": "Typed",
        "typed": "Ein 'Hund' \"\\ rennt",
        "kind": "Decoder self-attention",
        "tau": "0.5",
        "scope": "Every attention",
    },
}
TITLE = "# Attention Explorer: the numbers of "


@pytest.fixture
def files(monkeypatch: pytest.MonkeyPatch) -> dict[str, bytes]:
    """Downloads by name, as soon as a page is opened."""
    found: dict[str, bytes] = {}
    monkeypatch.setattr(
        "streamlit.download_button",
        lambda _label, data, file_name, **_: found.update({file_name: data() if callable(data) else data}),
    )
    return found


@pytest.fixture
def offered(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Pictures whose saving the pages offer."""
    found: list[Any] = []
    monkeypatch.setattr("pages.widgets.export._save_buttons", lambda _view, _stem, pictures: found.extend(pictures))
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
        ("pages/positional_encoding.py", {"side": "target"}),
    ],
)
def test_the_python_computes_the_arrays_of_a_view_that_was_changed(
    page: str, query: dict[str, str], open_app: Callable, files: dict[str, bytes]
) -> None:
    app = open_app(page, source=SOURCE, **query)
    assert not app.exception
    if "changes" in query:
        assert "translator.rerun" in "".join(programs_of(app).values())
    assert len(programs_of(app)) == 1 + (query.get("part") == "Beam")
    for name, program in programs_of(app).items():
        (file,) = [file for file in files if file.startswith(f"{name}-en-de-") and file.endswith(".npz")]
        assert_equal_to_file(program, files[file])


def assert_equal_to_file(program: str, content: bytes) -> None:
    found = result_of(program)["arrays"]
    with np.load(io.BytesIO(content)) as file:
        stored = {name: file[name] for name in file.files}
    assert found
    for name, array in found.items():
        np.testing.assert_array_equal(np.asarray(array), stored[name], err_msg=name)


@pytest.mark.parametrize("query", QUERIES.values(), ids=list(QUERIES))
@pytest.mark.parametrize("page", ALL_PAGES)
def test_the_python_of_a_page_computes_the_arrays_of_its_file(
    page: str, query: dict[str, str], open_app: Callable, files: dict[str, bytes]
) -> None:
    app = open_app(page, **query)
    assert not app.exception
    programs = programs_of(app)
    assert programs
    for name, program in programs.items():
        (file,) = [file for file in files if file.startswith(f"{name}-en-de-") and file.endswith(".npz")]
        assert_equal_to_file(program, files[file])


@pytest.mark.parametrize("page", ALL_PAGES)
def test_every_file_says_which_run_and_which_view_it_is_of(
    page: str, open_app: Callable, files: dict[str, bytes]
) -> None:
    app = open_app("pages/translate.py", **QUERIES["own translation"])
    if page != "pages/translate.py":
        files.clear()
        app.switch_page(page).run()
    endings = {name.rsplit(".", 1)[1] for name in files}
    assert endings >= {"csv", "npz"}
    assert "html" in endings or page == "pages/training.py", "without a log a training has no curves"
    for name, content in files.items():
        said = facts_in(name, content)
        assert said["source"] == SOURCE, name
        assert f"-{said['checkpoint']}-{said['checkpoint_sha256'][:8]}." in name
        assert "source=A+dog+runs" in said["view"], name


def facts_in(name: str, content: bytes) -> Any:
    """What a file says of its run."""
    if name.endswith(".npz"):
        with np.load(io.BytesIO(content)) as file:
            return {key: str(file[key]) for key in ("source", "view", "checkpoint", "checkpoint_sha256")}
    if name.endswith(".csv"):
        return pd.read_csv(io.BytesIO(content)).iloc[0]
    entries = re.findall(r"<dt>(.*?)</dt><dd dir='auto'>(.*?)</dd>", content.decode(), re.DOTALL)
    return {key: html.unescape(value) for key, value in entries}


@pytest.mark.parametrize("page", ALL_PAGES)
def test_the_pictures_that_are_saved_are_those_of_the_page(page: str, open_app: Callable, offered: list[Any]) -> None:
    app = open_app("pages/translate.py", **QUERIES["own translation"])
    if page != "pages/translate.py":
        offered.clear()
        app.switch_page(page).run()
    assert offered or page == "pages/training.py", "without a log a training has no curves"
    for picture in offered:
        if not isinstance(picture.content, Drawing):
            drawn = figure(app, picture.key)["data"]
            assert [trace["type"] for trace in drawn] == [trace.type for trace in go.Figure(picture.content).data]
