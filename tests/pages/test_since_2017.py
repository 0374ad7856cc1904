"""Since 2017: what is drawn is the opened model's own, for a model of 2017 and for those with later parts."""

import re
from collections.abc import Callable
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from model.analysis.mechanisms.modern_parts import compare_norms
from model.background.studies import read_study
from model.checkpoints.store import load_checkpoint
from model.checkpoints.translator import Translator
from model.network.config import TransformerConfig
from model.run import Run
from pages.views.beyond.since_2017 import STUDY, TWINS, gate, norms, placement, rope, sharing, study
from tests.model.checkpoints.test_language_model import MODERN
from tests.pages.conftest import SHIPPED, save_random
from tests.pages.figures import figure, lines, maps, numbers

SOURCE = "A dog runs."
POST = TransformerConfig(d_model=32, n_heads=4, d_ff=16, max_len=48)
CONFIGS = {
    "modern": (MODERN, 0, 2),
    "wide-keys": (replace(MODERN, d_key=12), 0, 2),
    "modern-translator": (replace(MODERN, n_kv_heads=1, activation="geglu"), 1, 1),
    "alibi": (replace(MODERN, positions="alibi", n_kv_heads=0, norm="post", activation="gelu"), 0, 2),
    "learned": (replace(POST, positions="learned"), 1, 1),
}
"""by name: the configuration, and the layers of the encoder and of the decoder"""


@pytest.fixture(scope="module")
def run_of(tmp_path_factory: pytest.TempPathFactory, translator: Translator) -> Callable[..., Run]:
    """A run of the trained model of 2017, or of a random one with later parts."""
    folder, opened = tmp_path_factory.mktemp("since"), {"2017": translator}
    for name, (config, *layers) in CONFIGS.items():
        save_random(folder / name, config, *layers)
        opened[name] = load_checkpoint(str(folder / name), "cpu")

    @cache
    def run_of(name: str, kind: str = "", layer: int = 0, head: int = 0) -> Run:
        writes = {"max_new_tokens": 12} if hasattr(opened[name], "continue_text") else {}
        return Run.of(opened[name], opened[name].trace(SOURCE, **writes), kind, layer, head)

    return run_of


@pytest.mark.parametrize("name", ["2017", *CONFIGS])
def test_each_part_is_shown_or_said_to_be_missing(name: str, run_of: Callable) -> None:
    run = run_of(name)
    config = run.opened.config
    missing = {
        rope: config.positions != "rope",
        norms: config.norm_function == "layer_norm",
        placement: config.norm == "post",
        gate: not config.gated,
        sharing: config.kv_heads == config.n_heads,
    }
    for view, lacks in missing.items():
        result = view(run)
        assert bool(result.lacks) == lacks, view.title
        assert result.blocks
        assert bool(result.shows) == ((view, name) != (rope, "alibi")), "what adds nothing has nothing to draw"


def test_the_rotated_pair_and_the_score_over_the_distance_are_the_heads(run_of: Callable) -> None:
    run = run_of("modern", "decoder_self", 1, 3)
    result, attention = rope(run, token=5, key=3, pair=1), run.attention
    half, plane = attention.d_k // 2, {trace.get("name", ""): trace for trace in figure(result, "plane")["data"]}
    for name, array, at in (
        ("q before", attention.rotary.q, 5),
        ("q after", attention.q, 5),
        ("k before", attention.rotary.k, 3),
        ("k after", attention.k, 3),
    ):
        expected = array[3, at, [1, 1 + half]]
        assert [numbers(plane[name][axis])[1] for axis in "xy"] == pytest.approx(expected, rel=1e-6)
    before, after = lines(result, "pairs")
    products = attention.q[3, 5] * attention.k[3, 3]
    assert after == pytest.approx(products[:half] + products[half:], rel=1e-4, abs=1e-6)
    assert before.sum() == pytest.approx(float(attention.rotary.q[3, 5] @ attention.rotary.k[3, 3]), rel=1e-4)
    curve, here, _ = figure(result, "offsets")["data"]
    assert numbers(here["x"])[0] == -2
    assert numbers(here["y"])[0] == pytest.approx(attention.scores[3, 5, 3], rel=1e-4)
    assert numbers(curve["x"]).max() == 0
    assert (result.facts["dimensions"], result.facts["score"]) == ((1, 1 + half), attention.scores[3, 5, 3])


def test_a_model_of_2017_shows_what_it_adds_instead(run_of: Callable) -> None:
    run = run_of("2017", "encoder_self")
    terms = run.trace.src_embedded.terms.values()
    assert maps(rope(run, token=2), "added")[0] == pytest.approx(np.stack([term[2] for term in terms]))


@pytest.mark.parametrize("name", ["2017", "modern"])
def test_both_norms_are_those_of_the_vector_that_the_models_norm_read(name: str, run_of: Callable) -> None:
    run = run_of(name, "encoder_self" if name == "2017" else "decoder_self", 1)
    result, sublayer = norms(run, token=1, norm=3), run.stream.sublayers[3]
    found, own = compare_norms(run.trace, run.stream.name, 3, 1), sublayer.norm.kind
    other = {"LayerNorm": "RMSNorm", "RMSNorm": "LayerNorm"}[own]
    expected = {"LayerNorm": found.layer_norm, "RMSNorm": found.rms_norm}
    drawn = result.shows["norms"].lines
    assert list(drawn) == [f"{other} of the same vector", f"{own}, this model"]
    for line, kind in zip(drawn.values(), (other, own), strict=True):
        assert line.x == pytest.approx(sublayer.norm_input[1], abs=1e-5)
        assert line.y == pytest.approx(expected[kind], abs=1e-5)
    means, divisors = result.shows["table"].iloc[:2][["LayerNorm", "RMSNorm"]].to_numpy()
    assert means == pytest.approx([found.mean, 0], abs=1e-6)
    assert divisors == pytest.approx([found.std, found.rms], rel=1e-4)
    assert result.facts["off"] < 1e-5
    assert (result.facts["own"], result.facts["cosine"]) == (own, found.cosine[3, 1])


@pytest.mark.parametrize("name", ["2017", "modern"])
def test_the_lengths_are_those_of_the_stream(name: str, run_of: Callable) -> None:
    run = run_of(name, "cross" if name == "2017" else "decoder_self")
    stream = run.trace.streams["decoder"]
    drawn = {trace.get("name", ""): trace for trace in figure(placement(run, token=1), "stream")["data"]}
    vectors = [stream.embedded.sum, *(sublayer.after for sublayer in stream.sublayers)]
    lengths = [np.linalg.norm(x[1]) for x in vectors]
    assert numbers(drawn["‖x‖, this token"]["y"]) == pytest.approx(lengths, rel=1e-5)
    added = drawn.get("‖x + Sublayer(x)‖, before the norm")
    assert (added is not None) == (name == "2017")
    if added:
        lengths = [np.linalg.norm(sublayer.added[1]) for sublayer in stream.sublayers]
        assert numbers(added["y"]).astype(float)[1:] == pytest.approx(lengths, rel=1e-5)


def test_the_neurons_are_the_runs(run_of: Callable) -> None:
    run = run_of("modern", "decoder_self", 1)
    result, sublayer = gate(run, token=4), run.trace.sublayers[3]
    points, rings = figure(result, "gate")["data"]
    assert numbers(points["x"]) == pytest.approx(sublayer.gate[4])
    assert numbers(points["y"]) == pytest.approx(sublayer.up[4])
    assert numbers(points["marker"]["color"]) == pytest.approx(sublayer.hidden[4], abs=1e-6)
    assert set(numbers(rings["customdata"])) == set(np.argsort(np.abs(sublayer.hidden[4]))[-10:])
    largest = sorted(sublayer.hidden[4], key=abs, reverse=True)[:10]
    assert result.shows["largest"]["act(z) × up"].tolist() == pytest.approx(largest)
    run = run_of("2017", "encoder_self")
    result, hidden = gate(run, token=1), run.stream.sublayers[1].hidden[1]
    drawn = {trace.get("name", ""): trace for trace in figure(result, "activation")["data"]}
    assert numbers(drawn["neurons of this token"]["y"]) == pytest.approx(hidden)
    assert result.facts["zeros"] == (hidden == 0).sum()


@pytest.mark.parametrize("name", ["2017", "modern", "wide-keys"])
def test_heads_share_keys_as_the_run_does_and_the_bytes_are_those_of_its_arrays(name: str, run_of: Callable) -> None:
    kind = "encoder_self" if name == "2017" else "decoder_self"
    run = run_of(name, kind, 1)
    result, attention = sharing(run), run.attention
    _, queries, _ = figure(result, "sharing")["data"]
    assert tuple(numbers(queries["customdata"])) == attention.kv_head
    same = np.array([[np.array_equal(a, b) for a in attention.k] for b in attention.k])
    assert np.array_equal(maps(result, "keys")[0] == 0, same)
    assert np.array_equal(same, np.equal.outer(attention.kv_head, attention.kv_head))
    heads = sorted({attention.kv_head.index(kv) for kv in attention.kv_head})
    own = [run.trace.attention(kind, layer) for layer in (0, 1)]
    bytes_of_run = sum(x[head].nbytes for a in own for head in heads for x in (a.k, a.v))
    here = list(result.shows["cache"].lines.values())[-1]
    assert (here.x, here.y) == ([len(attention.key_tokens)], [bytes_of_run])
    facts, size = result.facts, result.facts["size"]
    assert facts["bytes"] == bytes_of_run
    assert facts["layers"] * facts["tokens"] * facts["kv_heads"] * (size.d_k + size.d_v) * 4 == bytes_of_run


def test_the_parts_are_those_of_the_tables_and_models_of_one_size_are_compared(run_of: Callable) -> None:
    result = study(run_of("2017"))
    for key, table, runs, apart in (("parts", "since_2017", STUDY, 0.01), ("twins", "twins", TWINS, 0.05)):
        found = read_study(table)
        for line, name in zip(result.shows[key].lines.values(), runs, strict=True):
            run = found[found["run"] == name]
            assert line.x == pytest.approx(run["tokens"] / 1e6)
            assert line.y == pytest.approx(run["dev_bits_per_byte"])
        assert found["parameters"].max() < (1 + apart) * found["parameters"].min()
        assert found.groupby("run")["tokens"].max().nunique() == 1
    ends = [result.facts[name]["dev_bits_per_byte"] for name in ("old", "new")]
    assert ends == [found[found["run"] == name]["dev_bits_per_byte"].iloc[-1] for name in TWINS]


def test_what_is_said_of_the_twin_is_in_its_logs_and_its_card(run_of: Callable) -> None:
    result = study(run_of("2017"))
    assert result.facts["rates"] == pytest.approx(0.4, abs=0.005)
    card = (SHIPPED / "everyday-lm-2017" / "README.md").read_text(encoding="utf-8")
    missing = re.search(r"the order of the lines, and (\d+) of ([\d,]+) lines that are missing", card)
    said = " ".join(block.text for block in result.blocks)
    assert all(number in said for number in missing.groups())
    # A count of another checkpoint's runs goes stale; that one's own card has it.
    assert not re.search(r"\b(two|three|four|five|\d+) training runs", card)
