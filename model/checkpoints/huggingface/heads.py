"""Where an attention's queries, keys and values come from: found by comparing numbers, never by names."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor, nn
from transformers.pytorch_utils import Conv1D

from model.checkpoints.huggingface.attention import AttentionCall
from model.checkpoints.huggingface.probe import Event, ModuleCall, plain_factor, same
from model.network.rotary import rotate
from model.trace import Array

LINEAR = (nn.Linear, Conv1D)
LAYOUTS = ("half", "half per pair", "interleaved", "interleaved halves", "interleaved per pair", "half backwards")
"""which dimensions RoPE rotates as a pair, and how a model lists the angles: twice each, or once a pair; backwards: by
the negative angle, as nanochat does"""


@dataclass(frozen=True)
class HeadColumns:
    """Which parts of a module's output are the heads' vectors."""

    module: nn.Module
    blocks: tuple[int, ...]
    """head -> number of its block of `width` features in the output"""
    width: int
    heads_first: bool = False
    """the output is (batch, heads, position, width) already"""
    factor: float = 1.0
    """some models multiply queries after the projection (OPT)"""
    call: int = 0
    """which of the module's calls for one attention gives them"""
    calls: int = 1
    """how often it is called for one attention: a norm may be run on the queries, and then on the keys (Llama 4)"""

    def cut(self, out: Tensor) -> Tensor:
        """The module's output -> (batch, heads, position, width)."""
        blocks = out if self.heads_first else out.reshape(*out.shape[:2], -1, self.width).transpose(1, 2)
        chosen = blocks[:, list(self.blocks)]
        return chosen if self.factor == 1 else chosen * self.factor


@dataclass(frozen=True)
class AttentionParts:
    """The parts of one attention; None or missing where nothing repeats the numbers."""

    projections: dict[str, HeadColumns]
    """q, k, v: the linear maps"""
    norms: dict[str, tuple[HeadColumns, ModuleCall]]
    """q, k: a norm after the projection, and its call"""
    rotated: tuple[str, ...]
    """which of q and k were rotated"""
    layout: str
    """one of LAYOUTS: "half" rotates i and i + r / 2 as a pair, "interleaved" 2 i and 2 i + 1"""
    w_o: nn.Module | None
    norm_last: bool = False
    """whether the norms follow the rotation"""
    varies: bool = False
    """whether queries are multiplied by a number of their own at each position"""
    latents: Mapping[str, Any] = field(default_factory=dict)
    """q, k, v: a `LatentSource` each, in place of `projections`, where they pass through a narrower vector"""
    start: int = 0
    """the first dimension that is rotated"""

    @property
    def whole(self) -> bool:
        """True if all matrices were found."""
        return self.w_o is not None and 3 in (len(self.projections), len(self.latents))


@dataclass(frozen=True)
class Source:
    """The call whose output is a head's vectors, but for a factor, and a rotation by a layout."""

    heads: HeadColumns
    call: ModuleCall
    layout: str | None = None
    """None: they were not rotated"""
    varies: bool = False
    """whether the factor differs from position to position"""


def find_parts(
    call: AttentionCall, earlier: Sequence[Event], later: Sequence[Event], seen: Sequence[Event]
) -> AttentionParts:
    """The parts of an attention, among the calls before it, those after it, and all of the probe."""
    outputs = [each for each in reversed(earlier) if isinstance(each, ModuleCall) and each.out.dim() in (3, 4)]
    linear = [each for each in outputs if isinstance(each.module, LINEAR)]
    angles = angles_of(call, seen)
    projections: dict[str, HeadColumns] = {}
    norms: dict[str, tuple[HeadColumns, ModuleCall]] = {}
    layouts, norm_last, varies = {}, False, False
    for name, x in (("q", call.query), ("k", call.key)):
        found = _find_source(outputs, linear, x, angles)
        layout = found and found.layout
        varies |= name == "q" and bool(found and found.varies)
        if found and not isinstance(found.call.module, LINEAR):
            same_module = [each for each in reversed(outputs) if each.module is found.call.module]
            number = next(i for i, each in enumerate(same_module) if each is found.call)
            norms[name] = replace(found.heads, call=number, calls=len(same_module)), found.call
            raw = _as_heads(found.heads, found.call.inputs[0])
            found = _find_source(linear, linear, raw, None if layout else angles) if raw is not None else None
            if found and found.layout:
                layout, norm_last = found.layout, True
        if found and isinstance(found.call.module, LINEAR):
            projections[name] = found.heads
        if layout:
            layouts[name] = layout
    if value := _first(linear, call.value, torch.equal):
        projections["v"] = value.heads
    z = call.out.flatten(2)
    w_o = next(
        (
            e.module
            for e in later
            if isinstance(e, ModuleCall) and isinstance(e.module, LINEAR) and same(e.inputs[0], z)
        ),
        None,
    )
    return AttentionParts(
        projections, norms, tuple(layouts), next(iter(layouts.values()), "half"), w_o, norm_last, varies
    )


def _find_source(
    outputs: Sequence[ModuleCall],
    linear: Sequence[ModuleCall],
    x: Tensor,
    angles: tuple[Tensor, Tensor] | None,
) -> Source | None:
    """Which of the outputs became x, (1, heads, position, width)."""
    if found := _first(outputs, x, torch.equal):
        return found
    if found := _first(linear, x, _same_direction):
        heads, call = found.heads, found.call
        factor = plain_factor(float(x.norm() / heads.cut(call.out).norm()), x.shape[-1])
        return Source(replace(heads, factor=factor), call)
    for each in outputs if angles else ():
        if (heads := _heads(each, x, _same_lengths)) and (how := _layout(heads.cut(each.out)[0], x[0], angles)):
            return Source(heads, each, how)
    # A model may multiply what it has rotated, too; by another factor at each position in Ministral 3.
    return next((found for each in outputs if (found := _multiplied(each, x, angles))), None)


def _as_heads(heads: HeadColumns, raw: Tensor) -> Tensor | None:
    """What a norm of heads read, (1, heads, position, width); None: it is not shaped as what the norm gave."""
    try:
        return replace(heads, factor=1.0).cut(raw)
    except (RuntimeError, IndexError):
        return None


def matrix(module: nn.Module) -> tuple[Tensor, Tensor | None]:
    """(in, out) of a linear map, and its bias (out,) if it has one."""
    return module.weight if isinstance(module, Conv1D) else module.weight.T, module.bias


def head_matrices(heads: HeadColumns, copies: int) -> tuple[Array, Array]:
    """W, (heads, d_model, d_k), and b, (heads, d_k), of a projection; each of its heads `copies` times.

    Read-only, and the model's own memory where nothing is repeated or multiplied.
    """
    w, b = matrix(heads.module)
    b = torch.zeros_like(w[0]) if b is None else b
    first, *_, last = heads.blocks if len(heads.blocks) > 1 else heads.blocks * 2
    step = max(heads.blocks[1] - first, 1) if len(heads.blocks) > 1 else 1
    evenly = tuple(range(first, last + 1, step)) == heads.blocks
    chosen = slice(first, last + 1, step) if evenly else list(heads.blocks)
    parts = w.unflatten(1, (-1, heads.width))[:, chosen].transpose(0, 1), b.unflatten(0, (-1, heads.width))[chosen]
    return tuple(_read_only(part, heads.factor, copies) for part in parts)


def _read_only(part: Tensor, factor: float, copies: int) -> Array:
    part = part if factor == 1 else part * factor
    array = (part if copies == 1 else part.repeat_interleave(copies, 0)).cpu().numpy()
    array.flags.writeable = False
    return array


def pair_angles(cos: Array, layout: str) -> Array:
    """(position, r or r / 2), as a model gives its angles -> (position, r / 2): one a pair."""
    half = cos.shape[-1] // 2
    if layout.endswith("per pair"):
        return cos
    return cos[:, ::2] if layout == "interleaved" else cos[:, :half]


def _first(outputs: Sequence[ModuleCall], x: Tensor, alike: Callable) -> Source | None:
    return next((Source(heads, each) for each in outputs if (heads := _heads(each, x, alike))), None)


def _multiplied(call: ModuleCall, x: Tensor, angles: tuple[Tensor, Tensor] | None) -> Source | None:
    """Find heads of x, (1, heads, position, width), that are multiples of what the module gave, rotated or not.

    Where the multiple is the same everywhere, it is the factor of the heads.
    """
    n, width = x.shape[2:]
    for heads_first in (False, True):
        parts = _parts(call.out, n, width, heads_first)
        for layout in (None, *(LAYOUTS if angles else ())) if parts is not None else ():
            turned = parts if layout is None else _turn(parts, angles, layout)
            if turned is None:
                continue
            alike = torch.einsum("bnw,hnw->bhn", _unit(turned), _unit(x[0])).amin(-1)
            best, blocks = alike.max(dim=0)
            if bool((best > 1 - 1e-6).all()):
                multiples = x[0].norm(dim=-1) / turned[blocks].norm(dim=-1).clamp(min=1e-30)
                factor = float(multiples.mean())
                varies = not torch.allclose(multiples / factor, torch.ones_like(multiples))
                factor = 1.0 if varies else plain_factor(factor, width)
                heads = HeadColumns(call.module, tuple(blocks.tolist()), width, heads_first, factor)
                return Source(heads, call, layout, varies)
    return None


def _unit(x: Tensor) -> Tensor:
    return nn.functional.normalize(x, dim=-1)


def _parts(out: Tensor, n: int, width: int, heads_first: bool) -> Tensor | None:
    """A module's output, (1, ...), as blocks (block, position, width); None: its shape does not allow it."""
    if heads_first:
        return out[0] if out.dim() == 4 and out.shape[2:] == (n, width) else None
    if out.shape[1] != n or out.numel() % (n * width):
        return None
    return out.reshape(n, -1, width).transpose(0, 1)


def _heads(call: ModuleCall, x: Tensor, alike: Callable[[Tensor, Tensor], bool]) -> HeadColumns | None:
    """Find the heads of x, (1, heads, position, width), as parts of a module's output, by the measure `alike`."""
    n, width = x.shape[2:]
    for heads_first in (False, True):
        if (parts := _parts(call.out, n, width, heads_first)) is None:
            continue
        blocks: list[int] = []
        for head in x[0]:
            if (found := next((i for i, part in enumerate(parts) if alike(part, head)), None)) is None:
                break
            blocks.append(found)
        else:
            return HeadColumns(call.module, tuple(blocks), width, heads_first)
    return None


def _same_direction(a: Tensor, b: Tensor) -> bool:
    return bool(a.norm() > 0) and torch.allclose(a / a.norm(), b / b.norm(), atol=1e-6)


def _same_lengths(a: Tensor, b: Tensor) -> bool:
    """Before and after RoPE: a rotation keeps lengths and leaves position 0 alone; YaRN multiplies by one factor."""
    factor = b[0].norm() / a[0].norm().clamp(min=1e-9)
    lengths = torch.allclose(a.norm(dim=-1) * factor, b.norm(dim=-1), rtol=1e-4)
    return lengths and torch.allclose(a[0] * factor, b[0], atol=1e-5)


def angles_of(call: AttentionCall, seen: Sequence[Event]) -> tuple[Tensor, Tensor] | None:
    """cos and sin, (position, r), that the attention module was given."""
    for each in seen:
        if each.module is call.module and isinstance(each, ModuleCall):
            angles = cos_and_sin(each.keywords.get("position_embeddings"))
            if isinstance(angles, tuple) and all(angle.dim() == 3 for angle in angles):
                return angles[0][0], angles[1][0]
    return None


def cos_and_sin(angles: Any) -> Any:
    """(batch, position, r) each, of what an attention is given: the two, or one complex number for both (Llama 4)."""
    return (angles.real, angles.imag) if isinstance(angles, Tensor) and angles.is_complex() else angles


def _layout(before: Tensor, after: Tensor, angles: tuple[Tensor, Tensor]) -> str | None:
    """The layout that turns `before` into `after`, (heads, position, width), by these angles."""
    for layout in LAYOUTS:
        turned = _turn(before, angles, layout)
        if turned is not None and torch.allclose(turned, after, atol=1e-4, rtol=1e-4):
            return layout
    return None


def _turn(before: Tensor, angles: tuple[Tensor, Tensor], layout: str) -> Tensor | None:
    """(heads, position, width), rotated by a layout; None: the angles do not fit."""
    cos, sin = (torch.from_numpy(pair_angles(angle.cpu().numpy(), layout)).to(before) for angle in angles)
    sin = -sin if layout.endswith("backwards") else sin
    if len(cos) != before.shape[1] or 2 * cos.shape[-1] > before.shape[-1]:
        return None
    return rotate(before, cos, sin, layout.startswith("interleaved"))
