"""Since 2017: what is drawn is the opened model's own, for a model of 2017 and for a modern one."""

import re
from collections.abc import Callable
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from model.analysis.mechanisms.modern_parts import compare_norms
from model.background.studies import read_study
from model.checkpoints.store import load_checkpoint, save_checkpoint
from model.network.config import TransformerConfig
from model.trace import Trace
from pages import page_of
from pages.views.beyond.since_2017 import STUDY, TWINS
from tests.model.checkpoints.test_language_model import MODERN
from tests.model.tiny import random_model
from tests.pages.figures import figure, numbers, words
from tests.pages.test_pages import holds

pytest.importorskip("streamlit")

PAGE = "pages/since_2017.py"
CHECKPOINTS = Path(__file__).parents[2] / "checkpoints"
TABS = [view.title for view in page_of(PAGE).views]
SOURCE = "A dog runs."
CONFIGS = {
    "modern": MODERN,
    "wide-keys": replace(MODERN, d_key=12),
    "modern-translator": replace(MODERN, n_encoder_layers=1, n_decoder_layers=1, n_kv_heads=1, activation="geglu"),
    "alibi": replace(MODERN, positions="alibi", n_kv_heads=0, norm="post", activation="gelu"),
    "learned": TransformerConfig(
        d_model=32, n_heads=4, d_ff=16, max_len=48, positions="learned", n_encoder_layers=1, n_decoder_layers=1
    ),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, translator: Any) -> Path:
    """The trained model of 2017 under the default name, and random ones with later parts."""
    folder, tokenizer = tmp_path_factory.mktemp("since"), translator.tokenizer
    save_checkpoint(folder / "en-de", translator.model, tokenizer, dict(translator.model.named_parameters()))
    for name, config in CONFIGS.items():
        model = random_model(replace(config, vocab_size=len(tokenizer)))
        save_checkpoint(folder / name, model, tokenizer, dict(model.named_parameters()))
    return folder


@pytest.fixture
def open_since(open_app: Callable, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Callable:
    monkeypatch.setenv("ATTENTION_EXPLORER_CHECKPOINTS", str(folder))

    def open_since(checkpoint: str, tab: str, **query: str) -> Any:
        app = open_app(PAGE, checkpoint=checkpoint, source=SOURCE, since=tab, **query)
        assert not app.exception
        return app

    return open_since


@pytest.fixture
def modern(folder: Path) -> Trace:
    return load_checkpoint(str(folder / "modern"), "cpu").trace(SOURCE, max_new_tokens=12)


@pytest.fixture
def classic(folder: Path) -> Trace:
    return load_checkpoint(str(folder / "en-de"), "cpu").trace(SOURCE)


def drawn(app: Any, key: str) -> dict[str, dict]:
    """The figure's traces by name."""
    return {trace.get("name", ""): trace for trace in figure(app, key)["data"]}


@pytest.mark.parametrize(
    ("checkpoint", "tab"),
    [
        *product(("en-de", "modern", "alibi"), TABS),
        *(("modern-translator", tab) for tab in ("SwiGLU", "Shared keys and values")),
        ("wide-keys", "Shared keys and values"),
        ("learned", "RoPE"),
    ],
)
def test_each_tab_works_for_each_model_and_offers_the_part_where_it_is_missing(
    checkpoint: str, tab: str, open_since: Callable
) -> None:
    app = open_since(checkpoint, tab)
    assert holds(app) == 3
    config = CONFIGS.get(checkpoint, TransformerConfig())
    missing = {
        "RoPE": config.positions != "rope",
        "RMSNorm": config.norm_function == "layer_norm",
        "Pre-norm": config.norm == "post",
        "SwiGLU": not config.gated,
        "Shared keys and values": config.kv_heads == config.n_heads,
    }
    offered = [button for button in app.button if button.key == "open-with"]
    assert bool(offered) == missing.get(tab, False)
    without = (tab, checkpoint) == ("RoPE", "alibi")
    assert bool(app.get("plotly_chart")) != without, "what adds nothing has nothing to draw"


def test_the_button_opens_a_model_with_the_part_on_the_same_tab(open_since: Callable) -> None:
    app = open_since("en-de", "SwiGLU")
    app.button(key="open-with").click().run()
    assert not app.exception
    assert app.selectbox(key="checkpoint").value == "modern"
    assert "gate" in drawn_axes(app, "since_2017-gate")


def drawn_axes(app: Any, key: str) -> str:
    layout = figure(app, key)["layout"]
    return " ".join(layout[axis]["title"]["text"] for axis in ("xaxis", "yaxis"))


def test_the_rotated_pair_and_the_score_over_the_distance_are_the_heads(open_since: Callable, modern: Trace) -> None:
    app = open_since("modern", "RoPE", layer="1", head="3", since_pair="1")
    app.selectbox(key="since_token").set_value(5).run()
    app.selectbox(key="since_key").set_value(3).run()
    attention = modern.attention("decoder_self", 1)
    half = attention.d_k // 2
    plane = drawn(app, "since_2017-plane")
    for name, array, at in (
        ("q before", attention.rotary.q, 5),
        ("q after", attention.q, 5),
        ("k before", attention.rotary.k, 3),
        ("k after", attention.k, 3),
    ):
        expected = array[3, at, [1, 1 + half]]
        assert [numbers(plane[name][axis])[1] for axis in "xy"] == pytest.approx(expected, rel=1e-6)
    before, after = figure(app, "since_2017-pairs")["data"]
    products = attention.q[3, 5] * attention.k[3, 3]
    assert numbers(after["y"]) == pytest.approx(products[:half] + products[half:], rel=1e-4, abs=1e-6)
    assert numbers(before["y"]).sum() == pytest.approx(
        float(attention.rotary.q[3, 5] @ attention.rotary.k[3, 3]), rel=1e-4
    )
    curve, here, _ = figure(app, "since_2017-offsets")["data"]
    assert numbers(here["x"])[0] == -2
    assert numbers(here["y"])[0] == pytest.approx(attention.scores[3, 5, 3], rel=1e-4)
    assert numbers(curve["x"]).max() == 0
    assert "pairs dimension i with i + " in words(app)


def test_a_model_of_2017_shows_what_it_adds_instead(open_since: Callable, classic: Trace) -> None:
    app = open_since("en-de", "RoPE", kind="Encoder self-attention")
    app.selectbox(key="since_token").set_value(2).run()
    (strips,) = figure(app, "since_2017-added")["data"]
    embedded = classic.src_embedded
    rows = (embedded.embedding[2], embedded.positional[2], embedded.sum[2])
    assert numbers(strips["z"]) == pytest.approx(np.stack(rows))


@pytest.mark.parametrize("checkpoint", ["en-de", "modern"])
def test_both_norms_are_those_of_the_vector_that_the_models_norm_read(
    checkpoint: str, open_since: Callable, classic: Trace, modern: Trace
) -> None:
    trace, kind = (classic, "Encoder self-attention") if checkpoint == "en-de" else (modern, "Decoder self-attention")
    app = open_since(checkpoint, "RMSNorm", kind=kind, layer="1", since_norm="feed-forward")
    app.selectbox(key="since_token").set_value(1).run()
    sublayer = trace.streams["encoder" if checkpoint == "en-de" else "decoder"].sublayers[3]
    found = compare_norms(trace, "encoder" if checkpoint == "en-de" else "decoder", 3, 1)
    lines = drawn(app, "since_2017-norms")
    own, other = [name for name in lines if "this model" in name], [name for name in lines if "same vector" in name]
    assert (own, other) == ([f"{sublayer.norm.kind}, this model"], [f"{OTHER[sublayer.norm.kind]} of the same vector"])
    expected = {"LayerNorm": found.layer_norm, "RMSNorm": found.rms_norm}
    for name, line in lines.items():
        assert numbers(line["x"]) == pytest.approx(sublayer.norm_input[1], abs=1e-5)
        assert numbers(line["y"]) == pytest.approx(expected[re.split("[, ]", name)[0]], abs=1e-5)
    means, divisors = app.dataframe[0].value.iloc[:2][["LayerNorm", "RMSNorm"]].to_numpy()
    assert means == pytest.approx([found.mean, 0], abs=1e-6)
    assert divisors == pytest.approx([found.std, found.rms], rel=1e-4)
    assert f"{OTHER[sublayer.norm.kind]} is not part of this model" in words(app)
    assert f"**{found.cosine[3, 1]:.6f}**" in words(app)


OTHER = {"LayerNorm": "RMSNorm", "RMSNorm": "LayerNorm"}


@pytest.mark.parametrize("checkpoint", ["en-de", "modern"])
def test_the_lengths_are_those_of_the_stream(
    checkpoint: str, open_since: Callable, classic: Trace, modern: Trace
) -> None:
    trace, kind = (classic, "Cross-attention") if checkpoint == "en-de" else (modern, "Decoder self-attention")
    app = open_since(checkpoint, "Pre-norm", kind=kind)
    app.selectbox(key="since_token").set_value(1).run()
    stream = trace.streams["decoder"]
    lines = drawn(app, "since_2017-stream")
    vectors = [stream.embedded.sum, *(sublayer.after for sublayer in stream.sublayers)]
    assert numbers(lines["‖x‖, this token"]["y"]) == pytest.approx([np.linalg.norm(x[1]) for x in vectors], rel=1e-5)
    name = "‖x + Sublayer(x)‖, before the norm"
    assert (name in lines) == (checkpoint == "en-de")
    if name in lines:
        added = [np.linalg.norm(sublayer.added[1]) for sublayer in stream.sublayers]
        assert numbers(lines[name]["y"]).astype(float)[1:] == pytest.approx(added, rel=1e-5)


def test_gate_and_up_are_the_runs(open_since: Callable, modern: Trace) -> None:
    app = open_since("modern", "SwiGLU", layer="1")
    app.selectbox(key="since_token").set_value(4).run()
    sublayer = modern.sublayers[3]
    points, rings = figure(app, "since_2017-gate")["data"]
    assert numbers(points["x"]) == pytest.approx(sublayer.gate[4])
    assert numbers(points["y"]) == pytest.approx(sublayer.up[4])
    assert numbers(points["marker"]["color"]) == pytest.approx(sublayer.hidden[4], abs=1e-6)
    assert set(numbers(rings["customdata"])) == set(np.argsort(np.abs(sublayer.hidden[4]))[-10:])
    assert app.dataframe[0].value["act(z) × up"].tolist() == pytest.approx(
        sorted(sublayer.hidden[4], key=abs, reverse=True)[:10]
    )


def test_the_neurons_of_a_model_of_2017_are_the_runs(open_since: Callable, classic: Trace) -> None:
    app = open_since("en-de", "SwiGLU", layer="0")
    app.selectbox(key="since_token").set_value(1).run()
    hidden = classic.streams["encoder"].sublayers[1].hidden[1]
    points = drawn(app, "since_2017-activation")["neurons of this token"]
    assert numbers(points["y"]) == pytest.approx(hidden)
    assert f"{(hidden == 0).sum():,} ({(hidden == 0).mean():.1%}) are exactly 0" in words(app)


@pytest.mark.parametrize("checkpoint", ["en-de", "modern", "wide-keys"])
def test_heads_share_keys_as_the_run_does_and_the_bytes_are_those_of_its_arrays(
    checkpoint: str, open_since: Callable, folder: Path
) -> None:
    kind = "encoder_self" if checkpoint == "en-de" else "decoder_self"
    written = {} if checkpoint == "en-de" else {"max_new_tokens": 12}
    trace = load_checkpoint(str(folder / checkpoint), "cpu").trace(SOURCE, **written)
    app = open_since(checkpoint, "Shared keys and values", layer="1")
    attention = trace.attention(kind, 1)
    _, queries, _ = figure(app, "since_2017-sharing")["data"]
    assert tuple(numbers(queries["customdata"])) == attention.kv_head
    (distances,) = figure(app, "since_2017-keys")["data"]
    same = np.array([[np.array_equal(a, b) for a in attention.k] for b in attention.k])
    assert np.array_equal(numbers(distances["z"]) == 0, same)
    assert np.array_equal(same, np.equal.outer(attention.kv_head, attention.kv_head))
    here = figure(app, "since_2017-cache")["data"][-1]
    heads = sorted({attention.kv_head.index(kv) for kv in attention.kv_head})
    own = [trace.attention(kind, layer) for layer in (0, 1)]
    bytes_of_run = sum(x[head].nbytes for a in own for head in heads for x in (a.k, a.v))
    assert (numbers(here["x"])[0], numbers(here["y"])[0]) == (len(attention.key_tokens), bytes_of_run)
    assert f"{bytes_of_run:,} bytes, counted in its own arrays" in words(app)
    layers, tokens, kv_heads, d_k, d_v = map(
        int,
        re.search(
            r"(\d+) layers? · (\d+) tokens? · (\d+) heads? · \((\d+) \+ (\d+)\) · 4 bytes = ", words(app)
        ).groups(),
    )
    assert layers * tokens * kv_heads * (d_k + d_v) * 4 == bytes_of_run


def test_the_parts_are_those_of_the_tables_and_models_of_one_size_are_compared(open_since: Callable) -> None:
    app = open_since("en-de", "What each part buys")
    for key, table, runs, apart in (("parts", "since_2017", STUDY, 0.01), ("twins", "twins", TWINS, 0.05)):
        study = read_study(table)
        for trace, name in zip(figure(app, f"since_2017-{key}")["data"], runs, strict=True):
            run = study[study["run"] == name]
            assert numbers(trace["x"]).astype(float) == pytest.approx(run["tokens"] / 1e6)
            assert numbers(trace["y"]).astype(float) == pytest.approx(run["dev_bits_per_byte"])
        assert study["parameters"].max() < (1 + apart) * study["parameters"].min()
        assert study.groupby("run")["tokens"].max().nunique() == 1
    old, new = (study[study["run"] == name].iloc[-1] for name in TWINS)
    assert f"{old['dev_bits_per_byte']:.4f} bits per byte with the parts of 2017" in words(app)
    assert f"{new['dev_bits_per_byte']:.4f} with those since" in words(app)


def test_what_is_said_of_the_twin_is_in_its_logs_and_its_card(open_app: Callable) -> None:
    app = open_app(PAGE, since="What each part buys")
    study = read_study("twins").set_index("step")
    old, new = (study[study["run"] == name]["learning_rate"] for name in TWINS)
    rates = (old / new).dropna()
    assert rates[rates > 0].median() == pytest.approx(0.4, abs=0.005)
    shown = words(app)
    assert "learning rates are 0.4 of everyday-lm's" in shown
    card = (CHECKPOINTS / "everyday-lm-2017" / "README.md").read_text(encoding="utf-8")
    lines = re.search(r"the order of the lines, and (\d+) of ([\d,]+) lines that are missing", card)
    assert f"in another order, without {lines[1]} of their {lines[2]} lines" in shown


def test_the_twins_card_does_not_count_the_runs_of_the_other_one() -> None:
    """A count of another checkpoint's runs goes stale; that one's own card has it."""
    card = (CHECKPOINTS / "everyday-lm-2017" / "README.md").read_text(encoding="utf-8")
    assert not re.search(r"\b(two|three|four|five|\d+) training runs", card)
