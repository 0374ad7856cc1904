"""Attention, step by step: what reaches the browser is the trace, for each step of every attention."""

from collections.abc import Callable
from itertools import cycle

import numpy as np
import pytest

from model.checkpoints.translator import Translator
from model.trace import Trace
from tests.viz.payload import decode

pytest.importorskip("streamlit")

PAGE = "pages/attention_step_by_step.py"
SENTENCE = "a dog and a cat"
KINDS = {
    "Encoder self-attention": "encoder_self",
    "Decoder self-attention": "decoder_self",
    "Cross-attention": "cross",
}
FORGED = ("99", "-1", "1-1-1", "a-b-c-d", "1-2-3-4-5-6", "999999999999", "<b>-0-0-0", "٣-0-0-0")


@pytest.fixture(scope="module")
def trace(translator: Translator) -> Trace:
    return translator.trace(SENTENCE)


def stage(app) -> tuple[dict, dict]:
    """What the matrices component got."""
    return decode(next(found.proto.bytes for found in app.get("bidi_component") if found.proto.bytes))


@pytest.mark.parametrize(("kind", "step"), [*zip(cycle(KINDS), range(1, 8), strict=False)])
def test_11_each_step_draws_the_trace(open_app: Callable, trace: Trace, kind: str, step: int) -> None:
    app = open_app(PAGE, source=SENTENCE, kind=kind, layer="1", head="2", step=str(step))
    assert not app.exception
    header, matrices = stage(app)
    attention = trace.attention(KINDS[kind], 1)
    expected = {
        1: {"Q": attention.q[2], "K": attention.k[2], "V": attention.v[2]},
        2: {"scores": attention.scores[2], "K^T": attention.k[2].T},
        3: {"scaled": attention.scaled[2]},
        4: {"masked": np.where(attention.mask[2], attention.scaled[2], -np.inf)},
        5: {"weights": attention.pattern[2]},
        6: {"z_2": attention.z[2]},
        7: {"out": attention.out, "concat(z)": attention.concat},
    }[step]
    for symbol, values in expected.items():
        np.testing.assert_array_equal(matrices[symbol]["values"], values)
    assert header["step"] == step - 1
    assert trace.checkpoint_hash[:8] in header["title"]
    assert sum("holds" in element.value for element in app.markdown) == 3


def test_next_back_and_the_slider_move_the_step(open_app: Callable) -> None:
    app = open_app(PAGE)
    button = {name: next(b for b in app.button if b.label == name) for name in ("Back", "Next")}
    assert button["Back"].disabled
    button["Next"].click().run()
    assert app.slider(key="step").value == 2
    app.slider(key="step").set_value(7).run()
    assert next(b for b in app.button if b.label == "Next").disabled
    next(b for b in app.button if b.label == "Back").click().run()
    assert app.slider(key="step").value == 6
    assert stage(app)[0]["step"] == 5


def test_the_cell_comes_with_the_link_and_stays_with_the_widgets(open_app: Callable) -> None:
    app = open_app(PAGE, source=SENTENCE, step="2", cell="3-4-5-6")
    assert stage(app)[0]["chosen"] == {"query": 3, "key": 4}
    app.selectbox(key="query").set_value(1).run()
    assert stage(app)[0]["chosen"] == {"query": 1, "key": 4}
    assert app.query_params["query"].startswith("1 ")
    assert app.query_params["cell_output"] == "6"
    assert "cell" not in app.query_params
    app.slider(key="step").set_value(7).run()
    assert stage(app)[0]["chosen"] == {"query": 1, "model": 6}


@pytest.mark.parametrize("cell", FORGED)
def test_a_forged_cell_falls_back_to_one_that_is_there(open_app: Callable, cell: str) -> None:
    app = open_app(PAGE, cell=cell, step="2")
    assert not app.exception
    chosen = stage(app)[0]["chosen"]
    rows = stage(app)[1]["scores"]["rows"]["size"]
    assert 0 <= chosen["query"] < rows
    assert 0 <= chosen["key"] < rows


def test_a_shorter_sentence_begins_with_a_cell_inside_it(open_app: Callable) -> None:
    app = open_app(PAGE, source="a dog and a cat and a dog", step="2", cell="9-9-0-0")
    app.text_area(key="source").set_value("a").run()
    assert not app.exception
    header, matrices = stage(app)
    size = matrices["scores"]["rows"]["size"]
    assert all(place < size <= 2 for place in header["chosen"].values())


def test_the_temperature_of_the_run_reaches_the_softmax(open_app: Callable) -> None:
    app = open_app(PAGE, source=SENTENCE, step="5", tau="2", scope="Everywhere")
    header, matrices = stage(app)
    assert header["temperature"] == 2
    powers = np.exp(matrices["masked"]["values"].astype(float) / 2)
    np.testing.assert_allclose(powers / powers.sum(axis=1, keepdims=True), matrices["weights"]["values"], atol=1e-6)


def test_step_and_cell_are_kept_while_another_page_is_open(open_app: Callable) -> None:
    app = open_app(PAGE, source=SENTENCE, step="4", cell="3-4-5-6")
    app.switch_page("pages/translate.py").run()
    app.switch_page(PAGE).run()
    header, _ = stage(app)
    assert header["step"] == 3
    assert header["chosen"] == {"query": 3, "key": 4}
