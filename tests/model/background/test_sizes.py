"""How large and how much work: the counts by formula are PyTorch's own counts of the same model."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.utils.flop_counter import FlopCounterMode

from model.background.sizes import break_even, count_parameters, multiply_adds
from model.checkpoints.translator import Translator
from model.network.config import TransformerConfig
from model.network.encoder_decoder import Transformer


def counted_by_torch(model: Transformer, n_src: int, n_tgt: int) -> dict[str, int]:
    """Multiply-adds of one pass, by the path of the module, as PyTorch counts the products that it runs."""
    with FlopCounterMode(display=False, depth=6) as counter:
        model.train()(torch.ones(1, n_src, dtype=torch.long), torch.ones(1, n_tgt, dtype=torch.long))
    counts = {path: sum(by_operator.values()) for path, by_operator in counter.get_flop_counts().items()}
    assert not any(count % 2 for count in counts.values())
    return {path.removeprefix("Transformer."): count // 2 for path, count in counts.items()}


@pytest.mark.parametrize(("n_src", "n_tgt"), [(1, 1), (9, 7), (3, 20)])
def test_the_work_of_each_part_is_what_pytorch_counts(tiny_config: TransformerConfig, n_src: int, n_tgt: int) -> None:
    config = replace(tiny_config, n_encoder_layers=1, n_decoder_layers=3)
    counted = counted_by_torch(Transformer(config), n_src, n_tgt)
    works = multiply_adds(config, n_src, n_tgt)
    assert sum(work.total for work in works.values()) == counted["Global"]
    for part, stack, module in (
        ("encoder_self", "encoder", "self_attn"),
        ("decoder_self", "decoder", "self_attn"),
        ("cross", "decoder", "cross_attn"),
    ):
        modules = [path for path in counted if path.startswith(stack) and path.endswith(f".{module}")]
        projections = sum(counted[f"{path}.{name}"] for path in modules for name in ("w_q", "w_k", "w_v", "w_o"))
        assert len(modules) == works[part].layers
        assert works[part].weights == projections
        assert works[part].scores + works[part].weighted == sum(counted[path] for path in modules) - projections
    for stack in ("encoder", "decoder"):
        counts = [n for path, n in counted.items() if path.startswith(stack) and path.endswith(".feed_forward")]
        assert works[f"{stack}_feed_forward"].total == sum(counts)
    assert works["output"].total == counted["output"]


def test_queries_keys_and_products_are_those_of_a_trace(translator: Translator) -> None:
    trace = translator.trace("a dog and a cat", target="Ein Hund mit einer Katze.")
    works = multiply_adds(translator.model.config, len(trace.src_tokens), len(trace.tgt_tokens))
    for kind in ("encoder_self", "decoder_self", "cross"):
        attention, work = trace.attention(kind, 0), works[kind]
        assert (work.queries, work.keys) == (attention.q.shape[1], attention.k.shape[1])
        assert work.scores == work.layers * attention.scores.size * attention.d_k
        assert work.weighted == work.layers * attention.z.size * work.keys


@given(n=st.integers(1, 5000), heads=st.sampled_from([1, 2, 4, 8]), layers=st.integers(1, 6))
def test_attention_overtakes_at_break_even_whatever_the_heads(n: int, heads: int, layers: int) -> None:
    config = TransformerConfig(d_model=64, n_heads=heads, d_ff=128, n_encoder_layers=layers)
    works = [work for part, work in multiply_adds(config, n, n).items() if part != "output"]
    own, learned = sum(w.scores + w.weighted for w in works), sum(w.weights for w in works)
    assert (own > learned) == (n > break_even(config))
    assert multiply_adds(config, n, n) == multiply_adds(replace(config, n_heads=1), n, n)


@pytest.mark.parametrize("lengths", [(0, 3), (3, 0), (-1, 1)])
def test_a_sentence_without_tokens_gets_a_sentence(tiny_config: TransformerConfig, lengths: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="at least one token"):
        multiply_adds(tiny_config, *lengths)


def test_parameters_counted_without_numbers_are_the_models_own(tiny_model: Transformer) -> None:
    assert count_parameters(tiny_model.config) == tiny_model.parameters_by_part()
