"""The Transformer (paper, figure 1): encoder, decoder, and the output over the shared vocabulary."""

from collections.abc import Sequence

from torch import Tensor, nn

from model.hooks import HookPoint
from model.network.config import EOS, TransformerConfig
from model.network.embedding import InputEmbedding
from model.network.layers import DecoderLayer, LayerCache
from model.network.masks import causal_mask, padding_mask, window_mask
from model.network.network import Encoder, Network, final_norm


class Decoder(nn.Module):
    """N identical layers over the target so far, each with cross-attention to the memory (section 3.1)."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.layers = nn.ModuleList(DecoderLayer(config) for _ in range(config.n_decoder_layers))
        self.final_norm = final_norm(config)

    def forward(
        self, x: Tensor, memory: Tensor, tgt_mask: Tensor, src_mask: Tensor, cache: list[LayerCache] | None = None
    ) -> Tensor:
        for layer, layer_cache in zip(self.layers, cache or [None] * len(self.layers), strict=True):
            x = layer(x, memory, tgt_mask, src_mask, layer_cache)
        return self.final_norm(x)


class Transformer(Network):
    """softmax(logits[:, t]) is the model's distribution of target token t+1 given source and targets 0..t."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__(config)
        src_tokens = nn.Embedding(config.vocab_size, config.d_model)
        tgt_tokens = src_tokens if config.tie_embeddings else nn.Embedding(config.vocab_size, config.d_model)
        self.src_embedding = InputEmbedding(config, src_tokens)
        self.tgt_embedding = InputEmbedding(config, tgt_tokens)
        self.encoder, self.decoder = Encoder(config, config.n_encoder_layers), Decoder(config)
        self.memory = HookPoint()
        self._add_output(src_tokens)

    def frame(self, ids: Sequence[int]) -> list[int]:
        return [*ids, EOS]

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
        n = src.shape[1]
        mask = src_mask & window_mask(n, n, self.config.window, src.device)
        return self.memory(self.encoder(self.src_embedding(src), mask))

    def decode(self, tgt: Tensor, memory: Tensor, src_mask: Tensor) -> Tensor:
        """Logits (batch, target position, vocabulary) of each next token, all positions at once."""
        n = tgt.shape[1]
        tgt_mask = padding_mask(tgt) & causal_mask(n, tgt.device) & window_mask(n, n, self.config.window, tgt.device)
        x = self.final(self.decoder(self.tgt_embedding(tgt), memory, tgt_mask, src_mask))
        return self.logits(self.output(x))

    def decode_next(
        self, tokens: Tensor, position: int, memory: Tensor, src_mask: Tensor, cache: list[LayerCache]
    ) -> Tensor:
        """One cached step: logits (batch, vocabulary) after `tokens` (batch,), which stand at `position`."""
        tgt_mask = window_mask(1, position + 1, self.config.window, tokens.device)
        x = self.tgt_embedding(tokens[:, None], start=position)
        x = self.final(self.decoder(x, memory, tgt_mask, src_mask, cache))
        return self.logits(self.output(x))[:, 0]

    def new_cache(self) -> list[LayerCache]:
        """An empty key/value cache, one entry a decoder layer."""
        return [LayerCache() for _ in self.decoder.layers]
