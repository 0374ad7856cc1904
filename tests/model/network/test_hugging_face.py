"""With the same weights, the parts that came after the paper compute what Hugging Face's models compute."""

from collections.abc import Iterable

import pytest
import torch
from torch import Tensor, nn
from transformers import BertConfig, GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM, ModernBertConfig
from transformers.models.bert.modeling_bert import BertLayer
from transformers.models.modernbert.modeling_modernbert import ModernBertModel

from model.hooks import explicit_path, recording
from model.network.config import TransformerConfig
from model.network.families import new_network
from model.network.masks import padding_mask, window_mask
from tests.model.tiny import randomised

TOLERANCE = 1e-5
SIZES = {"vocab_size": 50, "d_model": 32, "n_heads": 4, "d_ff": 48, "max_len": 64, "dropout": 0.0}
DECODER = SIZES | {"n_encoder_layers": 0, "n_decoder_layers": 2, "norm": "pre", "scale_embeddings": False}
THEIRS = {"hidden_size": 32, "intermediate_size": 48, "num_attention_heads": 4, "attn_implementation": "eager"}
SEVERAL = THEIRS | {"vocab_size": 50, "max_position_embeddings": 64}
TOKENS = torch.tensor([[2, 17, 9, 33, 41, 8, 25, 11, 3]])


def copy_weights(pairs: Iterable[tuple[nn.Module, nn.Module]]) -> None:
    """(theirs, ours); GPT-2 keeps its matrices as (in, out)."""
    for theirs, ours in pairs:
        state = {
            name: tensor.T if "Conv1D" in str(type(theirs)) and tensor.ndim == 2 else tensor
            for name, tensor in theirs.state_dict().items()
        }
        ours.load_state_dict(state)


def assert_same(ours: Tensor, theirs: Tensor) -> None:
    """Within the tolerance, relative to the largest number."""
    assert ours.std() > 0.1  # a comparison of zeros would say nothing
    assert (ours - theirs).abs().max() <= TOLERANCE * max(1.0, theirs.abs().max().item())


@pytest.mark.parametrize("kv_heads", [4, 2, 1])
def test_llama(kv_heads):
    """RMSNorm before each sub-layer, RoPE, SwiGLU, shared keys and values, no biases."""
    parts = {"norm_function": "rms_norm", "positions": "rope", "activation": "swiglu", "n_kv_heads": kv_heads}
    config = TransformerConfig(**DECODER | parts, biases=False, tie_embeddings=False, rope_base=5000)
    shared = {"num_hidden_layers": 2, "num_key_value_heads": kv_heads, "rms_norm_eps": 1e-5}
    rope = {"rope_parameters": {"rope_type": "default", "rope_theta": 5000.0}}
    theirs = randomised(LlamaForCausalLM(LlamaConfig(**SEVERAL | shared | rope))).eval()
    ours = new_network(config).eval()
    copy_weights([(theirs.model.embed_tokens, ours.tgt_embedding.tokens), (theirs.lm_head, ours.output)])
    copy_weights([(theirs.model.norm, ours.decoder.final_norm)])
    for their, our in zip(theirs.model.layers, ours.decoder.layers, strict=True):
        copy_weights([(getattr(their.self_attn, f"{x}_proj"), getattr(our.self_attn, f"w_{x}")) for x in "qkvo"])
        copy_weights([(their.mlp.gate_proj, our.feed_forward.w_gate), (their.mlp.up_proj, our.feed_forward.w_1)])
        copy_weights([(their.mlp.down_proj, our.feed_forward.w_2)])
        copy_weights([(their.input_layernorm, our.self_attn_residual.norm)])
        copy_weights([(their.post_attention_layernorm, our.feed_forward_residual.norm)])
    with torch.inference_mode(), recording(ours) as activations:
        result = theirs(TOKENS, output_attentions=True)
        assert_same(ours(TOKENS), result.logits)
    for layer, pattern in enumerate(result.attentions):
        assert_same(activations[f"decoder.layers.{layer}.self_attn.pattern"], pattern)


def test_gpt_2():
    """LayerNorm before each sub-layer, learned positions, GELU; q, k and v in one matrix."""
    config = TransformerConfig(**DECODER, positions="learned", activation="gelu")
    sizes = {"vocab_size": 50, "n_positions": 64, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_inner": 48}
    functions = {"activation_function": "gelu", "attn_implementation": "eager"}
    theirs = randomised(GPT2LMHeadModel(GPT2Config(**sizes, **functions))).eval()
    ours = new_network(config).eval()
    copy_weights(
        [(theirs.transformer.wte, ours.tgt_embedding.tokens), (theirs.transformer.ln_f, ours.decoder.final_norm)]
    )
    ours.tgt_embedding.positions.data.copy_(theirs.transformer.wpe.weight)
    for their, our in zip(theirs.transformer.h, ours.decoder.layers, strict=True):
        for x, weight, bias in zip(
            "qkv", their.attn.c_attn.weight.T.chunk(3), their.attn.c_attn.bias.chunk(3), strict=True
        ):
            getattr(our.self_attn, f"w_{x}").load_state_dict({"weight": weight, "bias": bias})
        copy_weights([(their.attn.c_proj, our.self_attn.w_o), (their.mlp.c_fc, our.feed_forward.w_1)])
        copy_weights([(their.mlp.c_proj, our.feed_forward.w_2), (their.ln_1, our.self_attn_residual.norm)])
        copy_weights([(their.ln_2, our.feed_forward_residual.norm)])
    with torch.inference_mode(), explicit_path():
        assert_same(ours(TOKENS), theirs(TOKENS).logits)


def test_berts_layer():
    """The paper's encoder layer with GELU."""
    config = TransformerConfig(**SIZES, n_encoder_layers=1, n_decoder_layers=0, activation="gelu", positions="learned")
    their = randomised(BertLayer(BertConfig(**THEIRS, hidden_act="gelu", layer_norm_eps=1e-5))).eval()
    our = new_network(config).eval().encoder.layers[0]
    attention = their.attention
    copy_weights(
        [(getattr(attention.self, name), getattr(our.self_attn, f"w_{name[0]}")) for name in ("query", "key", "value")]
    )
    copy_weights(
        [(attention.output.dense, our.self_attn.w_o), (attention.output.LayerNorm, our.self_attn_residual.norm)]
    )
    copy_weights([(their.intermediate.dense, our.feed_forward.w_1), (their.output.dense, our.feed_forward.w_2)])
    copy_weights([(their.output.LayerNorm, our.feed_forward_residual.norm)])
    x = torch.randn(2, 9, 32, generator=torch.Generator().manual_seed(1))
    with torch.inference_mode():
        theirs = their(x)
        assert_same(our(x, padding_mask(torch.ones(2, 9))), theirs[0] if isinstance(theirs, tuple) else theirs)


def test_modernberts_layers():
    """No biases, GeGLU, RoPE, LayerNorm before each sub-layer, keys within a window on both sides."""
    parts = {"norm": "pre", "positions": "rope", "activation": "geglu", "biases": False, "window": 3}
    config = TransformerConfig(**SIZES | parts, n_encoder_layers=2, n_decoder_layers=0, rope_base=10_000)
    layers = {"num_hidden_layers": 3, "layer_types": ["full_attention", "sliding_attention", "sliding_attention"]}
    window = {"local_attention": 4, "global_attn_every_n_layers": 3, "pad_token_id": 0, "norm_eps": 1e-5}
    theirs = randomised(ModernBertModel(ModernBertConfig(**SEVERAL | layers | window))).eval()
    ours = new_network(config).eval()
    # Their first layer has no norm before its attention, so the comparison begins with the second.
    for their, our in zip(theirs.layers[1:], ours.encoder.layers, strict=True):
        for x, weight in zip("qkv", their.attn.Wqkv.weight.chunk(3), strict=True):
            getattr(our.self_attn, f"w_{x}").weight.data.copy_(weight)
        gated, up = their.mlp.Wi.weight.chunk(2)
        our.feed_forward.w_gate.weight.data.copy_(gated)
        our.feed_forward.w_1.weight.data.copy_(up)
        copy_weights([(their.attn.Wo, our.self_attn.w_o), (their.mlp.Wo, our.feed_forward.w_2)])
        copy_weights([(their.attn_norm, our.self_attn_residual.norm), (their.mlp_norm, our.feed_forward_residual.norm)])
    with torch.inference_mode():
        steps = theirs(TOKENS, output_hidden_states=True).hidden_states
        x = steps[1]
        mask = window_mask(9, 9, 3)
        for our in ours.encoder.layers:
            x = our(x, mask)
    # Their last hidden state has passed the final norm, ours has not.
    assert_same(theirs.final_norm(x), steps[-1] if len(steps) == 4 else theirs.final_norm(steps[-1]))
