"""A view as a Python program that computes its numbers again.

What a person typed appears in it only inside the `repr` of strings and frozen dataclasses, so nothing typed is run.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import is_dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import streamlit as st

from model.analysis.view_arrays import arrays_of
from model.checkpoints.store import shown_name
from model.trace import Trace
from pages.compute.view import View
from pages.views import OUTCOME, Result, Run


class Call:
    """A public function that computes a view's numbers: the page calls it, and the program prints the same call.

    Args:
        function: returns what `arrays_of` turns into arrays.
        *args: models, traces and the view's attention, or values whose `repr` is Python.
        result: what the function returns, if the page has it already.
    """

    def __init__(self, function: Callable[..., Any], *args: Any, result: Any = None) -> None:
        self.function, self.args, self._result = function, args, result

    @cached_property
    def result(self) -> Any:
        """What the function returns."""
        if self._result is not None:
            return self._result
        return self.function(*(arg.result if isinstance(arg, Call) else arg for arg in self.args))


Calls = Call | Mapping[str, Call]
"""one call, or several by the name that their arrays begin with"""


def call_arrays(calls: Calls) -> dict[str, np.ndarray]:
    """The arrays by name."""
    if isinstance(calls, Call):
        return arrays_of(calls.result)
    return arrays_of(**{name: call.result for name, call in calls.items()})


def snippet(view: View, calls: Calls, about: str) -> str:
    """The program: it loads the checkpoint, checks its hash, runs the model and names the arrays.

    Args:
        view: the run, and the head that was chosen.
        calls: what computes the arrays.
        about: which view this is; its lines become comments at the top.
    """
    trace, request = view.trace, view.request
    changes = trace.interventions[len(request.interventions) :]
    program = _Program(view, "before" if changes else "trace")
    several = {"": calls} if isinstance(calls, Call) else calls
    arguments = ", ".join(
        f"{name}={program.call(call)}" if name else program.call(call) for name, call in several.items()
    )
    continuation = vars(request.continuation) if request.continuation else {}
    written = "".join(f", {name}={value!r}" for name, value in continuation.items())
    if continuation.get("sampling"):
        program.imports.add("from model.generation.sampling import Sampling")
    run = [
        f"translator = load_checkpoint({_name_to_load(trace)!r}, {trace.device!r})",
        f"assert translator.hash == {trace.checkpoint_hash!r}, 'other weights'",
        "",
        *([f"source = {trace.prompt!r}"] if isinstance(trace.prompt, str) else _tuple("source", trace.prompt)),
        f"target = {request.target!r}" + ("  # the model decodes its own" if request.target is None else ""),
        *_tuple("interventions", request.interventions),
        f"{program.first} = translator.trace(source, target, {request.beam_size}, interventions{written})",
    ]
    if changes:
        run += [*_tuple("changes", changes), "trace = translator.rerun(before, (*interventions, *changes))"]
    program.find_imports((trace.interventions, trace.prompt))
    return "\n".join(
        [
            *(f"# {line}" for line in _printable(about)),
            *sorted(program.imports),
            "",
            *run,
            *program.steps,
            "",
            f"kind, layer, head = {view.kind!r}, {view.layer}, {view.head}",
            "attention = trace.attention(kind, layer)",
            "pattern = attention.pattern[head]  # the attention weights, (query, key)",
            "",
            f"arrays = arrays_of({arguments})",
            "# np.savez_compressed('numbers.npz', **arrays)",
            "",
        ]
    )


def view_snippet(result: Result, about: str) -> str:
    """The program of a view: it opens the model, runs it, and calls the view with the chosen values.

    Args:
        result: of the view.
        about: which view this is; its lines become comments at the top.
    """
    run, view = result.run, result.view
    program = _Program(run, "")
    program.imports = {
        "from model.checkpoints import load_checkpoint",
        "from model.run import Place, Request, Run",
        f"from {view.function.__module__} import {view.name}",
    }
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


def _start(program: "_Program", name: str, opened: str, run: Run) -> list[str]:
    """The lines that open its model and run it; `name` and `opened` are what the program calls the two."""
    trace = run.trace
    return [
        f"{opened} = load_checkpoint({_name_to_load(trace)!r}, {trace.device!r})",
        f"assert {opened}.hash == {trace.checkpoint_hash!r}, 'other weights'",
        "",
        *_run_lines(program, name, opened, run),
    ]


def _start_other(program: "_Program", name: str, run: Run) -> list[str]:
    """The lines that make a further run: of the same trace, of the same model, or of another one."""
    first = program.view
    if run.trace is first.trace:
        program.imports.add("from dataclasses import replace")
        return [f"{name} = replace(run, place={run.place!r})"]
    if run.trace.checkpoint_hash == first.trace.checkpoint_hash:
        return _run_lines(program, name, "opened", run)
    return _start(program, name, f"{name}_opened", run)


def _run_lines(program: "_Program", name: str, opened: str, run: Run) -> list[str]:
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

    Args:
        program: a block between blank lines becomes a cell.
        name: of the numbers.
        facts: which run and view they are of, for the file's metadata.
    """
    title = f"# Attention Explorer: {name}\n\nTo be opened in the project's folder, with its Python as the kernel."
    shown = "from viz.notebook import heads, lines, steps", "heads(trace)", "lines(trace, kind, layer, [head])"
    markdown = {"cell_type": "markdown", "id": "title", "metadata": {}, "source": title}
    code = [
        {"cell_type": "code", "id": f"code-{number}", "metadata": {}, "source": source}
        | {"execution_count": None, "outputs": []}
        for number, source in enumerate((*program.strip().split("\n\n"), *shown))
    ]
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    metadata = {"kernelspec": kernel, "language_info": {"name": "python"}, "attention_explorer": dict(facts)}
    return json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": metadata, "cells": [markdown, *code]}, indent=1)


class _Program:
    """The names of a program's values, the lines that make them, and what it imports."""

    def __init__(self, view: View, first: str) -> None:
        self.view, self.first, self.steps = view, first, []
        translator = view.translator
        named = {"trace": view.trace, "attention": view.attention, "translator": translator}
        if translator is not None:
            named |= {"translator.config": translator.config, "translator.model": translator.model}
        self.names = {id(value): name for name, value in named.items()}
        self.imports = {
            "import numpy as np",
            "from model.analysis.view_arrays import arrays_of",
            "from model.checkpoints import load_checkpoint",
        }

    def call(self, call: Call) -> str:
        """A call as Python."""
        self._import(call.function)
        return f"{call.function.__name__}({', '.join(map(self.value, call.args))})"

    def value(self, value: Any) -> str:
        """An argument as Python."""
        if id(value) in self.names:
            return self.names[id(value)]
        if isinstance(value, Call):
            return self.call(value)
        if isinstance(value, Trace):
            return self._run(value)
        self.find_imports(value)
        return repr(value)

    def find_imports(self, value: Any) -> None:
        """Import the types of the dataclasses in a value."""
        if is_dataclass(value):
            self._import(type(value))
        elif isinstance(value, tuple | list):
            for part in value:
                self.find_imports(part)

    def _import(self, item: Callable) -> None:
        self.imports.add(f"from {item.__module__} import {item.__name__}")

    def _run(self, trace: Trace) -> str:
        """A run other than the view's: its name, after lines that repeat it on the same tokens."""
        request, own = self.view.request, self.view.trace
        same = (trace.checkpoint_hash, trace.prompt, trace.next_ids) == (own.checkpoint_hash, own.prompt, own.next_ids)
        if same and trace.interventions in (request.interventions, own.interventions):
            return self.first if trace.interventions == request.interventions else "trace"
        name, model = f"run_{len(self.names)}", "translator"
        if trace.checkpoint_hash != own.checkpoint_hash:
            model = f"load_checkpoint({_name_to_load(trace)!r}, {trace.device!r})"
        self.find_imports((trace.interventions, trace.prompt))
        self.steps.append(f"{name} = {model}.trace_ids({trace.prompt!r}, {trace.next_ids}, {trace.interventions!r})")
        if trace.checkpoint_hash != own.checkpoint_hash:
            self.steps.append(f"assert {name}.checkpoint_hash == {trace.checkpoint_hash!r}, 'other weights'")
        self.names[id(trace)] = name
        return name


def _name_to_load(trace: Trace) -> str:
    """The name of its checkpoint; a folder's path is for the machine's own people, not for everybody whom it serves."""
    own = st.get_option("server.address") in ("localhost", "127.0.0.1", "::1")
    return trace.checkpoint if own else shown_name(trace.checkpoint)


def _printable(text: str) -> list[str]:
    """Its lines, without characters that could end a line or hide part of it."""
    return ["".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in line) for line in text.split("\n")]


def _tuple(name: str, values: Sequence[Any]) -> list[str]:
    return [f"{name} = (", *(f"    {value!r}," for value in values), ")"] if values else [f"{name} = ()"]
