"""Five things to do with a sentence, with what this model really does, and two exercises with pencil and paper."""

import numpy as np

from model.analysis.heads.evenness import row_evenness
from model.analysis.heads.softmax import product_statistics, softmax_at
from model.background.layer_size import LayerSize
from model.interventions import AttentionTemperature
from model.run import Request, Run, decode
from model.trace import Array
from pages.lessons.reading import Facts, find
from viz.tokens import word

COLD, STANDARD, HOT = 0.3, 1.0, 3.0
PAIRS = 20_000
"""random vectors whose products are counted"""
SURE = 0.9
"""weight from which on one key dominates a row"""


def _most(run: Run, row: int, key: int) -> dict[str, float | int]:
    """The head of the encoder that gives most from a row to a key."""
    layers = run.trace.kind("encoder_self").layers
    weights = np.stack([run.trace.attention("encoder_self", layer).pattern[:, row, key] for layer in layers])
    layer, head = np.unravel_index(int(weights.argmax()), weights.shape)
    return {"layer": layers[layer], "head": int(head), "weight": weights.max(), "heads": weights.size}


def verb(run: Run) -> Facts:
    """Where the verb looks, in all heads of the encoder; and where its best head looks with a word between them."""
    tokens = run.trace.src_tokens
    subject, row, after = (find(tokens, text, at) for text, at in (("cat", 1), ("sat", 2), ("on", 3)))
    to_subject, to_after = (_most(run, row, key) for key in (subject, after))
    changed = run.trace.source.replace(" sat ", " quietly sat ")
    facts = {"verb": tokens[row], "subject": tokens[subject], "after": tokens[after], "changed": changed}
    facts |= {"to_subject": to_subject, "to_after": to_after, "moved": None}
    if changed != run.trace.source:
        other = run.compute(decode, run.opened, Request(changed, beam_size=1))
        place = find(other.src_tokens, "sat", row + 1)
        weights = other.attention("encoder_self", to_subject["layer"]).pattern[to_subject["head"], place]
        there = find(other.src_tokens, "cat", subject)
        facts["moved"] = {
            "key": other.src_tokens[int(weights.argmax())],
            "weight": weights.max(),
            "subject": weights[there],
            "habit": int(weights.argmax()) != there,
        }
    return facts


def article(run: Run) -> Facts:
    """How evenly the rows of the articles are spread, and those of the other words, over all heads of the encoder."""
    tokens, even = run.trace.streams["encoder"].tokens, row_evenness(run.trace, "encoder")
    rows = [i for i, special in enumerate(tokens.special) if not special and np.isfinite(even[i])]
    articles = [i for i in rows if word(tokens.labels[i]).lower() in ("the", "a", "an")]
    others = [i for i in rows if i not in articles]
    if not articles or not others:
        return None
    return {"count": len(articles), "own": even[articles].mean(), "others": even[others].mean()}


def _weights(run: Run, tau: float) -> Array:
    """(query, key): those of the chosen head at another temperature."""
    attention, head = run.attention, run.head
    return softmax_at(attention.pre_softmax[head], attention.mask[head], tau)


def cold(run: Run) -> Facts:
    """In how many rows of the chosen head one key dominates, at τ = 1 and at 0.3."""
    counts = [int((_weights(run, tau).max(axis=-1) >= SURE).sum()) for tau in (STANDARD, COLD)]
    means = [_weights(run, tau).max(axis=-1).mean() for tau in (STANDARD, COLD)]
    return {"rows": len(run.attention.query_tokens), "counts": counts, "means": means, "sure": SURE}


def hot(run: Run) -> Facts:
    """How even the rows of the chosen head are at τ = 1 and at 3: 1 is equal weights."""
    mask = run.attention.mask[run.head]
    keys = mask.sum(axis=-1)
    if not (keys > 1).any():
        return None
    shares = []
    for tau in (STANDARD, HOT):
        weights = _weights(run, tau)[keys > 1].astype(np.float64)
        bits = -(weights * np.log2(weights, where=weights > 0, out=np.zeros_like(weights))).sum(axis=-1)
        shares.append((bits / np.log2(keys[keys > 1])).mean())
    return {"shares": shares}


def standard(run: Run) -> Facts:
    """log p of the text with each temperature in every attention of the model."""
    plain = run.forced(*run.kept)
    totals = {tau: plain.forced(*run.kept, AttentionTemperature(tau)).trace.log_probability for tau in (COLD, HOT)}
    totals[STANDARD] = plain.trace.log_probability
    return {"totals": dict(sorted(totals.items())), "best": max(totals, key=totals.__getitem__)}


def size(run: Run) -> Facts:
    """One attention of the paper's base model, and of this one."""
    paper = LayerSize(512, 8, 8, 64, 64)
    return {"paper": paper, "own": LayerSize.read(run.attention)}


def variance(run: Run) -> Facts:
    """Mean and variance of products of random vectors as wide as this head's, and of this head's own."""
    d_k = run.attention.d_k
    q, k = np.random.default_rng(0).standard_normal((2, PAIRS, d_k))
    products = (q * k).sum(axis=-1)
    own = product_statistics(run.attention, run.head)
    return {"d_k": d_k, "pairs": PAIRS, "mean": products.mean(), "variance": products.var(), "own": own.variance}
