"""Lesson 5: how a model that compares vectors in no order knows where a token stands."""

import numpy as np

from model.analysis.heads.head_summary import summarise
from model.analysis.positions import position_table
from model.analysis.positions.word_order import reorder, run_both_orders, source_words
from model.interventions import PositionsOff
from model.network.network import EMBEDDINGS
from model.run import Run
from pages.lessons.reading import Facts, lengths_of


def order(run: Run) -> Facts:
    """How far the encoder's output moves when the words are reversed, with positions and without."""
    tokens, place = run.trace.src_tokens, (run.kind, run.layer)
    words = source_words(tokens)
    if len(words) < 2:
        return None
    backwards = reorder(tokens, range(len(words))[::-1])
    there, without = (
        run_both_orders(run.opened, run.trace, backwards, off, place) for off in ((), (EMBEDDINGS["encoder"],))
    )
    return {"moved": there.moved.mean(), "error": without.memory_error}


def lengths(run: Run) -> Facts:
    """Lengths of the embeddings and of the encodings that are added to them."""
    embedded, d = run.trace.src_embedded, run.opened.config.d_model
    word, place = (lengths_of(each).mean() for each in (embedded.embedding, embedded.positional))
    return {"d": d, "root": d**0.5, "word": word, "place": place}


def wavelengths(run: Run) -> Facts:
    """How many pairs of dimensions turn once within the sentence, and how alike positions are."""
    encoding, n = run.opened.positional_encoding("source"), len(run.trace.src_tokens)
    turns = position_table.wavelengths(encoding.shape[-1])
    alike = position_table.similarity(encoding, cosine=True)
    return {
        "n": n,
        "pairs": len(turns),
        "fast": int((turns <= n).sum()),
        "slowest": turns[-1],
        "positions": len(alike),
        "twins": alike[~np.eye(len(alike), dtype=bool)].max(),
        "neighbours": alike[0, 1],
        "ends": alike[0, n - 1],
    }


def rotation(run: Run) -> Facts:
    """The largest error of M_k PE(pos) = PE(pos + k)."""
    encoding, k = run.opened.positional_encoding("source"), 3
    error = np.abs(position_table.rotate(encoding, k) - encoding[k:]).max()
    return {"k": k, "positions": len(encoding) - k, "error": error}


def habit(run: Run) -> Facts:
    """What is left of a head's weight on the previous token when the encoder gets no positions."""
    if run.attention.crosses:
        return None
    off = run.forced(*run.trace.interventions, PositionsOff(side="source"))
    before, after = (summarise(each.attention)[run.head].previous or 0.0 for each in (run, off))
    lost = off.trace.log_probability - run.trace.log_probability
    return {"before": before, "after": after, "made": before > 0.4 and after < before / 3, "lost": lost}
