"""A view as a Python program that computes its numbers again.

What a person typed appears in it only inside the `repr` of strings and frozen dataclasses, so nothing typed is run.
"""

import json
from collections.abc import Mapping
from dataclasses import is_dataclass, replace
from typing import Any

import streamlit as st

from model.checkpoints.store import shown_name
from model.trace import Trace
from pages.views import OUTCOME, Result, Run


class _Program:
    """What a program imports, and the run that it begins with."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.imports = {"from model.checkpoints import load_checkpoint", "from model.run import Place, Request, Run"}

    def find_imports(self, value: Any) -> None:
        """Import the types of the dataclasses in a value."""
        if is_dataclass(value):
            self.imports.add(f"from {type(value).__module__} import {type(value).__name__}")
        elif isinstance(value, tuple | list):
            for part in value:
                self.find_imports(part)


def snippet(result: Result, about: str) -> str:
    """The program of a view: it opens the model, runs it, and calls the view with the chosen values.

    The lines of `about` become comments at the top.
    """
    run, view = result.run, result.view
    program = _Program(run)
    program.imports |= {f"from {view.function.__module__} import {view.name}"}
    steps, values = _start(program, "run", "opened", run), ""
    for name, value in result.values.items():
        if isinstance(value, Run):
            steps += ["", *_start_other(program, name, value)]
        if name in view.controls:
            program.find_imports(value)
            values += f", {name}={name if isinstance(value, Run) else repr(value)}"
        if name == OUTCOME and value is None:
            values += f", {OUTCOME}=None"  # or the program would do the work that was not requested
    return "\n".join(
        [
            *(f"# {line}" for line in _printable(about)),
            *sorted(program.imports),
            "",
            *steps,
            "",
            f"result = {view.name}(run{values})",
            "arrays = result.arrays()",
            "# np.savez_compressed('numbers.npz', **arrays)",
            "",
        ]
    )


def _start(program: _Program, name: str, opened: str, run: Run) -> list[str]:
    """The lines that open its model and run it; `name` and `opened` are what the program calls the two."""
    trace = run.trace
    return [
        f"{opened} = load_checkpoint({_name_to_load(trace)!r}, {trace.device!r})",
        f"assert {opened}.hash == {trace.checkpoint_hash!r}, 'other weights'",
        "",
        *_run_lines(program, name, opened, run),
    ]


def _start_other(program: _Program, name: str, run: Run) -> list[str]:
    """The lines that make a further run: of the same trace, of the same model, or of another one."""
    first = program.run
    if run.trace is first.trace:
        program.imports.add("from dataclasses import replace")
        return [f"{name} = replace(run, place={run.place!r})"]
    if run.trace.checkpoint_hash == first.trace.checkpoint_hash:
        return _run_lines(program, name, "opened", run)
    return _start(program, name, f"{name}_opened", run)


def _run_lines(program: _Program, name: str, opened: str, run: Run) -> list[str]:
    trace, request = run.trace, run.request
    if request.chat is None:  # of a chat, the trace has all turns as one text
        request = replace(request, source=trace.source)
    program.find_imports(
        (trace.interventions, request.continuation, request.continuation and request.continuation.sampling)
    )
    changed = trace.interventions != request.interventions
    return [
        f"request = {request!r}",
        f"{name} = Run.start({opened}, request, {run.place!r}, {run.tau!r}, {run.scope!r})",
        *([f"{name} = {name}.forced(*{trace.interventions!r})"] if changed else []),
    ]


def notebook(program: str, name: str, facts: Mapping[str, str]) -> str:
    """A program of `snippet` as a Jupyter notebook (nbformat 4.5), with the app's pictures of its run below.

    A block between blank lines becomes a cell; `facts`, on the run and the view, stand in the file's metadata.
    """
    title = f"# Attention Explorer: {name}\n\nTo be opened in the project's folder, with its Python as the kernel."
    imports, all_heads = "from viz.notebook import heads, lines", "heads(run.trace)"
    shown = "result", imports, all_heads, "lines(run.trace, run.kind, run.layer, [run.head])"
    markdown = {"cell_type": "markdown", "id": "title", "metadata": {}, "source": title}
    code = [
        {"cell_type": "code", "id": f"code-{number}", "metadata": {}, "source": source}
        | {"execution_count": None, "outputs": []}
        for number, source in enumerate((*program.strip().split("\n\n"), *shown))
    ]
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    metadata = {"kernelspec": kernel, "language_info": {"name": "python"}, "attention_explorer": dict(facts)}
    return json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": metadata, "cells": [markdown, *code]}, indent=1)


def _name_to_load(trace: Trace) -> str:
    """The name of its checkpoint; a folder's path is for the machine's own people, not for everybody whom it serves."""
    own = st.get_option("server.address") in ("localhost", "127.0.0.1", "::1")
    return trace.checkpoint if own else shown_name(trace.checkpoint)


def _printable(text: str) -> list[str]:
    """Its lines, without characters that could end a line or hide part of it."""
    return ["".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in line) for line in text.split("\n")]
