"""Translate: where the model looked for each token of its translation, and how sure it was of it."""

from dataclasses import replace
from typing import Any

from model.analysis.heads.aligned_head import alignment_scores
from model.generation.search import beam_search, greedy
from model.language import sentence
from model.needs import Need
from model.network.attention import MultiHeadAttention
from model.run import TAUS, Run
from model.trace import KIND_TITLES
from pages.views import Result, view
from pages.views.chosen_token import CLICKED_TOKEN, KEY_TOKEN, QUERY, key_of, query_of
from pages.views.controls import HEAD, KIND, LAYER, TAU
from pages.views.examples import examples_of, largest_weight, strongest_head
from pages.views.explore.word_in_head import Word, boxes_of, rows_of_all_heads, sides_of, stacks_of
from pages.views.shared import ALIGNMENT, POSITION, align, written_tokens
from viz.canvas.explore import Part
from viz.canvas.explore import explore as explore_canvas
from viz.canvas.lines import Choices, lines
from viz.forms import Canvas
from viz.heatmap import row_names
from viz.labels import say_label
from viz.special.heads_and_layers import head_map
from viz.tokens import labels, numbered

TRANSLATES = (Need.CROSS_ATTENTION, Need.LOGITS)
ONE_HOT = 0.99
"""share of a row that one key gets, from which on no other weight can be told from zero by its colour"""
MOST_BESIDE = 18
"""source tokens, up to which the lines and the map stand side by side"""


@view("Translate", code=(MultiHeadAttention._explicit,))
def explore(run: Run, query: int = QUERY, key: int = KEY_TOKEN) -> Result:
    """One word on its way through one head, number by number, and what the same word looks at in all heads."""
    word, heads = Word(run, run.attention, query, key), rows_of_all_heads(run, query)
    boxes, attention = boxes_of(word), word.attention
    chooses = heads[2].sum(axis=-1) > 1  # of one visible key, the weight is 1 in any head
    drawing = explore_canvas(
        sides_of(run),
        boxes,
        heads,
        run.trace.kind(run.kind).path,
        (word.queries, word.notes, word.keys),
        stacks=stacks_of(run),
        kind=run.kind,
        place=[run.layer, run.head],
        query=query,
        key=key,
        names={"query": word.row, "key": word.keys[key]},
        title=f"{say_label(run.place.title)}, {word.name}",
        temperature=float(attention.temperature[run.head]),
        taus=[] if attention.sink is not None else list(TAUS),
    )
    head = {"layer": LAYER, "head": HEAD}
    sets = {"token": {"kind": KIND, "query": QUERY}, "key": KEY_TOKEN, "head": head, "tau": TAU}
    sets["place"] = {"kind": KIND, "layer": LAYER}
    drawn = [part for box in boxes for part in box.equation if isinstance(part, Part) and part.note]
    return Result(
        {"explore": Canvas(drawing, sets)},
        {
            "word": word.name,
            "writes": attention.predicts is not None,
            "row": query,
            "gives": word.largest,
            "chosen": None if run.key is None else word.chosen,
            "one_hot": int((heads[1].max(axis=-1)[chooses] >= ONE_HOT).sum()),
            "choosing": int(chooses.sum()),
        },
        {part.note: part.values for part in drawn} | {"weights_of_all_heads": heads[1]},
    )


@view("Where the model looked", code=(alignment_scores,), needs=TRANSLATES)
def alignment(run: Run, weights: str = ALIGNMENT) -> Result:
    """Cross-attention weights as lines between the tokens and as a map, and what an example sentence shows."""
    trace, aligned = run.trace, align(run, weights)
    names, predicted = trace.attention("cross", 0), labels(trace.next_tokens)
    chosen = (query_of(run), key_of(run)) if run.kind == "cross" else (None, None)
    drawing = lines(
        aligned.weights[None],
        labels(names.query_tokens),
        labels(names.key_tokens),
        predicts=predicted,
        measure="mean attention weight" if aligned.head is None else "attention weight",
        title=aligned.what,
        path="alignment",
        choices=Choices("cross", *(list(range(size)) for size in aligned.weights.shape), chosen),
    )
    rows = row_names(trace.tgt_tokens, trace.next_tokens)
    return Result(
        {
            "lines": Canvas(drawing, {"choose": CLICKED_TOKEN}),
            "map": head_map(rows, numbered(trace.src_tokens), aligned.weights),
        },
        {
            "what": aligned.what,
            "layer": aligned.layer,
            "head": aligned.head,
            "wide": len(trace.src_tokens) > MOST_BESIDE,
            "note": _note(run),
        },
        {"alignment": aligned.weights},
    )


def _note(run: Run) -> dict[str, Any] | None:
    """Facts about an example sentence and its head, or the head that comes closest to what it asks for.

    Only of an unchanged run on the model's own translation; where a head is named, only if its largest weight is where
    the example says.
    """
    if run.trace.interventions or run.request.target is not None:
        return None
    for example in examples_of(run.trace.checkpoint).of(run.trace.source):
        if weight := largest_weight(example, run.trace):
            found = {"named": True, "layer": example.layer, "head": example.head}
            found |= dict(zip(("row", "column", "weight"), weight, strict=True))
        elif example.head is None and (best := strongest_head(example, run.trace)):
            found = vars(best) | {"named": False, "row": best.query, "column": best.key}
        else:
            continue
        head = f"{example.kind}.{found['layer']}.{found['head']}"
        return found | {
            **{name: getattr(example, name) for name in ("label", "why", "query", "key")},
            "kind": KIND_TITLES[example.kind].lower(),
            "reads": example.kind == "encoder_self",
            "see_head": head,
            "see_weight": f"{head}.{found['row']}.{found['column']}",
        }
    return None


@view("How sure the model was", code=(greedy, beam_search), needs=TRANSLATES)
def certainty(run: Run, position: int = POSITION, weights: str = ALIGNMENT) -> Result:
    """The probability of each token of the translation, and the alternatives at one position."""
    title = sentence(
        "Target tokens, their ids, and the probability the model gave each; click one for its alternatives"
    )
    result, aligned = written_tokens(run, position, title), align(run, weights)
    return replace(result, facts=result.facts | {"see_head": f"cross.{aligned.layer}.{aligned.head or 0}"})
