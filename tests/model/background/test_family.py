"""The parameters of the family tree are those of the classes of `transformers`, and close to what was published."""

from collections.abc import Callable
from typing import Any

import pytest
import torch

from model.background.family import Member, member, members, relatives
from model.background.sizes import count_parameters, multiply_adds
from model.network.config import PRESETS

transformers = pytest.importorskip("transformers")


def sizes(one: Member, **more: Any) -> dict[str, Any]:
    """Those that every configuration knows by the same names, and `more`."""
    return {
        "vocab_size": one.vocabulary,
        "hidden_size": one.d_model,
        "num_hidden_layers": one.encoder_layers or one.layers,
        "num_attention_heads": one.heads,
        **more,
    }


def gpt(one: Member) -> dict[str, Any]:
    return sizes(one, n_positions=one.context)


def bert(one: Member) -> dict[str, Any]:
    return sizes(one, intermediate_size=one.d_ff)


def llama(one: Member, **more: Any) -> dict[str, Any]:
    return bert(one) | {"num_key_value_heads": one.key_heads, "tie_word_embeddings": False, **more}


def t5(one: Member) -> dict[str, Any]:
    return sizes(one, num_layers=one.encoder_layers, d_kv=one.d_k, d_ff=one.d_ff, tie_word_embeddings=True)


def whisper(one: Member) -> dict[str, Any]:
    decoder = {"decoder_layers": one.decoder_layers, "decoder_attention_heads": one.heads}
    return sizes(one, **decoder, encoder_ffn_dim=one.d_ff, decoder_ffn_dim=one.d_ff)


def mamba(one: Member) -> dict[str, Any]:
    return sizes(one, state_size=one.state.state, time_step_rank=one.state.rank)


def deepseek(one: Member) -> dict[str, Any]:
    return llama(one) | {
        "num_key_value_heads": one.heads,
        "intermediate_size": one.dense_d_ff,
        "moe_intermediate_size": one.d_ff,
        "n_routed_experts": one.experts,
        "num_experts_per_tok": one.active_experts,
        "n_shared_experts": one.shared_experts,
        "first_k_dense_replace": one.dense_layers,
        "q_lora_rank": one.latent.q_rank,
        "kv_lora_rank": one.latent.kv_rank,
        "qk_nope_head_dim": one.latent.plain,
        "qk_rope_head_dim": one.latent.rotated,
        "v_head_dim": one.latent.d_v,
    }


CLASSES: dict[str, tuple[str, Callable[[Member], dict[str, Any]]]] = {
    "GPT": ("OpenAIGPT", gpt),
    "BERT, large": ("Bert", bert),
    "GPT-2, XL": ("GPT2", gpt),
    "T5, 11B": ("T5", t5),
    "GPT-3": ("GPT2", gpt),
    "ViT, L/16": ("ViT", bert),
    "Whisper, large-v2": ("Whisper", whisper),
    "Llama, 65B": ("Llama", llama),
    "Mistral, 7B": ("Mistral", llama),
    "Mamba, 2.8B": ("Mamba", mamba),
    "Mixtral, 8x7B": ("Mixtral", lambda one: llama(one, num_local_experts=one.experts)),
    "Llama 3.1, 405B": ("Llama", llama),
    "DeepSeek-V3": ("DeepseekV3", deepseek),
}
"""by name of a member: the prefix of its class, and the fields of its configuration; `transformers` has no PaLM"""


@pytest.mark.parametrize("name", CLASSES)
def test_the_formula_counts_what_the_class_has(name: str) -> None:
    one, (prefix, fields) = member(name), CLASSES[name]
    config = getattr(transformers, f"{prefix}Config")(**fields(one))
    with torch.device("meta"):
        model = getattr(transformers, f"{prefix}Model")(config)
    learned = {path: weight for path, weight in model.named_parameters() if weight.requires_grad}
    own = sum(weight.numel() for path, weight in learned.items() if "pooler" not in path)
    assert own + one.parameters()["output"] == one.total


@pytest.mark.parametrize("size", ["base", "big"])
def test_the_first_ones_are_counted_as_this_projects_own_classes(size: str) -> None:
    one = member(f"Transformer, {size}")
    assert one.total == sum(count_parameters(PRESETS[size]).values())
    works = multiply_adds(PRESETS[size], 50, 50)
    own = sum(work.total for work in works.values())
    assert one.multiply_adds(50) == pytest.approx(own, rel=0.005), "biases count here, and not there"


@pytest.mark.parametrize("one", members(), ids=lambda one: one.name)
def test_every_count_is_close_to_what_its_authors_published(one: Member) -> None:
    assert abs(one.total / one.published - 1) < 0.04
    active = sum(one.parameters(active=True).values())
    assert active == one.total if one.active is None else abs(active / one.active - 1) < 0.04


@pytest.mark.parametrize("one", members(), ids=lambda one: one.name)
def test_the_columns_of_the_picture_add_up_to_all_parameters(one: Member) -> None:
    columns = one.columns()
    assert sum(sum(parts.values()) for _, parts in columns) == one.total
    assert len(columns) == one.layers + 2
    assert all(count > 0 for _, parts in columns for count in parts.values())


@pytest.mark.parametrize("one", members(), ids=lambda one: one.name)
def test_a_cache_grows_with_the_text_until_a_window_ends_it(one: Member) -> None:
    small, large = one.cached(1000), one.cached(100_000)
    if one.family in ("encoder", "state space"):
        assert small == large
    elif one.window:
        assert large < 100 * small
    else:
        assert large == 100 * small
    assert (one.cached(10) == 0) == (one.family == "encoder")
    assert one.multiply_adds(2000) > 2 * one.multiply_adds(1000) - 1


def test_everyone_descends_from_an_older_member_and_from_the_transformer_but_for_the_state_space_model() -> None:
    kin = {one.name: one for one in (*members(), *relatives())}
    roots = set()
    for one in kin.values():
        line = [one]
        while line[-1].descent:
            line.append(kin[line[-1].descent.parent])
            assert line[-1].year <= line[-2].year
        roots.add((one.family == "state space", line[-1].name))
    assert roots == {(False, "Transformer, base"), (True, "Mamba, 2.8B")}
    assert [*relatives()] == sorted(relatives(), key=lambda one: one.year)
