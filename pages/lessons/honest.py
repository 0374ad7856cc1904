"""Lesson 9: what an attention map shows, and what it does not."""

import numpy as np

from model.analysis.heads.head_summary import summarise
from model.analysis.heads.many_sentences import read_heads
from model.analysis.stream.logit_lens import logit_lens
from model.interventions import ForbidSource, HeadGate, UniformAttention
from model.run import Run
from pages.lessons.reading import Facts, lengths_of, log_p_change

MATTERS = -0.5
"""nats: a map whose replacement by equal weights costs more than this is said to matter"""
CLEAR = 0.6
"""mean of the rows' largest weights above which a map is called clear"""
MOST_REMOVED = 16
"""source tokens that are hidden, one at a time, in a long text"""


def effect(run: Run) -> Facts:
    """How sure the head is, and what log p loses without it."""
    sure = summarise(run.attention)[run.head].confidence
    return {"sure": sure, "clear": sure > CLEAR, "change": log_p_change(run, HeadGate(0.0, **vars(run.place)))}


def sink(run: Run) -> Facts:
    """The share of the weight on special tokens, beside their share of the vectors that are added."""
    attention, head = run.attention, run.head
    special = np.array(attention.key_special)
    if not special.any():
        return None
    weights = attention.pattern[head].astype(np.float64)
    brought = weights * lengths_of(attention.v[head].astype(np.float64) @ attention.projections.w_o[head])
    share, added = (cells[:, special].sum() / cells.sum() for cells in (weights, brought))
    return {"share": share, "added": added}


def uniform(run: Run) -> Facts:
    """log p with equal weights in this head, and without the head."""
    place = vars(run.place)
    even, off = (log_p_change(run, change) for change in (UniformAttention(**place), HeadGate(0.0, **place)))
    return {"even": even, "off": off, "matters": even < MATTERS}


def decision(run: Run) -> Facts:
    """After which sub-layer of the decoder the final choices are on top."""
    if "decoder" not in run.trace.streams:
        return None
    first = (logit_lens(run.opened, run.trace).rank == 1).mean(axis=-1)  # (step,): positions with the final choice
    jump = int(np.diff(first).argmax())
    step = run.trace.streams["decoder"].sublayers[jump]
    return {"first": first[0], "last": first[-1], "step": step, "before": first[jump], "after": first[jump + 1]}


def one_sentence(run: Run) -> Facts:
    """What this head is called on each of a thousand sentences."""
    try:
        measured = read_heads(run.opened)
        types = measured.head(run.kind, run.layer, run.head).types
    except (ValueError, StopIteration):
        return None
    named, *others = sorted(types.items(), key=lambda item: -item[1])
    return {"sentences": measured.sentences, "name": named[0], "share": named[1], "others": others[:3]}


def received(run: Run) -> Facts:
    """The source token with most cross-attention, and the one whose removal costs most log p."""
    trace = run.trace
    maps = [each.pattern for (kind, _), each in trace.attentions.items() if kind == "cross"]
    weights = np.mean([pattern.mean(axis=(0, 1), dtype=np.float64) for pattern in maps], axis=0)
    order = np.argsort(-weights, kind="stable")[:MOST_REMOVED].tolist()
    lost = {i: -log_p_change(run, ForbidSource((i,))) for i in order}
    missed = max(lost, key=lost.__getitem__)
    first, most = ({"token": trace.src_tokens[i], "weight": weights[i], "lost": lost[i]} for i in (order[0], missed))
    place = order.index(missed) + 1
    return {"first": first, "missed": most, "place": place, "count": len(order), "all": len(order) == len(weights)}
