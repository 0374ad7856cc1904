"""Positional encoding of every family: what the page draws is what the run rotated, added or left alone."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from model.analysis.positions.rotation import rotate_pairs, rotated_head, shifted_scores
from model.analysis.positions.score_bias import biased_head
from model.analysis.positions.word_order import reorder, reorder_words, run_both_orders
from model.checkpoints.store import CHECKPOINTS_VARIABLE, MODELS_VARIABLE, load_checkpoint, save_checkpoint
from model.checkpoints.tokenizer import train_tokenizer
from model.network.config import TransformerConfig
from model.network.masks import alibi_slopes
from model.run import Run
from pages import page_of
from pages.views import views_of
from tests.model.checkpoints.huggingface.folders import save_family
from tests.model.checkpoints.test_language_model import MODERN
from tests.model.tiny import SENTENCES, random_model
from tests.pages.figures import figure, numbers, words
from tests.pages.test_views import check

pytest.importorskip("streamlit")

PAGE, SOURCE, HEAD = "pages/positional_encoding.py", "Two dogs run.", 1
LAYERS = {"lm": (0, 2), "mlm": (2, 0), "translator": (2, 2)}
CASES = [(scheme, family) for scheme in ("rope", "alibi", "none", "learned", "sinusoidal") for family in LAYERS]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random model of every family with every scheme."""
    folder, lines = tmp_path_factory.mktemp("positions"), [source for source, _ in SENTENCES]
    plain = TransformerConfig(vocab_size=312, d_model=32, n_heads=4, d_ff=16, max_len=48, norm="pre")
    for scheme, family in CASES:
        config = MODERN if scheme == "rope" else plain
        encoders, decoders = LAYERS[family]
        config = replace(config, vocab_size=312, positions=scheme, n_encoder_layers=encoders, n_decoder_layers=decoders)
        model = random_model(config)
        tokenizer = train_tokenizer(lines, 312, masked=family == "mlm")
        save_checkpoint(folder / f"{scheme}-{family}", model, tokenizer, dict(model.named_parameters()))
    return folder


@pytest.fixture
def open_case(open_app: Callable, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Callable:
    """Opens the page on a model; returns it with the run and its self-attention."""
    monkeypatch.setenv(CHECKPOINTS_VARIABLE, str(folder))

    def open_case(scheme: str, family: str, **query: str):
        name = f"{scheme}-{family}"
        opened = load_checkpoint(name, "cpu")
        typed = {"target": "Typed", "typed": "Zwei Hunde."} if family == "translator" else {}
        typed |= {"new_tokens": "4"} if family == "lm" else {}
        lengths = {"max_new_tokens": 4} if family == "lm" else {}
        trace = opened.trace(SOURCE, typed.get("typed"), **lengths)
        kind = trace.kinds[0]
        place = {"kind": kind.title, "layer": "1", "head": str(HEAD), "part": "The encoding"}
        app = open_app(PAGE, **({"checkpoint": name, "source": SOURCE, **place, **typed} | query))
        assert not app.exception
        return app, opened, trace, trace.attention(kind.name, 1)

    return open_case


def traces(app, name: str) -> list[dict]:
    """The traces of one picture of the page."""
    return figure(app, f"positional_encoding-{name}")["data"]


def test_schemes_offer_only_what_applies(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CHECKPOINTS_VARIABLE, str(folder))
    for scheme, family in CASES:
        opened = load_checkpoint(f"{scheme}-{family}", "cpu")
        run = Run.of(opened, opened.trace(SOURCE, "Zwei Hunde." if family == "translator" else None))
        offered = {view.tab or view.title for view in page_of(PAGE).views if not view.missing(run)}
        assert ("Rotation of q and k" in offered) == (scheme == "rope"), (scheme, family)
        assert ("Scores" in offered) == (scheme == "alibi")
        assert ("Your sentence" in offered) == (scheme in {"learned", "sinusoidal"})
        assert ("Rotation" in offered) == (scheme == "sinusoidal")
        assert "Word order" in offered


@pytest.mark.parametrize(("scheme", "family"), [case for case in CASES if case[0] in ("alibi", "none")])
def test_every_tab_says_and_shows_all_without_a_table_or_a_rotation(
    scheme: str, family: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(CHECKPOINTS_VARIABLE, str(folder))
    opened = load_checkpoint(f"{scheme}-{family}", "cpu")
    trace = opened.trace(SOURCE, "Zwei Hunde." if family == "translator" else None)
    for kind in trace.kinds:
        run = Run.of(opened, trace, kind.name, 1, HEAD)
        for view in (view for view in views_of("pages.views.attention.positional_encoding") if not view.missing(run)):
            for chosen in view.extremes(run):
                check(view(run, **chosen), by_plotly=False)


@pytest.mark.parametrize("family", LAYERS)
def test_angles_and_rotated_vectors_are_the_runs(open_case: Callable, family: str) -> None:
    app, _, trace, a = open_case("rope", family, positions="40")
    drawn = numbers(traces(app, "angles")[0]["z"])
    used = a.rotary.cos.shape[0]
    assert drawn.shape == (40, a.d_k // 2)
    np.testing.assert_allclose(drawn[:used], a.rotary.cos, rtol=1e-6)
    theta = 1e4 ** (-np.arange(0, a.d_k, 2) / a.d_k)
    np.testing.assert_allclose(drawn, np.cos(np.arange(40)[:, None] * theta), atol=1e-4)
    app, *_ = open_case("rope", family, part="Rotation of q and k")
    maps = [numbers(heat["z"]) for heat in traces(app, "rotated")]
    for found, values in zip(maps, (a.rotary.q, a.q, a.rotary.k, a.k), strict=True):
        np.testing.assert_allclose(found, values[HEAD], rtol=1e-6)
    assert rotated_head(trace, a.kind, 1, HEAD).rotation_error < 1e-5 * np.abs(a.q).max()


@pytest.mark.parametrize("family", LAYERS)
def test_a_rotated_score_depends_on_the_distance_only(open_case: Callable, family: str) -> None:
    app, _, _, a = open_case("rope", family, part="Distance")
    size = float(np.abs(a.scores[HEAD]).max())
    np.testing.assert_allclose(shifted_scores(a, HEAD, 300), a.scores[HEAD], atol=1e-4 * size)
    curve = traces(app, "rotary-offsets")[0]
    query = app.selectbox(key="pe_query").value
    here = numbers(curve["x"]) == 1 - query
    assert numbers(curve["y"])[here][0] == pytest.approx(a.scores[HEAD, query, 1], abs=1e-5 * size)
    # Rotating only the keys would not be the same scores.
    assert np.abs(a.q[HEAD] @ a.rotary.k[HEAD].T - a.scores[HEAD]).max() > 1e-3 * size


@pytest.mark.parametrize("family", LAYERS)
def test_a_bias_is_drawn_and_counted_once(open_case: Callable, family: str) -> None:
    app, _, trace, a = open_case("alibi", family)
    lines = traces(app, "bias")
    for slope, line in zip(alibi_slopes(a.n_heads).numpy(), lines, strict=True):
        np.testing.assert_allclose(numbers(line["y"]), -slope * np.abs(numbers(line["x"])), rtol=1e-5)
    assert "Press et al. 2022" in words(app)
    app, *_ = open_case("alibi", family, part="Scores")
    mask = a.mask[HEAD]
    drawn = [numbers(h["z"]) for h in traces(app, "bias-scores") if "masked" not in h["hovertemplate"]]
    expected = (a.scaled[HEAD], a.scaled[HEAD] + a.bias[HEAD], a.pattern[HEAD])
    for found, values in zip((drawn[0], drawn[1], drawn[3]), expected, strict=True):
        np.testing.assert_allclose(found, np.where(mask, values, np.nan), rtol=1e-5, atol=1e-6)
    powers = np.where(mask, np.exp(a.scaled[HEAD].astype(float)), 0)
    np.testing.assert_allclose(
        biased_head(trace, a.kind, 1, HEAD).pattern_without, powers / powers.sum(-1, keepdims=True), atol=1e-5
    )


@pytest.mark.parametrize("family", LAYERS)
def test_a_model_without_positions_says_so(open_case: Callable, family: str) -> None:
    app, _, _, a = open_case("none", family)
    assert "This model has no positional encoding" in words(app)
    drawn = next(h for h in traces(app, "weights") if "masked" not in h["hovertemplate"])
    np.testing.assert_allclose(
        numbers(drawn["z"]), np.where(a.mask[HEAD], a.pattern[HEAD], np.nan), rtol=1e-5, atol=1e-6
    )


def test_only_a_masked_model_without_positions_ignores_the_order(open_case: Callable) -> None:
    for scheme in ("none", "rope", "alibi", "learned"):
        app, opened, trace, _ = open_case(scheme, "mlm", part="Word order")
        change = numbers(traces(app, "order")[0]["y"])
        found = reorder_words(opened, trace, 1)
        np.testing.assert_allclose(change, found.logits_change, rtol=1e-5, atol=1e-6)
        assert sorted(found.order) == list(range(len(found.order))) != list(found.order)
        assert (change.max() < 1e-4 * np.abs(trace.logits).max()) == (scheme == "none")
    _, opened, trace, _ = open_case("none", "lm", part="Word order")
    assert reorder_words(opened, trace, 1).logits_change.max() > 1e-3 * np.abs(trace.logits).max()


@pytest.mark.parametrize("family", ["lm", "mlm"])
def test_a_learned_table_of_one_stack_is_drawn(open_case: Callable, family: str) -> None:
    app, opened, _, _ = open_case("learned", family, positions="20")
    drawn = numbers(traces(app, "table")[0]["z"])
    np.testing.assert_allclose(drawn, opened.positional_encoding()[:20], rtol=1e-6)


@pytest.mark.parametrize("name", ["GPT-2", "BERT", "Llama, grouped", "Marian", "GPT-NeoX", "T5"])
def test_models_of_transformers(name: str, open_app: Callable, tmp_path: Path, folder: Path, monkeypatch) -> None:
    monkeypatch.setenv(CHECKPOINTS_VARIABLE, str(folder))
    path = str(save_family(tmp_path / "model", name))
    monkeypatch.setenv(MODELS_VARIABLE, path)
    app = open_app(PAGE, checkpoint=path, source=SOURCE, head=str(HEAD), new_tokens="4", part="The encoding")
    assert not app.exception
    opened = load_checkpoint(path, "cpu")
    table = opened.positional_encoding()
    if table is not None:
        drawn = numbers(traces(app, "table")[0]["z"])
        np.testing.assert_allclose(drawn, table[: len(drawn)], rtol=1e-6)
        return
    trace = opened.trace(SOURCE, max_new_tokens=4) if name != "T5" else opened.trace(SOURCE)
    a = trace.attentions[trace.kinds[0].name, 0]
    if a.rotary is None:
        lines = traces(app, "bias")
        np.testing.assert_allclose(numbers(lines[HEAD]["y"]), biased_head(trace, a.kind, 0, HEAD).highest[HEAD])
        return
    drawn = numbers(traces(app, "angles")[0]["z"])
    np.testing.assert_allclose(drawn[: len(a.rotary.cos)], a.rotary.cos, rtol=1e-6)
    found = rotate_pairs(a, HEAD, 2, 1)
    assert found.scores[found.offsets == -1][0] == pytest.approx(a.scores[HEAD, 2, 1], rel=1e-4, abs=1e-5)


@pytest.mark.parametrize("scheme", ["none", "rope", "alibi"])
def test_a_translator_that_adds_no_positions_is_run_in_both_orders(open_case: Callable, scheme: str) -> None:
    app, opened, *_ = open_case(scheme, "translator", part="Word order", pe_order="2 1 0", source="Two dogs run")
    trace = opened.trace("Two dogs run", "Zwei Hunde.")
    permutation = reorder(trace.src_tokens, (2, 1, 0))
    expected = run_both_orders(opened, trace, permutation, (), (trace.kinds[0].name, 1))
    own, other = (numbers(heat["z"]) for heat in traces(app, "order-weights") if heat["type"] == "heatmap")
    np.testing.assert_allclose(own, expected.weights[0][HEAD], rtol=1e-5)
    back = np.argsort(permutation)
    np.testing.assert_allclose(other, expected.weights[1][HEAD][back][:, back], rtol=1e-5)
    alike = np.allclose(own, other, atol=1e-5)
    assert alike == (scheme == "none")
    assert ("only permutes the rows" in words(app)) == (scheme == "none")
    assert f"trained {'without' if scheme == 'none' else 'with'} positions" in words(app)
    assert "pe_off" not in {widget.key for widget in app.segmented_control}
    app, *_ = open_case("learned", "translator", part="Word order")
    assert "pe_off" in {widget.key for widget in app.segmented_control}
