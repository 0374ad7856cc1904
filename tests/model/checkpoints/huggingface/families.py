"""Tiny random models of transformers' families, in which every weight matters and attention is far from uniform."""

from collections.abc import Callable

import torch
import transformers as hf
from torch import nn

SOURCE = "7 30 11 5 90 44 23 8 61 17 52 99 12"
TARGET = "40 41 9 73 28 66 14 33"

_COMMON = {
    "vocab_size": 120,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "hidden_size": 32,
    "intermediate_size": 48,
    "max_position_embeddings": 64,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
_GROUPED = _COMMON | {"num_key_value_heads": 2}
_WIDE = _GROUPED | {"head_dim": 8}
_GEMMA = _WIDE | {"query_pre_attn_scalar": 8, "sliding_window": 4}
_T5 = {"vocab_size": 120, "d_model": 32, "d_kv": 8, "d_ff": 48, "num_layers": 3, "num_heads": 4}
_BOTH = {
    **{f"{stack}_{name}": n for stack in ("encoder", "decoder") for name, n in (("layers", 3), ("attention_heads", 4))},
    **{f"{stack}_ffn_dim": 48 for stack in ("encoder", "decoder")},
    **{"vocab_size": 120, "d_model": 32, "max_position_embeddings": 64},
    **{"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 2},
}

FAMILIES: dict[str, tuple[str, str, dict]] = {
    "GPT-2": ("GPT2LMHeadModel", "GPT2Config", {"vocab_size": 120, "n_embd": 32, "n_layer": 3, "n_head": 4}),
    "OPT": (
        "OPTForCausalLM",
        "OPTConfig",
        {name: n for name, n in _COMMON.items() if name != "intermediate_size"}
        | {"ffn_dim": 48, "word_embed_proj_dim": 32},
    ),
    "Llama, grouped": ("LlamaForCausalLM", "LlamaConfig", _GROUPED),
    "Llama, multi-query": ("LlamaForCausalLM", "LlamaConfig", _COMMON | {"num_key_value_heads": 1}),
    "Mistral": ("MistralForCausalLM", "MistralConfig", _GROUPED | {"sliding_window": 4}),
    "Qwen2": ("Qwen2ForCausalLM", "Qwen2Config", _GROUPED),
    "Qwen3": ("Qwen3ForCausalLM", "Qwen3Config", _WIDE),
    "Gemma 2": ("Gemma2ForCausalLM", "Gemma2Config", _GEMMA),
    "Gemma 3": ("Gemma3ForCausalLM", "Gemma3TextConfig", _GEMMA),
    "OLMo 2": ("Olmo2ForCausalLM", "Olmo2Config", _GROUPED),
    "Granite": (
        "GraniteForCausalLM",
        "GraniteConfig",
        _GROUPED
        | {"embedding_multiplier": 12.0, "attention_multiplier": 0.125, "residual_multiplier": 0.22}
        | {"logits_scaling": 8.0},
    ),
    "OLMo, clipped": ("OlmoForCausalLM", "OlmoConfig", _COMMON | {"clip_qkv": 1e4}),
    "GPT-NeoX": ("GPTNeoXForCausalLM", "GPTNeoXConfig", _COMMON),
    "Phi": ("PhiForCausalLM", "PhiConfig", _COMMON),
    "Phi-3": ("Phi3ForCausalLM", "Phi3Config", _GROUPED),
    "gpt-oss": (
        "GptOssForCausalLM",
        "GptOssConfig",
        _WIDE | {"num_hidden_layers": 2, "num_local_experts": 2, "num_experts_per_tok": 1, "sliding_window": 4},
    ),
    "BERT": ("BertForMaskedLM", "BertConfig", _COMMON),
    "RoBERTa": ("RobertaForMaskedLM", "RobertaConfig", _COMMON),
    "DistilBERT": (
        "DistilBertForMaskedLM",
        "DistilBertConfig",
        {"vocab_size": 120, "dim": 32, "n_layers": 3, "n_heads": 4, "hidden_dim": 48, "max_position_embeddings": 64},
    ),
    "ELECTRA": ("ElectraForMaskedLM", "ElectraConfig", _COMMON | {"embedding_size": 16}),
    "ALBERT": ("AlbertForMaskedLM", "AlbertConfig", _COMMON | {"embedding_size": 16}),
    "ModernBERT": (
        "ModernBertForMaskedLM",
        "ModernBertConfig",
        _COMMON | {"local_attention": 6, "cls_token_id": 1, "sep_token_id": 2},
    ),
    "T5": ("T5ForConditionalGeneration", "T5Config", _T5 | {"decoder_start_token_id": 0}),
    "T5 v1.1": (
        "T5ForConditionalGeneration",
        "T5Config",
        _T5 | {"decoder_start_token_id": 0, "feed_forward_proj": "gated-gelu", "tie_word_embeddings": False},
    ),
    "BART": ("BartForConditionalGeneration", "BartConfig", _BOTH),
    "Marian": ("MarianMTModel", "MarianConfig", _BOTH | {"decoder_start_token_id": 0}),
    "M2M100": ("M2M100ForConditionalGeneration", "M2M100Config", _BOTH),
}
"""class, class of its configuration, and the configuration, by name"""
MORE: dict[str, tuple[str, str, dict]] = {
    "StableLM, norm of each head": ("StableLmForCausalLM", "StableLmConfig", _GROUPED | {"qk_layernorm": True}),
    "Cohere, parallel": ("CohereForCausalLM", "CohereConfig", _GROUPED | {"logit_scale": 0.5}),
    "Starcoder2": ("Starcoder2ForCausalLM", "Starcoder2Config", _GROUPED),
    "Pegasus": ("PegasusForConditionalGeneration", "PegasusConfig", _BOTH | {"decoder_start_token_id": 0}),
}
"""families with which no test of the reader was written"""


def tiny_model(name: str, **changed: int) -> nn.Module:
    """The same random model of a family each time, with `changed` values of its configuration."""
    model, config, values = (FAMILIES | MORE)[name]
    return randomised(lambda: getattr(hf, model)(getattr(hf, config)(**values | changed)))


def randomised(build: Callable[[], nn.Module]) -> nn.Module:
    """What `build` gives, with large matrices, and random biases and factors of norms, which a fresh model has not."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = build().eval()
        for parameter in model.parameters():
            if parameter.dim() > 1:
                parameter.data.mul_(6)
            else:
                parameter.data.add_(torch.randn_like(parameter), alpha=0.2)
    return model
