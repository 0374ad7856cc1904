"""A run too long to keep it all is opened layer by layer, bit for bit."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from model import tracer
from model.analysis.heads.head_tables import TableOptions, overview
from model.checkpoints.checkpoint import Checkpoint
from model.checkpoints.store import load_checkpoint
from model.interventions import HeadGate
from model.on_demand import MappingOnDemand, SequenceOnDemand, joined
from model.trace import Trace
from pages.compute.cache import footprint
from tests.model.checkpoints.huggingface.test_families import opened, traced
from tests.model.interventions.test_every_intervention import SOURCE, TARGET, every


@pytest.fixture(scope="module")
def language_model() -> Checkpoint:
    return load_checkpoint("everyday-lm")


@pytest.fixture
def on_demand(monkeypatch) -> Callable[[Callable[[], Trace]], Trace]:
    """What `run` returns when not even one layer may be kept."""

    def trace(run: Callable[[], Trace]) -> Trace:
        with monkeypatch.context() as patch:
            patch.setattr(tracer, "EVERYTHING_BYTES", 0)
            return run()

    return trace


@pytest.fixture
def ran(language_model, monkeypatch) -> list[tuple]:
    """The layers that the language model runs again, as they do."""
    ran, run_layer = [], language_model.model.rerun_layer
    monkeypatch.setattr(language_model.model, "rerun_layer", lambda *layer: ran.append(layer) or run_layer(*layer))
    return ran


def assert_same(found: Trace, expected: Trace) -> None:
    arrays, others = expected.named_arrays(), found.named_arrays()
    assert arrays.keys() == others.keys()
    assert [name for name, array in arrays.items() if not np.array_equal(array, others[name])] == []


@every
def test_a_layer_opened_later_is_the_layer_that_ran(translator, on_demand, change) -> None:
    def run() -> Trace:
        return translator.trace(SOURCE, TARGET, interventions=(change,))

    found = on_demand(run)
    assert isinstance(found.attentions, MappingOnDemand)
    assert_same(found, run())


@pytest.mark.parametrize("name", ["GPT-2", "Llama, grouped", "Gemma 3", "gpt-oss", "GPT-NeoX", "ALBERT", "T5", "BART"])
def test_hugging_face_models_open_their_layers_too(name: str, on_demand) -> None:
    change = HeadGate(0.3, opened(name).kinds[0].name, 1, 0)
    found = on_demand(lambda: traced(name, change))
    assert isinstance(found.attentions, MappingOnDemand)
    assert isinstance(found.sublayers, SequenceOnDemand)
    assert_same(found, traced(name, change))


def test_only_what_layers_read_is_kept(language_model, on_demand) -> None:
    text = "A dog runs through the snow. " * 6
    whole, found = language_model.trace(text), on_demand(lambda: language_model.trace(text))
    assert found.attentions.nbytes < footprint(whole) / 2
    assert footprint(found) < footprint(whole)
    one, again = (found.attention("decoder_self", 1) for _ in range(2))
    assert one.pattern is again.pattern  # the layer that was asked for last is not computed twice
    found.attention("decoder_self", 0)
    assert found.attention("decoder_self", 1).pattern is not one.pattern


def test_all_heads_are_seen_without_running_a_layer_again(language_model, ran, monkeypatch) -> None:
    text = "A dog runs through the snow. " * 6
    whole = language_model.trace(text)
    cells = sum(attention.pattern.size for attention in whole.attentions.values())
    monkeypatch.setattr(tracer, "EVERYTHING_BYTES", tracer.KEPT_CELL_BYTES * cells)
    found = language_model.trace(text)
    for place, attention in whole.attentions.items():
        weights, mask = found.weights_and_mask(*place)
        np.testing.assert_array_equal(weights, attention.pattern)
        np.testing.assert_array_equal(mask, attention.mask)
    assert not ran
    assert found.attentions.nbytes > whole.attention("decoder_self", 0).pattern.nbytes * len(whole.attentions)
    np.testing.assert_array_equal(found.attention("decoder_self", 1).scores, whole.attention("decoder_self", 1).scores)
    assert len(ran) == 1
    monkeypatch.setattr(tracer, "EVERYTHING_BYTES", tracer.KEPT_CELL_BYTES * cells - 1)
    assert not language_model.trace(text).attentions.known


@pytest.mark.parametrize("values", ["weights", "norms"])
def test_all_heads_of_a_run_that_keeps_one_layer_run_each_layer_once(
    values: str, language_model, on_demand, ran
) -> None:
    found = on_demand(lambda: language_model.trace("A dog runs through the snow."))
    overview(found, "decoder_self", TableOptions(values=values))
    assert len(ran) == len(found.kind("decoder_self").layers)


def test_threads_open_layers_of_one_trace(language_model, on_demand) -> None:
    run = lambda: language_model.trace("A dog runs through the snow.")  # noqa: E731
    whole, found = run(), on_demand(run)
    with ThreadPoolExecutor(8) as pool:
        patterns = list(pool.map(lambda place: (place, found.attentions[place].pattern), list(whole.attentions) * 4))
    for place, pattern in patterns:
        np.testing.assert_array_equal(pattern, whole.attentions[place].pattern)


def test_a_saved_file_has_every_layer(translator, on_demand, tmp_path) -> None:
    on_demand(lambda: translator.trace(SOURCE, TARGET)).save(tmp_path / "run.npz")
    assert_same(Trace.load(tmp_path / "run.npz"), translator.trace(SOURCE, TARGET))


def test_nothing_is_made_before_it_is_asked_for() -> None:
    made = []
    squares = SequenceOnDemand(range(4), lambda x: made.append(x) or x * x)
    both = joined([squares[1:], ("a",)])
    assert (len(both), made) == (4, [])
    assert [both[0], both[-1], list(squares[2:])] == [1, "a", [4, 9]]
    assert squares == (0, 1, 4, 9) != squares[1:]
    named = MappingOnDemand("ab", str.upper)
    assert ("a" in named, "c" in named, dict(named), named.get("c")) == (True, False, {"a": "A", "b": "B"}, None)
