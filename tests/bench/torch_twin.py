"""The same network out of torch.nn.Transformer: what the speed of training is held against."""

import math

import torch
from torch import Tensor, nn

from model.commands.export import check_exportable
from model.network.config import PAD
from model.network.encoder_decoder import Transformer
from tests.model.network.test_parity import copy_layer


class TorchTwin(nn.Module):
    """torch.nn.Transformer between our embedding and our output, with the weights of `model`.

    Dropout falls where the paper has it, as in ours; torch's own would also thin out attention weights and
    hidden units, which is more work. Stacks end without torch's extra norm.
    """

    def __init__(self, model: Transformer) -> None:
        super().__init__()
        check_exportable(model.config)
        config = model.config
        shape = (config.d_model, config.n_heads, config.d_ff, config.dropout, config.activation)
        encoder = nn.TransformerEncoderLayer(*shape, batch_first=True)
        decoder = nn.TransformerDecoderLayer(*shape, batch_first=True)
        self.transformer = nn.Transformer(
            config.d_model,
            config.n_heads,
            custom_encoder=nn.TransformerEncoder(encoder, config.n_encoder_layers, enable_nested_tensor=False),
            custom_decoder=nn.TransformerDecoder(decoder, config.n_decoder_layers),
            batch_first=True,
        )
        self.tokens = nn.Embedding(config.vocab_size, config.d_model)
        self.output = nn.Linear(config.d_model, config.vocab_size, bias=False)
        self.output.weight = self.tokens.weight
        self.register_buffer("positions", model.src_embedding.positions.detach().clone())
        self.scale, self.dropout = math.sqrt(config.d_model), nn.Dropout(config.dropout)
        self._drop_out_as_the_paper()
        self._copy(model)

    def forward(self, src: Tensor, tgt: Tensor) -> Tensor:
        """Teacher-forced logits (batch, target position, vocabulary), as Transformer's."""
        padding = src == PAD
        # Padding stands behind the words: the causal mask alone hides it from every word.
        future = torch.ones(tgt.shape[1], tgt.shape[1], dtype=torch.bool).triu(1)
        x = self.transformer(
            self._embedded(src),
            self._embedded(tgt),
            tgt_mask=future,
            src_key_padding_mask=padding,
            memory_key_padding_mask=padding,
            tgt_is_causal=True,
        )
        return self.output(x)

    def _embedded(self, tokens: Tensor) -> Tensor:
        return self.dropout(self.tokens(tokens) * self.scale + self.positions[: tokens.shape[1]])

    def _drop_out_as_the_paper(self) -> None:
        for module in self.modules():
            if isinstance(module, nn.MultiheadAttention):
                module.dropout = 0.0
            elif isinstance(module, nn.TransformerEncoderLayer | nn.TransformerDecoderLayer):
                module.dropout = nn.Identity()

    def _copy(self, model: Transformer) -> None:
        self.tokens.weight.data.copy_(model.output.weight)
        for side in ("encoder", "decoder"):
            pairs = zip(getattr(model, side).layers, getattr(self.transformer, side).layers, strict=True)
            for ours, theirs in pairs:
                copy_layer(ours, theirs)
