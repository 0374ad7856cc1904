"""The result cache: content keys, bounded memory, and nothing left behind by requests that were cancelled."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from threading import Event, Lock

import numpy as np
import pytest
import streamlit as st

from model.interventions import AttentionTemperature
from model.trace import Trace
from pages.compute import cache, queue
from pages.compute.cache import ENTRY_BYTES, Cache, footprint, key_of, shared_result

PATIENCE = 30
"""seconds until a test that hangs fails"""


class Left(BaseException):
    """As Streamlit's own: no `except Exception` may catch it."""


@dataclass
class Result:
    numbers: np.ndarray


@pytest.fixture
def empty() -> Iterator[None]:
    st.cache_resource.clear()
    yield
    st.cache_resource.clear()


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(50) as threads:
        yield threads


@pytest.mark.usefixtures("empty")
def test_a_cancelled_request_leaves_nothing_and_the_next_caller_recomputes(pool):
    begun, leave, runs, lock = Event(), Event(), [], Lock()

    @shared_result()
    def double(number: int) -> int:
        with lock:
            runs.append(number)
            first = len(runs) == 1
        begun.set()
        if first:
            assert leave.wait(PATIENCE)
            raise Left
        return 2 * number

    leaving = pool.submit(double, 21)
    assert begun.wait(PATIENCE)
    waiting = [pool.submit(double, 21) for _ in range(4)]
    leave.set()
    with pytest.raises(Left):
        leaving.result(PATIENCE)
    assert [future.result(PATIENCE) for future in waiting] == [42] * 4
    assert runs == [21, 21], "one that was cancelled, one that computed it for all others"


@pytest.mark.usefixtures("empty")
def test_fifty_visitors_who_want_the_same_get_one_computation(pool):
    runs, together = [], Event()

    @shared_result()
    def double(number: int) -> int:
        runs.append(number)
        together.wait(0.2)
        return 2 * number

    futures = [pool.submit(double, number % 5) for number in range(50)]
    assert [future.result(PATIENCE) for future in futures] == [2 * (number % 5) for number in range(50)]
    assert sorted(runs) == [0, 1, 2, 3, 4]


@pytest.mark.usefixtures("empty")
def test_a_stored_result_is_returned_while_the_model_is_busy(monkeypatch):
    @shared_result()
    def double(number: int) -> int:
        return 2 * number

    double(4)
    monkeypatch.setattr(queue.model_queue(), "_enter", lambda _: pytest.fail("it asked for a turn"))
    assert double(4) == 8


@pytest.mark.usefixtures("empty")
def test_no_lock_is_held_while_a_result_is_computed(pool):
    begun, finish = Event(), Event()

    @shared_result()
    def slow(number: int) -> int:
        begun.set()
        assert finish.wait(PATIENCE)
        return number

    working = pool.submit(slow, 1)
    assert begun.wait(PATIENCE)
    cache.put("other", "case", 1)
    assert cache.cached("case", 1) == "other"
    finish.set()
    assert working.result(PATIENCE) == 1


def test_the_least_recently_used_results_are_dropped_and_no_more_than_needed():
    results = Cache(2 * ENTRY_BYTES + 250)
    for name in "ab":
        results.put(name, Result(np.zeros(100, np.uint8)))
    results.get("a")
    results.put("c", [Result(np.zeros(50, np.uint8)), {"x": np.zeros(50, np.uint8)}])
    assert [name in results for name in "abc"] == [True, False, True]
    assert results.bytes == 2 * ENTRY_BYTES + 200
    results.put("d", np.zeros(10 * ENTRY_BYTES, np.uint8))
    assert [name in results for name in "acd"] == [True, True, False], "larger than the whole cache: not stored"


def test_results_without_arrays_are_bounded_too():
    results = Cache(10 * ENTRY_BYTES)
    for number in range(100):
        results.put(number, "text")
    assert [number in results for number in (0, 90, 91, 99)] == [False, False, True, True]


def test_the_footprint_of_a_trace_is_its_arrays_and_of_a_model_its_weights(translator):
    trace = translator.trace("Two dogs", "Zwei Hunde")
    parts = sum(footprint(value) - ENTRY_BYTES for value in vars(trace).values())
    assert footprint(trace) == parts + ENTRY_BYTES > trace.logits.nbytes + trace.memory.nbytes
    assert footprint(trace.attention("cross", 0).projections) == ENTRY_BYTES
    weights = sum(parameter.nbytes for parameter in translator.model.parameters())
    assert footprint(translator) == ENTRY_BYTES + weights


def test_a_key_is_content(translator):
    trace, again = (translator.trace("Two dogs", "Zwei Hunde") for _ in range(2))
    hot = translator.trace("Two dogs", "Zwei Hunde", interventions=(AttentionTemperature(0.5),))
    assert key_of((translator, trace)) == key_of((translator, again))
    assert hash(key_of((translator, trace))) == hash(key_of((translator, again)))
    assert key_of(replace(translator)) == key_of(translator)
    different: list[Trace] = [trace, hot, translator.trace("Two dogs", "Zwei Katzen"), replace(trace, device="cuda:0")]
    assert len({key_of(one) for one in different}) == len(different)
    assert key_of(replace(translator, hash="1" * 64)) != key_of(translator)


def test_arrays_lists_and_mappings_are_keys_by_their_values():
    assert key_of([np.arange(3), {"a": [1]}]) == key_of([np.arange(3), {"a": [1]}])
    assert key_of(np.arange(4)) != key_of(np.arange(4).reshape(2, 2))
    assert key_of(np.arange(4)) != key_of(np.arange(4.0))
    assert key_of(Result(np.zeros(1))) != key_of(Result(np.ones(1)))
    with pytest.raises(TypeError, match="unhashable"):
        key_of({1, 2})


@pytest.mark.usefixtures("empty")
def test_two_functions_with_equal_arguments_have_results_of_their_own():
    @shared_result()
    def double(number: int) -> int:
        return 2 * number

    @shared_result()
    def triple(number: int) -> int:
        return 3 * number

    assert (double(2), triple(2)) == (4, 6)
