"""Hook points: named places where a run's activations can be read and edited.

The hooks stay registered. What a run records or edits is held in a `ContextVar` and so belongs to the thread (or task)
that asked for it: sessions share one model and one set of weights, and never see each other's recordings or edits.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor, nn

Edit = Callable[[Tensor], Tensor | None]
Call = tuple[tuple[Any, ...], Mapping[str, Any]]
"""arguments and keywords"""


@dataclass(frozen=True)
class _Run:
    """What one `recording`, `editing` or `explicit_path` block does, by hook point."""

    paths: Mapping["HookPoint", str] = field(default_factory=dict)
    activations: dict[str, Tensor] = field(default_factory=dict)
    edits: Mapping["HookPoint", Edit] = field(default_factory=dict)
    explicit: bool = False
    detached: bool = True
    calls: dict[nn.Module, list["Call"]] | None = None


_RUNS: ContextVar[tuple[_Run, ...]] = ContextVar("runs", default=())


class HookPoint(nn.Module):
    """An identity that gives an activation its name: `named_modules()` lists its path.

    PyTorch's forward hooks work on it as on any module: a hook that returns None observes, one that
    returns a tensor replaces the activation for everything after it.
    """

    def __init__(self) -> None:
        super().__init__()
        self.register_forward_hook(_consult_runs)

    def forward(self, x: Tensor) -> Tensor:
        return x

    @property
    def observed(self) -> bool:
        """True if anything records or edits here: a block of this context, or a forward hook of the caller's own."""
        own_hooks = len(self._forward_hooks) > 1
        return own_hooks or any(run.explicit or self in run.paths or self in run.edits for run in _RUNS.get())


def _consult_runs(point: HookPoint, _args: tuple[Tensor, ...], activation: Tensor) -> Tensor:
    """Apply this context's edits, outermost block first; then record the result."""
    runs = _RUNS.get()
    for run in runs:
        if edit := run.edits.get(point):
            edited = edit(activation)
            activation = activation if edited is None else edited
    for run in runs:
        if path := run.paths.get(point):
            run.activations[path] = activation.detach() if run.detached else activation
    return activation


def hook_points(model: nn.Module) -> dict[str, HookPoint]:
    """All hook points of `model` by path, such as `decoder.layers.1.cross_attn.pattern`."""
    return {path: module for path, module in model.named_modules() if isinstance(module, HookPoint)}


def has_hook_point(model: nn.Module, path: str) -> bool:
    """True if `hook_points` has this path; looks at no other module."""
    return _find(model, path) is not None


def observed(modules: Iterable[nn.Module]) -> bool:
    """True if anything records or edits what `modules` compute in this context, at hook points or by other hooks."""
    return any(
        module.observed
        if isinstance(module, HookPoint)
        else module._forward_hooks or any(hook is not _keep_call for hook in module._forward_pre_hooks.values())
        for module in modules
    )


def let_calls_be_kept(module: nn.Module) -> None:
    """From now on, `keeping_calls` sees what `module` is called with."""
    module.register_forward_pre_hook(_keep_call, with_kwargs=True)


def _keep_call(module: nn.Module, args: tuple[Any, ...], keywords: dict[str, Any]) -> None:
    for run in _RUNS.get():
        if run.calls is not None:
            run.calls.setdefault(module, []).append((args, keywords))


@contextmanager
def keeping_calls() -> Iterator[dict[nn.Module, list[Call]]]:
    """Keep what each module of `let_calls_be_kept` is called with in this context, call by call, in order."""
    run = _Run(calls={})
    with _active(run):
        yield run.calls


@contextmanager
def recording(model: nn.Module, paths: list[str] | None = None, detached: bool = True) -> Iterator[dict[str, Tensor]]:
    """Record the activations at `paths` (None: at every hook point) while the block runs.

    Yields:
        path -> activation of the last forward pass through that point in this context; `detached` from the graph that
        gradients flow through, or not.

    Raises:
        ValueError: a path names no hook point of `model`.
    """
    chosen = hook_points(model) if paths is None else {path: _point(model, path) for path in paths}
    run = _Run(paths={point: path for path, point in chosen.items()}, detached=detached)
    with _active(run):
        yield run.activations


@contextmanager
def editing(model: nn.Module, edits: Mapping[str, Edit]) -> Iterator[None]:
    """Replace activations while the block runs: `edits` maps a hook point's path to a function.

    The function takes the activation and returns its replacement, or None to leave it as it is.
    Blocks nest: the outer block's edit is applied first.

    Raises:
        ValueError: a path names no hook point of `model`.
    """
    with _active(_Run(edits={_point(model, path): edit for path, edit in edits.items()})):
        yield


@contextmanager
def explicit_path() -> Iterator[None]:
    """Run through every hook point without recording: the run that a recorded one is compared with."""
    with _active(_Run(explicit=True)):
        yield


@contextmanager
def _active(run: _Run) -> Iterator[None]:
    token = _RUNS.set((*_RUNS.get(), run))
    try:
        yield
    finally:
        _RUNS.reset(token)


def _find(model: nn.Module, path: str) -> HookPoint | None:
    try:
        module = model.get_submodule(path)
    except AttributeError:
        return None
    return module if isinstance(module, HookPoint) else None


def _point(model: nn.Module, path: str) -> HookPoint:
    if (point := _find(model, path)) is None:
        raise ValueError(f"no hook point {path!r}; there are {', '.join(sorted(hook_points(model)))}")
    return point
