"""The Transformer (paper, figure 1): encoder, decoder, and the output over the shared vocabulary."""

import torch
from torch import Tensor, nn

from model.hooks import HookPoint
from model.network.attention import MultiHeadAttention
from model.network.config import TransformerConfig
from model.network.embedding import InputEmbedding
from model.network.layers import DecoderLayer, EncoderLayer, LayerCache
from model.network.masks import causal_mask, padding_mask
from model.trace import Kind


class Encoder(nn.Module):
    """N identical layers over the source sentence (section 3.1)."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.layers = nn.ModuleList(EncoderLayer(config) for _ in range(config.n_encoder_layers))
        self.final_norm = _final_norm(config)

    def forward(self, x: Tensor, src_mask: Tensor) -> Tensor:
        for layer in self.layers:
            x = layer(x, src_mask)
        return self.final_norm(x)


class Decoder(nn.Module):
    """N identical layers over the target so far, each with cross-attention to the memory (section 3.1)."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.layers = nn.ModuleList(DecoderLayer(config) for _ in range(config.n_decoder_layers))
        self.final_norm = _final_norm(config)

    def forward(
        self, x: Tensor, memory: Tensor, tgt_mask: Tensor, src_mask: Tensor, cache: list[LayerCache] | None = None
    ) -> Tensor:
        for layer, layer_cache in zip(self.layers, cache or [None] * len(self.layers), strict=True):
            x = layer(x, memory, tgt_mask, src_mask, layer_cache)
        return self.final_norm(x)


class Transformer(nn.Module):
    """softmax(logits[:, t]) is the model's distribution of target token t+1 given source and targets 0..t."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.config = config
        src_tokens = nn.Embedding(config.vocab_size, config.d_model)
        tgt_tokens = src_tokens if config.tie_embeddings else nn.Embedding(config.vocab_size, config.d_model)
        self.src_embedding = InputEmbedding(config, src_tokens)
        self.tgt_embedding = InputEmbedding(config, tgt_tokens)
        self.encoder, self.decoder = Encoder(config), Decoder(config)
        self.output = nn.Linear(config.d_model, config.vocab_size, bias=False)
        if config.tie_embeddings:
            self.output.weight = src_tokens.weight
        self.memory, self.final, self.logits = HookPoint(), HookPoint(), HookPoint()
        self._initialise()

    def _initialise(self) -> None:
        """Xavier for every projection, zero biases; embeddings with variance 1 / d_model, so that after multiplication
        by sqrt(d_model) they are on the scale of the sines and cosines that are added to them."""
        for module in self.modules():
            if isinstance(module, nn.Linear) and module is not self.output:
                nn.init.xavier_uniform_(module.weight)
                nn.init.zeros_(module.bias)
            elif isinstance(module, InputEmbedding) and isinstance(module.positions, nn.Parameter):
                nn.init.normal_(module.positions, std=0.02)
        for weight in dict.fromkeys(
            (self.src_embedding.tokens.weight, self.tgt_embedding.tokens.weight, self.output.weight)
        ):
            nn.init.normal_(weight, std=self.config.d_model**-0.5)

    def forward(self, src: Tensor, tgt: Tensor) -> Tensor:
        """Teacher-forced logits.

        Args:
            src: token ids (batch, source position), padded with PAD.
            tgt: token ids (batch, target position), the start token first, padded with PAD.

        Returns:
            (batch, target position, vocabulary)
        """
        src_mask = padding_mask(src)
        return self.decode(tgt, self.encode(src, src_mask), src_mask)

    def encode(self, src: Tensor, src_mask: Tensor) -> Tensor:
        """The memory: (batch, source position, d_model)."""
        return self.memory(self.encoder(self.src_embedding(src), src_mask))

    def decode(self, tgt: Tensor, memory: Tensor, src_mask: Tensor) -> Tensor:
        """Logits (batch, target position, vocabulary) of each next token, all positions at once."""
        tgt_mask = padding_mask(tgt) & causal_mask(tgt.shape[1], tgt.device)
        x = self.final(self.decoder(self.tgt_embedding(tgt), memory, tgt_mask, src_mask))
        return self.logits(self.output(x))

    def decode_next(
        self, tokens: Tensor, position: int, memory: Tensor, src_mask: Tensor, cache: list[LayerCache]
    ) -> Tensor:
        """One cached step: logits (batch, vocabulary) after `tokens` (batch,), which stand at `position`."""
        tgt_mask = torch.ones(1, 1, 1, position + 1, dtype=torch.bool, device=tokens.device)
        x = self.tgt_embedding(tokens[:, None], start=position)
        x = self.final(self.decoder(x, memory, tgt_mask, src_mask, cache))
        return self.logits(self.output(x))[:, 0]

    def new_cache(self) -> list[LayerCache]:
        """An empty key/value cache, one entry a decoder layer."""
        return [LayerCache() for _ in self.decoder.layers]

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """The three kinds of attention (section 3.2.3)."""
        heads = self.config.n_heads
        encoder, decoder = tuple(range(len(self.encoder.layers))), tuple(range(len(self.decoder.layers)))
        return (
            Kind("encoder_self", "encoder", "encoder", causal=False, layers=encoder, heads=heads, kv_heads=heads),
            Kind("decoder_self", "decoder", "decoder", causal=True, layers=decoder, heads=heads, kv_heads=heads),
            Kind("cross", "decoder", "encoder", causal=False, layers=decoder, heads=heads, kv_heads=heads),
        )

    def attentions(self) -> dict[tuple[str, int], tuple[str, MultiHeadAttention]]:
        """(kind, layer) -> (path, module)."""
        found = {}
        for kind in self.kinds:
            for layer in kind.layers:
                path = f"{kind.queries}.layers.{layer}.{'cross_attn' if kind.crosses else 'self_attn'}"
                found[kind.name, layer] = (path, self.get_submodule(path))
        return found

    def parameters_by_part(self) -> dict[str, int]:
        """How many parameters each part learns; a tied matrix is counted once."""
        counts = dict.fromkeys(("embeddings", "positions", "encoder", "decoder", "output"), 0)
        for path, parameter in self.named_parameters():
            part = path.split(".")[0].removeprefix("src_").removeprefix("tgt_")
            part = "positions" if path.endswith(".positions") else {"embedding": "embeddings"}.get(part, part)
            counts[part] += parameter.numel()
        return counts

    def parameters_by_block(self) -> dict[tuple[str, int], dict[str, int]]:
        """(stack, layer) -> part -> how many parameters it learns; a layer's norms are counted together, as "norms".

        What lies outside the layers, such as the final norm of a pre-norm stack, is not counted.
        """
        counts: dict[tuple[str, int], dict[str, int]] = {}
        for stack in ("encoder", "decoder"):
            for layer, block in enumerate(getattr(self, stack).layers):
                parts = counts[stack, layer] = {}
                for name, module in block.named_children():
                    part = "norms" if name.endswith("_residual") else name
                    parts[part] = parts.get(part, 0) + sum(parameter.numel() for parameter in module.parameters())
        return counts


def _final_norm(config: TransformerConfig) -> nn.Module:
    """Pre-norm does not normalise the last residual stream, so its stacks end with one more norm."""
    return nn.LayerNorm(config.d_model) if config.norm == "pre" else nn.Identity()
