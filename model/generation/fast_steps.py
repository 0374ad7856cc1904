"""The model's equations again, optimised for decoding: fused matrices and no hook points.

`Transformer.encode` and `decode_next` are the readable form, with a hook point on every result. `Steps` uses this one
where nothing observes the model; a decoder layer that is observed or edited runs in its readable form between the
others. A test compares the two.
"""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from model.hooks import observed
from model.network.encoder_decoder import Transformer
from model.network.layers import DecoderLayer, EncoderLayer, LayerCache
from model.network.masks import window_mask
from model.network.residual import Residual

INITIAL_CAPACITY = 32
"""Positions allocated for keys and values at first; doubled whenever they are full."""

Function = Callable[[Tensor], Tensor]


class FastTransformer:
    """A copy of a Transformer's weights, laid out for decoding; threads may share it."""

    def __init__(self, model: Transformer) -> None:
        self.model, config = model, model.config
        encoder = (model.src_embedding, model.encoder, model.memory)
        self.encoder_modules = tuple(module for part in encoder for module in part.modules())
        layers = [set(layer.modules()) for layer in model.decoder.layers]
        elsewhere = set(self.encoder_modules).union(*layers) - set(model.tgt_embedding.modules())
        self.other_modules = tuple(module for module in model.modules() if module not in elsewhere)
        """neither of the encoder nor of a decoder layer: what has only this form"""
        self.n_heads, self.d_k = config.n_heads, config.d_k
        self.encoder = [_EncoderLayer(layer) for layer in model.encoder.layers]
        self.decoder = [_DecoderLayer(layer) for layer in model.decoder.layers]
        self.encoder_norm, self.decoder_norm = _norm(model.encoder.final_norm), _norm(model.decoder.final_norm)
        crosses = [layer.cross_attn for layer in model.decoder.layers]
        self.memory_keys_values = _affine(*(linear for cross in crosses for linear in (cross.w_k, cross.w_v)))
        self.output = _product(model.output.weight)

    def start(self, src: Tensor, src_mask: Tensor, copies: int, memory: Tensor | None = None) -> "FastSteps":
        """Encode the sources and prepare to decode `copies` hypotheses of each.

        Args:
            src: token ids (sentence, source position).
            src_mask: bool (sentence, 1, 1, source position); True = may attend.
            copies: adjacent rows per sentence.
            memory: of a changed encoder, (sentence, source position, d_model); None: encode here.
        """
        mask = None if bool(src_mask.all()) else src_mask
        encoded = self._encode(src, mask) if memory is None else memory.flatten(0, 1)
        keys_values = self.memory_keys_values(encoded)
        split = (*src.shape, len(self.decoder), 2, self.n_heads, self.d_k)
        keys_values = keys_values.view(split).permute(2, 3, 0, 4, 1, 5).contiguous()
        target = keys_values.new_empty(
            len(self.decoder), 2, len(src) * copies, self.n_heads, INITIAL_CAPACITY, self.d_k
        )
        steps = FastSteps(self, keys_values, mask, target, copies)
        for number, layer in enumerate(self.model.decoder.layers):
            if observed(layer.modules()):
                steps.readable[number] = ReadableLayer(layer, encoded.view(*src.shape, -1), src_mask, copies)
        return steps

    def _encode(self, src: Tensor, mask: Tensor | None) -> Tensor:
        """The memory, (sentence * source position, d_model)."""
        embedding = self.model.src_embedding
        x = embedding.tokens.weight[src] * embedding.scale + embedding.positions[: src.shape[1]]
        x = x.flatten(0, 1)
        for layer in self.encoder:
            x = layer(x, len(src), mask)
        return self.encoder_norm(x)


class FastSteps:
    """Decoding state. The keys and values of all layers share one tensor, so beams are reordered in one operation."""

    def __init__(
        self, transformer: FastTransformer, memory: Tensor, src_mask: Tensor | None, target: Tensor, copies: int
    ) -> None:
        self.transformer = transformer
        self.memory = memory
        """(layer, keys and values, sentence, head, source position, d_k)"""
        self.src_mask = src_mask
        """None if no sentence is padded"""
        self.target = target
        """(layer, keys and values, row, head, position capacity, d_k)"""
        self.copies = copies
        self.readable: dict[int, ReadableLayer] = {}
        """by number: the layers that are observed or edited"""
        self.length = 0

    def __call__(self, tokens: Tensor) -> Tensor:
        """Logits (row, vocabulary) after one more token in each row (row,)."""
        if self.length == self.target.shape[4]:
            self.target = torch.cat([self.target, torch.empty_like(self.target)], dim=4)
        embedding = self.transformer.model.tgt_embedding
        x = embedding.tokens.weight[tokens] * embedding.scale + embedding.positions[self.length]
        for number, layer in enumerate(self.transformer.decoder):
            readable = self.readable.get(number)
            x = readable(x, self.length) if readable else layer(x, self, number)
        self.length += 1
        return self.transformer.output(self.transformer.decoder_norm(x))

    def reorder(self, rows: Tensor) -> None:
        """Keep these rows, in this order; each sentence's rows stay adjacent."""
        moved = (rows != torch.arange(len(rows), device=rows.device)).nonzero().flatten()
        if len(moved):
            # In place, because allocating everything again at every step costs more than the step itself.
            used = self.target[..., : self.length, :]
            used.index_copy_(2, moved, used.index_select(2, rows[moved]))
        self.target = self.target[:, :, : len(rows)]
        if len(rows) < self.memory.shape[2] * self.copies:
            sentences = rows[:: self.copies] // self.copies
            self.memory = self.memory[:, :, sentences]
            self.src_mask = None if self.src_mask is None else self.src_mask[sentences]
        for layer in self.readable.values():
            layer.reorder(rows)


class ReadableLayer:
    """A decoder layer with its hook points, and its own keys and values: (row, d_model) in and out."""

    def __init__(self, layer: DecoderLayer, memory: Tensor, src_mask: Tensor, copies: int) -> None:
        self.layer, self.cache = layer, LayerCache()
        self.memory, self.src_mask = (tensor.repeat_interleave(copies, 0) for tensor in (memory, src_mask))

    def __call__(self, x: Tensor, position: int) -> Tensor:
        everything_so_far = window_mask(1, position + 1, 0, x.device)
        return self.layer(x[:, None], self.memory, everything_so_far, self.src_mask, self.cache)[:, 0]

    def reorder(self, rows: Tensor) -> None:
        self.memory, self.src_mask = self.memory[rows], self.src_mask[rows]
        self.cache.reorder(rows)


class _EncoderLayer:
    """One layer: (sentence * position, d_model) in and out."""

    def __init__(self, layer: EncoderLayer | DecoderLayer) -> None:
        attention, forward = layer.self_attn, layer.feed_forward
        self.n_heads, self.d_k, self.scale = attention.n_heads, attention.d_k, 1 / attention.divisor
        self.q_k_v, self.out = _affine(attention.w_q, attention.w_k, attention.w_v), _affine(attention.w_o)
        self.w_1, self.w_2, self.activation = _affine(forward.w_1), _affine(forward.w_2), forward.activation
        self.add_self, self.add_forward = _residual(layer.self_attn_residual), _residual(layer.feed_forward_residual)

    def __call__(self, x: Tensor, sentences: int, mask: Tensor | None) -> Tensor:
        x = self.add_self(x, lambda x: self._attend(x, sentences, mask))
        return self.add_forward(x, self._feed_forward)

    def _attend(self, x: Tensor, sentences: int, mask: Tensor | None) -> Tensor:
        q, k, v = self.q_k_v(x).view(sentences, -1, 3, self.n_heads, self.d_k).permute(2, 0, 3, 1, 4)
        z = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=self.scale)
        return self.out(z.transpose(1, 2).reshape(len(x), -1))

    def _feed_forward(self, x: Tensor) -> Tensor:
        return self.w_2(self.activation(self.w_1(x)))


class _DecoderLayer(_EncoderLayer):
    """One layer at one new position: (row, d_model) in and out."""

    def __init__(self, layer: DecoderLayer) -> None:
        super().__init__(layer)
        self.cross_q, self.cross_out = _affine(layer.cross_attn.w_q), _affine(layer.cross_attn.w_o)
        self.add_cross = _residual(layer.cross_attn_residual)

    def __call__(self, x: Tensor, state: FastSteps, number: int) -> Tensor:
        x = self.add_self(x, lambda x: self._self_attention(x, state.target[number], state.length))
        x = self.add_cross(x, lambda x: self._cross_attention(x, state.memory[number], state))
        return self.add_forward(x, self._feed_forward)

    def _self_attention(self, x: Tensor, keys_values: Tensor, position: int) -> Tensor:
        """Self-attention to the row's positions so far; later ones do not exist yet, so no mask is needed."""
        q_k_v = self.q_k_v(x).view(len(x), 3, self.n_heads, self.d_k)
        keys_values[:, :, :, position] = q_k_v[:, 1:].transpose(0, 1)
        k, v = keys_values[:, :, :, : position + 1]
        z = F.scaled_dot_product_attention(q_k_v[:, 0, :, None], k, v, scale=self.scale)
        return self.out(z.flatten(1))

    def _cross_attention(self, x: Tensor, keys_values: Tensor, state: FastSteps) -> Tensor:
        """The rows of one sentence are its queries, so the memory is not repeated for each row."""
        q = self.cross_q(x).view(-1, state.copies, self.n_heads, self.d_k).transpose(1, 2)
        z = F.scaled_dot_product_attention(q, *keys_values, attn_mask=state.src_mask, scale=self.scale)
        return self.cross_out(z.transpose(1, 2).reshape(len(x), -1))


def _affine(*linears: nn.Linear) -> Function:
    """x -> [x W_1 + b_1, x W_2 + b_2, ...] in one product."""
    weight, bias = (torch.cat([getattr(linear, name).detach() for linear in linears]) for name in ("weight", "bias"))
    return _product(weight, bias)


def _product(weight: Tensor, bias: Tensor | None = None) -> Function:
    """x -> x W^T + b for nn.Linear's weight (out, in).

    The matrix is stored as (in, out), which suits a beam's few rows: with AVX512 on an Intel processor they take two
    thirds of the time of nn.Linear's order or less, with AVX2 about as long.
    """
    by_row = weight.detach().T.contiguous()
    return (lambda x: x @ by_row) if bias is None else (lambda x: torch.addmm(bias, x, by_row))


def _norm(norm: nn.Module) -> Function:
    if isinstance(norm, nn.Identity):
        return lambda x: x
    shape, weight, bias, eps = norm.normalized_shape, norm.weight, norm.bias, norm.eps
    return lambda x: torch.layer_norm(x, shape, weight, bias, eps)


def _residual(block: Residual) -> Callable[[Tensor, Function], Tensor]:
    norm = _norm(block.norm)
    if block.pre_norm:
        return lambda x, sublayer: x + sublayer(norm(x))
    return lambda x, sublayer: norm(x + sublayer(x))
