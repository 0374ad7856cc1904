"""What a stack reads and what follows its last layer: embeddings, positions and the head, found by arithmetic."""

import copy
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from model.checkpoints.huggingface.attention import PASS, HookedAttention, layer_of
from model.checkpoints.huggingface.blocks import read_called_norm
from model.checkpoints.huggingface.heads import LINEAR
from model.checkpoints.huggingface.probe import ModuleCall, batched, close, plain_factor, same
from model.hooks import HookPoint
from model.trace import Array, Norm


class FoundEmbedding(nn.Module):
    """Embeddings of tokens, what is added for their positions, and the sum, as in `model.network.embedding`."""

    def __init__(self, tokens: nn.Embedding) -> None:
        super().__init__()
        self.tokens = tokens
        self.scale = 1.0
        """embedding = tokens.weight[ids] * scale"""
        self.lookup: nn.Module | None = None
        """the module that looks them up, which may multiply by a part of `scale`"""
        self.factor = 1.0
        """the other part"""
        self.table: nn.Module | None = None
        """makes what is added for the positions"""
        self.rows: Tensor | None = None
        """(row, width): all that the table holds, the constant part of what is added included"""
        self.first_row = 0
        """which of them is added at position 0 of a text without padding"""
        self.moving = False
        """whether something is added that differs from position to position, be its table found or not"""
        self.types: Tensor | None = None
        """(token types, width): what is added for each besides the row of type 0, which `positions` contains"""
        self.norm_module: nn.Module | None = None
        self.norm: Norm | None = None
        """between the sum and the first layer"""
        self.known = True
        """whether embedding + positions, and perhaps a norm, is all that the first layer reads"""
        self.embedding, self.sum, self.entering = HookPoint(), HookPoint(), HookPoint()

    @property
    def positions(self) -> Tensor | None:
        """(max_len, width): what is added at each position of a text without padding; None: nothing that was found."""
        return None if self.rows is None else self.rows[self.first_row :]

    def find_rows(self, added: Array) -> tuple[int, ...] | None:
        """Which of `positions` a run added, (position, width); a row before the first of them is negative.

        None: one of them is no row of the table.
        """
        if self.rows is None or self.rows.shape[1] != added.shape[1]:
            return None
        # The nearest row by the scalar product, as a matrix of all differences would be large.
        table, wanted = self.rows.double().cpu(), torch.from_numpy(added.astype(np.float64))
        nearest = ((table**2).sum(-1) - 2 * wanted @ table.T).argmin(dim=-1)
        if not close(table[nearest], wanted):
            return None
        return tuple((nearest - self.first_row).tolist())

    @property
    def learned(self) -> bool:
        """True if the positions were trained: rows of sines and cosines all have one length."""
        lengths = self.positions.norm(dim=-1)
        return not torch.allclose(lengths[1:], lengths[1], rtol=1e-3)

    def attach(self, first: nn.Module, site: HookedAttention) -> None:
        """Read what enters the layer `first`, whose self-attention is `site`."""
        if self.lookup is not None:
            self.lookup.register_forward_hook(_remember)
        first.register_forward_pre_hook(partial(_enter, self, site), with_kwargs=True)
        if self.norm_module is not None:
            self.norm_module.register_forward_pre_hook(partial(_read_sum, self))
        if hasattr(self, "positional"):
            self.table.register_forward_hook(partial(_lead_positions, self.positional))


@dataclass
class OutputHead:
    """From what the last layer hands on to the logits."""

    final_norm: nn.Module | None = None
    norm: Norm | None = None
    """formula of `final_norm`"""
    modules: list[nn.Module] = field(default_factory=list)
    """applied one after the other"""
    scale: float = 1.0
    """of what the first of them reads"""
    out_scale: float = 1.0
    softcap: float | None = None
    bias: Tensor | None = None
    unknown: bool = False
    """whether these give other logits than the model's"""

    def __call__(self, final: Tensor) -> Tensor:
        """(..., d_model), after the final norm -> (..., vocabulary)."""
        x = final * self.scale if self.scale != 1 else final
        for module in self.modules:
            x = module(x)
        x = x * self.out_scale if self.out_scale != 1 else x
        x = x if self.softcap is None else (x / self.softcap).tanh() * self.softcap
        return x if self.bias is None else x + self.bias

    def in_double(self) -> "OutputHead":
        """A copy in double precision."""
        return replace(self, modules=[copy.deepcopy(module).double() for module in self.modules])


def find_embedding(
    tokens: nn.Embedding,
    first: ModuleCall | None,
    calls: Sequence[ModuleCall],
    inside: set[nn.Module],
    holders: Iterable[nn.Module],
) -> FoundEmbedding:
    """What the layer `first` reads; `inside`: all modules of this stack's layers; `holders`: of the model."""
    found = FoundEmbedding(tokens)
    before = calls[: next((i for i, each in enumerate(calls) if each.module in inside), len(calls))]
    lookups = [i for i, each in enumerate(before) if getattr(each.module, "weight", None) is tokens.weight]
    if first is None or not lookups:
        found.known = False
        return found
    lookup, between = before[lookups[-1]], before[lookups[-1] + 1 :]
    found.lookup = lookup.module
    added = [each for each in between if _is_addend(each, lookup)]
    rest = sum((batched(each.out) for each in added), torch.zeros_like(lookup.y))
    reading = [each for each in between if each.inputs and each.x.shape == lookup.y.shape and read_called_norm(each)]
    for factor in _factors(lookup.y, [each.x - rest for each in (*reading, first) if each.x.shape == rest.shape]):
        total = lookup.y * factor + rest
        normed = next((each for each in reading if close(each.x, total) and _leads_to(each, first, between)), None)
        if normed or close(first.x, total):
            found.factor = factor
            break
    else:
        found.known = False
        _find_bare_table(found, lookup, first, holders)
        return found
    measured = found.factor * float(lookup.out.norm() / tokens.weight[lookup.inputs[0].flatten()].norm())
    found.scale = plain_factor(measured, lookup.out.shape[-1])
    if normed:
        found.norm_module = normed.module
        found.norm = read_called_norm(normed) if close(normed.y, first.x) else None
    _find_positions(found, added)
    return found


def _leads_to(norm: ModuleCall, first: ModuleCall, calls: Sequence[ModuleCall]) -> bool:
    """True if the first layer reads what the norm gives, or one linear map of it (ALBERT)."""
    maps = (each for each in calls if isinstance(each.module, LINEAR) and close(each.x, norm.y))
    return close(norm.y, first.x) or any(close(each.y, first.x) for each in maps)


def _factors(embedding: Tensor, sums: Sequence[Tensor]) -> Iterator[float]:
    """By which a model may multiply its embeddings: 1, sqrt(width), and what gives one of the sums."""
    yield from (1.0, embedding.shape[-1] ** 0.5)
    for each in sums:
        yield plain_factor(float((embedding * each).sum() / (embedding**2).sum()), embedding.shape[-1])


def _find_bare_table(
    found: FoundEmbedding, lookup: ModuleCall, first: ModuleCall, holders: Iterable[nn.Module]
) -> None:
    """A table that is added without a module of its own, such as CTRL's sines."""
    if first.x.shape != lookup.y.shape:
        return
    for factor in (1.0, lookup.out.shape[-1] ** 0.5):
        rest = (first.x - lookup.y * factor)[0]
        for held in (each for module in holders for each in _matrices(module, rest.shape[1])):
            if len(held) >= len(rest) and close(held[: len(rest)].to(rest), rest):
                found.factor, found.rows = factor, held.detach()
                found.known = found.moving = True
                weights = found.tokens.weight[lookup.inputs[0].flatten()]
                measured = factor * float(lookup.out.norm() / weights.norm())
                found.scale = plain_factor(measured, lookup.out.shape[-1])
                return


def _matrices(module: nn.Module, width: int) -> Iterator[Tensor]:
    """Those of this width that a module itself holds."""
    own = (*module.parameters(recurse=False), *module.buffers(recurse=False))
    for held in (*own, *(each for each in vars(module).values() if isinstance(each, Tensor))):
        if held.dim() == 2 and held.shape[1] == width:
            yield held


def _find_positions(found: FoundEmbedding, added: Sequence[ModuleCall]) -> None:
    parts = [batched(each.out)[0] for each in added]
    moving = [i for i, part in enumerate(parts) if not torch.equal(part[0], part[1])]
    found.moving = bool(moving)
    if len(moving) != 1:
        return
    (i,) = moving
    found.table = added[i].module
    if (table := _table_of(added[i].module, parts[i])) is None:
        return
    found.rows, found.first_row = table
    constant = [part[0] for j, part in enumerate(parts) if j != i]
    tables = [added[j] for j in range(len(parts)) if j != i and isinstance(added[j].module, nn.Embedding)]
    if constant:  # token types: the same at every position of one text
        if len(tables) == 1 and not tables[0].inputs[0].any():
            found.types = tables[0].module.weight.detach() - constant[0]
        found.rows = found.rows.double() + sum(constant)
    else:
        found.positional = HookPoint()


def _is_addend(call: ModuleCall, lookup: ModuleCall) -> bool:
    """True if a call looks like a table that is added to the embeddings: no module of parts, and of their shape."""
    return not list(call.module.children()) and batched(call.out).shape[1:] == lookup.out.shape[1:] and _is_table(call)


def _is_table(call: ModuleCall) -> bool:
    """True if its output is made of rows of a matrix that it holds."""
    return _table_of(call.module, batched(call.out)[0]) is not None or (
        isinstance(call.module, nn.Embedding) and call.inputs[0].dtype == torch.int64
    )


def _table_of(module: nn.Module, rows: Tensor) -> tuple[Tensor, int] | None:
    """The module's table, and which row of it is added at position 0; None if it has no such table."""
    for part in module.modules():
        for held in _matrices(part, rows.shape[1]):
            # RoBERTa's begins behind the number of its padding token.
            starts = (held == rows[0]).all(dim=-1).nonzero().flatten().tolist()
            start = next((i for i in starts if torch.equal(held[i : i + len(rows)], rows)), None)
            if start is not None:
                return held.detach(), start
    return None


def find_norm_after(last: ModuleCall, calls: Sequence[ModuleCall]) -> ModuleCall | None:
    """The norm of a stack's last output."""
    after = calls[_index(calls, last) + 1 :]
    return next(
        (each for each in after if each.inputs and same(each.inputs[0], last.out) and read_called_norm(each)), None
    )


def _index(calls: Sequence[ModuleCall], call: ModuleCall) -> int:
    return next(i for i, each in enumerate(calls) if each is call)


def find_head(
    model: nn.Module, last: ModuleCall | None, calls: Sequence[ModuleCall], logits: Tensor | None
) -> OutputHead:
    """What follows the last layer's output."""
    head = OutputHead()
    if last is None:
        head.unknown = True
        return head
    norm = find_norm_after(last, calls)
    after = calls[_index(calls, norm or last) + 1 :]
    x = norm.y if norm else last.y
    if norm:
        head.final_norm, head.norm = norm.module, read_called_norm(norm)
    if logits is None or logits.dim() != 3:
        return head
    softcap = getattr(model.config.get_text_config(), "final_logit_softcapping", None)
    for modules, scale, y in _paths(x, after):
        for bias, out_scale, cap in _endings(y, logits, softcap):
            head.modules, head.scale, head.bias, head.out_scale, head.softcap = modules, scale, bias, out_scale, cap
            if close(head(x), logits):
                return head
    head.modules, head.unknown = [], True
    return head


def _paths(
    x: Tensor, calls: Sequence[ModuleCall], scaled: bool = True
) -> Iterator[tuple[list[nn.Module], float, Tensor]]:
    """Sequences of modules that read each other's outputs, the first x or a multiple of it; outermost first."""
    for i in reversed(range(len(calls))):
        call = calls[i]
        if not call.inputs or call.inputs[0].dim() not in (2, 3) or call.x.shape != x.shape:
            continue
        factor = 1.0 if torch.equal(call.x, x) else float(call.x.norm() / x.norm()) if scaled else 0.0
        factor = plain_factor(factor, x.shape[-1])
        if factor and (factor == 1.0 or torch.allclose(x * factor, call.x, rtol=1e-6, atol=1e-7)):
            yield [call.module], factor, call.y
            for rest, _, y in _paths(call.y, calls[i + 1 :], scaled=False):
                yield [call.module, *rest], factor, y


def _endings(y: Tensor, logits: Tensor, softcap: float | None) -> Iterator[tuple[Tensor | None, float, float | None]]:
    """Bias, factor and soft cap that may lead from the last module's output to the logits."""
    if y.shape != logits.shape:
        return
    yield None, 1.0, None
    if softcap:
        yield None, 1.0, float(softcap)
    yield None, float(logits.norm() / y.norm()), None
    yield (logits - y)[0, 0], 1.0, None


def _remember(module: nn.Module, _args: Any, out: Tensor) -> None:
    if run := PASS.get():
        run.looked_up[module] = out.clone()  # CTRL multiplies it in place


def _enter(
    found: FoundEmbedding, site: HookedAttention, _module: nn.Module, args: tuple, keywords: Mapping[str, Any]
) -> tuple[tuple, Mapping[str, Any]] | None:
    """When the first layer begins, its stack's tokens were looked up last."""
    run = PASS.get()
    if layer_of(site):
        return None
    first = args[0] if args else keywords["hidden_states"]
    x = batched(first)
    found.entering(x)
    if run:
        run.entered.add(found)
    edited = found.sum(x) if found.norm_module is None else x
    if run and (embedding := run.looked_up.get(found.lookup)) is not None:
        found.embedding(embedding if found.factor == 1 else embedding * found.factor)
    if edited is x:
        return None
    edited = edited.reshape(first.shape)
    return ((edited, *args[1:]), keywords) if args else (args, {**keywords, "hidden_states": edited})


def _read_sum(found: FoundEmbedding, _module: nn.Module, args: tuple) -> tuple | None:
    """Where layers share this norm, their calls come after the first layer has begun."""
    run = PASS.get()
    if run is not None and found in run.entered:
        return None
    edited = found.sum(args[0])
    return None if edited is args[0] else (edited, *args[1:])


def _lead_positions(point: HookPoint, _module: nn.Module, _args: Any, out: Tensor) -> Tensor | None:
    rows = out[0] if out.dim() == 3 else out
    edited = point(rows)
    return None if edited is rows else edited.expand(out.shape) if out.dim() == 3 else edited
