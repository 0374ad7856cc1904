"""Lesson 1: why a model reads a sentence with attention instead of step by step."""

import numpy as np

from model.background.sizes import self_attention_layer
from model.background.table_1 import lstm_work
from pages.compute.view import View
from pages.lessons.station import Answer, Lesson, Station
from pages.lessons.tokens import find, quote, text_cells

AGREEMENT = "The woman who has three children works in a hospital."
NESTED = "The cat that the dog that the boy owned chased ran away."


def explain_reach(view: View) -> Answer:
    """The farthest key that gets more than half of a row of the chosen head."""
    attention, weights = view.attention, text_cells(view.attention, view.head)
    rows, keys = np.nonzero(weights > 0.5)
    if not len(rows):
        return Answer("No row of this head gives more than half of its weight to another word.", False)
    far = int(np.argmax(abs(rows - keys)))
    row, key = int(rows[far]), int(keys[far])
    apart = abs(row - key)
    following = f", which predicts {quote(attention.predicts.labels[row])}," if attention.predicts else ""
    return Answer(
        f"The row of {quote(attention.query_tokens[row])}{following} gives **{weights[row, key]:.0%}** of its weight "
        f"to {quote(attention.key_tokens[key])}, {apart} positions back, and reads its value directly: **one** step. "
        f"In a recurrent layer the same information has to pass through **{apart}** state updates, each of which can "
        "overwrite it.",
        apart >= 5,
    )


def explain_order(view: View) -> Answer:
    """Steps that have to wait for each other, in a recurrent layer and in this encoder."""
    n, layers = len(view.trace.src_tokens), len(view.trace.kind("encoder_self").layers)
    return Answer(
        f"A recurrent layer computes state t from state t − 1: for the {n} tokens of this sentence that is **{n}** "
        "steps, one after another, however many processors there are. Self-attention computes all rows with one matrix "
        f"product, so only the layers have to wait for each other: **{layers}** in this encoder, for a sentence of any "
        "length. Generating the translation remains sequential in both.",
        n > layers,
    )


def explain_cost(view: View) -> Answer:
    """Multiply-adds of one layer: the terms of Table 1, and in full."""
    n, d = len(view.trace.src_tokens), view.translator.config.d_model
    whole, lstm = self_attention_layer(view.translator.config, n).total, lstm_work(n, d)
    less = "fewer" if n < d else "no fewer"
    return Answer(
        f"n = {n} and d = {d}. By the terms of Table 1, self-attention takes n² d = **{n * n * d:,}** multiply-adds, a "
        f"recurrent matrix n d² = **{n * d * d:,}**: {less}, because n is {'below' if n < d else 'not below'} d. With "
        f"all their projections, an attention layer takes {whole:,} and an LSTM {lstm:,}. The n² d overtakes the n d² "
        f"at n = {d}: for long texts, attention is the expensive one.",
        n < d / 2 and whole < lstm,
    )


def explain_nested(view: View) -> Answer:
    """How much the verb's row gives to its subject and to the nearest noun, at most over all heads of the encoder."""
    tokens = view.trace.src_tokens
    verb, subject, nearer = find(tokens, "ran", len(tokens) - 2), find(tokens, "cat", 1), find(tokens, "dog", 2)
    layers = view.trace.kind("encoder_self").layers
    row = np.stack([view.trace.attention("encoder_self", layer).pattern[:, verb] for layer in layers])
    to_subject, to_nearer = float(row[..., subject].max()), float(row[..., nearer].max())
    return Answer(
        f"Over all {row.shape[0] * row.shape[1]} heads of the encoder, {quote(tokens[verb])} gives at most "
        f"**{to_subject:.1%}** to {quote(tokens[subject])} and **{to_nearer:.1%}** to {quote(tokens[nearer])}. The "
        "short path makes the connection possible; it does not make the model find it. The path is a property of the "
        "architecture, the weights are learned.",
        to_subject < 0.15 < 0.25 < to_nearer,
    )


RECURRENCE = Lesson(
    "recurrence",
    "The recurrence bottleneck",
    "Why the paper replaced recurrence: fewer steps in a row, and a short path between any two words. And what a short "
    "path does not promise.",
    12,
    (
        Station(
            slug="path",
            title="Far apart, one step",
            source=AGREEMENT,
            kind="decoder_self",
            layer=3,
            head=5,
            live="map",
            do="Find the row that predicts “arbeitet” (works), and follow it to its bright cell.",
            look_for="The verb has to agree with “Frau”, but a whole relative clause, with a plural in it, stands "
            "between them. This head looks across it.",
            question="Through how many steps does the information about “Frau” travel here, and through how many in a "
            "recurrent network?",
            hints=(
                "Count the positions between the row and its bright column.",
                "An attention layer connects any two positions by a single weighted sum (Table 1, maximum path "
                "length).",
            ),
            answer=explain_reach,
            page="why_attention",
            further="The path in four kinds of layer",
            tab={"why": "Path length"},
        ),
        Station(
            slug="order",
            title="One after another, or all at once",
            source=AGREEMENT,
            kind="encoder_self",
            layer=1,
            head=1,
            live="recurrence",
            do="Press Play and watch two LSTMs and a Transformer work on the same small task.",
            look_for="Which cells are filled in the same step, and which have to wait for another one.",
            question="Why can a recurrent layer not be made faster with more processors?",
            hints=(
                "What does the state at position t depend on?",
                "Table 1 counts this as “sequential operations”: O(n) for a recurrent layer, O(1) for self-attention.",
            ),
            answer=explain_order,
            page="why_attention",
            further="Layers timed on this machine",
            tab={"why": "Measured"},
        ),
        Station(
            slug="cost",
            title="What the short path costs",
            source=AGREEMENT,
            kind="encoder_self",
            layer=0,
            head=0,
            live="costs",
            do="Find this sentence on the lines, then type a much longer one in the sidebar.",
            look_for="The line of self-attention is the steepest. It starts below that of recurrence and crosses it "
            "where n = d.",
            question="Self-attention compares every token with every other one. Why is it still cheaper here than a "
            "recurrent layer?",
            hints=(
                "A recurrent layer multiplies every token's state by a matrix of d × d numbers.",
                "Compare n² d with n d²: which factor do they share, and what is left?",
            ),
            answer=explain_cost,
            page="why_attention",
            further="Three models on the same task",
            tab={"why": "Three models compared"},
        ),
        Station(
            slug="nested",
            title="A short path is not a found path",
            source=NESTED,
            kind="encoder_self",
            layer=1,
            head=1,
            live="map",
            do="Find the row of “ran”. It was the cat that ran away.",
            look_for="The brightest cell of the row is “dog”, which stands nearer and has a verb of its own.",
            question="Every layer connects “ran” with “cat” in one step. Why does that not suffice?",
            hints=(
                "Open other heads in the sidebar: does any of them give “cat” much weight in this row?",
                "The path length says what a layer can connect. What decides what it does connect?",
            ),
            answer=explain_nested,
            page="heads_and_layers",
            further="All heads on this sentence",
        ),
    ),
)
