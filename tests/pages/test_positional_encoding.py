"""Positions: what is drawn is what the run adds, rotates or leaves alone, in every scheme, and in both orders."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from model.analysis.positions.rotation import rotate_pairs, rotated_head, shifted_scores, with_rope
from model.analysis.positions.score_bias import biased_head
from model.analysis.positions.word_order import (
    SIDES,
    reorder,
    reorder_words,
    run_both_orders,
    shuffle_words,
    translate_both_orders,
)
from model.checkpoints.store import load_checkpoint
from model.network.config import TransformerConfig
from model.network.masks import alibi_bias, alibi_slopes
from model.run import Run
from pages import page_of
from pages.compute.runs import compute
from pages.views.attention import positional_encoding as views
from pages.views.attention.positional_encoding.offsets import ORIGIN
from tests.model.checkpoints.huggingface.folders import save_family
from tests.model.checkpoints.test_language_model import MODERN
from tests.pages.conftest import TYPED, save_random
from tests.pages.figures import figure, lines, maps, numbers, seen, words
from tests.pages.test_views import check

PAGE, HEAD = "pages/positional_encoding.py", 1
LAYERS = {"lm": (0, 2), "mlm": (2, 0), "translator": (2, 2)}
SCHEMES = "rope", "alibi", "none", "learned", "sinusoidal"
TABS = [view for view in page_of(PAGE).views if view is not views.one_line]


@pytest.fixture(scope="module")
def run_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Run]:
    """A run of a random model of a family with a scheme, in layer 1."""
    folder = tmp_path_factory.mktemp("positions")
    plain = TransformerConfig(d_model=32, n_heads=4, d_ff=16, max_len=48, norm="pre")

    @cache
    def run_of(scheme: str, family: str, source: str = "Two dogs run.") -> Run:
        config = MODERN if scheme == "rope" else plain
        if not (folder / f"{scheme}-{family}").exists():
            save_random(folder / f"{scheme}-{family}", replace(config, positions=scheme), *LAYERS[family])
        opened = load_checkpoint(str(folder / f"{scheme}-{family}"), "cpu")
        trace = opened.trace(source, *(["Zwei Hunde."] if family == "translator" else []))
        return replace(Run.of(opened, trace, trace.kinds[0].name, 1, HEAD), compute=compute)

    return run_of


def softmax(scaled: np.ndarray, mask: np.ndarray) -> np.ndarray:
    powers = np.exp(np.where(mask, scaled, -np.inf) - scaled.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def close(drawn: list[np.ndarray], expected: tuple, tolerance: float = 1e-5) -> None:
    for found, values in zip(drawn, expected, strict=True):
        np.testing.assert_allclose(found, values, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("family", LAYERS)
def test_schemes_offer_only_what_applies_and_say_it(scheme: str, family: str, run_of: Callable) -> None:
    run = run_of(scheme, family)
    offered = [view for view in TABS if not view.missing(run)]
    assert (views.head_rotation in offered) == (scheme == "rope")
    assert (views.scores in offered) == (scheme == "alibi")
    assert (views.sentence in offered) == (scheme in {"learned", "sinusoidal"})
    if views.sentence in offered:
        assert ORIGIN.offer(run, {"side": None}).limits == (0, len(run.opened.positional_encoding()) - 1)
    assert (views.table_rotation in offered) == (scheme == "sinusoidal")
    assert views.order in offered
    if scheme in ("alibi", "none"):  # test_views.py opens the others
        for view in offered:
            for chosen in view.extremes(run):
                check(view(run, **chosen), by_plotly=False)


@pytest.mark.parametrize("family", LAYERS)
def test_angles_and_rotated_vectors_are_the_runs_and_a_score_depends_on_the_distance(
    family: str, run_of: Callable
) -> None:
    run = run_of("rope", family)
    a, drawn = run.attention, maps(views.positions(run, rows=40), "angles")[0]
    used, size = a.rotary.cos.shape[0], float(np.abs(a.scores[HEAD]).max())
    assert drawn.shape == (40, a.d_k // 2)
    np.testing.assert_allclose(drawn[:used], a.rotary.cos, rtol=1e-6)
    theta = 1e4 ** (-np.arange(0, a.d_k, 2) / a.d_k)
    np.testing.assert_allclose(drawn, np.cos(np.arange(40)[:, None] * theta), atol=1e-4)
    rotated = views.head_rotation(run)
    close(maps(rotated, "rotated"), tuple(values[HEAD] for values in (a.rotary.q, a.q, a.rotary.k, a.k)))
    error = rotated_head(run.trace, a.kind, 1, HEAD).rotation_error
    assert (rotated.facts["off"], error < 1e-5 * np.abs(a.q).max()) == (error, True)
    result = views.distance(run, query=3, key=1, shift=300)
    curve = figure(result, "rotary-offsets")["data"][0]
    here = numbers(curve["x"]) == 1 - 3
    assert numbers(curve["y"])[here][0] == pytest.approx(a.scores[HEAD, 3, 1], abs=1e-5 * size)
    assert result.facts["off"] == np.abs(shifted_scores(a, HEAD, 300) - a.scores[HEAD]).max() < 1e-4 * size
    # Rotating only the keys would not be the same scores.
    assert np.abs(a.q[HEAD] @ a.rotary.k[HEAD].T - a.scores[HEAD]).max() > 1e-3 * size


@pytest.mark.parametrize("family", LAYERS)
def test_a_bias_is_drawn_and_counted_once(family: str, run_of: Callable) -> None:
    run = run_of("alibi", family)
    a, mask, biases = run.attention, run.attention.mask[HEAD], views.positions(run)
    for slope, line in zip(alibi_slopes(a.n_heads).numpy(), biases.shows["bias"].lines.values(), strict=True):
        np.testing.assert_allclose(line.y, -slope * np.abs(line.x), rtol=1e-5)
    assert (biases.facts["follows"], biases.facts["linear"]) == (True, True)
    without, with_it, _, weights = maps(views.scores(run), "bias-scores")
    expected = a.scaled[HEAD], a.scaled[HEAD] + a.bias[HEAD], a.pattern[HEAD]
    close([without, with_it, weights], tuple(seen(values, mask) for values in expected))
    found = biased_head(run.trace, a.kind, 1, HEAD).pattern_without
    np.testing.assert_allclose(found, softmax(a.scaled[HEAD].astype(float), mask), atol=1e-5)


@pytest.mark.parametrize("family", LAYERS)
def test_a_model_without_positions_shows_its_weights_and_a_learned_table_is_drawn(
    family: str, run_of: Callable
) -> None:
    run = run_of("none", family)
    result = views.positions(run)
    assert result.facts["scheme"] == "none"
    drawn, expected = maps(result, "weights")[0], seen(run.attention.pattern[HEAD], run.attention.mask[HEAD])
    np.testing.assert_allclose(drawn, expected, rtol=1e-5, atol=1e-6)
    if family != "translator":  # of which each stack has a table
        run = run_of("learned", family)
        table = maps(views.positions(run, rows=20), "table")[0]
        np.testing.assert_allclose(table, run.opened.positional_encoding()[:20], rtol=1e-6)


def test_only_a_masked_model_without_positions_ignores_the_order(run_of: Callable) -> None:
    for scheme, family in (("none", "mlm"), ("rope", "mlm"), ("alibi", "mlm"), ("learned", "mlm"), ("none", "lm")):
        run = run_of(scheme, family)
        result, found = views.order(run), reorder_words(run.opened, run.trace, 1)
        np.testing.assert_allclose(lines(result, "order")[0], found.logits_change, rtol=1e-5, atol=1e-6)
        assert sorted(found.order) == list(range(len(found.order))) != list(found.order)
        assert result.facts["same"] == ((scheme, family) == ("none", "mlm"))


@pytest.mark.parametrize("name", ["GPT-2", "BERT", "Llama, grouped", "Marian", "GPT-NeoX", "T5"])
def test_models_of_transformers(name: str, tmp_path: Path) -> None:
    opened = load_checkpoint(str(save_family(tmp_path / "model", name)), "cpu")
    trace = opened.trace("Two dogs run.")
    run = Run.of(opened, trace, trace.kinds[0].name, 0, HEAD)
    result, table, a = views.positions(run), opened.positional_encoding(), run.attention
    if table is not None:
        drawn = maps(result, "table")[0]
        np.testing.assert_allclose(drawn, table[: len(drawn)], rtol=1e-6)
    elif a.rotary is None:
        found = biased_head(trace, a.kind, 0, HEAD).highest[HEAD]
        np.testing.assert_allclose(lines(result, "bias")[HEAD], found)
    else:
        np.testing.assert_allclose(maps(result, "angles")[0][: len(a.rotary.cos)], a.rotary.cos, rtol=1e-6)
        pairs = rotate_pairs(a, HEAD, 2, 1)
        assert pairs.scores[pairs.offsets == -1][0] == pytest.approx(a.scores[HEAD, 2, 1], rel=1e-4, abs=1e-5)


@pytest.mark.parametrize("scheme", ["none", "rope", "alibi"])
def test_a_translator_that_adds_no_positions_is_run_in_both_orders(scheme: str, run_of: Callable) -> None:
    run = run_of(scheme, "translator", "Two dogs run")
    result, permutation = views.order(run, typed="2 1 0"), reorder(run.trace.src_tokens, (2, 1, 0))
    expected = run_both_orders(run.opened, run.trace, permutation, (), (run.kind, 1))
    own, other = maps(result, "order-weights")
    back = np.argsort(permutation)
    close([own, other], (expected.weights[0][HEAD], expected.weights[1][HEAD][back][:, back]))
    assert np.allclose(own, other, atol=1e-5) == (scheme == "none")
    assert result.facts["ways"] == [f"{'without' if scheme == 'none' else 'with'} positions"]
    assert "left_out" not in views.order.offers(run)
    assert "left_out" in views.order.offers(run_of("learned", "translator"))


@pytest.mark.parametrize("kind", ["encoder_self", "decoder_self"])
def test_rope_is_drawn_from_the_heads_own_queries_and_keys(run_at: Callable, kind: str) -> None:
    run = run_at(kind, 1, 2)
    a, turned = run.attention, with_rope(run.attention)
    result, rotated = views.schemes(run, scheme="rope", query=3, key=1, shift=512), shifted_scores(turned, 2, 0)
    expected = a.scores[2], rotated, a.pattern[2], softmax(rotated / a.d_k**0.5, a.mask[2])
    close(maps(result, "rope"), tuple(seen(values, a.mask[2]) for values in expected))
    curve, pairs = figure(result, "rope-offsets")["data"][0], rotate_pairs(turned, 2, 3, 1)
    assert numbers(curve["x"]).tolist() == pairs.offsets.tolist()
    assert numbers(curve["y"]) == pytest.approx(pairs.scores)
    assert result.facts["off"] == np.abs(shifted_scores(turned, 2, 512) - rotated).max()


def test_alibi_adds_its_bias_to_the_heads_own_scaled_scores(run_at: Callable) -> None:
    run = run_at("decoder_self", 0, 1)
    result, mask, scaled = views.schemes(run, scheme="alibi"), run.attention.mask[1], run.attention.scaled[1]
    bias = alibi_bias(4, *scaled.shape)[0, 1].numpy()
    expected = scaled, scaled + bias, run.attention.pattern[1], softmax(scaled + bias, mask)
    close(maps(result, "alibi"), tuple(seen(values, mask) for values in expected))
    close(maps(result, "alibi-bias"), (seen(bias, mask),))


def test_cross_attention_has_no_distance_and_sinusoids_no_learned_table(run_at: Callable) -> None:
    for scheme in ("rope", "alibi"):
        assert not views.schemes(run_at("cross"), scheme=scheme).shows
    result = views.schemes(run_at(), scheme="learned")
    assert (bool(result.lacks), result.shows) == (True, {})


@pytest.mark.parametrize(("kind", "off"), [("encoder_self", "encoder"), ("decoder_self", "both"), ("cross", "both")])
def test_both_orders_are_real_runs(run_at: Callable, kind: str, off: str) -> None:
    run = run_at(kind, 1, 3)
    result, permutation = (
        views.order(run, typed="4 1, 2 3\uff0c0", left_out=off),
        reorder(run.trace.src_tokens, (4, 1, 2, 3, 0)),
    )
    runs = [run_both_orders(run.opened, run.trace, permutation, sides, (kind, 1)) for sides in ((), SIDES[off])]
    close(lines(result, "moved"), tuple(one.moved for one in runs), 1e-6)
    own, other, off_own, off_other = (np.nan_to_num(one) for one in maps(result, "order-weights"))
    assert own == pytest.approx(runs[0].weights[0][3], abs=1e-6)
    assert off_own == pytest.approx(off_other, abs=1e-5)
    assert np.abs(own - other).max() > 1e-3
    pairs = [translate_both_orders(run.opened, run.trace, permutation, sides) for sides in ((), SIDES[off])]
    for place, name in enumerate(("original", "other")):
        assert list(result.shows[name].texts.values())[1:] == [pair[place] for pair in pairs]
    assert (result.facts["same"], result.facts["refused"]) == (True, False)


def test_shuffling_takes_the_next_seed_and_a_typed_order_goes_first(open_app: Callable, run_at: Callable) -> None:
    app = open_app(PAGE, **TYPED, part="Word order", pe_order="0 1 2 4 3")
    app.button(key="set-pe_seed-pe_order").click().run()
    assert (app.number_input(key="pe_seed").value, app.text_input(key="pe_order").value) == (2, "")
    run, permutation = run_at(), reorder(run_at().trace.src_tokens, shuffle_words(5, 2))
    found = run_both_orders(run.opened, run.trace, permutation, (), ("encoder_self", 0))
    assert lines(app, "positional_encoding-moved")[0] == pytest.approx(found.moved, abs=1e-6)
    app.button(key="set-source-pe_order").click().run()
    assert app.text_area(key="source").value == "The dog bites the man."
    assert any(text.value == "The man bites the dog." for text in app.text)


@pytest.mark.parametrize("order", ["0 0 1 2 3", "1 2", "x", "９ 1 2 3 4", "-1 0 1 2 3", "9" * 400])
def test_an_order_that_is_none_falls_back_to_a_shuffle(run_at: Callable, order: str) -> None:
    run = replace(run_at(), compute=compute)  # which keeps the two orders
    result = views.order(run, typed=order)
    assert result.facts["refused"]
    assert lines(result, "moved")[0].tolist() == lines(views.order(run), "moved")[0].tolist()


def test_the_shipped_learned_table_is_one_click_away(open_shipped: Callable) -> None:
    query = {"part": "Learned, RoPE, ALiBi", "pe_scheme": "Learned table", "checkpoint": "multi30k-tiny"}
    app = open_shipped(PAGE, source="a dog", **query)
    app.button(key="open-with").click().run()
    assert figure(app, "positional_encoding-beside")
    assert "this table was learned" in words(app)


def test_a_rotation_is_written_out_for_the_position_and_the_offset(run_at: Callable) -> None:
    facts = str(views.table_rotation(run_at(), start=7, offset=9, pair=3).blocks)
    assert "M_{9}" in facts
    assert "16" in facts
