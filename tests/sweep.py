"""python -m tests.sweep: open every text family that transformers has, tiny and random, and write docs/families.md.

A family is opened with a configuration of the usual names; one whose sizes have other names is counted as not tried.
"""

import argparse
import copy
import gc
import logging
import signal
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
import transformers as hf
from torch import nn
from transformers import CONFIG_MAPPING
from transformers.models.auto import modeling_auto

from model.checkpoints.huggingface import open_model
from model.proof.checks import prove
from tests.model.checkpoints.huggingface.families import SOURCE, TARGET, randomised

PAGE = Path(__file__).parents[1] / "docs" / "families.md"
SECONDS = 30
"""for one family"""
MOST_PARAMETERS = 3_000_000
EXACT = 1e-6
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
    """largest relative error of a step"""


def families() -> Iterator[tuple[str, str]]:
    """(model type, class) of every family with a head for text."""
    tables = (
        modeling_auto.MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES,
        modeling_auto.MODEL_FOR_MASKED_LM_MAPPING_NAMES,
        modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES,
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
    factory = CONFIG_MAPPING[family]
    usual = factory()
    if usual.get_text_config() is not usual:
        raise NotTried("reads more than text")
    values = {size: n for size, n in SIZES.items() if hasattr(usual, size)}
    if hasattr(usual, "kv_lora_rank"):
        values.pop("head_dim", None)
        values["num_key_value_heads"] = 4
    if getattr(usual, "layer_types", None):
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


def _small(factory: type, config: object) -> nn.Module:
    with torch.device("meta"):
        count = sum(parameter.numel() for parameter in factory(config).parameters())
    if count > MOST_PARAMETERS:
        raise NotTried(f"too large under the usual names ({count:,} parameters)")
    return factory(config)


def try_family(family: str, name: str) -> Result:
    """Open it and hold every number against the model's own.

    Raises:
        NotTried: it could not be built.
    """
    model = build(family, name)
    own = copy.deepcopy(model)
    own.set_attn_implementation("eager")
    opened = open_model(model)
    stacks = tuple(opened.model.stacks)
    trace = opened.trace(SOURCE, TARGET if len(stacks) == 2 else None)
    texts = [torch.tensor([stream.tokens.ids]) for stream in trace.streams.values()]
    with torch.inference_mode():
        logits = own(**dict(zip(("input_ids", "decoder_input_ids"), texts, strict=False))).logits[0].numpy()
    difference = float(np.abs(logits - trace.logits).max())
    chain = prove(opened, trace)[1].error
    kind = "encoder-decoder" if len(stacks) == 2 else f"{stacks[0]}-only"
    missing = "; ".join(dict.fromkeys(note.split(": ", 1)[-1] for note in opened.notes))
    if trace.weights:
        total = len(trace.weights) + len(trace.attentions)
        missing = f"weights alone in {len(trace.weights)} of {total} attentions; {missing}"
    return Result(family, kind, missing, difference, chain)


def sweep(names: list[str]) -> Iterator[Result]:
    """One result a family, or those named; each is printed as it comes."""

    def too_long(*_: object) -> None:
        raise NotTried(f"took longer than {SECONDS} s")

    signal.signal(signal.SIGALRM, too_long)
    for family, name in families():
        if names and family not in names:
            continue
        signal.alarm(SECONDS)
        try:
            result = try_family(family, name)
        except NotTried as error:
            result = Result(family, "", f"not tried: {error}")
        except Exception as error:
            result = Result(family, "", str(error).split(". ")[0].replace("\n", " ")[:160] or type(error).__name__)
        finally:
            signal.alarm(0)
        gc.collect()
        yield result


def page(results: list[Result]) -> str:
    """docs/families.md."""
    exact = [each for each in results if each.kind and each.logits == 0 and each.chain < EXACT]
    whole = [each for each in exact if not each.missing]
    part = [each for each in exact if each.missing]
    off = [each for each in results if each.kind and each not in exact]
    untried = [each for each in results if each.missing.startswith("not tried")]
    closed = [each for each in results if not each.kind and each not in untried]
    counts: Mapping[str, list[Result]] = {
        "opened, every step read": whole,
        "opened, something is missing": part,
        "opened, but a step is off": off,
        "not opened": closed,
        "not tried": untried,
    }
    lines = [
        "# Families of models that open",
        "",
        "Written by `python -m tests.sweep`: every text family of transformers "
        f"{hf.__version__}, with a tiny random model each. “Opened” means: logits equal to transformers' own bit for "
        f"bit, and every step that is shown, computed again in double precision, within {EXACT:g} of what is shown. "
        "How to open a model: [huggingface.md](huggingface.md).",
        "",
        "| | families |",
        "|---|---:|",
        *(f"| {title} | {len(found)} |" for title, found in counts.items()),
        "",
        "## Every step read",
        "",
    ]
    for kind in ("decoder-only", "encoder-only", "encoder-decoder"):
        names = ", ".join(each.family for each in whole if each.kind == kind)
        lines += [f"**{kind.capitalize()}:** {names}.", ""]
    for title, found in list(counts.items())[1:]:
        if found:
            lines += [f"## {title.capitalize()}", "", "| family | |", "|---|---|"]
            for each in found:
                numbers = f"logits {each.logits:.0e}, steps {each.chain:.0e}; " if each in off else ""
                lines.append(f"| {each.family} | {numbers}{each.missing.replace('|', '/') or '–'} |")
            lines.append("")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("families", nargs="*", help="only these, and no page is written")
    said = parser.parse_args()
    logging.disable(logging.WARNING)
    warnings.simplefilter("ignore")
    results = []
    for result in sweep(said.families):
        print(f"{result.family:28}{result.kind:18}{result.logits:.0e} {result.chain:.0e}  {result.missing}", flush=True)
        results.append(result)
    if not said.families:
        PAGE.write_text(page(results), encoding="utf-8")


if __name__ == "__main__":
    main()
