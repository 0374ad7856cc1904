"""What has been worked out, kept for everybody as long as there is room; what is not known yet waits for its turn.

No lock is held while something is worked out: who leaves leaves nothing behind, and the next one who wants it does it.
"""

from collections import OrderedDict
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import fields, is_dataclass
from functools import wraps
from threading import Lock
from typing import Any, ParamSpec, TypeVar
from weakref import ref

import numpy as np
import streamlit as st

from model.checkpoints.devices import OutOfMemory, free_memory
from model.checkpoints.translator import Translator
from model.trace import Norm, Projections
from pages.compute.queue import turn

ROOM = 1_000_000_000
"""bytes of all results together; a Trace of 250 + 250 tokens takes 112 MB, one of 20 + 20 takes 4"""

Given = ParamSpec("Given")
Result = TypeVar("Result")
_NOTHING = object()


class Place:
    """Where one result stands, or will."""

    def __init__(self) -> None:
        self.result: Any = _NOTHING

    @property
    def taken(self) -> bool:
        return self.result is not _NOTHING


class Shelf:
    """All results: where they take more than `room` bytes together, the one unused for longest goes.

    Places are held weakly: those that Streamlit's caches have dropped go with their results.
    """

    def __init__(self, room: int) -> None:
        self.room, self.bytes = room, 0
        self._lock = Lock()
        self._sizes: OrderedDict[ref[Place], int] = OrderedDict()

    def put(self, place: Place, result: object) -> None:
        size = footprint(result)
        with self._lock:
            place.result = result
            self._sizes.pop(ref(place), None)
            self._sizes = OrderedDict((other, taken) for other, taken in self._sizes.items() if other())
            self._sizes[ref(place)] = size
            self.bytes = sum(self._sizes.values())
            while self.bytes > self.room and len(self._sizes) > 1:
                oldest, freed = self._sizes.popitem(last=False)
                self.bytes -= freed
                if dropped := oldest():
                    dropped.result = _NOTHING

    def used(self, place: Place) -> None:
        with self._lock:
            if ref(place) in self._sizes:
                self._sizes.move_to_end(ref(place))


def kept(max_entries: int, hash_funcs: Mapping[type, Callable] | None = None, doing: str = "") -> Callable:
    """A function of the model that is worked out once for everybody, each time in a turn (see gate.py).

    Where the GPU has too little memory, the CPU does it.

    Args:
        max_entries: results that are kept; the room on the shelf may let fewer stay.
        hash_funcs: as `st.cache_resource` takes them.
        doing: what the page says meanwhile, once it is this session's turn.
    """

    def decorate(work: Callable[Given, Result]) -> Callable[Given, Result]:
        @st.cache_resource(max_entries=max_entries, show_spinner=False, hash_funcs=hash_funcs)
        @wraps(work)
        def place_of(*args: object) -> Place:  # noqa: ARG001 - the cache tells cases apart by it
            return Place()

        @wraps(work)
        def found(*args: Given.args, **_: Given.kwargs) -> Result:
            place = place_of(*args)
            result = place.result
            if result is _NOTHING:
                with turn(place, lambda: place.taken), st.spinner(doing, show_time=True) if doing else nullcontext():
                    result = place.result
                    if result is _NOTHING:
                        result = _worked_out(work, args)
                        _shelf().put(place, result)
            _shelf().used(place)
            return result

        return found

    return decorate


def on_cpu(translator: Translator) -> Translator:
    """The same weights on the CPU, copied once for everybody."""
    return translator if translator.device == "cpu" else _copy(translator)


def footprint(result: object) -> int:
    """Bytes of the arrays in a result; the model's weights, which it shares with the model, are none of them."""
    if isinstance(result, np.ndarray):
        return result.nbytes
    if isinstance(result, Norm | Projections | Translator):
        return 0
    if is_dataclass(result):
        return sum(footprint(getattr(result, field.name)) for field in fields(result))
    if isinstance(result, Mapping):
        return sum(map(footprint, result.values()))
    return sum(map(footprint, result)) if isinstance(result, list | tuple) else 0


def _worked_out(work: Callable[..., Result], args: tuple[object, ...]) -> Result:
    try:
        return work(*args)
    except OutOfMemory:
        others = [on_cpu(arg) if isinstance(arg, Translator) else arg for arg in args]
        if all(one is other for one, other in zip(args, others, strict=True)):
            raise
    # Not among the error's own frames: they hold on to what filled the memory.
    free_memory()
    return work(*others)


@st.cache_resource(show_spinner=False)
def _shelf() -> Shelf:
    return Shelf(ROOM)


@st.cache_resource(max_entries=2, show_spinner=False, hash_funcs={Translator: lambda t: (t.name, t.hash, t.device)})
def _copy(translator: Translator) -> Translator:
    return translator.on("cpu")
