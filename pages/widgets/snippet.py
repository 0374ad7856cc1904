"""A run as a Python program: text that computes a view's numbers again, and nothing else.

What a person typed stands in it as literals only, so that nothing typed is ever run.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

OWN = "the model finds its own"


@dataclass(frozen=True)
class Asked:
    """What a run was asked for, besides the weights."""

    source: str
    target: str | None
    """None: the model found its own"""
    beam_size: int
    interventions: tuple[Any, ...] = ()
    changes: tuple[Any, ...] = ()
    """made afterwards, on the same source and target tokens"""


@dataclass(frozen=True)
class Recipe:
    """How a page's arrays are read from the run: Python expressions of ours, never of anything typed.

    They may use translator, trace, attention, kind, layer, head and np, and before and after where changes were made.
    """

    arrays: Mapping[str, str] | str
    """by name; or one expression for all of them, a mapping"""
    imports: tuple[str, ...] = ()
    steps: tuple[str, ...] = ()
    """lines that come first"""


def of_head(*names: str) -> Recipe:
    """Fields of the chosen attention, of its chosen head."""
    return Recipe({name: f"attention.{name}[head]" for name in names})


def literal(value: Any) -> str:
    """A Python expression for plain values, tuples and interventions, equal to `value`.

    Raises:
        TypeError: it is something else.
    """
    if value is None or isinstance(value, bool | int | str):
        return repr(value)
    if isinstance(value, float):
        written = float.__repr__(value)
        return written if value - value == 0 else f"float({written!r})"
    if isinstance(value, tuple | list):
        return _tuple([literal(part) for part in value])
    if hasattr(value, "edits"):
        name = type(value).__name__
        return f"{name}({', '.join(f'{field.name}={literal(getattr(value, field.name))}' for field in fields(value))})"
    if hasattr(value, "item"):
        return literal(value.item())
    raise TypeError(f"{type(value).__name__} has no literal")


def _tuple(parts: Sequence[str]) -> str:
    return f"({', '.join(parts)}{',' * (len(parts) == 1)})"


def snippet(trace: Any, asked: Asked, place: tuple[str, int, int], recipe: Recipe, about: str) -> str:
    """The program: it loads the checkpoint, checks its hash, runs the model and names the arrays.

    Args:
        trace: the run, a model.trace.Trace.
        asked: how it came about.
        place: kind, layer and head of the chosen attention.
        recipe: how the page's arrays are read from it.
        about: which view this is, for the comment on top; its lines become lines of the comment.
    """
    kind, layer, head = place
    lines = [f"# {line}" for line in _printable(about)]
    lines += ["import numpy as np", "", *_imports(asked, recipe), ""]
    lines += [
        f"translator = load_checkpoint({literal(trace.checkpoint)}, {literal(trace.device)})",
        f"assert translator.hash == {literal(trace.checkpoint_hash)}, 'other weights'",
        "",
        *_run(asked),
        "",
        f"kind, layer, head = {literal(kind)}, {literal(layer)}, {literal(head)}",
        "attention = trace.attention(kind, layer)",
        "pattern = attention.pattern[head]  # the attention weights, (query, key)",
        "",
        *recipe.steps,
        *_arrays(recipe.arrays),
        "# np.savez_compressed('numbers.npz', **arrays)",
    ]
    return "\n".join(lines) + "\n"


def _printable(text: str) -> list[str]:
    """Lines that end nowhere else than where they are seen to end."""
    return ["".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in line) for line in text.split("\n")]


def _imports(asked: Asked, recipe: Recipe) -> list[str]:
    names = sorted({type(change).__name__ for change in (*asked.interventions, *asked.changes)})
    lines = {"from model.checkpoints import load_checkpoint", *recipe.imports}
    if names:
        lines.add(f"from model.interventions import {', '.join(names)}")
    return sorted(lines)


def _run(asked: Asked) -> list[str]:
    target = literal(asked.target) + (f"  # {OWN}" if asked.target is None else "")
    found = "before" if asked.changes else "trace"
    lines = [f"source = {literal(asked.source)}", f"target = {target}", *_listed("interventions", asked.interventions)]
    lines += [
        f"{found} = translator.trace(source, target, beam_size={literal(asked.beam_size)}, interventions=interventions)"
    ]
    if asked.changes:
        lines += _listed("changes", asked.changes)
        lines += ["trace = after = translator.rerun(before, (*interventions, *changes))"]
    return lines


def _listed(name: str, values: tuple[Any, ...]) -> list[str]:
    if not values:
        return [f"{name} = ()"]
    return [f"{name} = (", *(f"    {literal(value)}," for value in values), ")"]


def _arrays(arrays: Mapping[str, str] | str) -> list[str]:
    if isinstance(arrays, str):
        return [f"arrays = {arrays}"]
    return ["arrays = {", *(f"    {literal(name)}: {code}," for name, code in arrays.items()), "}"]
