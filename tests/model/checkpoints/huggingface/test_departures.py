"""The file is the network, or the network says what of the file it does not use."""

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from model.checkpoints.huggingface import open_model
from model.checkpoints.huggingface.loading import read_model
from tests.model.checkpoints.huggingface.families import FAMILIES, MORE, tiny_model
from tests.model.checkpoints.huggingface.published import HARDEST, model_of

LAYERS = range(3)
DISTANCES = {f"bert.encoder.layer.{i}.attention.self.distance_embedding.weight": torch.ones(127, 8) for i in LAYERS}
BART_OF_OLD = {"normalize_before": False, "normalize_embedding": True, "add_final_layer_norm": False}
MARIAN_OF_OLD = BART_OF_OLD | {"normalize_embedding": False, "static_position_embeddings": True}
QWEN_WITHOUT_A_WINDOW = {"use_sliding_window": False, "sliding_window": 131_072, "max_window_layers": 2}


def save(
    folder: Path, model: nn.Module, settings: dict | None = None, weights: dict[str, Tensor] | None = None
) -> Path:
    """What `save_pretrained` writes, with settings and weights besides."""
    model.save_pretrained(folder)
    config, file = folder / "config.json", folder / "model.safetensors"
    config.write_text(json.dumps(json.loads(config.read_text()) | (settings or {})))
    if weights:
        save_file(load_file(file) | weights, file)
    return folder


def said(folder: Path) -> list[str]:
    return [str(each) for each in open_model(folder).departures]


@pytest.mark.parametrize("name", [*FAMILIES, *MORE, *HARDEST])
def test_what_a_family_saves_of_itself_is_the_network(name: str, tmp_path: Path) -> None:
    stored = read_model(save(tmp_path, model_of(name)))
    assert not stored.unread
    assert not stored.left_inside
    # No configuration is watched any longer.
    assert type(stored.model.config).__module__.startswith("transformers.models.")


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("BERT", {"position_embedding_type": "relative_key"}),
        ("ELECTRA", {"position_embedding_type": "relative_key_query"}),
        ("Llama, grouped", {"sliding_window": 4}),
        ("Llama, grouped", {"attn_logit_softcapping": 30.0}),
        ("Llama, grouped", {"embedding_multiplier": 12.0}),
        ("Llama, grouped", {"layer_types": ["sliding_attention"] * 3}),
        ("Llama, grouped", {"partial_rotary_factor": 0.5}),
        ("Llama, grouped", {"layer_norm_eps": 0.01}),
        ("Llama, grouped", {"dual_chunk_attention_config": {"chunk_size": 4}}),
        ("GPT-2", {"rope_theta": 10_000.0}),
        ("BART", {"normalize_before": True}),
    ],
)
def test_a_setting_that_no_code_reads_is_named_with_its_value(name: str, settings: dict, tmp_path: Path) -> None:
    (line,) = said(save(tmp_path, tiny_model(name), settings))
    ((setting, value),) = settings.items()
    assert f"{setting}: {value}"[:40] in line


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("BERT", {"position_embedding_type": "absolute", "sliding_window": None, "alibi": False}),
        ("ModernBERT", {"position_embedding_type": "absolute", "layer_norm_eps": 1e-5}),
        ("Llama, grouped", {"rope_scaling": {"type": "linear", "factor": 2.0}, "rope_theta": 500_000.0}),
        ("Llama, grouped", {"rms_norm_eps": 0.01, "is_causal": True, "layer_types": ["full_attention"] * 3}),
        ("Qwen2", QWEN_WITHOUT_A_WINDOW),
        ("GPT-2", {"scale_attn_by_inverse_layer_idx": True, "n_ctx": 1024}),
        ("GPT-NeoX", {"rotary_pct": 0.5, "rotary_emb_base": 5_000}),
        ("BART", BART_OF_OLD),
        ("Marian", MARIAN_OF_OLD),
    ],
)
def test_a_setting_that_is_read_or_that_changes_nothing_is_no_departure(
    name: str, settings: dict, tmp_path: Path
) -> None:
    """Nor is one from which others follow, one that another switches off, or one of old that says what is computed."""
    assert not said(save(tmp_path, tiny_model(name), settings))


@pytest.mark.parametrize(
    ("name", "weights", "named"),
    [
        ("BERT", DISTANCES, "attention.self.distance_embedding.weight in 3 layers"),
        ("Llama, grouped", {"model.layers.1.self_attn.q_norm.weight": torch.ones(8)}, "self_attn.q_norm.weight,"),
        ("Llama, grouped", {"model.layers.0.self_attn.q_proj.lora_A.weight": torch.ones(2, 32)}, "q_proj.lora_A"),
        ("Llama, grouped", {"model.embed_positions.weight": torch.ones(64, 32)}, "model.embed_positions.weight"),
        ("Llama, grouped", {"model.norm.bias": torch.ones(32)}, "model.norm.bias"),
        ("Llama, grouped", {"lm_head.bias": torch.ones(120)}, "lm_head.bias"),
        ("BERT", {"bert.embeddings.embedding_norm.weight": torch.ones(32)}, "embeddings.embedding_norm.weight"),
    ],
)
def test_a_weight_without_a_place_inside_what_is_shown_is_named(name, weights, named, tmp_path: Path) -> None:
    opened = open_model(save(tmp_path, tiny_model(name), weights=weights))
    (line,) = opened.departures
    assert named in line
    assert not opened.notes


@pytest.mark.parametrize(
    ("name", "weights"),
    [
        ("BERT", {"bert.encoder.layer.3.attention.self.query.weight": torch.ones(32, 32)}),
        ("BERT", {"bert.pooler.dense.weight": torch.ones(32, 32), "cls.seq_relationship.weight": torch.ones(2, 32)}),
        ("Llama, grouped", {"vision_tower.layers.0.norm.weight": torch.ones(8), "mtp.norm.weight": torch.ones(32)}),
        ("Llama, grouped", {f"model.layers.{i}.self_attn.q_proj.bias": torch.zeros(32) for i in LAYERS}),
        ("Llama, grouped", {"model.layers.0.self_attn.mask": torch.ones(8, 8, dtype=torch.bool)}),
    ],
)
def test_other_layers_heads_and_towers_and_what_adds_nothing_stay_a_note(name, weights, tmp_path: Path) -> None:
    opened = open_model(save(tmp_path, tiny_model(name), weights=weights))
    assert not opened.departures
    assert all(weight in " ".join(opened.notes) for weight in weights)
