"""The app as a server that clocks its parts: python -m tests.bench.clocked PORT prints their seconds after each run."""

import functools
import json
import sys
import time
from collections import Counter
from collections.abc import Callable
from threading import local
from types import FunctionType
from typing import Any

import plotly.io
import streamlit as st
from streamlit.delta_generator import DeltaGenerator
from streamlit.runtime.scriptrunner import script_runner
from streamlit.runtime.scriptrunner_utils import script_run_context
from streamlit.web import cli
from streamlit.web.server.starlette import starlette_websocket

from model.checkpoints.translator import Translator
from pages.compute import runs

CLOCKED = (
    ("search", Translator, "_decode"),
    ("trace", Translator, "trace_ids"),
    ("proof", runs, "prove"),
    ("serialising", plotly.io, "to_json"),
    ("serialising", script_run_context, "populate_hash_if_needed"),
    ("serialising", starlette_websocket, "serialize_forward_msg"),
)
"""part, and where its function stands"""
SCRIPT, COMMANDS = "page script", "Streamlit's commands"

_spent: Counter[str] = Counter()
"""seconds of processor time by part; inner parts do not count for outer ones"""
_thread = local()


def clock(part: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """The same function, whose processor time counts for `part`."""

    @functools.wraps(function)
    def clocked(*args: Any, **keywords: Any) -> Any:
        outer, now = getattr(_thread, "part", None), time.thread_time()
        if outer:
            _spent[outer] += now - _thread.since
        _thread.part, _thread.since = part, now
        try:
            return function(*args, **keywords)
        finally:
            now = time.thread_time()
            _spent[part] += now - _thread.since
            _thread.part, _thread.since = outer, now

    return clocked


def main(port: str) -> None:
    """Serve until the process is ended."""
    for part, owner, name in CLOCKED:
        setattr(owner, name, clock(part, getattr(owner, name)))
    for owner in (st, *DeltaGenerator.__mro__[:-1]):
        for name, found in list(vars(owner).items()):
            of_page = isinstance(getattr(found, "__self__", None), DeltaGenerator)
            if of_page or (owner is not st and isinstance(found, FunctionType) and not name.startswith("_")):
                setattr(owner, name, clock(COMMANDS, found))
    execute, run = script_runner.exec_func_with_error_handling, script_runner.ScriptRunner._run_script
    script_runner.exec_func_with_error_handling = lambda page, context: execute(clock(SCRIPT, page), context)

    def run_and_tell(*args: Any) -> None:
        run(*args)
        print(json.dumps(_spent), flush=True)  # noqa: T201 - read by tests.bench.processor

    script_runner.ScriptRunner._run_script = run_and_tell
    sys.argv = ["streamlit", "run", "app.py", "--server.port", port]
    cli.main()


if __name__ == "__main__":
    main(sys.argv[1])
