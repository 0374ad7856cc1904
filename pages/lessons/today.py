"""Lesson 10: what language models have kept of 2017, and what they have changed."""

from dataclasses import replace

import numpy as np

from model.analysis.distributions import entropy
from model.analysis.positions.rotation import rotate_pairs
from model.background.layer_size import LayerSize
from model.run import Run
from pages.lessons.reading import Facts

FAR, FURTHER = 100, 5
"""positions by which both tokens are moved, and the key alone"""
NUCLEUS = 0.9
"""top-p"""


def one_stack(run: Run) -> Facts:
    """How many cells of the causal map are open, and that there is one kind of attention."""
    seen = run.attention.mask[run.head].sum(axis=-1)
    causal = bool((seen == np.arange(1, len(seen) + 1)).all())
    kinds = [kind.title.lower() for kind in run.trace.kinds]
    return {"kinds": kinds, "n": len(seen), "seen": seen.sum(), "causal": causal}


def rotation(run: Run) -> Facts:
    """A score with both tokens far away, and with one of them moved."""
    attention = run.attention
    query = len(attention.query_tokens) - 1
    key = max(query - 2, 0)
    pairs = rotate_pairs(attention, run.head, query, key)
    q, k = (each[1, :, 0] + 1j * each[1, :, 1] for each in (pairs.q, pairs.k))  # as complex numbers, turned already

    def score(by_query: int, by_key: int) -> float:
        turned = (q * np.exp(1j * by_query * pairs.frequency)).conj() * k * np.exp(1j * by_key * pairs.frequency)
        return float(turned.real.sum())

    names = {"query": attention.query_tokens[query], "key": attention.key_tokens[key], "far": FAR}
    return names | {"own": score(0, 0), "moved": score(FAR, FAR), "apart": score(0, -FURTHER)}


def cache(run: Run) -> Facts:
    """How many heads of keys and values there are, and the bytes of the cache."""
    config, layers = run.opened.config, len({layer for _, layer in run.trace.attentions})
    size = LayerSize.of(config)
    full, shared = (2 * layers * each.cached for each in (replace(size, kv_heads=size.heads), size))
    return {"config": config, "n": len(run.trace.row_tokens), "full": full, "shared": shared}


def norm(run: Run) -> Facts:
    """How small the mean of a vector is beside its root mean square."""
    sublayers = next(iter(run.trace.streams.values())).sublayers
    rows = np.concatenate([each.norm_input for each in sublayers]).astype(np.float64)
    mean, rms = np.abs(rows.mean(axis=-1)), np.sqrt((rows**2).mean(axis=-1))
    # Without gamma, the vector and the vector minus its mean: their cosine is std / rms.
    return {"share": (mean / rms).mean(), "alike": (rows.std(axis=-1) / rms).min()}


def sampling(run: Run) -> Facts:
    """The distribution of the first written token: how many tokens it is among, greedy, top-p and a low temperature."""
    trace = run.trace
    row = min(trace.first_written, len(trace.next_ids) - 1)
    ordered, bits = np.sort(trace.probabilities[row])[::-1], float(entropy(trace.probabilities[row]))
    return {
        "before": trace.tgt_tokens[row],
        "best": trace.candidates[row][0],
        "bits": bits,
        "equal": 2**bits,
        "nucleus": NUCLEUS,
        # A token stays while those before it have less than top-p in sum; T = 0.5 squares each probability.
        "kept": int((ordered.cumsum() - ordered < NUCLEUS).sum()),
        "vocabulary": len(ordered),
        "cold": ordered[0] ** 2 / (ordered**2).sum(),
    }


def both_sides(run: Run) -> Facts:
    """The weight that the hidden token puts on what stands after it, and the first guesses."""
    hidden = [i for i, token in enumerate(run.trace.row_tokens) if "<mask>" in token]
    if not hidden:
        return None
    weights = [each.pattern[:, hidden[0], hidden[0] + 1 :] for each in run.trace.attentions.values()]
    after = np.mean([rows.sum(axis=-1, dtype=np.float64).mean() for rows in weights])
    return {"after": after, "first": run.trace.candidates[hidden[0]][:3]}
