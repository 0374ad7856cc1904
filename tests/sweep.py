"""python -m tests.sweep: open every text family that transformers has, tiny and random, and write docs/families.md.

A family is opened twice over: with its default configuration, made small under the usual names (one whose sizes have
other names is counted as not tried), and with those that published models set.
"""

import argparse
import copy
import gc
import logging
import signal
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
import transformers as hf
from torch import nn
from transformers import CONFIG_MAPPING
from transformers.models.auto import modeling_auto

from model.checkpoints.huggingface import open_model
from model.proof.steps import MATRICES, Step, verify_steps
from model.trace import CHAIN_TOLERANCE
from tests.model.checkpoints.huggingface.families import SOURCE, TARGET, randomised
from tests.model.checkpoints.huggingface.pictures import PICTURES, picture_model
from tests.model.checkpoints.huggingface.published import PUBLISHED, published_model

PAGE = Path(__file__).parents[1] / "docs" / "families.md"
SECONDS = 30
"""for one family"""
MOST_PARAMETERS = 3_000_000
SIZES = {
    **dict.fromkeys(("vocab_size", "vocab_size_per_layer_input"), 120),
    **dict.fromkeys(("hidden_size", "d_model", "n_embd", "embedding_size", "dim", "word_embed_proj_dim"), 32),
    **dict.fromkeys(("num_hidden_layers", "num_layers", "num_decoder_layers", "n_layer", "n_layers"), 2),
    **dict.fromkeys(("encoder_layers", "decoder_layers"), 2),
    **dict.fromkeys(("num_attention_heads", "num_heads", "n_head", "n_heads"), 4),
    **dict.fromkeys(("encoder_attention_heads", "decoder_attention_heads", "sliding_window", "rotary_dim"), 4),
    **dict.fromkeys(("intermediate_size", "encoder_ffn_dim", "decoder_ffn_dim", "d_ff", "ffn_dim", "hidden_dim"), 48),
    **dict.fromkeys(("head_dim", "d_kv", "kv_lora_rank", "q_lora_rank", "qk_nope_head_dim", "v_head_dim"), 8),
    **dict.fromkeys(("hidden_size_per_layer_input", "query_pre_attn_scalar"), 8),
    **dict.fromkeys(("max_position_embeddings", "n_positions"), 64),
    **dict.fromkeys(("num_key_value_heads", "num_local_experts", "num_experts", "eos_token_id", "type_vocab_size"), 2),
    **dict.fromkeys(("moe_intermediate_size", "shared_expert_intermediate_size"), 16),
    **dict.fromkeys(("n_routed_experts", "qk_rope_head_dim"), 4),
    **dict.fromkeys(("num_experts_per_tok", "n_shared_experts", "n_group", "topk_group", "first_k_dense_replace"), 1),
    **dict.fromkeys(("bos_token_id", "decoder_start_token_id"), 1),
    **{"pad_token_id": 0, "decoder_layerdrop": 0.0},
}
OWN_SIZES = {
    "gemma4_text": {"head_dim": 8, "global_head_dim": 8, "num_kv_shared_layers": 0}
    | {"layer_types": ["sliding_attention", "full_attention"]},
}
"""of families that have other sizes than these"""
WITHOUT = (
    (),
    ("layer_types",),
    ("head_dim",),
    ("num_key_value_heads",),
    ("layer_types", "head_dim"),
    ("sliding_window",),
)
"""sizes that a family may not accept; the first combination that works counts"""


class NotTried(Exception):
    """The family cannot be built tiny with the usual names; the message says why."""


@dataclass(frozen=True)
class Result:
    """What opening one family gave."""

    family: str
    kind: str
    """decoder-only, encoder-only or encoder-decoder; empty where it did not open"""
    missing: str
    """what is missing; empty where everything could be read"""
    logits: float = 0.0
    """largest difference from the model's own logits"""
    chain: float = 0.0
    """largest relative error of a step that was read"""
    read: int = 0
    """how many steps of the run were read"""
    differing: tuple[str, ...] = ()
    """steps that differ, with the number"""
    unread: tuple[str, ...] = ()
    """steps that could not be read"""


def families() -> Iterator[tuple[str, str]]:
    """(model type, class) of every family with a head for text."""
    tables = (
        modeling_auto.MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES,
        modeling_auto.MODEL_FOR_MASKED_LM_MAPPING_NAMES,
        modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES,
        modeling_auto.MODEL_FOR_MULTIMODAL_LM_MAPPING_NAMES,
    )
    found: dict[str, str] = {}
    for table in tables:
        for family, name in table.items():
            found.setdefault(family, name if isinstance(name, str) else name[0])
    yield from sorted(found.items())


def build(family: str, name: str) -> nn.Module:
    """The family's tiny random model.

    Raises:
        NotTried: it reads more than text, is too large under these names, or cannot be built.
    """
    if family in PICTURES:
        return picture_model(family)
    factory = CONFIG_MAPPING[family]
    if family in modeling_auto.MODEL_FOR_SPEECH_SEQ_2_SEQ_MAPPING_NAMES and name.endswith("ForCausalLM"):
        raise NotTried(f"reads sounds; {name} is its decoder alone")
    usual = factory()
    if usual.get_text_config() is not usual:
        raise NotTried("reads more than text")
    values = {size: n for size, n in SIZES.items() if _has(usual, size)} | OWN_SIZES.get(family, {})
    if hasattr(usual, "kv_lora_rank"):
        values.pop("head_dim", None)
        values["num_key_value_heads"] = 4
    if getattr(usual, "layer_types", None) and family not in OWN_SIZES:
        values["layer_types"] = list(usual.layer_types)[-2:]
    problem: Exception = NotTried("cannot be built")
    for without in WITHOUT:
        try:
            config = factory(**{size: n for size, n in values.items() if size not in without})
            return randomised(lambda config=config: _small(getattr(hf, name), config))
        except NotTried:
            raise
        except Exception as error:
            problem = error
    raise NotTried(f"its sizes have other names ({type(problem).__name__})") from problem


def _has(config: object, size: str) -> bool:
    """Whether a configuration has one number under this name; some have one for each layer, and refuse to say it."""
    try:
        return hasattr(config, size)
    except Exception:  # of a class of its own
        return False


def _small(factory: type, config: object) -> nn.Module:
    with torch.device("meta"):
        count = sum(parameter.numel() for parameter in factory(config).parameters())
    if count > MOST_PARAMETERS:
        raise NotTried(f"too large under the usual names ({count:,} parameters)")
    return factory(config)


def try_model(name: str, model: nn.Module) -> Result:
    """Open it and hold every number against the model's own."""
    own = copy.deepcopy(model)
    own.set_attn_implementation("eager")
    opened = open_model(model)
    stacks = tuple(opened.model.stacks)
    trace = opened.trace(SOURCE, TARGET if len(stacks) == 2 else None)
    texts = [torch.tensor([stream.tokens.ids]) for stream in trace.streams.values()]
    with torch.inference_mode():
        logits = own(**dict(zip(("input_ids", "decoder_input_ids"), texts, strict=False))).logits[0].numpy()
    difference = float(np.abs(logits - trace.logits).max())
    steps = verify_steps(opened, trace)
    kind = "encoder-decoder" if len(stacks) == 2 else f"{stacks[0]}-only"
    told = (note.split(": ", 1)[-1] for note in opened.notes if not note.startswith("input: "))
    missing = "; ".join(dict.fromkeys(told))
    if trace.weights:
        total = len(trace.weights) + len(trace.attentions)
        missing = f"weights alone in {len(trace.weights)} of {total} attentions; {missing}"
    return Result(
        name,
        kind,
        missing,
        difference,
        max(step.difference for step in steps if step.read),
        sum(step.read for step in steps),
        tuple(dict.fromkeys(f"{_kind_of(step)} {step.state}" for step in steps if step.difference and not step.read)),
        tuple(dict.fromkeys(_kind_of(step) for step in steps if step.difference is None)),
    )


def _kind_of(step: Step) -> str:
    """The step without the number of its layer."""
    if step.name in (*MATRICES, "scores"):
        return step.name
    return step.name if step.place == step.name else f"{step.name} of {step.place.split('.')[0]}"


def sweep(names: list[str]) -> Iterator[Result]:
    """One result a family, or those named."""
    for family, name in families():
        if not names or family in names:
            yield _try(family, lambda family=family, name=name: build(family, name))


def sweep_published(names: list[str]) -> Iterator[Result]:
    """One result a published configuration, or those named."""
    for name in PUBLISHED:
        if not names or name in names:
            yield _try(name, lambda name=name: published_model(name))


def _try(name: str, make: Callable[[], nn.Module]) -> Result:
    def too_long(*_: object) -> None:
        raise NotTried(f"took longer than {SECONDS} s")

    signal.signal(signal.SIGALRM, too_long)
    signal.alarm(SECONDS)
    try:
        return try_model(name, _make(make))
    except NotTried as error:
        return Result(name, "", f"not tried: {error}")
    except Exception as error:
        return Result(name, "", str(error).split(". ")[0].replace("\n", " ")[:160] or type(error).__name__)
    finally:
        signal.alarm(0)
        gc.collect()


def _make(make: Callable[[], nn.Module]) -> nn.Module:
    try:
        return make()
    except NotTried:
        raise
    except Exception as error:
        raise NotTried(f"cannot be built ({type(error).__name__})") from error


def _sorted(results: list[Result]) -> Mapping[str, list[Result]]:
    """By what became of their steps."""
    opened = [each for each in results if each.kind]
    off = [each for each in opened if each.differing or each.logits]
    part = [each for each in opened if each.unread and each not in off]
    untried = [each for each in results if each.missing.startswith("not tried")]
    return {
        "opened, every step read": [each for each in opened if each not in off and each not in part],
        "opened, some steps could not be read": part,
        "opened, but a step differs": off,
        "not opened": [each for each in results if not each.kind and each not in untried],
        "not tried": untried,
    }


def page(results: list[Result], published: list[Result]) -> str:
    """docs/families.md."""
    counts, settings = _sorted(results), _sorted(published)
    lines = [
        "# Families of models that open",
        "",
        f"Written by `python -m tests.sweep`: every text family of transformers {hf.__version__} with its default "
        f"configuration, and {len(published)} configurations of published models, each as a tiny random model. "
        "“Opened” means: logits equal to transformers' own bit for bit. Each step is then computed again in double "
        "precision, on the run itself, from what is shown before it, and has one of three states: **read** (within "
        f"{CHAIN_TOLERANCE:g} of what the model computed, relative to the largest number of the matrix where that is "
        "above 1), **differs by** a number, or **could not be read**; what is not read is not drawn as an equation. "
        "How to open a model: [huggingface.md](huggingface.md).",
        "",
        "| | families | published configurations |",
        "|---|---:|---:|",
        *(f"| {title} | {len(found)} | {len(settings[title])} |" for title, found in counts.items()),
        "",
        "## Every step read",
        "",
    ]
    whole = counts["opened, every step read"]
    for kind in ("decoder-only", "encoder-only", "encoder-decoder"):
        names = ", ".join(each.family for each in whole if each.kind == kind)
        lines += [f"**{kind.capitalize()}:** {names}.", ""]
    for title, found in list(counts.items())[1:]:
        if found:
            lines += [f"## {title.capitalize()}", "", "| family | |", "|---|---|"]
            lines += [f"| {each.family} | {_told(each)} |" for each in found]
            lines.append("")
    lines += [
        "## Published configurations",
        "",
        "What a model's config.json sets beside the sizes: multipliers, soft caps, windows, norms, scalings of RoPE. "
        "Sizes, windows and the lengths at which a scaling begins are reduced. The text has 13 tokens, the target 8.",
        "",
        "| configuration | steps read | largest error of those | other steps |",
        "|---|---:|---:|---|",
    ]
    for each in published:
        numbers = f"{each.read} | {each.chain:.0e}" if each.kind else "– | –"
        lines.append(f"| {each.family} | {numbers} | {_told(each) if _told(each) else 'none'} |")
    return "\n".join([*lines, ""])


def _told(result: Result) -> str:
    """What is not read, in words."""
    parts = [f"logits differ by {result.logits:.0e}"] if result.logits else []
    parts += result.differing
    parts += [f"could not be read: {', '.join(result.unread)}"] if result.unread else []
    parts += [result.missing] if result.missing else []
    return "; ".join(parts).replace("|", "/").removesuffix(".")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="only these families or configurations, and no page is written")
    names = parser.parse_args().names
    logging.disable(logging.WARNING)
    warnings.simplefilter("ignore")
    results, published = [], []
    for found, each in ((results, sweep(names)), (published, sweep_published(names))):
        for result in each:
            print(f"{result.family:30}{result.kind:18}{result.read:4} {result.chain:.0e}  {_told(result)}", flush=True)
            found.append(result)
    if not names:
        PAGE.write_text(page(results, published), encoding="utf-8")


if __name__ == "__main__":
    main()
