"""Lesson 9: what an attention map shows, and what it does not."""

from collections.abc import Sequence

import numpy as np

from model.analysis.head_summary import summarise
from model.analysis.logit_lens import logit_lens
from model.analysis.many_sentences import read_heads
from model.interventions import ForbidSource, HeadGate, Intervention, UniformAttention
from pages.compute.runs import rerun
from pages.compute.view import View
from pages.lessons.lookup import PRONOUN
from pages.lessons.station import Answer, Lesson, Station
from pages.lessons.tokens import quote
from viz.latex import signed

BENCH = "A woman is reading a book while her son sleeps on the bench."
MATTERS = -0.5
"""nats: a map whose replacement by equal weights costs more than this is said to matter"""
CLEAR = 0.6
"""mean of the rows' largest weights above which a map is called clear"""
MOST_REMOVED = 16
"""source tokens that are hidden, one at a time, in a long text"""


def explain_effect(view: View) -> Answer:
    """How sure the head is, and what log p loses without it."""
    place = {"kind": view.kind, "layer": view.layer, "head": view.head}
    sure, change = summarise(view.attention)[view.head].confidence, _change(view, (HeadGate(0.0, **place),))
    return Answer(
        f"The largest weight of its rows is **{sure:.2f}** on average{': a clear map' if sure > CLEAR else ''}. Switch "
        f"the head off, and log p of the translation changes by **{signed(change, '+.2f')}** nats. A map shows where a "
        "head looks, not whether anybody uses what it brings back. Other heads may bring the same, or the layers "
        "above may ignore it.",
        sure > CLEAR and abs(change) < 0.3,
    )


def explain_sink(view: View) -> Answer:
    """The share of the weight on special tokens, beside their share of the vectors that are added."""
    attention, head = view.attention, view.head
    special = np.array(attention.key_special)
    if not special.any():
        return Answer("No key of this attention is a special token.", False)
    weights = attention.pattern[head].astype(np.float64)
    values = np.linalg.norm(attention.v[head].astype(np.float64) @ attention.projections.w_o[head], axis=-1)
    brought = weights * values
    share = float(weights[:, special].sum() / weights.sum())
    added = float(brought[:, special].sum() / brought.sum())
    return Answer(
        f"**{share:.0%}** of this head's weight lies on special tokens such as </s>. But what a key brings is its "
        f"weight times the length of its value, ‖α v W_O‖ (Kobayashi et al. 2020): of that the special tokens have "
        f"**{added:.0%}**. A row must sum to 1, so a head that finds nothing has to put its weight somewhere. A key "
        "that gets much of it and brings little is called a sink.",
        share > 0.15 and added < 0.8 * share,
    )


def explain_uniform(view: View) -> Answer:
    """log p with equal weights in this head, and without the head."""
    place = {"kind": view.kind, "layer": view.layer, "head": view.head}
    even, off = (_change(view, (change,)) for change in (UniformAttention(**place), HeadGate(0.0, **place)))
    return Answer(
        f"With equal weights on all keys, in this head alone, log p of the translation changes by "
        f"**{signed(even, '+.2f')}** nats; with the head off by {signed(off, '+.2f')}. {_matters(even)} "
        "This is how to find out, and it can be done with any head: change what it says, and see whether the output "
        "follows. Agreement between a map and one's expectation proves nothing.",
        even < MATTERS,
    )


def _matters(even: float) -> str:
    if even < MATTERS:
        return "So here the map matters: the mean of all values is no substitute for the one it looks at."
    return "So here equal weights cost less than half a nat."


def explain_decision(view: View) -> Answer:
    """After which sub-layer of the decoder the final choices are on top."""
    if "decoder" not in view.trace.streams:
        return Answer("This model has no decoder.", False)
    lens = logit_lens(view.translator, view.trace)
    first = (lens.rank == 1).mean(axis=-1)  # (step,): how many positions have the final choice on top
    names = {"self_attn": "self-attention", "cross_attn": "cross-attention", "feed_forward": "feed-forward network"}
    steps = [f"{names[each.name]} of layer {each.layer}" for each in view.trace.streams["decoder"].sublayers]
    jump = int(np.diff(first).argmax())
    return Answer(
        f"Read as if it were the end, the decoder's input names the final token at {first[0]:.0%} of the positions; "
        f"after the last sub-layer at {first[-1]:.0%}. The largest step comes with the {steps[jump]}: from "
        f"{first[jump]:.0%} to **{first[jump + 1]:.0%}**. That need not be the moment of a decision: only the last "
        "layer was trained to be read by the output matrix. An earlier one may hold the answer in directions that "
        "this matrix does not read.",
        bool(first[0] < 0.5 < first[-1]),
    )


def explain_one_sentence(view: View) -> Answer:
    """What this head is called on each of a thousand sentences."""
    try:
        found = read_heads(view.translator)
        types = found.head(view.kind, view.layer, view.head).types
    except (ValueError, StopIteration):
        return Answer("This head was not measured over many sentences.", False)
    (name, share), *others = sorted(types.items(), key=lambda item: -item[1])
    rest = ", ".join(f"“{other}” {part:.0%}" for other, part in others[:3])
    return Answer(
        f"Over {found.sentences:,} sentences this head is a “{name}” head in **{share:.0%}** of them"
        f"{f', and otherwise {rest}' if rest else ''}. One sentence is an anecdote. And a name says what the weights "
        "do, not what the model does with them: for that, change the run.",
        share < 1,
    )


def explain_received(view: View) -> Answer:
    """The source token with most cross-attention, and the one whose removal costs most log p."""
    trace = view.trace
    maps = [each.pattern for (kind, _), each in trace.attentions.items() if kind == "cross"]
    received = np.mean([pattern.mean(axis=(0, 1), dtype=np.float64) for pattern in maps], axis=0)
    order = np.argsort(-received, kind="stable")[:MOST_REMOVED].tolist()
    lost = {i: -_change(view, (ForbidSource((i,)),)) for i in order}
    missed, first = max(lost, key=lost.__getitem__), order[0]
    names = {i: quote(trace.src_tokens[i]) for i in order}
    some = "" if len(order) == len(received) else f" (of the {len(order)} that get most)"
    return Answer(
        f"Over all heads and layers of cross-attention {names[first]} gets most weight, {received[first]:.0%}. Hidden "
        f"from both stacks, it costs {lost[first]:.1f} nats of log p. The token that is missed most{some} is "
        f"{names[missed]}, with **{lost[missed]:.1f}** nats and {received[missed]:.0%} of the weight: place "
        f"{order.index(missed) + 1} of {len(order)} by weight. Attention received and importance are two quantities, "
        "and only one of them was measured by taking something away.",
        missed != first and lost[first] < lost[missed] / 3,
    )


def _change(view: View, more: Sequence[Intervention]) -> float:
    after = rerun(view.translator, view.trace, (*view.trace.interventions, *more))
    return after.log_probability - view.trace.log_probability


def _station(slug: str, kind: str, layer: int, head: int, source: str = PRONOUN, **fields: object) -> Station:
    return Station(slug=slug, source=source, kind=kind, layer=layer, head=head, **fields)


HONEST = Lesson(
    "honest",
    "Reading attention honestly",
    "A map is not an explanation. What it can tell, what it cannot, and how to ask the model itself.",
    17,
    (
        _station(
            "effect",
            "encoder_self",
            1,
            5,
            title="A clear map",
            live="map",
            do="Say in one sentence what this head does.",
            look_for="One bright cell in nearly every row.",
            question="Would the translation be worse without this head?",
            hints=(
                "Who reads what the head writes into the stream?",
                "The run can be repeated without it.",
            ),
            answer=explain_effect,
            page="what_if",
            further="Which heads matter",
            tab={"part": "Which heads matter"},
        ),
        _station(
            "uniform",
            "cross",
            3,
            1,
            title="A map that matters",
            live="map",
            do="Find the word that each target token looks at.",
            look_for="Content words look at the words that they translate.",
            question="How could one prove that the output depends on where this head looks?",
            hints=(
                "To see whether a cause matters, change it and keep the rest.",
                "What would the head do with equal weights on all keys?",
            ),
            answer=explain_uniform,
            page="model_card",
            further="Is attention an explanation?",
            tab={"card": "Is attention an explanation?"},
        ),
        _station(
            "sink",
            "cross",
            0,
            2,
            title="Where weight goes that nobody needs",
            live="map",
            do="Look at the column of </s>.",
            look_for="Many rows put much of their weight there.",
            question="Is the end of the sentence so important?",
            hints=(
                "What must a row sum to, whatever it has found?",
                "What arrives is weight times value. How long is the value of </s>?",
            ),
            answer=explain_sink,
            page="heads_and_layers",
            further="Norm-weighted attention, rollout",
        ),
        _station(
            "received",
            "cross",
            3,
            0,
            source=BENCH,
            title="Looked at, and needed",
            live="mosaic",
            do="Find the source tokens that get weight in many heads.",
            look_for="In most heads the last columns, “.” and </s>, get some of the weight.",
            question="Is the token that gets most attention the one that the translation needs most?",
            hints=(
                "Hide one source token at a time and compare log p of the same translation.",
                "Which of them could be guessed from the others?",
            ),
            answer=explain_received,
            page="gradients",
            further="Four measures, and a referee",
            tab={"part": "Does attention explain?"},
        ),
        _station(
            "decision",
            "cross",
            3,
            1,
            title="When is it decided?",
            live="stream",
            chosen={"layers_stack": "decoder"},
            do="Follow a token of the decoder from its input to the last layer.",
            look_for="At the end the cosine to the input is far below that after the first sub-layer; on the way it "
            "may rise.",
            question="In which layer does the model know the next word?",
            hints=(
                "The output matrix can be applied to the stream after any sub-layer.",
                "Which sub-layers bring in the source?",
            ),
            answer=explain_decision,
            page="layer_by_layer",
            further="Logit lens",
            tab={"layers_tab": "Logit lens"},
        ),
        _station(
            "one-sentence",
            "encoder_self",
            1,
            5,
            title="One sentence is an anecdote",
            live="map",
            do="Type two sentences of your own, and see whether the diagonal stays.",
            look_for="Not every row looks at the token before it.",
            question="Is this a previous-token head?",
            hints=(
                "On how many sentences would you want to see it?",
                "And in how many of its rows?",
            ),
            answer=explain_one_sentence,
            page="heads_and_layers",
            further="The same over many sentences",
            tab={"heads_part": "Over many sentences"},
        ),
    ),
)
