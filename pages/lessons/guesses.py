"""The questions of Guess first, in guesses.toml: what they are about, and what only some code can read off the run."""

from collections.abc import Hashable, Mapping, Sequence
from functools import cache

import numpy as np

from model.analysis.heads.head_summary import summarise
from model.analysis.heads.softmax import softmax_at
from model.background.sizes import multiply_adds
from model.checkpoints.masked_model import fill_arrays
from model.interventions import HeadGate
from model.language import language, tr
from model.needs import Need
from model.run import Run
from model.trace import KIND_TITLES, Array
from pages.lessons.question import Question, read, read_question, rows_with_choice
from pages.lessons.reading import Facts, lengths_of, log_p_change
from pages.text import translate_entry
from pages.views.shared import axes

TAUS = 0.5, 2.0
"""temperatures at which a row is to be guessed"""


def questions() -> Mapping[str, Sequence[Question]]:
    """The questions of each page, by its name, in the language of this run; several take turns."""
    return _questions(language().code)


@cache
def _questions(_code: str) -> Mapping[str, Sequence[Question]]:
    pages: dict[str, list[Question]] = {}
    for entry in read("guesses")["question"]:
        for page in entry.pop("pages"):
            worded = translate_entry(entry, "lessons/guesses.toml", entry["ask"])
            pages.setdefault(page, []).append(read_question(worded, globals()))
    return pages


def subject_of(run: Run, page: str) -> Hashable:
    """What the question of a page, or of a station of Learn, is about; when it changes, another one is asked."""
    trace = run.trace
    tokens = (trace.checkpoint_hash, *(stream.tokens.ids for stream in trace.streams.values()))
    about = tuple(getattr(run, part) for part in read("guesses")["about"].get(page, ()))
    # Sliders of Temperature and of stations move τ, which is how a person checks the answer: that must not replace the
    # question.
    changes = () if page in ("learn", "temperature") else trace.interventions
    return language().code, *tokens, about, changes


def measures(run: Run) -> Facts:
    """Every head of the layer, and its measures by name; None where a head cannot choose."""
    heads = summarise(run.attention)
    if not heads[0].choice:
        return None
    return {
        "heads": [tr("head {head}", head=one.head) for one in heads],
        "measures": {name: [getattr(one, name) for one in heads] for name in MEASURES},
    }


MEASURES = "previous", "entropy", "special", "confidence"


def halved(run: Run) -> Facts:
    """The rows whose largest weight at other temperatures can be guessed, with a threshold to compare it with."""
    scaled, mask = run.attention.pre_softmax[run.head], run.attention.mask[run.head]
    queries, keys = axes(run.attention)
    rows = rows_with_choice(mask)
    cases = []
    for i in range(len(rows)):
        row = rows[(len(rows) // 2 + i) % len(rows)]
        best = int(np.where(mask[row], scaled[row], -np.inf).argmax())
        for tau in TAUS:
            plain, weight, line = halfway(scaled[row], mask[row], tau)
            if round(weight, 3) != line:
                names = {"row": row, "query": queries[row], "key": keys[best], "tau": tau}
                cases.append(names | {"plain": plain, "weight": weight, "line": line})
    return {"cases": cases} if cases else None


def halfway(scaled: Array, mask: Array, tau: float) -> tuple[float, float, float]:
    """A row's largest weight at tau = 1 and at `tau`, and a threshold to compare the second with.

    softmax(x / tau) is softmax(x) to the power of 1 / tau, renormalised, so the new largest weight depends on the
    others: its extremes are reached where the others are equal and where they lie on one key. The threshold is the
    mean of these extremes, rounded to three digits.

    Args:
        scaled: (key,) scores / sqrt(d_k).
        mask: bool (key,), True = may be attended to; at least two keys.
        tau: a temperature other than 1.
    """
    plain = float(softmax_at(scaled, mask, 1.0).max())
    others = int(mask.sum()) - 1
    ends = [plain ** (1 / tau) / (plain ** (1 / tau) + n * ((1 - plain) / n) ** (1 / tau)) for n in (1, others)]
    return plain, float(softmax_at(scaled, mask, tau).max()), round(sum(ends) / 2, 3)


def parts(run: Run) -> Facts:
    """The parts of the model that have parameters, and how many."""
    counts = {name: count for name, count in run.opened.parameters_by_part().items() if count}
    return {"names": list(counts), "counts": list(counts.values())}


def positions(run: Run) -> Facts:
    """Cosines of the encodings of a few positions with that of one; None where the model adds none."""
    encoding = run.opened.positional_encoding()
    if encoding is None or len(encoding) < 40:
        return None
    unit = encoding.astype(np.float64) / lengths_of(encoding)[:, None]
    return {
        "names": np.array([tr("position {position}", position=i) for i in range(40)]),
        "cosines": unit[:40] @ unit[:40].T,
    }


def additions(run: Run) -> Facts:
    """The sub-layers of each stack, and the mean length of what they add to the residual stream."""
    titles = {
        "self_attn": tr("Self-attention"),
        "cross_attn": tr("Cross-attention"),
        "feed_forward": tr("Feed-forward"),
    }
    stacks = [
        {
            "name": stream.name,
            "sublayers": [
                tr("{sublayer}, layer {layer}", sublayer=titles[one.name], layer=one.layer) for one in stream.sublayers
            ],
            "lengths": [lengths_of(one.out).mean() for one in stream.sublayers],
        }
        for stream in run.trace.streams.values()
    ]
    return {"stacks": stacks[::-1]}


def slopes(run: Run) -> Facts:
    """The rows with a choice, and by how much each open key's weight answers to its own score: a (1 - a)."""
    mask = run.attention.mask[run.head]
    queries, keys = axes(run.attention)
    weights = run.attention.pattern[run.head].astype(np.float64)
    rows = [
        {"query": queries[row], "names": [keys[i] for i in np.flatnonzero(mask[row])], "slopes": changes}
        for row in rows_with_choice(mask)
        # Rounding must not decide which of the two largest is the larger one.
        if not np.isclose(*np.sort(changes := (weights[row] * (1 - weights[row]))[mask[row]])[-2:], rtol=1e-4)
    ]
    return {"rows": rows} if rows else None


def hidden(run: Run) -> Facts:
    """The positions of hidden tokens; None where there are none."""
    positions = fill_arrays(run.opened, run.trace)["positions"].tolist()
    return {"positions": positions} if positions else None


def missed(run: Run) -> Facts:
    """What log p loses without each head of the layer; None for a Hugging Face model, where this takes long."""
    if Need.OWN_LAYERS not in run.opened.features:
        return None
    place = {"kind": run.kind, "layer": run.layer}
    heads = range(run.attention.n_heads)
    lost = [-log_p_change(run, HeadGate(0.0, **place, head=head)) for head in heads] if len(heads) > 1 else []
    return {"heads": [tr("head {head}", head=head) for head in heads], "lost": lost, "title": KIND_TITLES[run.kind]}


def unlike(run: Run) -> Facts:
    """The other heads of the layer, and the weight that each has on other keys than the chosen one."""
    pattern = run.attention.pattern.astype(np.float64)
    others = [head for head in range(len(pattern)) if head != run.head]
    apart = np.abs(pattern[others] - pattern[run.head]).sum(axis=-1).mean(axis=-1) / 2
    return {"heads": [tr("head {head}", head=head) for head in others], "apart": apart}


def work(run: Run) -> Facts:
    """The parts of the model that compute something on this text, and how many multiply-adds they take.

    None for a Hugging Face model, whose parts are not counted.
    """
    if Need.OWN_LAYERS not in run.opened.features:
        return None
    works = multiply_adds(run.opened.config, len(run.trace.src_tokens), len(run.trace.tgt_tokens))
    totals = {name: work.total for name, work in works.items() if work.total}
    names = [KIND_TITLES.get(name, name.replace("_", " ")) for name in totals]
    return {"names": names, "counts": list(totals.values())}
