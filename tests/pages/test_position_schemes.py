"""RoPE, ALiBi and the order experiment on their page: figures are computed from the run's tensors, inputs fall back."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import pytest

from model.analysis.positions.rotation import rotate_pairs, shifted_scores, with_rope
from model.analysis.positions.word_order import SIDES, reorder, run_both_orders, shuffle_words, translate_both_orders
from model.network.masks import alibi_bias
from model.trace import KIND_TITLES as KINDS
from tests.model.checkpoints.test_shipped import FOLDER
from tests.pages.figures import figure, numbers, words

if TYPE_CHECKING:
    from model.checkpoints.translator import Translator

PAGE = "pages/positional_encoding.py"
SCHEMES, ORDER = "Learned, RoPE, ALiBi", "Word order"
SOURCE, TEXT = "a dog and a cat", "Ein Hund mit einer Katze."


@pytest.fixture
def shown(open_app: Callable) -> Callable:
    """Opens the page on the sentence pair, without an exception."""

    def open_page(**query: str):
        app = open_app(PAGE, **({"source": SOURCE, "target": "Typed", "typed": TEXT} | query))
        assert not app.exception
        return app

    return open_page


def traces(app, name: str) -> list[dict]:
    """The traces of one picture of the page."""
    return figure(app, f"positional_encoding-{name}")["data"]


def drawn(app, name: str) -> list[np.ndarray]:
    return [numbers(heat["z"]) for heat in traces(app, name) if "masked" not in heat["hovertemplate"]]


def softmax(scaled: np.ndarray, mask: np.ndarray) -> np.ndarray:
    powers = np.exp(np.where(mask, scaled, -np.inf) - scaled.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


@pytest.mark.parametrize("kind", ["encoder_self", "decoder_self"])
def test_rope_is_drawn_from_the_heads_own_queries_and_keys(
    shown: Callable, translator: "Translator", kind: str
) -> None:
    app = shown(part=SCHEMES, pe_scheme="RoPE", kind=KINDS[kind], layer="1", head="2")
    attention = translator.trace(SOURCE, TEXT).attention(kind, 1)
    mask, with_angles = attention.mask[2], with_rope(attention)
    rotated = shifted_scores(with_angles, 2, 0)
    expected = (attention.scores[2], rotated, attention.pattern[2], softmax(rotated / attention.d_k**0.5, mask))
    for found, values in zip(drawn(app, "rope"), expected, strict=True):
        assert found == pytest.approx(np.where(mask, values, np.nan), abs=1e-5, nan_ok=True)
    curve = traces(app, "rope-offsets")[0]
    pairs = rotate_pairs(with_angles, 2, app.selectbox(key="pe_query").value, 1)
    assert numbers(curve["x"]).tolist() == pairs.offsets.tolist()
    assert numbers(curve["y"]) == pytest.approx(pairs.scores)
    app.slider(key="pe_shift").set_value(512).run()
    assert "with all positions of queries and keys shifted by 512" in words(app)


def test_alibi_adds_its_bias_to_the_heads_own_scaled_scores(shown: Callable, translator: "Translator") -> None:
    app = shown(part=SCHEMES, pe_scheme="ALiBi", kind=KINDS["decoder_self"], head="1")
    attention = translator.trace(SOURCE, TEXT).attention("decoder_self", 0)
    mask, scaled = attention.mask[1], attention.scaled[1]
    bias = alibi_bias(4, *scaled.shape)[0, 1].numpy()
    expected = (scaled, scaled + bias, attention.pattern[1], softmax(scaled + bias, mask))
    for found, values in zip(drawn(app, "alibi"), expected, strict=True):
        assert found == pytest.approx(np.where(mask, values, np.nan), abs=1e-5, nan_ok=True)
    assert drawn(app, "alibi-bias")[0] == pytest.approx(np.where(mask, bias, np.nan), nan_ok=True)


@pytest.mark.parametrize("scheme", ["RoPE", "ALiBi"])
def test_cross_attention_has_no_distance(shown: Callable, scheme: str) -> None:
    app = shown(part=SCHEMES, pe_scheme=scheme, kind=KINDS["cross"])
    assert "their distance is meaningless" in words(app)


def test_without_a_learned_table_the_page_says_what_the_paper_found(shown: Callable) -> None:
    app = shown(part=SCHEMES, pe_scheme="Learned table")
    assert "no learned table to draw" in words(app)
    assert "25.7" in words(app)


@pytest.mark.parametrize(
    ("kind", "off", "side"),
    [
        ("encoder_self", "Encoder", "encoder"),
        ("decoder_self", "Encoder and decoder", "both"),
        ("cross", "Encoder and decoder", "both"),
    ],
)
def test_both_orders_are_real_runs(shown: Callable, translator: "Translator", kind: str, off: str, side: str) -> None:
    app = shown(part=ORDER, pe_order="4 1, 2 3\uff0c0", pe_off=off, kind=KINDS[kind], layer="1", head="3")
    trace = translator.trace(SOURCE, TEXT)
    permutation = reorder(trace.src_tokens, (4, 1, 2, 3, 0))
    runs = [run_both_orders(translator, trace, permutation, sides, (kind, 1)) for sides in ((), SIDES[side])]
    for bar, run in zip(traces(app, "moved"), runs, strict=True):
        assert numbers(bar["y"]) == pytest.approx(run.moved, abs=1e-6)
    own, other, off_own, off_other = drawn(app, "order-weights")
    assert np.nan_to_num(own) == pytest.approx(runs[0].weights[0][3], abs=1e-6)
    assert np.nan_to_num(off_own) == pytest.approx(np.nan_to_num(off_other), abs=1e-5)
    assert np.abs(np.nan_to_num(own) - np.nan_to_num(other)).max() > 1e-3
    for pair in (translate_both_orders(translator, trace, permutation, sides) for sides in ((), SIDES[side])):
        # st.text strips: a translation may end with a space.
        assert {text.strip() for text in pair} <= {text.value for text in app.text}
    assert "get the same translation" in words(app)


def test_shuffling_takes_the_next_seed_and_a_typed_order_goes_first(shown: Callable, translator: "Translator") -> None:
    app = shown(part=ORDER, pe_order="0 1 2 4 3")
    app.button(key="set-pe_seed-pe_order").click().run()
    assert not app.exception
    assert (app.number_input(key="pe_seed").value, app.text_input(key="pe_order").value) == (2, "")
    trace = translator.trace(SOURCE, TEXT)
    run = run_both_orders(translator, trace, reorder(trace.src_tokens, shuffle_words(5, 2)), (), ("encoder_self", 0))
    assert numbers(traces(app, "moved")[0]["y"]) == pytest.approx(run.moved, abs=1e-6)
    app.button(key="set-source-pe_order").click().run()
    assert app.text_area(key="source").value == "The dog bites the man."
    assert any(text.value == "The man bites the dog." for text in app.text)


@pytest.mark.parametrize("order", ["0 0 1 2 3", "1 2", "x", "９ 1 2 3 4", "-1 0 1 2 3", "9" * 400])
def test_an_order_that_is_none_falls_back_to_a_shuffle(shown: Callable, order: str) -> None:
    app = shown(part=ORDER, pe_order=order)
    assert "showing a random order instead" in words(app)
    assert traces(app, "moved")


def test_the_shipped_learned_table_is_one_click_away(shown: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ATTENTION_EXPLORER_CHECKPOINTS", str(FOLDER))
    app = shown(part=SCHEMES, pe_scheme="Learned table", checkpoint="multi30k-tiny", target="Greedy")
    assert "no learned table to draw" in words(app)
    app.button(key="open-with").click().run()
    assert not app.exception
    assert "this table was learned" in words(app)
