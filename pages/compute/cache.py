"""A memory-bounded result cache shared by all sessions. The key of a result is content, never an `id()`.

No lock is held while a result is computed. A cancelled request leaves nothing behind; the next caller recomputes.
"""

from collections.abc import Callable, Hashable, Mapping
from contextlib import nullcontext, suppress
from dataclasses import fields, is_dataclass
from functools import wraps
from hashlib import sha256
from threading import Lock
from typing import Any, ParamSpec, TypeVar

import numpy as np
import streamlit as st
from cachetools import LRUCache

from model.checkpoints.checkpoint import Checkpoint
from model.checkpoints.devices import OutOfMemory, free_memory
from model.checkpoints.store import offered_models
from model.language import ENGLISH, language, tr
from model.on_demand import MappingOnDemand
from model.trace import Norm, Projections, Trace
from pages.compute.queue import has_page, wait_for_turn

CACHE_BYTES = 1_000_000_000
"""for all results together; a Trace of 250 + 250 tokens takes 112 MB, one of 20 + 20 takes 4"""
ENTRY_BYTES = 2_000
"""counted for every entry besides its arrays and texts"""

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


class Cache:
    """Results by key; when they exceed `max_bytes` together, the least recently used ones are dropped."""

    def __init__(self, max_bytes: int) -> None:
        self._lock = Lock()
        self._results = LRUCache(max_bytes, getsizeof=footprint)

    def get(self, key: Hashable) -> Any:
        """The result, or None if there is none."""
        with self._lock:
            return self._results.get(key)

    def put(self, key: Hashable, result: Any) -> None:
        """Store a result that is not None; one larger than the whole cache is not stored."""
        with self._lock, suppress(ValueError):
            self._results[key] = result

    def drop(self, key: Hashable) -> None:
        """Forget a result, if there is one."""
        with self._lock:
            self._results.pop(key, None)

    def drop_all_with(self, part: str) -> None:
        """Forget every result that depends on this."""
        with self._lock:
            for key in [key for key in self._results if _has(key, part)]:
                self._results.pop(key)

    def __contains__(self, key: Hashable) -> bool:
        with self._lock:
            return key in self._results

    @property
    def bytes(self) -> int:
        """What all results take together."""
        return self._results.currsize


def _has(key: Hashable, part: str) -> bool:
    return key == part or (isinstance(key, tuple) and any(_has(each, part) for each in key))


class Kept(tuple):
    """What stays, however large it is: a model that the app was started for."""


@st.cache_resource(show_spinner=False)
def shared_cache() -> Cache:
    """The one cache of this process."""
    return Cache(CACHE_BYTES)


def shared_result(message: str = "") -> Callable[[Callable[Arguments, Result]], Callable[Arguments, Result]]:
    """Decorator: compute each result once for all sessions, one at a time per key, in the queue for model runs.

    If the GPU runs out of memory, the CPU computes it. The function must not return None. The page shows `message`
    while this session computes.
    """

    def decorate(compute: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
        @wraps(compute)
        def result(*args: Arguments.args, **_: Arguments.kwargs) -> Result:
            cache, key = shared_cache(), _key(compute, args)
            found = cache.get(key)
            if found is None:
                # Streamlit writes the seconds in English.
                timed = language() is ENGLISH
                spinner = st.spinner(tr(message), show_time=timed) if message and has_page() else nullcontext()
                with wait_for_turn(key, lambda: key in cache), spinner:
                    found = cache.get(key)
                    if found is None:
                        found = _compute(compute, args)
                        cache.put(key, found)
            return found

        return result

    return decorate


def forget(function: Callable, *args: Any) -> None:
    """Let a function that `shared_result` decorates compute its result for these arguments anew."""
    shared_cache().drop(_key(function, args))


def forget_model(opened: Checkpoint) -> None:
    """Forget what was computed with these weights, whose runs hold on to them."""
    shared_cache().drop_all_with(opened.hash)


def _key(function: Callable, args: tuple[Any, ...]) -> Hashable:
    return function.__module__, function.__qualname__, key_of(args)


def cached(*case: Any) -> Any:
    """What `put` was given for this case; None if nothing, or if it has been dropped since."""
    return shared_cache().get(key_of(case))


def put(result: Any, *case: Any) -> None:
    """Keep the result, anything but None, of work that did not go through `shared_result`, for all sessions. `case` is
    everything that it depends on, beginning with a name of its own."""
    shared_cache().put(key_of(case), result)


def key_of(value: Any) -> Hashable:
    """What a result depends on, as a hashable key.

    Raises:
        TypeError: `value` is neither hashable nor made of models, traces, arrays, dataclasses, mappings and sequences.
    """
    if isinstance(value, Checkpoint):
        return value.name, value.hash, value.device, value.most_tokens, value.chosen_languages
    if isinstance(value, Trace):
        run = value.checkpoint, value.checkpoint_hash, value.device, key_of(value.interventions)
        return *run, value.prompt, value.src_ids, value.tgt_ids, value.next_ids
    if isinstance(value, np.ndarray):
        return value.shape, value.dtype.str, sha256(value.tobytes()).digest()
    if is_dataclass(value):
        return type(value).__qualname__, *(key_of(getattr(value, field.name)) for field in fields(value))
    if isinstance(value, Mapping):
        return tuple((name, key_of(part)) for name, part in value.items())
    if isinstance(value, list | tuple):
        return tuple(map(key_of, value))
    hash(value)
    return value


def footprint(result: Any) -> int:
    """Bytes that a result takes in the cache: its arrays and texts, and the weights of an opened model."""
    return ENTRY_BYTES + _array_bytes(result)


def on_cpu(opened: Checkpoint) -> Checkpoint:
    """The same weights on the CPU, copied once for all sessions."""
    return opened if opened.device == "cpu" else _copy_on_cpu(opened)[0]


@shared_result()
def _copy_on_cpu(opened: Checkpoint) -> tuple[Checkpoint]:
    return kept_if_offered(opened.on("cpu"))


def kept_if_offered(opened: Checkpoint, *more: Any) -> tuple:
    """A model and what belongs to it, as a result that stays if the app was started for the model."""
    return Kept((opened, *more)) if opened.name in offered_models() else (opened, *more)


def _array_bytes(value: Any) -> int:
    if value is None or isinstance(value, int | float):
        return 0  # first, as a long text has tens of thousands of them
    if isinstance(value, np.ndarray):
        return value.nbytes
    if isinstance(value, str | bytes):
        return len(value)
    if isinstance(value, Kept):
        return 0
    if isinstance(value, Checkpoint):
        return sum(weights.nbytes for weights in value.model.parameters())
    if isinstance(value, Norm | Projections):
        return 0  # the model's own weights
    if is_dataclass(value):
        return sum(_array_bytes(getattr(value, field.name)) for field in fields(value))
    if isinstance(value, MappingOnDemand):
        return value.nbytes
    if isinstance(value, Mapping):
        return sum(map(_array_bytes, value.values()))
    return sum(map(_array_bytes, value)) if isinstance(value, list | tuple) else 0


def _compute(compute: Callable[..., Result], args: tuple[Any, ...]) -> Result:
    try:
        return compute(*args)
    except OutOfMemory:
        others = [on_cpu(arg) if isinstance(arg, Checkpoint) else arg for arg in args]
        if all(one is other for one, other in zip(args, others, strict=True)):
            raise
    # Outside the except block: the error's frames hold on to what filled the memory.
    free_memory()
    return compute(*others)
