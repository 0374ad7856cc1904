"""Ten classic mistakes in implementations of the paper, made on purpose in the running code.

A mistake replaces lines in the source of the network's own methods, whatever its family. They run in a copy of the
network that shares its weights, so nobody else's run changes. The claims then say what they notice.
"""

import copy
import inspect
import math
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn

from model.analysis.runs.padded_batch import longer_texts, padded_texts, room_for_pads
from model.beside import read_beside
from model.checkpoints.checkpoint import Checkpoint
from model.generation.search import greedy
from model.generation.steps import Steps, ids_to_decode_from
from model.hooks import explicit_path, recording
from model.interventions import applied
from model.language import Refusal, sentence
from model.network.attention import MultiHeadAttention
from model.network.decoder_only import DecoderOnly
from model.network.embedding import InputEmbedding
from model.network.encoder_decoder import Transformer
from model.network.encoder_only import EncoderOnly
from model.network.layers import DecoderLayer
from model.network.network import Network
from model.proof.claims import CLAIMS, Claim, Measurement
from model.proof.measures import Case
from model.trace import Array, Trace

PADS = 4
"""of the sentence, in a batch with a longer one"""
NEW_TOKENS = 12
"""that a language model writes at most"""


@dataclass(frozen=True)
class Lines:
    """What a mistake replaces in one method."""

    owner: type[nn.Module]
    method: str
    right: str
    wrong: str


@dataclass(frozen=True, kw_only=True)
class Mistake:
    """One mistake, and where it shows."""

    title: str
    what: str
    """what goes wrong, in one or two sentences"""
    why_not: str = ""
    """why some models cannot make it"""
    lines: tuple[Lines, ...]
    runs: Literal["alone", "batch", "cache"] = "alone"
    """the sentence alone; padded, in a batch with a longer one; or token by token with cached keys and values"""


OWNERS = (Transformer, DecoderOnly, EncoderOnly, MultiHeadAttention, InputEmbedding, DecoderLayer)
"""of the methods in mistakes.toml"""


def _read_mistakes() -> Iterator[tuple[str, Mistake]]:
    owners = {owner.__name__: owner for owner in OWNERS}
    for name, row in read_beside(__file__).items():
        lines = tuple(Lines(**line | {"owner": owners[line["owner"]]}) for line in row["lines"])
        yield name, Mistake(**row | {"lines": lines})


MISTAKES: Mapping[str, Mistake] = dict(_read_mistakes())
"""by name, in the order in which a sentence meets them"""


@dataclass(frozen=True)
class BrokenRun:
    """A run with a mistake in the code."""

    written: tuple[int, ...]
    """token ids of the greedy translation or continuation; of an encoder alone, the most probable at each position"""
    right: tuple[int, ...]
    """the same without the mistake"""
    log_p: float
    """of the trace's target, in nats; NaN where the mistake gives no numbers"""
    pattern: Array
    """(heads, query, key): attention weights; in a batch the padding's keys come last"""
    mask: Array
    """bool (heads, query, key): True = may attend"""


def why_not(model: Network, name: str) -> str:
    """Why this model cannot make the mistake, in a sentence; empty if it can."""
    config, family = model.config, model.config.family
    cannot = {
        "transposed-mask": family == "encoder",
        "no-padding-mask": family == "decoder",
        "heads-by-view": config.n_heads == 1,
        "no-scaling": config.score_divisor == 1,
        "no-embedding-scale": not config.scale_embeddings,
        "zero-after-softmax": family == "encoder" and not config.window,
        "cross-reads-x": family != "encoder_decoder",
        "positions-restart": family == "encoder" or config.positions not in ("sinusoidal", "learned"),
    }
    if cannot.get(name):
        return MISTAKES[name].why_not
    # A mistake whose lines are not in the code would run, change nothing, and look harmless.
    return "" if lines_of(model, name) else "Its code does not have these lines."


def lines_of(model: Network, name: str) -> tuple[Lines, ...]:
    """The lines of a mistake that are in the code of this model."""
    owners = {type(module) for module in model.modules()}
    return tuple(lines for lines in MISTAKES[name].lines if lines.owner in owners)


@torch.inference_mode()
def run_mistake(opened: Checkpoint, trace: Trace, name: str, kind: str, layer: int, writes: bool = True) -> BrokenRun:
    """Run the trace's text with the mistake `name`: the same target, and greedy decoding.

    `kind` and `layer` say whose attention weights are returned. Without `writes` nothing is decoded, which takes most
    of the time. The trace's interventions take part.

    Raises:
        ValueError: no room for padding beside this sentence.
    """
    mistake, model = MISTAKES[name], break_model(opened, name).model
    if mistake.runs == "batch" and room_for_pads(opened, trace) < PADS:
        raise Refusal("This sentence is too long for a batch with a longer one.")
    path, _ = model.attentions()[kind, layer]
    run = _step_by_step if mistake.runs == "cache" else _at_once
    with applied(model, trace.interventions), explicit_path():
        logits, pattern, mask = run(model, trace, mistake, path)
        written = _write(model, trace, logits, mistake.runs) if writes else ()
    with applied(opened.model, trace.interventions):
        mode = "cache" if all(change.position_free for change in trace.interventions) else "alone"
        right = _write(opened.model, trace, torch.tensor(trace.logits), mode) if writes else ()
    log_p = logits.double().log_softmax(-1)[range(len(trace.next_ids)), list(trace.next_ids)].sum().item()
    queries = len(trace.attention(kind, layer).query_tokens)
    pattern, mask = (tensor[0, :, :queries].cpu().numpy() for tensor in (pattern, mask))
    return BrokenRun(tuple(written), tuple(right), log_p, pattern, mask)


def _write(model: Network, trace: Trace, logits: Tensor, runs: str) -> tuple[int, ...]:
    """What the model writes, alone or beside a longer sentence; `logits`: of its run, (row, vocabulary)."""
    if "decoder" not in model.stacks:
        return tuple(logits.argmax(-1).tolist())
    sources = [ids_to_decode_from(model, trace), *([longer_texts(trace, PADS)[0]] if runs == "batch" else [])]
    return greedy(model, sources, use_cache=runs == "cache", max_new_tokens=NEW_TOKENS)[0].tokens


def _at_once(model: Network, trace: Trace, mistake: Mistake, path: str) -> tuple[Tensor, Tensor, Tensor]:
    """Logits (row, vocabulary), weights and mask (batch, heads, query, key) of a teacher-forced run."""
    texts = model.texts_of(trace)
    if mistake.runs == "batch":
        texts = padded_texts(trace, longer_texts(trace, PADS), texts[0].device)
    with recording(model, [f"{path}.pattern", f"{path}.mask"]) as found:
        logits = model(*texts)[0, : len(trace.next_ids)]
    return logits, found[f"{path}.pattern"], found[f"{path}.mask"]


def _step_by_step(model: Transformer, trace: Trace, _mistake: Mistake, path: str) -> tuple[Tensor, Tensor, Tensor]:
    """The same from cached steps that are given the trace's target."""
    with recording(model, [f"{path}.pattern", f"{path}.mask"]) as found:
        steps, rows, activations = Steps(model, [trace.src_ids]), [], []
        for token in trace.next_ids:
            rows.append(next(steps)[0])
            activations.append([found[f"{path}.{name}"] for name in ("pattern", "mask")])
            steps.extend(torch.full_like(steps.prefixes[:, 0], token))
    if path.startswith("encoder."):
        return torch.stack(rows), *activations[-1]
    width = activations[-1][0].shape[-1]
    padded = [[nn.functional.pad(x, (0, width - x.shape[-1])) for x in step] for step in activations]
    pattern, mask = (torch.cat(steps, dim=2) for steps in zip(*padded, strict=True))
    return torch.stack(rows), pattern, mask


@dataclass(frozen=True)
class Verdict:
    """What the claims say of a broken run."""

    measurements: tuple[Measurement, ...]
    """in the order of the claims, those measured so far; in the run's own precision alone"""
    refusal: str
    """why there is no Trace to measure, because its parts do not fit each other; empty if there is one"""
    done: float
    """0 to 1"""

    @property
    def broken(self) -> tuple[Measurement, ...]:
        """The claims that do not hold."""
        return tuple(measured for measured in self.measurements if not measured.holds)


def check_mistake(opened: Checkpoint, trace: Trace, name: str, kind: str, layer: int, head: int) -> Iterator[Verdict]:
    """Measure every claim on the sentence's run in the broken model; yields after each.

    `kind`, `layer` and `head`: of the claims that are about one head.
    """
    twin = break_model(opened, name)
    try:
        run = twin.trace_ids(trace.source, trace.next_ids, trace.interventions)
    except ValueError as error:
        yield Verdict((), str(error), 1.0)
        return
    case, found = Case(twin, run, kind, layer, head), []
    claims = [claim for claim in CLAIMS if claim.measure]
    for claim in claims:
        error = _error(claim, case)
        reason = error if isinstance(error, str) else ""
        found.append(Measurement(claim, None if reason else error, None, 0.0, reason))
        yield Verdict(tuple(found), "", len(found) / len(claims))


def _error(claim: Claim, case: Case) -> float | str:
    """What the claim measures; infinite where the broken model cannot even be measured."""
    # Without this, decoding would take the fused kernel, which knows nothing of the mistake.
    with np.errstate(all="ignore"), explicit_path():
        try:
            return claim.measure(case)
        except (ValueError, RuntimeError, IndexError):
            return math.inf


def break_model(opened: Checkpoint, name: str) -> Checkpoint:
    """The same weights in a network with the mistake `name` in its code.

    Raises:
        ValueError: the model cannot make this mistake, for the reason of `why_not`.
    """
    model = opened.model
    if reason := why_not(model, name):
        raise Refusal("This model cannot make this mistake. {reason}", reason=sentence(reason))
    shared = {id(tensor): tensor for tensor in (*model.parameters(), *model.buffers())}
    broken, classes = copy.deepcopy(model, shared), {}
    for lines in lines_of(model, name):
        classes.setdefault(lines.owner, {})[lines.method] = _rewrite(lines)
    for module in broken.modules():
        if type(module) in classes:
            owner = type(module)
            module.__class__ = type(owner.__name__, (owner,), classes[owner])
    return replace(opened, model=broken)


def code_around(lines: Lines) -> tuple[str, str]:
    """Right and wrong: the line of the method's source that changes, with the lines before and after it."""
    source = _source(lines).splitlines()
    at = next(i for i, line in enumerate(source) if lines.right in line)
    right = textwrap.dedent("\n".join(source[at - 1 : at + 2]))
    return right, right.replace(lines.right, lines.wrong)


def _source(lines: Lines) -> str:
    source = textwrap.dedent(inspect.getsource(getattr(lines.owner, lines.method)))
    if source.count(lines.right) != 1:
        raise ValueError(f"{lines.owner.__name__}.{lines.method} does not contain {lines.right!r} once")
    return source


def _rewrite(lines: Lines) -> Callable[..., Any]:
    """The method, with the wrong line in place of the right one."""
    source = _source(lines)
    namespace = vars(sys.modules[lines.owner.__module__]) | {"torch": torch}
    exec(source.replace(lines.right, lines.wrong), namespace)
    return namespace[lines.method]
