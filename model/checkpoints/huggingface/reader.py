"""A Trace of a Hugging Face model, from the activations of one run."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from typing import Any

import numpy as np
from torch import Tensor

from model.checkpoints.huggingface.attention import AttentionPoints
from model.checkpoints.huggingface.heads import pair_angles
from model.checkpoints.huggingface.latent import LatentSource
from model.checkpoints.huggingface.network import Block, HookedModel
from model.network.network import EMBEDDINGS
from model.trace import Array, Attention, Embedded, Kind, Latent, Latents, Norm, QKNorm, Rotary, StackName, SubLayer
from model.tracer import Reader


def read_window(mask: Array, kind: Kind) -> int | None:
    """The sliding window that a mask, (heads, query, key), has; None: it has none.

    A window that is wider than the text hides nothing, so it is not seen.
    """
    if kind.crosses:
        return None
    n = mask.shape[-1]
    distance = np.arange(mask.shape[-2])[:, None] - np.arange(n)
    seen = np.abs(distance)[mask.any(axis=0)]
    window = int(seen.max(initial=0)) + 1
    inside = np.abs(distance) < window
    inside &= (distance >= 0) if kind.causal else True
    return window if window < n and (mask == inside).all() else None


def _query_scale(attention: Attention, varies: bool) -> Array | None:
    """(query,): one number by which every head's query of a position was multiplied at last; None: none fits, or 1.

    A query that is neither normalised nor rotated is compared with x W_Q only where the probe saw that it `varies`.
    """
    norm, rotary, shown = attention.qk_norm, attention.rotary, attention.q
    if rotary is not None and not (norm and norm.after_rotation):
        computed = rotary.turn(rotary.q)
    elif norm is not None:
        computed = norm.apply("q")
    elif varies:
        ((computed, _),) = attention.recompute("q")
    else:
        return None
    if np.allclose(computed, shown, rtol=1e-5, atol=1e-5 * np.abs(shown).max()):
        return None
    scale = (computed * shown).sum(axis=(0, 2)) / np.maximum((computed**2).sum(axis=(0, 2)), 1e-30)
    fits = np.allclose(computed * scale[:, None], shown, rtol=1e-4, atol=1e-5 * np.abs(shown).max())
    return scale if fits else None


def _repeat(x: Array | None, group: int) -> Array | None:
    return None if x is None else x.repeat(group, axis=0)


@dataclass(frozen=True)
class HookedReader(Reader):
    """As `Reader`, of what the probe has found in a Hugging Face model."""

    model: HookedModel

    @cached_property
    def edited(self) -> frozenset[str]:
        """Hook points that interventions of the run edit."""
        return frozenset(path for change in self.interventions for path in change.edits(self.model))

    @cached_property
    def whole(self) -> dict[tuple[str, int], str]:
        exact = {points for site in self.model.sites.values() if site.exact for points in site.points}
        return {place: path for place, (path, points) in self.attentions.items() if points in exact}

    @property
    def remarks(self) -> dict[str, Any]:
        others = {place: path for place, (path, _) in self.attentions.items() if place not in self.whole}
        chosen = self.model.languages
        return {
            "notes": tuple(self.model.notes),
            "languages": chosen and (chosen.source, chosen.target),
            "exact": {f"{kind} {layer}": points.error for (kind, layer), (_, points) in self.attentions.items()},
            "weights": {place: self.activations[f"{path}.pattern"] for place, path in others.items()},
        }

    def attention(self, kind: Kind, layer: int) -> Attention:
        read, (path, points) = super().attention(kind, layer), self.attentions[kind.name, layer]
        if read.projections is None or f"{path}.q" in self.edited:
            return read
        return replace(read, query_scale=_query_scale(read, self.model.parts_of(points).varies))

    def _parts(self, path: str, points: AttentionPoints, kind: Kind) -> dict[str, Any]:
        bias = self.activations.get(f"{path}.bias")
        return {
            "projections": self.model.projections(points),
            "latents": self._latents(path, points),
            "softcap": points.softcap,
            # T5 gives its cross-attention a bias that is 0 everywhere.
            "bias": bias if bias is not None and bias.any() else None,
            "sink": points.sink,
            "window": read_window(self.activations[f"{path}.mask"], kind),
        }

    def _latents(self, path: str, points: AttentionPoints) -> Latents | None:
        """The three steps of queries, keys and values that pass through a latent vector."""
        sources = self.model.parts_of(points).latents
        if not sources or f"{path}.q_up" not in self.activations:
            return None
        return Latents(**{name: self._latent(path, name, source) for name, source in sources.items()})

    def _latent(self, path: str, name: str, source: LatentSource) -> Latent | None:
        if source.up is None:
            return None
        side = "q" if name == "q" else "kv"
        w_a, b_a = (each.cpu().numpy() for each in source.down_matrix())
        compressed, normed = (self._rows(path, f"{side}_{step}") for step in ("down", "latent"))
        compressed = compressed[:, source.rows.cpu().numpy()]
        direct = (source.direct_columns[0] >= 0).cpu().numpy()
        w_b = source.up_matrix().to(source.up.weight.dtype)
        return Latent(
            w_a, b_a, compressed, source.read_norm, normed, w_b.cpu().numpy(), direct, self._made(path, name, source)
        )

    def _rows(self, path: str, point: str) -> Array:
        """(position, width): what a step gave, which some models keep as that of a single head."""
        found = self.activations[f"{path}.{point}"]
        return found.reshape(-1, found.shape[-1])

    def _made(self, path: str, name: str, source: LatentSource) -> Array:
        """(heads, position, width): what the last linear map of each dimension gave."""
        side, made = "q" if name == "q" else "kv", None
        parts = [("up", source.columns)] if source.up is not None else []
        parts += [("down" if parts else "up", source.direct_columns)] if source.direct is not None else []
        for step, columns in parts:
            taken, columns = self._rows(path, f"{side}_{step}"), columns.cpu().numpy()
            found = np.where(columns[:, None] >= 0, np.moveaxis(taken[:, np.maximum(columns, 0)], 0, 1), 0)
            made = found if made is None else made + found
        return made

    def _inputs(self, path: str, kind: Kind) -> tuple[Array, Array]:
        """What W_Q and what W_K and W_V are applied to; where they were not found, the attention's output stands in."""
        out = self.activations[f"{path}.out"]
        query_input = self.activations.get(f"{path}.query_input", out)
        key_input = self.activations.get(f"{path}.key_input")
        if key_input is None:
            key_input = self.activations["memory"] if kind.crosses else query_input
        return query_input, key_input

    def _before(self, path: str, point: str, group: int) -> tuple[Array, Array] | None:
        """Queries and keys at an earlier point, a key for each query head; None where they were not found."""
        if sources := self.model.parts_of(self.model.get_submodule(path)).latents:
            return tuple(self._made(path, name, sources[name]) for name in "qk")
        q, k = (self.activations.get(f"{path}.{name}_{point}") for name in "qk")
        return None if q is None or k is None else (q, k.repeat(group, axis=0) if group > 1 else k)

    def _qk_norm(self, path: str, points: AttentionPoints, group: int) -> QKNorm | None:
        norms, last = self.model.qk_norms(points), self.model.parts_of(points).norm_last
        before = self._before(path, "turned" if last else "pre", group)
        if not norms or not before:
            return None
        q_norm, k_norm = norms
        if k_norm.gamma.ndim > 1:
            k_norm = replace(k_norm, gamma=_repeat(k_norm.gamma, group), beta=_repeat(k_norm.beta, group))
        return QKNorm(*before, q_norm, k_norm, last)

    def _rotary(self, path: str, points: AttentionPoints, group: int) -> Rotary | None:
        found = self.model.parts_of(points)
        if not found.rotated:
            return None
        if found.latents and f"{path}.q_up" not in self.activations:
            return None
        before = self._before(path, "normed" if found.norms and not found.norm_last else "pre", group)
        cos, sin = (pair_angles(self.activations[f"{path}.{name}"], found.layout) for name in ("cos", "sin"))
        sin = -sin if found.layout.endswith("backwards") else sin
        return Rotary(*before, cos, sin, found.layout.startswith("interleaved"), found.start) if before else None

    def _final(self, name: StackName, sublayers: Sequence[SubLayer]) -> Array:
        final = self.activations.get("final" if name in self.predicts else "memory")
        if final is not None:
            return final
        # No head reads it.
        norm, x = self.model.final_norms[list(self.reads)[-1]], sublayers[-1].after
        return x if norm is None else norm(x).astype(x.dtype)

    def _last_norm(self, name: StackName) -> Norm | None:
        return self.model.final_norms[name]

    def _embedded(self, name: StackName) -> Embedded:
        found, path = self.model.embeddings[name], EMBEDDINGS[name]
        entering, total = self.activations[f"{path}.entering"], self.activations.get(f"{path}.sum")
        embedding = self.activations.get(f"{path}.embedding")
        if not found.known or embedding is None:
            embedding, total = (entering if embedding is None else embedding), entering
            embedding = embedding if embedding.shape == total.shape else total
        normed = None if found.norm_module is None else entering
        norm = found.norm if normed is not None and normed.shape == total.shape else None
        positional = self._positional(path, embedding, total)
        tokens = self.reads[name]
        types = None if found.types is None or tokens.segments is None else found.types[list(tokens.segments)]
        added = positional if types is None else positional - types.double().cpu().numpy()
        rows = None if f"{path}.positional" in self.edited else found.find_rows(added)
        return Embedded(embedding, positional, total, normed, norm, rows)

    def _positional(self, path: str, embedding: Array, total: Array) -> Array:
        """What was added; what was added besides positions, such as a token type, is part of it."""
        positional = self.activations.get(f"{path}.positional")
        return total - embedding if positional is None else positional

    def _addresses(self, stack: str) -> Iterator[tuple[Block, int, int]]:
        """Those of all layers, or none where one of them could not be read: they hand their results on."""
        blocks = self.model.blocks_of(stack)
        if all(block.arrangement for block in blocks):
            for block in blocks:
                for number in block.numbers:
                    for i in range(len(block.names)):
                        yield block, number, i

    def _sublayer(self, block: Block, number: int, i: int) -> SubLayer:
        return next(islice(self._layer(block, number), i, None))

    def _layer(self, block: Block, number: int) -> Iterator[SubLayer]:
        path, placement = f"{block.stack}.layers.{number}", block.arrangement.placement
        x = begin = self.activations[f"{path}.self_attn_residual.before"]
        multipliers = block.arrangement.multipliers
        for name, (norm, result_norm), multiplier in zip(block.names, block.norms, multipliers, strict=True):
            if (before := f"{path}.{name}_residual.before") in self.edited:
                x = self.activations[before]
            result = self.activations[f"{path}.{name}.out"]
            out = self.activations.get(f"{path}.{name}_residual.contribution", result)
            out = out if multiplier == 1 else out * out.dtype.type(multiplier)
            added = x + out
            normed = self.activations.get(f"{path}.{name}_residual.normed", begin if placement == "parallel" else x)
            after = normed if placement == "post" else added
            if name == "feed_forward":
                after = self.activations[f"{path}.end"]
            yield SubLayer(
                stack=block.stack,
                layer=number,
                name=name,
                before=x,
                out=out,
                added=added,
                normed=normed,
                after=after,
                placement=placement,
                norm=norm,
                result=result if placement in ("sandwich", "res-post") or multiplier != 1 else None,
                result_norm=result_norm,
                multiplier=multiplier,
                layer_input=begin if placement == "parallel" else None,
                b_2=self._b_2(block) if name == "feed_forward" else None,
                **self._inside(f"{path}.{name}"),
            )
            x = after

    @staticmethod
    def _b_2(block: Block) -> Array | None:
        bias = getattr(block.arrangement.w_2, "bias", None)
        return bias.cpu().numpy() if isinstance(bias, Tensor) and bias.dim() == 1 else None

    def _inside(self, path: str) -> dict[str, Array | None]:
        """Of a feed-forward: what its activation reads, what W_2 is applied to, and what was multiplied to make it."""
        return {name: self.activations.get(f"{path}.{name}") for name in ("z", "hidden", "gate", "up")}
