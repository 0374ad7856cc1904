"""One model, many visitors: what one thread changes or records is its own."""

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch

from model.checkpoints.translator import Translator
from model.hooks import hook_points
from model.interventions import AttentionTemperature
from model.network.config import TransformerConfig
from model.trace import Trace
from tests.model.strategies import assert_bit_equal
from tests.model.tiny import random_model

THREADS, ROUNDS = 16, 10


def test_16_threads_with_16_temperatures_get_for_10_rounds_what_each_gets_alone(tokenizer):
    config = TransformerConfig(len(tokenizer), d_model=8, n_heads=2, d_ff=8, n_encoder_layers=1, n_decoder_layers=1)
    translator = Translator("tiny", "", random_model(config), tokenizer)
    taus = np.geomspace(0.1, 10, THREADS)
    start = threading.Barrier(THREADS)

    def trace(tau: float) -> Trace:
        return translator.trace("Two dogs", "Zwei Hunde", interventions=(AttentionTemperature(float(tau)),))

    def visit(tau: float) -> list[Trace]:
        start.wait()
        return [trace(tau) for _ in range(ROUNDS)]

    alone = [trace(tau) for tau in taus]
    with ThreadPoolExecutor(THREADS) as pool:
        together = list(pool.map(visit, taus))
    for expected, traces in zip(alone, together, strict=True):
        for found in traces:
            assert_bit_equal(expected, found)
    assert len({expected.logits.tobytes() for expected in alone}) == THREADS, "the temperatures do differ"
    assert not any(point.observed for point in hook_points(translator.model).values())


def test_a_visitor_who_only_translates_is_untouched_by_one_who_experiments(translator):
    texts = ["Two dogs play.", "The cat sat on the mat."]
    alone, stop = translator.translate(texts, 1), threading.Event()

    def experiment() -> None:
        while not stop.is_set():
            translator.trace("Two dogs", "Zwei", interventions=(AttentionTemperature(9.0),))

    with ThreadPoolExecutor(2) as pool:
        noise = [pool.submit(experiment) for _ in range(2)]
        found = [translator.translate(texts, 1) for _ in range(3)]
        stop.set()
    assert all(future.exception() is None for future in noise)
    assert found == [alone] * 3


def test_a_new_thread_starts_with_nothing_recorded_and_nothing_edited(translator):
    with ThreadPoolExecutor(1) as pool:
        before = pool.submit(translator.trace, "Two dogs", "Zwei").result()
        changed = translator.trace("Two dogs", "Zwei", interventions=(AttentionTemperature(5.0),))
        after = pool.submit(translator.trace, "Two dogs", "Zwei").result()
    assert_bit_equal(before, after)
    assert not np.array_equal(before.logits, changed.logits)
    assert not torch.is_inference_mode_enabled()
