"""What a page gives away: its pictures, its numbers, and the Python that computes them again."""

import io
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.pages.test_pages import ALL_PAGES

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
