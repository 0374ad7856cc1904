"""Measures that run the model again: changed, in a batch, step by step, as in `model.proof.measures`."""

import math
from collections.abc import Iterator, Sequence

import numpy as np
import torch

from model.analysis.runs.one_word import cosine
from model.analysis.runs.padded_batch import room_for_pads, run_padded
from model.analysis.runs.sentence_pairs import pair_shares, pool, read_text
from model.analysis.words import add_up, word_groups
from model.generation.beam_tree import beam_tree
from model.generation.search import beam_search, greedy
from model.generation.steps import ids_to_decode_from, length_limits, steps_of
from model.hooks import explicit_path
from model.interventions import AttentionTemperature, HeadGate, MaskEdit, applied
from model.network.config import SPECIAL_TOKENS
from model.proof.checks import relative_error
from model.proof.measures import NO_LOGITS, NO_MATRICES, SUBLAYER_OFF, Case, arrays, is_off
from model.trace import Array, Trace

MOST_PADS = 4
EXTREMES = (1e-3, 1e3)
"""temperatures at which every result must stay finite"""
BEAMS = 4
ALPHA = 0.6
ROUNDING = 5e-5
"""what a sum of the same numbers in another order may change"""
_PER_HEAD = ("q", "k", "v", "scores", "scaled", "pattern", "z")
_PER_ROW = ("out", "added", "normed", "hidden", "logits")


def two_runs(case: Case) -> float:
    """Claim 1: the largest difference between two runs; infinite where a module is in training mode."""
    if any(module.training for module in case.opened.model.modules()):
        return math.inf
    return _difference(case.trace, case.again())


def sees_all(case: Case) -> str:
    """Why no row is blind to what follows it; empty where rows are."""
    trace = case.trace
    if not trace.tgt_ids:
        return "An encoder reads in both directions: every row is meant to see what follows it."
    masks = [attention.mask for attention in trace.attentions.values() if attention.causal]
    if trace.interventions and any(np.triu(mask, 1).any() for mask in masks):
        return "The causal mask was lifted: rows are meant to see what follows."
    return "" if len(trace.tgt_ids) > 1 else "The decoder reads a single token: no row comes before another."


def causality(case: Case) -> float | str:
    """Claim 6: replace each token of the decoder's text in turn; the largest change in the rows before it.

    Without any intervention a mask that lets a row see the future is a mistake.
    """
    if reason := sees_all(case):
        return reason
    opened, trace = case.opened, case.trace
    before = opened.record(trace, trace.interventions)
    ordinary, size = len(SPECIAL_TOKENS), opened.config.vocab_size - len(SPECIAL_TOKENS)
    errors = []
    for j in range(1, len(trace.tgt_ids)):
        other = ordinary + (trace.tgt_ids[j] - ordinary + 1) % size
        tgt_ids = (*trace.tgt_ids[:j], other, *trace.tgt_ids[j + 1 :])
        after = opened.record(trace, trace.interventions, tgt_ids)
        errors += [
            np.abs(rows - _rows_before(after, path, j)).max(initial=0) for path, rows in _decoder_rows(before, j)
        ]
    error = float(np.max(errors))
    unread = any(s.hidden is None for s in trace.streams["decoder"].sublayers if s.name == "feed_forward")
    if unread and 0 < error <= ROUNDING:
        return (
            f"Tokens are multiplied together where they share an expert, which changes rounding, here by {error:.1e}."
        )
    return error


def _decoder_rows(activations: dict[str, Array], n: int) -> Iterator[tuple[str, Array]]:
    """Path and first `n` rows of each result of the decoder, and of the logits."""
    for path in activations:
        if path == "logits" or (path.startswith("decoder.") and path.rsplit(".", 1)[-1] in (*_PER_HEAD, *_PER_ROW)):
            yield path, _rows_before(activations, path, n)


def _rows_before(activations: dict[str, Array], path: str, n: int) -> Array:
    found = activations[path]
    # Hugging Face models have a z in their feed-forwards, too: what the activation reads, a row for each position.
    if path.rsplit(".", 1)[-1] not in _PER_HEAD or ".feed_forward." in path:
        return found[:n]
    # Keys and values of cross-attention are the source's. Scores that the mask will hide may change.
    if path.endswith(("cross_attn.k", "cross_attn.v")):
        return found
    return found[:, :n, :n] if path.endswith(("self_attn.scores", "self_attn.scaled")) else found[:, :n]


def padding(case: Case) -> float | str:
    """Claim 7: the run alone against the run in a padded batch; infinite where a pad gets weight."""
    if not case.position_free:
        return "A change names positions in this text, which differ in a padded batch."
    pads = min(room_for_pads(case.opened, case.trace), MOST_PADS)
    if pads < 1:
        return "The text fills all positions of the model: there is no room for pads."
    found = run_padded(case.opened, case.trace, case.kind, case.layer, pads)
    if found.pad_weight:
        return math.inf
    logits = found.logits_difference / max(1.0, float(np.abs(case.trace.logits).max(initial=0)))
    if case.own_layers:
        return max(found.largest_difference, logits)
    # Rounding of weights grows with the scores, which Hugging Face models, such as T5, do not always divide.
    loudest = max(1.0, *(float(np.abs(a.pre_softmax).max()) for a in case.trace.attentions.values()))
    return max(found.largest_difference / loudest, logits)


def cannot_decode(case: Case) -> str:
    """Why nothing is decoded step by step; empty if it is."""
    if not case.trace.tgt_ids:
        return "An encoder reads the whole text at once: it decodes nothing."
    if not case.has_logits:
        return NO_LOGITS
    if not case.position_free:
        return "A change names positions of this text, and a cache computes one position at a time."
    return ""


@torch.inference_mode()
def cached_steps(case: Case) -> float | str:
    """Claim 8: each step of cached decoding against its row of the teacher-forced run."""
    if reason := cannot_decode(case):
        return reason
    model, trace = case.opened.model, case.trace
    make = steps_of(model)
    rows = []
    with applied(model, trace.interventions), explicit_path():
        steps = make(model, [trace.src_ids or (() if make.adds_start else trace.tgt_ids[:1])])
        for token in trace.next_ids:
            rows.append(next(steps)[0].cpu().numpy())
            steps.extend(torch.full_like(steps.prefixes[:, 0], token))
    return relative_error(np.stack(rows), trace.logits)


def searches(case: Case) -> float | str:
    """Claim 8: the largest of three absolute errors.

    Logits: how far the tokens that greedy search writes are below the highest of their rows. log p: beam search with
    one beam against greedy search, per token. Score: the best leaf of the beam tree against beam search.
    """
    if reason := cannot_decode(case):
        return reason
    model, trace = case.opened.model, case.trace
    source = ids_to_decode_from(model, trace)
    if length_limits(model, [source])[0] < 1:
        return "The text fills all positions of the model: nothing can be written after it."
    with applied(model, trace.interventions):
        (best,) = greedy(model, [source])
        single = beam_search(model, [source], 1)[0][0]
        winner = beam_search(model, [source], BEAMS, ALPHA)[0][0]
        tree = beam_tree(model, source, BEAMS)
    grown = tree.hypothesis(tree.ends[tree.ranking(ALPHA)[0]], ALPHA)
    errors = (
        _below_highest(case, best.tokens),
        abs(single.log_probability - best.log_probability) / len(best.tokens),
        abs(grown.score - winner.score),
    )
    return float(np.max(errors))


def _below_highest(case: Case, written: Sequence[int]) -> float:
    """How far the logits of tokens that were written are below the highest of their rows, in a teacher-forced run."""
    trace, model = case.trace, case.opened.model
    given = trace.tgt_ids[1 : trace.first_written + 1]
    captured = case.opened.trace_ids(trace.prompt, (*given, *written), trace.interventions).logits[len(given) :]
    allowed = captured.copy()
    allowed[:, model.barred] = -np.inf
    if (forced := getattr(model, "forced_start", None)) is not None:
        allowed[0, np.arange(allowed.shape[1]) != forced] = -np.inf
    return float((allowed.max(axis=-1) - allowed[np.arange(len(written)), list(written)]).max())


def identities(case: Case) -> float:
    """Claim 9: the largest change by an intervention that should change nothing; infinite if an extreme overflows."""
    for tau in EXTREMES:
        extreme = case.again(AttentionTemperature(tau))
        if not all(np.isfinite(array).all() for array in arrays(extreme)):
            return math.inf
    nothing = (AttentionTemperature(1.0), HeadGate(1.0), HeadGate(1.0, mode="mean"), MaskEdit())
    return float(np.max([_difference(case.trace, case.again(change)) for change in nothing]))


def ablations(case: Case) -> float | str:
    """Claim 10: the case's head set to 0, and to its mean, against the output computed from its contribution."""
    if is_off(case.trace):
        return SUBLAYER_OFF
    before = case.trace.attention(case.kind, case.layer)
    if before.projections is None:
        return NO_MATRICES
    place = {"kind": case.kind, "layer": case.layer, "head": case.head}
    gone, mean = (
        case.again(HeadGate(0.0, **place, mode=mode)).attention(case.kind, case.layer) for mode in ("zero", "mean")
    )
    z, w_o = before.z[case.head], before.projections.w_o[case.head]
    average = np.broadcast_to(z.mean(axis=0), z.shape)
    if before.predicts is not None:
        average = z.cumsum(axis=0) / np.arange(1, len(z) + 1, dtype=z.dtype)[:, None]
    rest = before.out - z @ w_o
    return max(relative_error(rest, gone.out), relative_error(rest + average @ w_o, mean.out))


def _difference(one: Trace, other: Trace) -> float:
    """The largest difference between two runs, over all their arrays."""
    pairs = zip(arrays(one), arrays(other), strict=True)
    return float(np.max([np.abs(a.astype(np.float64) - b).max() for a, b in pairs if a.size]))


def sentence_pairs(case: Case) -> float | str:
    """Claim 22: the shares of all pairs of words in the cosine of a text's halves, against that of a second run."""
    pooling, (stack, tokens) = case.opened.pooling, read_text(case.trace)
    if pooling.makes != "pairs":
        return "This model's vector of a sentence is not a sum over its tokens."
    if (count := len(tokens)) < 2:
        return "A text of one token cannot be split into two halves."
    parts = (0, count // 2), (count // 2, count)
    words = [word_groups(half.labels, half.special, half.words) for half in (tokens.between(*part) for part in parts)]
    shown, again = ([run.streams[stack].final[slice(*part)] for part in parts] for run in (case.trace, case.again()))
    summed = add_up(pair_shares(*shown, pooling.modes), *words).sum()
    return abs(float(summed) - cosine(*(pool(half, pooling.modes) for half in again)))
