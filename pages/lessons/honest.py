"""Lesson 9: what an attention map shows, and what it does not."""

from dataclasses import replace

import numpy as np

from model.analysis.heads.grammar import DIRECTIONS
from model.analysis.heads.head_summary import summarise
from model.analysis.heads.many_sentences import read_distributions, read_heads
from model.analysis.runs.patching import patch_from, stream_path
from model.analysis.stream.logit_lens import logit_lens
from model.analysis.sweep import sweep
from model.interventions import ForbidSource, HeadGate, UniformAttention
from model.run import Run
from model.trace import KIND_TITLES
from pages.lessons.reading import Facts, lengths_of, log_p_change
from pages.views.experiment.two_texts import first_question, with_word
from pages.views.learn.learn import NEW, OLD

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
    """What this head is called on each of many sentences."""
    try:
        measured = read_heads(run.opened)
        types = measured.head(run.kind, run.layer, run.head).types
    except (ValueError, StopIteration):
        return None
    named, *others = sorted(types.items(), key=lambda item: -item[1])
    return {"sentences": measured.sentences, "name": named[0], "share": named[1], "others": others[:3]}


def grammar(run: Run) -> Facts:
    """How often the head that looks most at the token before finds a verb's subject, and which head does so best."""
    try:
        heads = [head for head in read_heads(run.opened).heads if head.kind == run.kind]
        how = read_distributions(run.opened)
        column = DIRECTIONS.index("to the dependent"), how.relations.index("nsubj")
    except ValueError:
        return None
    rows = [how.row(head.place) for head in heads]
    right, words = how.hits[rows, *column], how.words[rows, *column]
    if not words.all() or run.attention.crosses:
        return None
    before, best = int(np.argmax([head.mean["previous"] for head in heads])), int(right.argmax())
    places = [{"layer": heads[i].layer, "head": heads[i].head, "right": float(right[i])} for i in (before, best)]
    return {
        "before": places[0] | {"share": heads[before].mean["previous"]},
        "best": places[1],
        "yardstick": float(how.yardstick[rows[0], *column]),
        "offset": int(how.offset[rows[0], *column]),
        "words": int(words[0]),
    }


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


def patched_place(run: Run) -> Facts:
    """What the changed word's position restores before the first and the last layer, and the best other position."""
    both = with_word(run, OLD, NEW)
    question = both and first_question(run, both)
    if question is None or "encoder" not in both.pairs:
        return None
    pairs, last = both.pairs["encoder"], len(run.opened.model.encoder.layers) - 1
    tokens = [trace.streams["encoder"].tokens.labels for trace in (both.trace, both.other)]
    changed = next((i for i, j in pairs if tokens[0][i] != tokens[1][j]), None)
    if changed is None:
        return None
    whole = [
        run.compute(patch_from, run.opened, both.other, stream_path("encoder", layer), pairs) for layer in (0, last)
    ]
    places = [(layer, pair) for layer in (0, last) for pair in pairs]
    changes = [(replace(whole[layer == last], positions=(pair,)),) for layer, pair in places]
    before, goal = question.score(both.trace), question.goal(both.other)
    shares = {
        (layer, pair[0]): (question.under(logits) - before) / (goal - before)
        for (layer, pair), (logits,) in zip(places, sweep(run.opened, both.trace, changes, question.row), strict=True)
    }
    return {
        "word": run.opened.tokenizer.tokens([question.token])[0],
        "token": tokens[0][changed],
        "first": shares[0, changed],
        "last": shares[last, changed],
        "other": max((share for (layer, i), share in shares.items() if layer == last and i != changed), default=0.0),
    }


def patched_heads(run: Run) -> Facts:
    """The head that restores most of what the other word changes, and all heads of its layer together."""
    both = with_word(run, OLD, NEW)
    question = both and first_question(run, both)
    if question is None:
        return None
    found = {}
    for (name, layer), (path, attention) in run.opened.model.attentions().items():
        pairs = both.pairs[run.trace.kind(name).queries]
        whole = run.compute(patch_from, run.opened, both.other, f"{path}.z", pairs)
        alone = [replace(whole, head=head) for head in range(attention.n_heads)]
        found |= {(name, layer, change.head): change for change in (*alone, whole)}
    before, goal = question.score(both.trace), question.goal(both.other)
    swept = sweep(run.opened, both.trace, [(change,) for change in found.values()], question.row)
    shares = {
        place: (question.under(logits) - before) / (goal - before)
        for place, (logits,) in zip(found, swept, strict=True)
    }
    best = max((place for place in shares if place[2] is not None), key=lambda place: shares[place])
    return {
        "word": run.opened.tokenizer.tokens([question.token])[0],
        "kind": KIND_TITLES[best[0]],
        "layer": best[1],
        "head": best[2],
        "best": shares[best],
        "together": shares[(*best[:2], None)],
    }
