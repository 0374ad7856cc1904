"""Which heads of cross-attention align words, beside links made by reading."""

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from model.analysis.heads import alignments, silver_alignments
from model.analysis.heads.alignments import AlignedPair, AlignmentReport
from model.analysis.heads.many_sentences import read_heads
from model.checkpoints.store import checkpoint_path
from model.language import Refusal, sentence_of
from model.needs import Need
from model.run import Run
from model.trace import Array
from pages.text import names_in
from pages.views import OnRequest, Result, view
from pages.views.controls import CLICKED_HEAD, choice, text
from viz.forms import Map, Maps, Scale, Table
from viz.labels import say_label
from viz.theme import WEIGHTS


def _gold_file(run: Run) -> Path | None:
    """The file of gold links that comes with the opened checkpoint; None: there is none."""
    path = checkpoint_path(run.opened.name) / alignments.GOLD_FILE
    return path if os.path.isfile(path) else None  # which raises nothing where a folder may not be entered


def _typed_pairs(text: str) -> list[tuple[str, str]]:
    """Source and target of each pair of “source = target | source = target”.

    Raises:
        ValueError: a part is not a pair; the sentence says how to write one.
    """
    parts = [part.split(" = ") for part in text.split(" | ") if part.strip()]
    wrong = [part for part in parts if len(part) != 2 or not all(side.strip() for side in part)]
    if wrong or not parts:
        shown = " = ".join(wrong[0]) if wrong else text
        raise Refusal(
            "“{typed}” is not a pair. Write: A dog runs. = Ein Hund rennt. | It is late. = Es ist spät.", typed=shown
        )
    return [(source.strip(), target.strip()) for source, target in parts]


REFERENCES = {"gold": "By reading: gold", "silver": "By a statistical model: silver"}
ALIGNED_BY = choice(
    "Words aligned",
    lambda run: {name: say_label(label) for name, label in REFERENCES.items() if name != "gold" or _gold_file(run)},
    key="align_by",
)
TYPED_PAIRS = text(
    "Sentence pairs, source = target | source = target",
    lambda run, reference: (
        (f"{run.trace.source} = {run.trace.translation}", "A dog runs. = Ein Hund rennt. | It is late. = Es ist spät.")
        if reference == "silver"
        else ()
    ),
    key="align_pairs",
)


def _align(run: Run, reference: str, pairs: str | None) -> Iterator[tuple[float, AlignmentReport | str]]:
    """Score every head; a sentence where the pairs cannot be read or scored."""
    try:
        path = _gold_file(run)
        gold = alignments.read_gold(path) if path else []
        known: dict[str, list[Array]] = {}
        texts = [(pair.source, pair.target) for pair in gold]
        if reference == "gold":
            silver = silver_alignments.silver_alignments(texts)
            known = {"silver": [links.sure for links in silver]}
            aligned = gold
        else:
            typed = _typed_pairs(pairs)
            links = silver_alignments.silver_alignments(typed, texts)
            aligned = [AlignedPair(*pair, each) for pair, each in zip(typed, links, strict=True)]
        yield from alignments.measure_alignment(run.opened, aligned, reference, others=known)
    except ValueError as error:
        yield 1.0, sentence_of(error)


ALIGN = OnRequest(
    "Score every head",
    "align_heads",
    _align,
    lambda run, reference, pairs: (run.opened, reference, pairs),
    icon=":material/play_arrow:",
)
RATE = Scale(0, 1, WEIGHTS, "alignment<br>error rate<br>0 to 1")
ALIGNMENT_HELPS = names_in("alignment")
READINGS = {"predicts": "rows as what they predict", "reads": "rows as what they read"}


@view(
    "Which heads align words",
    code=(
        alignments.word_weights,
        alignments.make_links,
        alignments.count_links,
        alignments.alignment_error_rate,
        silver_alignments.silver_alignments,
    ),
    needs=(Need.CROSS_ATTENTION,),
    on_request=ALIGN,
)
def aligned(
    run: Run, reference: str = ALIGNED_BY, pairs: str | None = TYPED_PAIRS, outcome: AlignmentReport | str | None = None
) -> Result:
    """The alignment error rate of every head of cross-attention, read in both ways; the list of those that align."""
    facts = {"done": isinstance(outcome, AlignmentReport), "problem": outcome if isinstance(outcome, str) else None}
    facts |= {"typed": pairs, "within": alignments.WITHIN}
    if not facts["done"]:
        return _aligned_beforehand(run, facts)
    rates, best, layers = outcome.error_rates, outcome.alignment_heads, outcome.layers
    first, predicting, gold = best[0], outcome.predicting_heads, _gold_file(run)
    maps = {
        READINGS[name]: Map(rates[..., number], scale=RATE, what="alignment error rate")
        for number, name in enumerate(alignments.CONVENTIONS)
    }
    rows = [say_label(f"layer {layer}") for layer in layers]
    places = [
        {"kind": "cross", "layer": layer, "head": head} for layer in layers for head in range(outcome.heads.shape[1])
    ]
    order = np.argsort(rates.min(axis=-1).ravel(), kind="stable")
    means = outcome.mean_error_rates
    facts |= {
        "pairs": outcome.pairs,
        "left_out": outcome.left_out,
        "best": first,
        "other": float(rates[layers.index(first.layer), first.head].max()),
        "listed": [[one.layer, one.head] for one in best],
        "conventions": [say_label(one.convention) for one in best],
        "mixed": any(one.convention != "predicts" for one in best),
        "predicting": [[one.layer, one.head] for one in predicting],
        "predicting_best": predicting[0].aer,
        "ctranslate2": outcome.ctranslate2,
        "flips": int((rates.argmin(axis=-1) != 0).sum()),
        "heads": len(places),
        "means": dict(zip(layers, means.min(axis=-1).tolist(), strict=True)),
        "baselines": {name: alignments.score_links(counts).aer for name, counts in outcome.baselines.items()},
        "method": silver_alignments.METHOD,
        "taught": len(alignments.read_gold(gold)) if gold and reference == "silver" else 0,
    }
    return Result(
        {
            "map": Maps(
                rows,
                [say_label(f"head {head}") for head in range(outcome.heads.shape[1])],
                maps,
                axes=("layer", "head"),
            ),
            "table": Table(
                _alignment_table(outcome, places, order),
                floats="%.3f",
                helps=ALIGNMENT_HELPS,
                most_rows=12,
                chooses=[places[place] for place in order.tolist()],
                sets=CLICKED_HEAD,
            ),
        },
        facts,
        {"error_rates": rates, "layer_error_rates": means, "counts": outcome.heads},
    )


def _aligned_beforehand(run: Run, facts: Mapping[str, Any]) -> Result:
    """The error rates that the opened checkpoint's heads.json has of cross-attention, if it has any."""
    facts = {**facts, "sentences": 0}
    try:
        measured = read_heads(run.opened)
    except ValueError:
        return Result(facts=facts)
    kind = run.trace.kind("cross")
    of_layers = [[measured.head("cross", layer, head) for head in range(kind.heads)] for layer in kind.layers]
    rates = np.array([[one.mean.get("errors", np.nan) for one in heads] for heads in of_layers], float)
    if np.isnan(rates).all():
        return Result(facts=facts)
    rows = [say_label(f"layer {layer}") for layer in kind.layers]
    columns = [say_label(f"head {head}") for head in range(rates.shape[1])]
    maps = {"": Map(rates, ~np.isnan(rates), RATE, "alignment error rate")}
    return Result(
        {"measured": Maps(rows, columns, maps, axes=("layer", "head"))},
        facts | {"sentences": measured.sentences, "of": measured.of, "aligned": measured.aligned},
    )


def _alignment_table(found: AlignmentReport, places: Sequence[dict[str, Any]], order: Array) -> pd.DataFrame:
    counts = found.heads.reshape(len(places), *found.heads.shape[2:])
    rows = []
    for place in order.tolist():
        rates = alignments.alignment_error_rate(counts[place])
        scores = alignments.score_links(counts[place][rates.argmin()])
        rows.append(
            {"layer": places[place]["layer"], "head": places[place]["head"]}
            | dict(zip(alignments.CONVENTIONS, rates.tolist(), strict=True))
            | {"precision": scores.precision, "recall": scores.recall, "F1": scores.f1}
        )
    return pd.DataFrame(rows)
