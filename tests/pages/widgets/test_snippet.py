"""A run as a Python program: it computes the same numbers, and runs nothing that was typed."""

import ast
import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from model import interventions
from model.checkpoints.store import load_checkpoint
from model.checkpoints.translator import Translator
from model.interventions import AttentionTemperature, FrozenPattern, HeadGate, MaskEdit, PermutedAttention
from model.run import Place, Request, Run
from model.trace import Trace
from pages.views.learn.learn import head, matrices
from pages.widgets.snippet import notebook, snippet

PLACE = Place("cross", 1, 2)
HOSTILE = (
    "'); import os; os.abort()  #",
    '"""\nraise SystemExit\n"""',
    "a\\",
    "\\N{DOG} \\x41 {source!r} %s",
    "\u202eאבג\u2066 مرحبا",
    "👩‍👩‍👧 🐕",
    "one\ntwo\rthree\u2028four\x00\x1b[31m",
)
CHANGES = (HeadGate(0.0, mode="mean", kind="cross", layer=1), MaskEdit(forbid=((0, 1),), kind="cross", layer=0, head=3))


@pytest.fixture
def opened(checkpoint_folder: Any) -> Translator:
    assert checkpoint_folder.is_dir()
    return load_checkpoint(device="cpu")


def result_of(program: str) -> dict[str, Any]:
    namespace: dict[str, Any] = {}
    exec(compile(program, "snippet", "exec"), namespace)
    return namespace


def program_of(trace: Trace, request: Request, about: str = "a test") -> str:
    return snippet(head(Run(None, request, trace, PLACE, request.source)), about)


@settings(max_examples=settings.default.max_examples // 6, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(source=st.text(min_size=1, max_size=12), target=st.text(min_size=1, max_size=12), tau=st.floats(1e-30, 1e30))
@example(source=HOSTILE[0], target=HOSTILE[1], tau=0.5)
@example(source=HOSTILE[2], target=HOSTILE[3], tau=0.5)
@example(source=HOSTILE[4], target=HOSTILE[5], tau=0.5)
@example(source=HOSTILE[6], target=HOSTILE[0], tau=0.5)
def test_the_program_computes_the_numbers_of_any_sentence(
    source: str, target: str, tau: float, opened: Translator
) -> None:
    asked = Request(source, target, 1, (AttentionTemperature(tau),))
    try:
        trace = opened.trace(source, target, 1, asked.interventions)
    except ValueError:
        return
    found = result_of(program_of(trace, asked, f"of {source}"))
    assert (found["request"].source, found["request"].target) == (trace.prompt, target)
    for name, tensor in {"pattern": "pattern", "scaled": "pre_softmax"}.items():
        np.testing.assert_array_equal(found["arrays"][name], getattr(trace.attention("cross", 1), tensor)[2])


@pytest.mark.parametrize("text", HOSTILE)
def test_what_was_typed_stands_in_the_program_as_one_literal(text: str, opened: Translator) -> None:
    trace = opened.trace("A dog.", None, 1)
    plain = program_of(trace, Request("A dog.", "x", 1))
    typed = program_of(opened.trace(text, text, 1), Request(text, text, 1), text.split("\n")[0])
    assert [type(node) for node in ast.walk(ast.parse(typed))] == [type(node) for node in ast.walk(ast.parse(plain))]


@pytest.mark.parametrize("text", ["A dog.\n\nA cat.", HOSTILE[1]])
def test_the_cells_of_the_notebook_compute_the_same_and_end_in_pictures(text: str, opened: Translator) -> None:
    trace = opened.trace(text, "Ein Hund.", 1)
    program = program_of(trace, Request(text, "Ein Hund.", 1), "a test\n\nof cells")
    file = json.loads(notebook(program, "a test", {"source": text}))
    assert (file["nbformat"], file["nbformat_minor"]) == (4, 5)
    assert file["metadata"]["attention_explorer"] == {"source": text}
    first, *cells = file["cells"]
    assert set(first) == {"cell_type", "id", "metadata", "source"}
    assert len({cell["id"] for cell in file["cells"]}) == len(file["cells"])
    namespace: dict[str, Any] = {}
    for cell in cells:
        assert set(cell) == {"cell_type", "id", "metadata", "source", "execution_count", "outputs"}
        *statements, last = ast.parse(cell["source"]).body
        if not isinstance(last, ast.Expr):
            exec(compile(cell["source"], cell["id"], "exec"), namespace)
            continue
        assert not statements
        assert "<iframe" in eval(cell["source"], namespace)._repr_html_()
    np.testing.assert_array_equal(namespace["arrays"]["pattern"], trace.attention("cross", 1).pattern[2])
    assert isinstance(last, ast.Expr), "the last cell shows a picture"


def test_changes_are_made_on_the_tokens_of_the_run_before(opened: Translator) -> None:
    before = opened.trace("A dog runs.", None, 4)
    after = opened.trace_ids(before.source, before.next_ids, CHANGES)
    found = result_of(program_of(after, Request("A dog runs.")))
    assert found["run"].trace.next_ids == before.next_ids
    np.testing.assert_array_equal(found["run"].trace.logits, after.logits)


def test_other_weights_are_refused(opened: Translator) -> None:
    trace = opened.trace("A dog.", None, 1)
    with pytest.raises(AssertionError, match="other weights"):
        result_of(program_of(replace(trace, checkpoint_hash="0" * 64), Request("A dog.", None, 1)))


@pytest.mark.parametrize(
    "change",
    [
        AttentionTemperature(np.float64(0.5), layer=int(np.int64(1))),
        PermutedAttention(7, order=(1, 0)),
        FrozenPattern((((0.5, 0.5),),), kind="cross"),
        *CHANGES,
    ],
    ids=repr,
)
def test_an_intervention_is_equal_to_its_repr(change: Any) -> None:
    names = {name: getattr(interventions, name) for name in interventions.__all__}
    assert eval(repr(change), names | {"np": np}) == change


def test_a_view_is_called_with_the_values_that_were_chosen(opened: Translator) -> None:
    run = Run.start(opened, Request("A dog.", None, 1), PLACE)
    result = matrices(run, step=3)
    program = snippet(result, "a test")
    assert "matrices(run, step=3)" in program
    computed, expected = result_of(program)["arrays"], result.arrays()
    assert list(computed) == list(expected)
    for name, array in expected.items():
        np.testing.assert_array_equal(computed[name], array, err_msg=name)
