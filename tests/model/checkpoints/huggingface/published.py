"""What published models set in their config.json beside the sizes; widths, layers, vocabulary and lengths are reduced.

Windows and the lengths at which a scaling of positions begins are reduced too, so that they act on a short text.
"""

from typing import Any

import transformers as hf
from torch import nn
from transformers import CONFIG_MAPPING
from transformers.models.auto import modeling_auto

from tests.model.checkpoints.huggingface.families import _BOTH as _OWN_BOTH
from tests.model.checkpoints.huggingface.families import _COMMON, FAMILIES, MORE, randomised, tiny_model
from tests.model.checkpoints.huggingface.families import _T5 as _OWN_T5

_SIZES = _COMMON | {"num_hidden_layers": 2}
_GROUPED = _SIZES | {"num_key_value_heads": 2}
_WIDE = _GROUPED | {"head_dim": 16}
_EXPERTS = {"num_experts_per_tok": 2, "moe_intermediate_size": 16}
_SINGLE = _SIZES | {"num_key_value_heads": 4}
_GPT2 = {"vocab_size": 120, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64}
_T5 = _OWN_T5 | {"num_layers": 2, "decoder_start_token_id": 0, "pad_token_id": 0, "eos_token_id": 1}
_T5 |= {"relative_attention_num_buckets": 32}
_OPT = {"vocab_size": 120, "num_hidden_layers": 2, "num_attention_heads": 4, "hidden_size": 32, "ffn_dim": 48}
_OPT |= {"max_position_embeddings": 64, "pad_token_id": 1, "bos_token_id": 2, "eos_token_id": 2}
_BOTH = _OWN_BOTH | {"encoder_layers": 2, "decoder_layers": 2, "pad_token_id": 1, "bos_token_id": 0}
_LLAMA3 = {"rope_type": "llama3", "low_freq_factor": 1.0, "high_freq_factor": 4.0}
_LLAMA3 |= {"original_max_position_embeddings": 16}
_LONG = {"original_max_position_embeddings": 8, "max_position_embeddings": 64}
_YARN = {"rope_type": "yarn", "beta_fast": 32.0, "beta_slow": 1.0, "original_max_position_embeddings": 4}
_GRANITE = {"rope_theta": 10_000.0, "rms_norm_eps": 1e-5, "tie_word_embeddings": True}


def _longrope(pairs: int) -> dict[str, Any]:
    return {"type": "longrope", "short_factor": [1.0 + 0.1 * i for i in range(pairs)], "long_factor": [4.0] * pairs}


PUBLISHED: dict[str, tuple[str, dict[str, Any]]] = {
    "Llama 2 7B": ("llama", _SINGLE | {"rms_norm_eps": 1e-5}),
    "Code Llama 7B": ("llama", _SINGLE | {"rope_theta": 1e6}),
    "Llama 3.1 8B": ("llama", _GROUPED | {"rope_theta": 5e5, "rope_scaling": _LLAMA3 | {"factor": 8.0}}),
    "Llama 3.2 1B": (
        "llama",
        _GROUPED | {"rope_theta": 5e5, "rope_scaling": _LLAMA3 | {"factor": 32.0}, "tie_word_embeddings": True},
    ),
    "Vicuna 7B 16k": ("llama", _SINGLE | {"rope_scaling": {"type": "linear", "factor": 4.0}}),
    "LongAlpaca, dynamic": (
        "llama",
        _SINGLE | {"max_position_embeddings": 16, "rope_scaling": {"type": "dynamic", "factor": 2.0}},
    ),
    "Yarn Llama 2 7B 64k": ("llama", _SINGLE | {"rope_scaling": _YARN | {"factor": 16.0}}),
    "InternLM, biases": ("llama", _SINGLE | {"attention_bias": True, "mlp_bias": True}),
    "SmolLM2 135M": ("llama", _SIZES | {"num_key_value_heads": 1, "tie_word_embeddings": True, "rope_theta": 1e5}),
    "SmolLM3 3B": (
        "smollm3",
        _GROUPED
        | {"num_hidden_layers": 4, "no_rope_layers": [1, 1, 1, 0], "rope_theta": 5e6, "use_sliding_window": False},
    ),
    "Mistral 7B v0.1": ("mistral", _GROUPED | {"sliding_window": 4}),
    "Mistral 7B v0.3": ("mistral", _GROUPED | {"sliding_window": None, "rope_theta": 1e6}),
    "Mistral NeMo 12B": ("mistral", _WIDE | {"sliding_window": None, "rope_theta": 1e6}),
    "Ministral 3 3B": (
        "ministral3",
        _WIDE
        | {
            "rope_parameters": _YARN
            | {"rope_theta": 1e6, "factor": 16.0, "mscale": 1.0, "mscale_all_dim": 1.0}
            | {"llama_4_scaling_beta": 0.1},
            "tie_word_embeddings": True,
        },
    ),
    "Mixtral 8x7B": ("mixtral", _GROUPED | {"num_local_experts": 4, "num_experts_per_tok": 2, "sliding_window": None}),
    "Qwen2 0.5B": ("qwen2", _GROUPED | {"rope_theta": 1e6, "tie_word_embeddings": True, "use_sliding_window": False}),
    "Qwen2 7B, windowed": (
        "qwen2",
        _GROUPED | {"use_sliding_window": True, "sliding_window": 4, "max_window_layers": 1},
    ),
    "Qwen1.5 MoE": (
        "qwen2_moe",
        _SINGLE | _EXPERTS | {"num_experts": 4, "shared_expert_intermediate_size": 16, "norm_topk_prob": False},
    ),
    "Qwen3 0.6B": ("qwen3", _WIDE | {"rope_theta": 1e6, "tie_word_embeddings": True}),
    "Qwen3 30B A3B": ("qwen3_moe", _WIDE | _EXPERTS | {"num_experts": 4, "norm_topk_prob": True}),
    "Gemma 2B": ("gemma", _SIZES | {"num_key_value_heads": 1, "head_dim": 16, "hidden_act": "gelu_pytorch_tanh"}),
    "Gemma 2 2B": (
        "gemma2",
        _WIDE
        | {"query_pre_attn_scalar": 16, "sliding_window": 4}
        | {"attn_logit_softcapping": 50.0, "final_logit_softcapping": 30.0},
    ),
    "Gemma 2 27B": (
        "gemma2",
        _WIDE
        | {"query_pre_attn_scalar": 9, "sliding_window": 4}
        | {"attn_logit_softcapping": 5.0, "final_logit_softcapping": 3.0},
    ),
    "Gemma 3 1B": (
        "gemma3_text",
        _SIZES
        | {"num_hidden_layers": 6, "num_key_value_heads": 1, "head_dim": 16, "sliding_window": 4}
        | {"query_pre_attn_scalar": 16, "rope_theta": 1e6, "rope_local_base_freq": 1e4, "sliding_window_pattern": 6},
    ),
    "Gemma 3 4B": (
        "gemma3_text",
        _WIDE
        | {"num_hidden_layers": 6, "sliding_window": 4, "query_pre_attn_scalar": 16, "rope_theta": 1e6}
        | {"rope_local_base_freq": 1e4, "rope_scaling": {"rope_type": "linear", "factor": 8.0}},
    ),
    "Phi 2": ("phi", _SINGLE | {"partial_rotary_factor": 0.4, "hidden_size": 40, "qk_layernorm": False}),
    "Phi 1.5": ("phi", _SINGLE | {"partial_rotary_factor": 0.5, "layer_norm_eps": 1e-5}),
    "Phi, queries and keys normed": ("phi", _SINGLE | {"partial_rotary_factor": 0.5, "qk_layernorm": True}),
    "Phi 3 mini 4k": ("phi3", _SINGLE | {"sliding_window": 4}),
    "Phi 3 mini 128k": ("phi3", _SINGLE | _LONG | {"rope_scaling": _longrope(4)}),
    "Phi 3.5 MoE": (
        "phimoe",
        _GROUPED
        | {"original_max_position_embeddings": 8, "num_local_experts": 4, "attention_bias": True, "lm_head_bias": True}
        | {"rope_scaling": _longrope(4) | {"short_mscale": 1.2, "long_mscale": 1.3}},
    ),
    "Phi 4 mini": (
        "phi3",
        _GROUPED | _LONG | {"partial_rotary_factor": 0.75, "tie_word_embeddings": True, "rope_scaling": _longrope(3)},
    ),
    "StableLM 3B": ("stablelm", _SINGLE | {"partial_rotary_factor": 0.25, "layer_norm_eps": 1e-5}),
    "StableLM 2 1.6B": ("stablelm", _SINGLE | {"partial_rotary_factor": 0.25, "use_qkv_bias": True}),
    "StableLM 2 12B": (
        "stablelm",
        _GROUPED | {"partial_rotary_factor": 0.25, "qk_layernorm": True, "use_parallel_residual": True},
    ),
    "Pythia 70M": ("gpt_neox", _SIZES | {"rotary_pct": 0.25, "use_parallel_residual": True}),
    "RedPajama INCITE 3B": ("gpt_neox", _SIZES | {"rotary_pct": 1.0, "use_parallel_residual": False}),
    "GPT-2": ("gpt2", _GPT2),
    "GPT-2, Mistral of CRFM": (
        "gpt2",
        _GPT2 | {"scale_attn_by_inverse_layer_idx": True, "reorder_and_upcast_attn": True},
    ),
    "StarCoder": ("gpt_bigcode", _GPT2 | {"multi_query": True, "activation_function": "gelu_pytorch_tanh"}),
    "StarCoder 2 3B": ("starcoder2", _GROUPED | {"sliding_window": 4, "use_bias": True, "rope_theta": 999_999.0}),
    "OPT 125M": ("opt", _OPT | {"do_layer_norm_before": True, "word_embed_proj_dim": 32}),
    "OPT 350M": ("opt", _OPT | {"do_layer_norm_before": False, "word_embed_proj_dim": 16}),
    "CTRL": ("ctrl", {"vocab_size": 120, "n_embd": 32, "n_layer": 2, "n_head": 4, "dff": 48, "n_positions": 64}),
    "BioGPT": ("biogpt", _SIZES | {"scale_embedding": True, "hidden_act": "gelu"}),
    "Granite 3.1 2B": (
        "granite",
        _GROUPED
        | _GRANITE
        | {"embedding_multiplier": 12.0, "attention_multiplier": 0.015625}
        | {"residual_multiplier": 0.22, "logits_scaling": 8.0},
    ),
    "Granite 3.0 3B A800M": (
        "granitemoe",
        _GROUPED
        | _GRANITE
        | {"embedding_multiplier": 12.0, "attention_multiplier": 0.015625, "num_local_experts": 4}
        | {"residual_multiplier": 0.22, "logits_scaling": 6.0, "num_experts_per_tok": 2},
    ),
    "Command R": ("cohere", _GROUPED | {"logit_scale": 0.0625, "use_qk_norm": False, "rope_theta": 8e6}),
    "Command R+": ("cohere", _GROUPED | {"logit_scale": 0.8333, "use_qk_norm": True, "rope_theta": 7.5e7}),
    "Command R7B": (
        "cohere2",
        _GROUPED | {"num_hidden_layers": 4, "logit_scale": 0.25, "sliding_window": 4, "sliding_window_pattern": 4},
    ),
    "OLMo 1B": ("olmo", _SINGLE | {"clip_qkv": None, "tie_word_embeddings": True}),
    "OLMo 7B 0424": ("olmo", _SINGLE | {"clip_qkv": 0.8}),
    "OLMo 2 7B": ("olmo2", _SINGLE | {"rope_theta": 5e5, "rms_norm_eps": 1e-6}),
    "OLMo 3 7B": ("olmo3", _SINGLE | {"num_hidden_layers": 4, "sliding_window": 4}),
    "OLMoE 1B 7B": ("olmoe", _SINGLE | {"num_experts": 4, "num_experts_per_tok": 2, "clip_qkv": None}),
    "EXAONE 4.0 32B": (
        "exaone4",
        _WIDE | {"num_hidden_layers": 4, "sliding_window": 4, "sliding_window_pattern": 4, "rope_theta": 1e6},
    ),
    "EXAONE 4.0 1.2B": (
        "exaone4",
        _GROUPED | {"sliding_window": None, "layer_types": ["full_attention"] * 2, "tie_word_embeddings": True},
    ),
    "Minitron 4B": ("nemotron", _WIDE | {"partial_rotary_factor": 0.5, "hidden_act": "relu2"}),
    "Persimmon 8B": ("persimmon", _SIZES | {"partial_rotary_factor": 0.5, "qk_layernorm": True, "hidden_act": "relu2"}),
    "GLM 4 9B": ("glm", _WIDE | {"partial_rotary_factor": 0.5, "attention_bias": True}),
    "GLM 4 0414": ("glm4", _WIDE | {"partial_rotary_factor": 0.5, "attention_bias": True}),
    "gpt-oss 20B": (
        "gpt_oss",
        _WIDE
        | {"num_local_experts": 4, "num_experts_per_tok": 2, "sliding_window": 4}
        | {"rope_scaling": _YARN | {"factor": 32.0, "truncate": False}, "rope_theta": 150_000.0},
    ),
    "DeepSeek V2 Lite": (
        "deepseek_v2",
        _SINGLE
        | {"q_lora_rank": None, "kv_lora_rank": 8, "qk_nope_head_dim": 8, "qk_rope_head_dim": 4, "v_head_dim": 8}
        | {"n_routed_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 16, "first_k_dense_replace": 1},
    ),
    "Helium 1 2B": ("helium", _GROUPED | {"head_dim": 8} | {"rms_norm_eps": 1e-8}),
    "AFM 4.5B": ("arcee", _WIDE | {"hidden_act": "relu2", "rope_scaling": _YARN | {"factor": 20.0}}),
    "Seed OSS 36B": ("seed_oss", _WIDE | {"attention_bias": True, "attention_out_bias": False}),
    "ERNIE 4.5 0.3B": ("ernie4_5", _WIDE | {"tie_word_embeddings": True, "rope_theta": 5e5, "use_bias": False}),
    "Hunyuan 0.5B": ("hunyuan_v1_dense", _WIDE | {"tie_word_embeddings": True, "rope_theta": 10_000.0}),
    "nanochat d20": ("nanochat", _SINGLE | {"final_logit_softcapping": 15.0}),
    "LFM2 1.2B": (
        "lfm2",
        _GROUPED | {"num_hidden_layers": 3, "layer_types": ["conv", "full_attention", "conv"], "conv_L_cache": 3},
    ),
    "LFM2 2.6B": (
        "lfm2",
        _GROUPED | {"num_hidden_layers": 3, "layer_types": ["full_attention", "conv", "full_attention"]},
    ),
    "BERT base": ("bert", _SIZES | {"type_vocab_size": 2, "layer_norm_eps": 1e-12}),
    "RoBERTa base": ("roberta", _SIZES | {"type_vocab_size": 1, "pad_token_id": 1, "bos_token_id": 0}),
    "XLM-RoBERTa base": ("xlm-roberta", _SIZES | {"type_vocab_size": 1, "pad_token_id": 1, "bos_token_id": 0}),
    "DistilBERT base": (
        "distilbert",
        {"vocab_size": 120, "dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 48, "max_position_embeddings": 64}
        | {"sinusoidal_pos_embds": True},
    ),
    "ALBERT base v2": (
        "albert",
        _SIZES | {"embedding_size": 16, "num_hidden_groups": 1, "inner_group_num": 1, "hidden_act": "gelu_new"},
    ),
    "ELECTRA small": ("electra", _SIZES | {"embedding_size": 16}),
    "ModernBERT base": (
        "modernbert",
        _SIZES
        | {"num_hidden_layers": 4, "local_attention": 6, "global_attn_every_n_layers": 3, "cls_token_id": 1}
        | {"sep_token_id": 2, "global_rope_theta": 160_000.0, "local_rope_theta": 10_000.0},
    ),
    "T5 small": ("t5", _T5 | {"feed_forward_proj": "relu", "tie_word_embeddings": True}),
    "Flan-T5 small": ("t5", _T5 | {"feed_forward_proj": "gated-gelu", "tie_word_embeddings": False}),
    "mT5 small": ("mt5", _T5 | {"feed_forward_proj": "gated-gelu", "tie_word_embeddings": False}),
    "BART base": ("bart", _BOTH | {"scale_embedding": False, "normalize_before": False}),
    "mBART 50": ("mbart", _BOTH | {"scale_embedding": True, "normalize_before": True}),
    "Pegasus XSum": ("pegasus", _BOTH | {"scale_embedding": True, "static_position_embeddings": True}),
    "opus-mt en-de": (
        "marian",
        _BOTH | {"scale_embedding": True, "static_position_embeddings": True, "activation_function": "swish"},
    ),
    "NLLB 200 600M": ("m2m_100", _BOTH | {"scale_embedding": True}),
    "Blenderbot 400M": ("blenderbot", _BOTH | {"scale_embedding": True, "static_position_embeddings": False}),
    "Blenderbot 90M": ("blenderbot-small", _BOTH | {"normalize_embedding": True, "scale_embedding": True}),
}
"""model type, and what the configuration says, by name"""

HARDEST = (
    "StableLM 2 12B",
    "Ministral 3 3B",
    "Granite 3.1 2B",
    "Granite 3.0 3B A800M",
    "OLMo 2 7B",
    "EXAONE 4.0 32B",
    "Gemma 2 27B",
    "gpt-oss 20B",
    "Hunyuan 0.5B",
    "Phi 3 mini 128k",
    "SmolLM3 3B",
    "Command R+",
    "nanochat d20",
    "CTRL",
    "RoBERTa base",
    "NLLB 200 600M",
)
"""those whose every step is read, and which do most beside the plain equations"""


def published_model(name: str, **changed: Any) -> nn.Module:
    """A published configuration, reduced, with random weights, the same each time, and `changed` values."""
    family, values = PUBLISHED[name]
    tables = (
        modeling_auto.MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES,
        modeling_auto.MODEL_FOR_MASKED_LM_MAPPING_NAMES,
        modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES,
    )
    found = next(table[family] for table in tables if family in table)
    return randomised(lambda: getattr(hf, found)(CONFIG_MAPPING[family](**values | changed)))


def model_of(name: str) -> nn.Module:
    """The tiny model of a family or of a published configuration."""
    return tiny_model(name) if name in FAMILIES | MORE else published_model(name)
