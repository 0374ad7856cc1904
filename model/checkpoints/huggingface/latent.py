"""Multi-head latent attention, whose queries, keys and values pass through a narrower vector: x A, RMSNorm, B.

Found, like all else here, by comparing numbers: each dimension of a head is looked for among the columns of what the
attention's linear maps gave. DeepSeek-AI 2024, "DeepSeek-V2", section 2.1.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from model.checkpoints.huggingface.attention import AttentionCall
from model.checkpoints.huggingface.blocks import read_called_norm
from model.checkpoints.huggingface.heads import LAYOUTS, LINEAR, matrix, pair_angles
from model.checkpoints.huggingface.probe import Event, ModuleCall, same
from model.network.rotary import rotate
from model.trace import Norm


@dataclass(frozen=True)
class LatentSource:
    """Where the queries, the keys or the values of an attention come from."""

    up: nn.Module | None
    """B; None: no dimension passes through a latent vector"""
    columns: Tensor
    """(heads, width): which columns of B's output they are; -1: they are not among them"""
    norm: nn.Module | None
    """what B reads"""
    read_norm: Norm | None
    down: nn.Module | None
    """A"""
    rows: Tensor
    """(rank,): which columns of A's output the norm reads"""
    direct: nn.Module | None
    """what gives the other dimensions from the layer's input itself, such as DeepSeek's keys that are rotated; A can"""
    direct_columns: Tensor
    """(heads, width): which columns of its output they are; -1: they are not among them"""

    @property
    def modules(self) -> dict[str, nn.Module]:
        """By the hook point that its output is read at: up, latent, down, direct."""
        named = {"up": self.up, "latent": self.norm, "down": self.down, "direct": self.direct}
        return {name: module for name, module in named.items() if module is not None}

    def matrices(self) -> tuple[Tensor, Tensor]:
        """W, (heads, d_model, width), and b, (heads, width), with which x W + b, divided by the norm's divisor where B
        made it, is what the three steps give: A diag(gamma) B."""
        direct = self.direct_columns >= 0
        w = b = torch.zeros(())
        if self.up is not None:
            (a, b_a), gamma = self.down_matrix(), torch.from_numpy(self.read_norm.gamma).to(self.columns.device)
            w_b = self.up_matrix()
            w, b = (a.double() * gamma) @ w_b, (b_a.double() * gamma) @ w_b
        if self.direct is not None:
            w_direct, b_direct = matrix(self.direct)
            columns = self.direct_columns.clamp(min=0)
            ours = w_direct.double()[:, columns].movedim(0, 1)
            w = torch.where(direct[:, None], ours, w)
            b = torch.where(direct, torch.zeros(()).double() if b_direct is None else b_direct.double()[columns], b)
        return w, b

    def down_matrix(self) -> tuple[Tensor, Tensor]:
        """A, (d_model, rank), and its bias, (rank,)."""
        w, b = matrix(self.down)
        return w[:, self.rows], torch.zeros_like(w[0, self.rows]) if b is None else b[self.rows]

    def up_matrix(self) -> Tensor:
        """B, (heads, rank, width) in double precision; 0 where a dimension comes from elsewhere."""
        w = matrix(self.up)[0].double()[:, self.columns.clamp(min=0)].movedim(0, 1)
        return w * (self.columns >= 0)[:, None]


@dataclass(frozen=True)
class FoundLatents:
    """How all three are made."""

    sources: dict[str, LatentSource]
    """q, k, v"""
    layout: str
    """as of `AttentionParts`"""
    start: int
    """first dimension that is rotated"""


def find_latents(
    call: AttentionCall, earlier: Sequence[Event], angles: tuple[Tensor, Tensor] | None
) -> FoundLatents | None:
    """The three steps of queries, keys and values; None where they are not made so."""
    own = set(call.module.modules())
    calls = [
        each for each in earlier if isinstance(each, ModuleCall) and each.module in own and each.out.dim() in (3, 4)
    ]
    n = call.key.shape[2]
    linear = [each for each in calls if isinstance(each.module, LINEAR) and each.out.shape[:-1].numel() == n]
    if not linear or angles is None:
        return None
    outputs = torch.cat([each.out.reshape(n, -1) for each in linear], dim=-1).double()
    norms = [
        each for each in calls if each not in linear and (read := read_called_norm(each)) and read.kind == "RMSNorm"
    ]
    for layout in LAYOUTS:
        cos, sin = (torch.from_numpy(pair_angles(each.cpu().numpy(), layout)).double().cpu() for each in angles)
        width = 2 * cos.shape[-1]
        if len(cos) != n or width > call.query.shape[-1]:  # as of `heads._turn`: no angles of this layout
            continue
        for start in (call.query.shape[-1] - width, 0):
            before = {"q": call.query, "k": call.key, "v": call.value}
            before |= {name: _turn_back(before[name], cos, sin, layout, start) for name in "qk"}
            found = {name: _find_columns(x, outputs) for name, x in before.items()}
            if all(each is not None for each in found.values()):
                sources = {name: _source(columns, linear, norms, outputs) for name, columns in found.items()}
                if None not in sources.values() and _read_one_input(list(sources.values()), linear):
                    return FoundLatents(sources, layout, start)
    return None


def _read_one_input(sources: Sequence[LatentSource], linear: Sequence[ModuleCall]) -> bool:
    """Whether some pass through a latent vector, and all begin with what the layer hands to its attention."""
    calls = {each.module: each for each in linear}
    first, *others = (calls[each.down or each.direct].inputs[0] for each in sources)
    return any(each.up for each in sources) and all(same(first, other) for other in others)


def _turn_back(x: Tensor, cos: Tensor, sin: Tensor, layout: str, start: int) -> Tensor:
    """(1, heads, position, width) before its dimensions from `start` on were rotated."""
    size = cos**2 + sin**2
    sin = -sin if layout.endswith("backwards") else sin
    x, width = x.double().cpu(), 2 * cos.shape[-1]
    part = rotate(x[..., start : start + width], cos / size, -sin / size, layout.startswith("interleaved"))
    return torch.cat([x[..., :start], part, x[..., start + width :]], dim=-1)


def _find_columns(x: Tensor, outputs: Tensor) -> Tensor | None:
    """(heads, width): which column of the outputs, (position, all), each dimension of x is; None: one is none."""
    heads, n, width = x.shape[1:]
    wanted = x[0].double().movedim(1, 2).reshape(-1, n)
    distances = torch.cdist(wanted, outputs.T.to(wanted), compute_mode="donot_use_mm_for_euclid_dist")
    best, columns = distances.min(dim=-1)
    return (
        columns.reshape(heads, width)
        if bool((best <= 1e-5 * max(1.0, float(wanted.norm(dim=-1).max()))).all())
        else None
    )


def _source(
    columns: Tensor, linear: Sequence[ModuleCall], norms: Sequence[ModuleCall], outputs: Tensor
) -> LatentSource | None:
    """What made these columns of all outputs; None: more than one B, or another map beside A and B."""
    up = norm = down = direct = None
    none = torch.full_like(columns, -1)
    up_columns, direct_columns, rows = none, none, none[0, :0]
    for each, start in zip(linear, _starts(linear), strict=True):
        here = (columns >= start) & (columns < start + each.out.shape[-1])
        if not bool(here.any()):
            continue
        ours = torch.where(here, columns - start, -1)
        read = next((one for one in norms if same(one.out, each.inputs[0])), None)
        if read is None and direct is None:
            direct, direct_columns = each, ours
        elif read is not None and up is None and each.module.bias is None:
            up, norm, up_columns = each, read, ours
        else:
            return None
    if norm is not None:
        if (found := _find_columns(norm.inputs[0].reshape(1, 1, len(outputs), -1), outputs)) is None:
            return None
        for each, start in zip(linear, _starts(linear), strict=True):
            if bool(((found >= start) & (found < start + each.out.shape[-1])).all()):
                down, rows = each, found[0] - start
        if down is None or (direct is not None and direct is not down):
            return None
    modules = (each and each.module for each in (up, norm, down, direct))
    up, norm_module, down, direct = modules
    read_norm = None if norm is None else read_called_norm(norm)
    return LatentSource(up, up_columns, norm_module, read_norm, down, rows, direct, direct_columns)


def _starts(linear: Sequence[ModuleCall]) -> Iterator[int]:
    start = 0
    for each in linear:
        yield start
        start += each.out.shape[-1]
