"""Lesson 1: why a model reads a sentence with attention instead of step by step."""

import numpy as np

from model.run import Run
from pages.lessons.reading import Facts, find, text_cells


def reach(run: Run) -> Facts:
    """The farthest key that gets more than half of a row of the chosen head."""
    attention, weights = run.attention, text_cells(run.attention, run.head)
    rows, keys = np.nonzero(weights > 0.5)
    if not len(rows):
        return None
    far = int(np.argmax(abs(rows - keys)))
    row, key = int(rows[far]), int(keys[far])
    return {
        "query": attention.query_tokens[row],
        "key": attention.key_tokens[key],
        "predicts": attention.predicts.labels[row] if attention.predicts else "",
        "weight": weights[row, key],
        "apart": abs(row - key),
    }


def steps(run: Run) -> Facts:
    """Steps that have to wait for each other, in a recurrent layer and in this encoder."""
    return {"n": len(run.trace.src_tokens), "layers": len(run.trace.kind("encoder_self").layers)}


def nested(run: Run) -> Facts:
    """How much the verb's row gives to its subject and to the nearest noun, at most over all heads of the encoder."""
    tokens = run.trace.src_tokens
    verb, subject, nearer = find(tokens, "ran", len(tokens) - 2), find(tokens, "cat", 1), find(tokens, "dog", 2)
    layers = run.trace.kind("encoder_self").layers
    rows = np.stack([run.trace.attention("encoder_self", layer).pattern[:, verb] for layer in layers])
    return {
        "heads": rows.shape[0] * rows.shape[1],
        "verb": tokens[verb],
        "subject": tokens[subject],
        "nearer": tokens[nearer],
        "to_subject": rows[..., subject].max(),
        "to_nearer": rows[..., nearer].max(),
    }
