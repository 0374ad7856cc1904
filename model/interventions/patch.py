"""Another run's activations in place of this run's (activation patching; Vig et al. 2020, Meng et al. 2022)."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cached_property, partial
from hashlib import sha256
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from model.hooks import Edit, has_hook_point, hook_points
from model.interventions.base import check_positions
from model.kinds import Array
from model.language import Refusal
from model.network.network import Network

Positions = tuple[tuple[int, int], ...]
"""(position in the run that is changed, position in the run that the values come from)"""
PATH = re.compile(r"[a-z_]+(\.([a-z_]+|\d+)){0,6}")
BY_KEY = ("bias", "mask", "masked", "pattern", "scaled", "scores")
"""points of an attention whose last axis is that of the keys"""
OF_KEYS = ("k", "k_normed", "k_pre", "v")
"""points of an attention whose positions are those of the keys"""


@dataclass(frozen=True)
class PatchFrom:
    """A patch by the text whose run its values come from: what a link carries, and what `resolve_patch` resolves.

    Raises:
        ValueError: a field is not what it should be.
    """

    path: str
    """of the hook point"""
    source: str
    target: str | None = None
    """None: what the model writes itself"""
    positions: Positions | None = None
    head: int | None = None

    position_free: ClassVar[bool] = False

    def __post_init__(self) -> None:
        _check_address(self.path, self.head)
        object.__setattr__(self, "positions", _as_pairs(self.positions))
        for name in ("source", "target"):
            text = getattr(self, name)
            if not (isinstance(text, str) or (name == "target" and text is None)):
                raise Refusal("the {name} of a patch must be a text, got {text!r}", name=name, text=text)

    def edits(self, _: Network) -> dict[str, Edit]:
        """None yet.

        Raises:
            ValueError: always: the values are not known.
        """
        raise Refusal("the values of this patch are not known yet: resolve_patch(opened, patch) runs its text")


@dataclass(frozen=True, eq=False)
class Patch:
    """Put another run's activation at a hook point, at all positions or at some of them.

    Equal if path, values (bit for bit), positions and head are. While decoding, a position is patched as soon as it is
    reached. Positions that a run does not reach have no effect. In self-attention of a decoder, whose keys grow with
    its rows, a row takes the weights of the keys that it can see; elsewhere both runs need equally many keys.

    Args:
        path: of the hook point, such as `decoder.layers.1.cross_attn.z`.
        values: the other run's activation there, as a Trace has it: (position, width), or (heads, position, width);
            of weights, scores and masks (heads, query, key).
        positions: that are patched, each one number if it is the same in both runs, or (here, there); None: all.
        head: that is patched, of an activation that has heads; None: all.
        origin: where the values come from, for a link; None: a link cannot hold the patch.

    Raises:
        ValueError: the values have no positions, or are not all numbers; a position or the head is not among them. In a
            run: they do not fit what the model has there.
    """

    path: str
    values: Array
    positions: Positions | None = None
    head: int | None = None
    origin: PatchFrom | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        _check_address(self.path, self.head)
        values = np.asarray(self.values)
        if values.flags.writeable:  # those of a run are not, and many patches may share them
            values = values.copy()
            values.flags.writeable = False
        object.__setattr__(self, "values", values)
        object.__setattr__(self, "positions", _as_pairs(self.positions))
        if values.ndim not in (2, 3) or not values.size or values.dtype.kind not in "fb":
            raise Refusal(
                "the values of a patch must be numbers (position, width) or (heads, position, width), got "
                "{dtype} of the shape {shape}",
                dtype=values.dtype,
                shape=values.shape,
            )
        point = self.path.rpartition(".")[2]
        if np.isnan(values).any() or (point != "masked" and np.isinf(values).any()):
            raise Refusal("the values of a patch must be finite")
        if beyond := [there for _, there in self.positions or () if there >= values.shape[-2]]:
            raise Refusal(
                "the values of the patch have positions 0 to {last}, so none can come from position {position}",
                last=values.shape[-2] - 1,
                position=beyond[0],
            )
        if self.head is not None and (values.ndim < 3 or self.head >= len(values)):
            heads = f"heads 0 to {len(values) - 1}" if values.ndim == 3 else "no heads"
            raise Refusal(
                "the values of the patch have {heads}, so head {head} cannot be patched", heads=heads, head=self.head
            )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Patch) and self._identity == other._identity

    def __hash__(self) -> int:
        return hash(self._identity)

    def __repr__(self) -> str:
        digest = self._identity[-1].hex()[:8]
        where = "".join(
            f", {name}={value}" for name in ("positions", "head") if (value := getattr(self, name)) is not None
        )
        return f"Patch({self.path!r}, <{self.values.dtype} {self.values.shape}, SHA-256 {digest}…>{where})"

    @cached_property
    def _identity(self) -> tuple:
        values = np.ascontiguousarray(self.values)
        shape = values.shape, values.dtype.str
        return self.path, self.positions, self.head, *shape, sha256(values.tobytes()).digest()

    @property
    def position_free(self) -> bool:
        """The source is encoded all at once; a cached step computes one target token without its position."""
        return of_source(self.path)

    def edits(self, model: Network) -> dict[str, Edit]:
        """Hook point path -> edit; in a run the edit raises ValueError where the values do not fit.

        Raises:
            ValueError: the model has no such hook point, or does not use what is edited there.
        """
        if not has_hook_point(model, self.path):
            near = get_close_matches(self.path, hook_points(model), 3, 0.0)
            raise Refusal(
                "the model has no hook point {path!r}; the nearest are {names}", path=self.path, names=", ".join(near)
            )
        if not model.edits_reach(self.path):
            raise Refusal("this model does not use what {path!r} gives, so it cannot be patched", path=self.path)
        return {self.path: partial(_put, self)}


def _put(patch: Patch, activation: Tensor) -> Tensor:
    """The activation with the patch's values, where it has their positions."""
    # In a run every activation but the positional encoding has a batch dimension.
    shape = tuple(activation.shape if patch.path.endswith(".positional") else activation.shape[1:])
    pairs = _check_fit(patch, shape)
    if not pairs:
        return activation
    here, there = (list(each) for each in zip(*pairs, strict=True))
    changed, width = activation.clone(), min(shape[-1], patch.values.shape[-1])
    part, values = changed, patch.values
    if patch.head is not None:
        part, values = changed[..., patch.head, :, :], values[patch.head]
    part[..., here, :width] = torch.tensor(values[..., there, :width]).to(activation)
    if patch.path.endswith(".pattern"):
        part[..., here, width:] = 0
    return changed


def _check_fit(patch: Patch, shape: tuple[int, ...]) -> list[tuple[int, int]]:
    """The positions that the run has of those that are patched; `shape` is that of its activation, without batch.

    Raises:
        ValueError: the values do not fit.
    """
    values, path = patch.values, patch.path
    by_key = values.ndim == 3 and path.rpartition(".")[2] in BY_KEY
    grows = by_key and path.startswith("decoder.") and ".self_attn." in path
    axes = [axis for axis in range(len(shape)) if axis != len(shape) - 2 and not (grows and axis == 2)]
    fits = values.ndim == len(shape) and all(shape[axis] == values.shape[axis] for axis in axes)
    if patch.positions is None and of_source(path):
        fits &= values.shape == shape
    if not fits:
        raise Refusal(
            "the patch has values of shape {shape}, but {path} has {there} in this run",
            shape=values.shape,
            path=path,
            there=shape,
        )
    pairs = patch.positions or tuple((i, i) for i in range(values.shape[-2]))
    pairs = [(here, there) for here, there in pairs if here < shape[-2]]
    if grows and path.endswith(".pattern"):
        for here, there in pairs:
            if there > here and values[..., there, here + 1 :].any():
                raise Refusal(
                    "row {here} of {path} cannot take the weights of row {there}, which reads later keys",
                    here=here,
                    path=path,
                    there=there,
                )
    return pairs


def of_source(path: str) -> bool:
    """Whether the positions at a hook point are those of what an encoder reads."""
    of_keys = ".cross_attn." in path and path.rpartition(".")[2] in OF_KEYS
    return of_keys or path.startswith(("encoder.", "src_embedding.", "memory"))


def _check_address(path: object, head: object) -> None:
    if not (isinstance(path, str) and len(path) < 100 and PATH.fullmatch(path)):
        raise Refusal("path must name a hook point, such as decoder.layers.1.cross_attn.z, got {path!r}", path=path)
    if head is not None:
        check_positions((head,), "head")


def _as_pairs(positions: Iterable[int | tuple[int, int]] | None) -> Positions | None:
    """Each position as (here, there).

    Raises:
        ValueError: one is no whole number from 0 on and no pair of two, or a position is patched twice.
    """
    if positions is None:
        return None
    if not isinstance(positions, Iterable) or isinstance(positions, str):
        raise Refusal("positions must be a list of numbers or of pairs, got {positions!r}", positions=positions)
    pairs = [tuple(each) if isinstance(each, list | tuple) else (each, each) for each in positions]
    for pair in pairs:
        if len(pair) != 2:
            raise Refusal("a position must be a number, or a pair (here, there), got {pair!r}", pair=pair)
        check_positions(pair)
    if len({here for here, _ in pairs}) < len(pairs):
        raise Refusal("a position can be patched only once")
    return tuple((int(here), int(there)) for here, there in pairs)
