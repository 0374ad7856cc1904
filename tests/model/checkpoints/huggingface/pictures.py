"""Tiny random models of families that read pictures or sounds beside text."""

from typing import Any

from torch import nn
from transformers import CONFIG_MAPPING
from transformers.models.auto import modeling_auto

from tests.model.checkpoints.huggingface.families import _GROUPED, randomised

_TEXT = _GROUPED | {"num_hidden_layers": 2}
_WIDE = _TEXT | {"head_dim": 8}
_SIZES = {"hidden_size": 32, "intermediate_size": 48}
_TOWER = _SIZES | {"num_hidden_layers": 1, "num_attention_heads": 4, "image_size": 16, "patch_size": 8}
_CLIP = _TOWER | {"model_type": "clip_vision_model", "projection_dim": 32}
_SIGLIP = _TOWER | {"model_type": "siglip_vision_model"}
_QWEN = _SIZES | {"depth": 2, "num_heads": 4, "out_hidden_size": 32, "patch_size": 4, "num_position_embeddings": 16}
_THREE = {"rope_parameters": {"rope_type": "default", "mrope_section": [2, 1, 1], "rope_theta": 10_000.0}}
"""positions of RoPE for time, height and width, which are one and the same in a text"""
_EXPERTS = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 16}
_LINEAR = {"linear_num_value_heads": 4, "linear_num_key_heads": 2, "linear_key_head_dim": 8}
_LINEAR |= {"linear_value_head_dim": 8, "layer_types": ["linear_attention", "full_attention"]}
_MARKS = {"image_token_id": 118, "video_token_id": 117, "vision_start_token_id": 116, "vision_end_token_id": 115}


def _joined(text: dict[str, Any], vision: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"text_config": text, "vision_config": vision} | (more or {"image_token_index": 119})


def _of(model_type: str, sizes: dict[str, Any] = _TEXT) -> dict[str, Any]:
    return sizes | {"model_type": model_type}


PICTURES: dict[str, dict[str, Any]] = {
    "aya_vision": _joined(_of("cohere2"), _SIGLIP),
    "gemma3": _joined(_WIDE | {"query_pre_attn_scalar": 8, "sliding_window": 4}, _SIGLIP),
    "glm4v": _joined(
        _WIDE | _THREE | {"partial_rotary_factor": 1.0},
        {name: n for name, n in _QWEN.items() if name != "num_position_embeddings"} | {"image_size": 16},
        **_MARKS,
    ),
    "idefics3": _joined(_of("llama"), _TOWER | {"model_type": "idefics3_vision"}, image_token_id=119),
    "internvl": _joined(_of("qwen2"), _TOWER | {"image_size": [16, 16], "patch_size": [8, 8]}, image_token_id=119),
    "llama4": _joined(
        _WIDE | {"intermediate_size_mlp": 48, "num_local_experts": 2, "num_experts_per_tok": 1},
        _TOWER | dict.fromkeys(("vision_output_dim", "projector_input_dim", "projector_output_dim"), 32),
    ),
    "llava": _joined(_of("llama"), _CLIP),
    "llava_next": _joined(_of("mistral", _WIDE), _CLIP),
    "llava_onevision": _joined(_of("qwen2"), _SIGLIP, image_token_index=119, video_token_index=118),
    "mistral3": _joined(_of("mistral", _WIDE), _TOWER | {"model_type": "pixtral", "head_dim": 8}),
    "paligemma": _joined(_of("gemma", _WIDE), _SIGLIP),
    "qwen2_5_vl": _joined(_TEXT | _THREE, _QWEN | {"fullatt_block_indexes": [1]}, **_MARKS),
    "qwen2_vl": _joined(
        _TEXT | _THREE, {"depth": 2, "embed_dim": 32, "hidden_size": 32, "num_heads": 4, "patch_size": 4}, **_MARKS
    ),
    "qwen3_5": _joined(_WIDE | _LINEAR, _QWEN, **_MARKS),
    "qwen3_vl": _joined(_WIDE | _THREE, _QWEN | {"deepstack_visual_indexes": [1]}, **_MARKS),
    "qwen3_vl_moe": _joined(_WIDE | _THREE | _EXPERTS, _QWEN | {"deepstack_visual_indexes": [1]}, **_MARKS),
    "smolvlm": _joined(_of("llama"), _TOWER | {"model_type": "smolvlm_vision"}, image_token_id=119),
    "qwen2_audio": {
        "text_config": _of("qwen2"),
        "audio_config": {"model_type": "qwen2_audio_encoder", "d_model": 32, "encoder_layers": 1}
        | {"encoder_attention_heads": 4, "encoder_ffn_dim": 48, "num_mel_bins": 8},
        "audio_token_index": 119,
    },
}
"""configuration by model type"""


def picture_model(name: str) -> nn.Module:
    """The same random model of a family each time."""
    config = CONFIG_MAPPING[name](**PICTURES[name])
    return randomised(lambda: modeling_auto.MODEL_FOR_MULTIMODAL_LM_MAPPING[type(config)](config))
