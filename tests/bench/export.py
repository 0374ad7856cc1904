"""A Transformer's weights under the names that CTranslate2 and Hugging Face's Marian give them.

Neither package is needed for the names; each is imported where a model of its own is built.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor, nn

from model.checkpoints.tokenizer import Tokenizer
from model.network.attention import MultiHeadAttention
from model.network.config import BOS, EOS, PAD, SPECIAL_TOKENS, UNK, TransformerConfig
from model.network.encoder_decoder import Transformer
from model.network.layers import DecoderLayer, EncoderLayer
from model.network.residual import Residual

if TYPE_CHECKING:
    from transformers import MarianMTModel

FORBIDDEN = (PAD, UNK, BOS)
"""What no translation holds: as in model/generation/search.py."""


def check_comparable(config: TransformerConfig) -> None:
    """Marian knows the paper's arrangement alone.

    Raises:
        ValueError: another arrangement; the sentence names it.
    """
    if config.norm != "post" or not config.tie_embeddings:
        raise ValueError(
            f"only post-norm models with tied embeddings can be compared, not norm={config.norm!r}, "
            f"tie_embeddings={config.tie_embeddings}"
        )


def marian_weights(model: Transformer) -> dict[str, Tensor]:
    """State dictionary of a MarianMTModel that computes what `model` computes."""
    tokens = model.output.weight
    weights = {"model.shared.weight": tokens, "lm_head.weight": tokens}
    weights["final_logits_bias"] = tokens.new_zeros(1, len(tokens))
    for side, stack, embedding in _sides(model):
        weights[f"model.{side}.embed_tokens.weight"] = tokens
        weights[f"model.{side}.embed_positions.weight"] = embedding.positions
        for number, layer in enumerate(stack.layers):
            for name, module in _marian_modules(layer):
                for kind, tensor in module.state_dict().items():
                    weights[f"model.{side}.layers.{number}.{name}.{kind}"] = tensor
    return weights


def _marian_modules(layer: EncoderLayer | DecoderLayer) -> Iterator[tuple[str, nn.Module]]:
    attentions = {"self_attn": (layer.self_attn, layer.self_attn_residual)}
    if isinstance(layer, DecoderLayer):
        attentions["encoder_attn"] = (layer.cross_attn, layer.cross_attn_residual)
    for name, (attention, residual) in attentions.items():
        for theirs, ours in (("q_proj", "w_q"), ("k_proj", "w_k"), ("v_proj", "w_v"), ("out_proj", "w_o")):
            yield f"{name}.{theirs}", getattr(attention, ours)
        yield f"{name}_layer_norm", residual.norm
    yield from (("fc1", layer.feed_forward.w_1), ("fc2", layer.feed_forward.w_2))
    yield "final_layer_norm", layer.feed_forward_residual.norm


def to_marian(model: Transformer) -> "MarianMTModel":
    """The same network in Hugging Face's code, in evaluation mode, with our rules for what it may generate."""
    from transformers import GenerationConfig, MarianConfig, MarianMTModel

    check_comparable(model.config)
    config, tokens = model.config, {"pad_token_id": PAD, "bos_token_id": BOS, "eos_token_id": EOS}
    sizes = {f"{side}_attention_heads": config.n_heads for side in ("encoder", "decoder")}
    sizes |= {f"{side}_ffn_dim": config.d_ff for side in ("encoder", "decoder")}
    theirs = MarianMTModel(
        MarianConfig(
            vocab_size=config.vocab_size,
            d_model=config.d_model,
            encoder_layers=config.n_encoder_layers,
            decoder_layers=config.n_decoder_layers,
            max_position_embeddings=config.max_len,
            activation_function=config.activation,
            scale_embedding=True,
            share_encoder_decoder_embeddings=True,
            decoder_start_token_id=BOS,
            forced_eos_token_id=None,
            **tokens,
            **sizes,
        )
    )
    theirs.load_state_dict(marian_weights(model))
    theirs.generation_config = GenerationConfig(decoder_start_token_id=BOS, suppress_tokens=list(FORBIDDEN), **tokens)
    return theirs.eval().requires_grad_(False)


def ctranslate2_weights(model: Transformer) -> dict[str, np.ndarray]:
    """Variables of a CTranslate2 TransformerSpec that computes what `model` computes, by path."""
    tokens = model.output.weight
    tensors = {
        "encoder/embeddings_0/weight": tokens,
        "decoder/embeddings/weight": tokens,
        "decoder/projection/weight": tokens,
    }
    for side, stack, embedding in _sides(model):
        tensors[f"{side}/position_encodings/encodings"] = embedding.positions
        for number, layer in enumerate(stack.layers):
            for name, tensor in _ctranslate2_layer(layer):
                tensors[f"{side}/layer_{number}/{name}"] = tensor
    return {path: tensor.detach().cpu().float().numpy() for path, tensor in tensors.items()}


def _ctranslate2_layer(layer: EncoderLayer | DecoderLayer) -> Iterator[tuple[str, Tensor]]:
    attention = layer.self_attn
    yield from _linear("self_attention/linear_0", attention.w_q, attention.w_k, attention.w_v)
    yield from _after_heads("self_attention", 1, attention, layer.self_attn_residual)
    if isinstance(layer, DecoderLayer):
        # The memory's keys and values are projected once for all steps, the queries at each.
        attention = layer.cross_attn
        yield from _linear("attention/linear_0", attention.w_q)
        yield from _linear("attention/linear_1", attention.w_k, attention.w_v)
        yield from _after_heads("attention", 2, attention, layer.cross_attn_residual)
    yield from _linear("ffn/linear_0", layer.feed_forward.w_1)
    yield from _linear("ffn/linear_1", layer.feed_forward.w_2)
    yield from _norm("ffn", layer.feed_forward_residual)


def _after_heads(
    name: str, number: int, attention: MultiHeadAttention, residual: Residual
) -> Iterator[tuple[str, Tensor]]:
    yield from _linear(f"{name}/linear_{number}", attention.w_o)
    yield from _norm(name, residual)


def _linear(name: str, *projections: nn.Linear) -> Iterator[tuple[str, Tensor]]:
    """Several projections of the same input become one matrix, one below the other."""
    yield f"{name}/weight", torch.cat([projection.weight for projection in projections])
    yield f"{name}/bias", torch.cat([projection.bias for projection in projections])


def _norm(name: str, residual: Residual) -> Iterator[tuple[str, Tensor]]:
    yield f"{name}/layer_norm/gamma", residual.norm.weight
    yield f"{name}/layer_norm/beta", residual.norm.bias


def _sides(model: Transformer) -> tuple[tuple[str, nn.Module, nn.Module], ...]:
    return ("encoder", model.encoder, model.src_embedding), ("decoder", model.decoder, model.tgt_embedding)


def save_for_ctranslate2(model: Transformer, tokenizer: Tokenizer, folder: Path) -> None:
    """Write into an existing folder what ctranslate2.Translator opens: the weights in float32 and the pieces."""
    from ctranslate2.specs import TransformerSpec, common_spec

    check_comparable(model.config)
    config = model.config
    activation = {"relu": common_spec.Activation.RELU, "gelu": common_spec.Activation.GELU}[config.activation]
    layers = (config.n_encoder_layers, config.n_decoder_layers)
    spec = TransformerSpec.from_config(layers, config.n_heads, pre_norm=False, activation=activation)
    for path, array in ctranslate2_weights(model).items():
        _set_variable(spec, path, array)
    pieces = tokenizer.tokens(range(len(tokenizer)))
    spec.register_source_vocabulary(pieces)
    spec.register_target_vocabulary(pieces)
    spec.config.bos_token, spec.config.eos_token = SPECIAL_TOKENS[BOS], SPECIAL_TOKENS[EOS]
    spec.config.unk_token, spec.config.decoder_start_token = SPECIAL_TOKENS[UNK], SPECIAL_TOKENS[BOS]
    spec.validate()
    spec.optimize()
    spec.save(str(folder))


def _set_variable(spec: object, path: str, array: np.ndarray) -> None:
    """`layer_3/ffn/...`: the third of the list `layer`; its last part is the attribute to set."""
    *parts, attribute = path.split("/")
    for part in parts:
        name, _, number = part.rpartition("_")
        listed = number.isdigit() and isinstance(getattr(spec, name, None), list)
        spec = getattr(spec, name)[int(number)] if listed else getattr(spec, part)
    if not hasattr(spec, attribute):
        raise AttributeError(f"CTranslate2 has no variable {path}")
    setattr(spec, attribute, array)
