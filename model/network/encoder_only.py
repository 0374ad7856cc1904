"""A masked language model: an encoder that sees both sides of the token it has to guess (Devlin et al. 2019)."""

from collections.abc import Sequence

from torch import Tensor, nn

from model.network.config import BOS, EOS, TransformerConfig
from model.network.embedding import InputEmbedding
from model.network.masks import padding_mask, window_mask
from model.network.network import Encoder, Network


class EncoderOnly(Network):
    """softmax(logits[:, t]) is the model's distribution of the token that belongs at position t."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__(config)
        self.src_embedding = InputEmbedding(config, nn.Embedding(config.vocab_size, config.d_model))
        self.encoder = Encoder(config, config.n_encoder_layers)
        self._add_output(self.src_embedding.tokens)

    def frame(self, ids: Sequence[int]) -> list[int]:
        return [BOS, *ids, EOS]

    def forward(self, tokens: Tensor) -> Tensor:
        """Token ids (batch, position), padded with PAD, some of them <mask> -> (batch, position, vocabulary)."""
        n = tokens.shape[1]
        mask = padding_mask(tokens) & window_mask(n, n, self.config.window, tokens.device)
        return self.logits(self.output(self.final(self.encoder(self.src_embedding(tokens), mask))))
