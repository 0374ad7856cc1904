"""A language model: a decoder without an encoder to attend to (Liu et al. 2018; Radford et al. 2018)."""

from collections.abc import Sequence

from torch import Tensor, nn

from model.network.attention import KeyValueCache
from model.network.config import BOS, TransformerConfig
from model.network.embedding import InputEmbedding
from model.network.masks import causal_mask, padding_mask, window_mask
from model.network.network import Encoder, Network


class DecoderOnly(Network):
    """softmax(logits[:, t]) is the model's distribution of token t+1 given tokens 0..t."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__(config)
        self.tgt_embedding = InputEmbedding(config, nn.Embedding(config.vocab_size, config.d_model))
        self.decoder = Encoder(config, config.n_decoder_layers)
        self._add_output(self.tgt_embedding.tokens)

    def frame(self, ids: Sequence[int]) -> list[int]:
        return [BOS, *ids]

    def forward(self, tokens: Tensor) -> Tensor:
        """Teacher-forced logits, all positions at once.

        Args:
            tokens: ids (batch, position), the start token first, padded with PAD.

        Returns:
            (batch, position, vocabulary)
        """
        n = tokens.shape[1]
        mask = padding_mask(tokens) & causal_mask(n, tokens.device)
        mask = mask & window_mask(n, n, self.config.window, tokens.device)
        return self.logits(self.output(self.final(self.decoder(self.tgt_embedding(tokens), mask))))

    def decode(self, tokens: Tensor) -> Tensor:
        """The same; what the searches call where nothing is cached."""
        return self.forward(tokens)

    def read(self, tokens: Tensor, cache: list[KeyValueCache]) -> None:
        """Put the keys and values of a prompt, (batch, position), into an empty cache, all positions at once."""
        n = tokens.shape[1]
        mask = causal_mask(n, tokens.device) & window_mask(n, n, self.config.window, tokens.device)
        self.decoder(self.tgt_embedding(tokens), mask, cache)

    def decode_next(self, tokens: Tensor, position: int, cache: list[KeyValueCache]) -> Tensor:
        """One cached step: logits (batch, vocabulary) after `tokens` (batch,), which stand at `position`."""
        mask = window_mask(1, position + 1, self.config.window, tokens.device)
        x = self.decoder(self.tgt_embedding(tokens[:, None], start=position), mask, cache)
        return self.logits(self.output(self.final(x)))[:, 0]

    def new_cache(self) -> list[KeyValueCache]:
        """An empty key/value cache, one entry a layer."""
        return [KeyValueCache() for _ in self.decoder.layers]
