"""A view as a Python program that computes its numbers again.

What a person typed appears in it only inside the `repr` of strings and frozen dataclasses, so nothing typed is run.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, is_dataclass
from typing import Any

from pages.frame.view import View


@dataclass(frozen=True)
class Recipe:
    """How a page's arrays are read from the run: Python expressions written by us.

    They may use translator, trace, attention, kind, layer, head and np, and before and after if changes were made.
    """

    arrays: Mapping[str, str] | str
    """by name; or one expression for a mapping of all of them"""
    imports: tuple[str, ...] = ()
    steps: tuple[str, ...] = ()
    """lines that come first"""


class Call:
    """A public function that computes a view's arrays: the page calls it, and the program prints the same call.

    Args:
        function: returns arrays by name.
        *args: the view's trace, attention or translator, or values whose `repr` is Python.
    """

    def __init__(self, function: Callable[..., Mapping[str, Any]], *args: Any) -> None:
        self.function, self.args = function, args

    def arrays(self) -> dict[str, Any]:
        return dict(self.function(*self.args))

    def recipe(self, view: View) -> Recipe:
        names = {id(view.trace): "trace", id(view.attention): "attention", id(view.translator): "translator"}
        names[id(view.translator.config)] = "translator.config"
        shown = [names.get(id(arg)) or repr(arg) for arg in self.args]
        values = [arg for arg in self.args if id(arg) not in names and is_dataclass(arg)]
        imports = {_import(self.function), *(_import(type(value)) for value in values)}
        return Recipe(f"{self.function.__name__}({', '.join(shown)})", tuple(imports))


def snippet(view: View, recipe: Recipe, about: str) -> str:
    """The program: it loads the checkpoint, checks its hash, runs the model and names the arrays.

    Args:
        view: the run, and the head that was chosen.
        recipe: how the page's arrays are read from it.
        about: which view this is; its lines become comments at the top.
    """
    trace, request = view.trace, view.request
    changes = trace.interventions[len(request.interventions) :]
    lines = [f"# {line}" for line in _printable(about)]
    lines += ["import numpy as np", "", *_imports(trace.interventions, recipe), ""]
    lines += [
        f"translator = load_checkpoint({trace.checkpoint!r}, {trace.device!r})",
        f"assert translator.hash == {trace.checkpoint_hash!r}, 'other weights'",
        "",
        f"source = {trace.source!r}",
        f"target = {request.target!r}" + ("  # the model decodes its own" if request.target is None else ""),
        *_tuple("interventions", request.interventions),
        f"{'before' if changes else 'trace'} = translator.trace(source, target, {request.beam_size}, interventions)",
    ]
    if changes:
        lines += [
            *_tuple("changes", changes),
            "trace = after = translator.rerun(before, (*interventions, *changes))",
        ]
    lines += [
        "",
        f"kind, layer, head = {view.kind!r}, {view.layer}, {view.head}",
        "attention = trace.attention(kind, layer)",
        "pattern = attention.pattern[head]  # the attention weights, (query, key)",
        "",
        *recipe.steps,
        *_arrays(recipe.arrays),
        "# np.savez_compressed('numbers.npz', **arrays)",
    ]
    return "\n".join(lines) + "\n"


def _printable(text: str) -> list[str]:
    """Its lines, without characters that could end a line or hide part of it."""
    return ["".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in line) for line in text.split("\n")]


def _import(item: Callable | type) -> str:
    return f"from {item.__module__} import {item.__name__}"


def _imports(interventions: Sequence[Any], recipe: Recipe) -> list[str]:
    lines = {"from model.checkpoints import load_checkpoint", *recipe.imports}
    if names := sorted({type(change).__name__ for change in interventions}):
        lines.add(f"from model.interventions import {', '.join(names)}")
    return sorted(lines)


def _tuple(name: str, values: Sequence[Any]) -> list[str]:
    return [f"{name} = (", *(f"    {value!r}," for value in values), ")"] if values else [f"{name} = ()"]


def _arrays(arrays: Mapping[str, str] | str) -> list[str]:
    if isinstance(arrays, str):
        return [f"arrays = {arrays}"]
    return ["arrays = {", *(f"    {name!r}: {code}," for name, code in arrays.items()), "}"]
