"""Lesson 2: attention as a dictionary whose entries are all read at once, each by its weight."""

import numpy as np

from model.analysis.distributions import entropy
from model.analysis.softmax import softmax_at
from model.trace import Array
from pages.compute.view import View
from pages.lessons.station import Answer, Lesson, Station
from pages.lessons.tokens import find, quote

PRONOUN = "The girl likes the dog because it is friendly."


def row_of_pronoun(view: View) -> tuple[int, str, Array]:
    """Position, name and weights (key,) of the row of “it”, or of the middle row."""
    attention = view.attention
    row = find(attention.query_tokens, "it", len(attention.query_tokens) // 2)
    return row, quote(attention.query_tokens[row]), attention.pattern[view.head, row].astype(np.float64)


def explain_mixture(view: View) -> Answer:
    """The largest weight of the row, and as how many equal keys it counts."""
    _, name, weights = row_of_pronoun(view)
    best = int(weights.argmax())
    bits = float(entropy(weights))
    return Answer(
        f"A Python dictionary would return one value. {name} gets a mixture: **{weights[best]:.0%}** of "
        f"{quote(view.attention.key_tokens[best])} and the rest of all other keys, and the weights sum to "
        f"{weights.sum():.6f}. Its entropy is {bits:.2f} bits, as spread out as over 2^{bits:.2f} = "
        f"**{2**bits:.1f}** equal keys. A mixture changes smoothly with the query, so a gradient can teach the model "
        "what to ask for; a lookup of one entry has none.",
        0.3 < weights[best] < 0.7 and 2**bits > 2,
    )


def explain_limits(view: View) -> Answer:
    """The largest weight of the row at a low and at a high temperature."""
    row, name, weights = row_of_pronoun(view)
    attention, best = view.attention, int(weights.argmax())
    scores, mask = attention.pre_softmax[view.head, row], attention.mask[view.head, row]
    cold, hot = (float(softmax_at(scores, mask, tau).max()) for tau in (0.05, 20.0))
    even = 1 / mask.sum()
    return Answer(
        f"At τ = 0.05 the largest weight of {name} is **{cold:.4f}**, on {quote(attention.key_tokens[best])}: a "
        f"lookup. At τ = 20 it is **{hot:.3f}**, and {even:.3f} would be equal weights: the mean of all values. The "
        "order of the keys never changes with τ, only how much the first is ahead.",
        cold > 0.95 and hot < 1.6 * even,
    )


def explain_values(view: View) -> Answer:
    """The weights of the row times the lengths of the values, and their sum beside the model's z."""
    row, name, weights = row_of_pronoun(view)
    attention, head = view.attention, view.head
    values = attention.v[head].astype(np.float64)
    lengths = np.linalg.norm(values, axis=-1)
    parts, best = weights * lengths, int((weights * lengths).argmax())
    error = float(np.abs(weights @ values - attention.z[head, row]).max())
    return Answer(
        f"z of {name} is the sum of the {len(values)} values, each times its weight; computed again here, it differs "
        f"from the model's by at most {error:.0e}. The values are not equally long: from {lengths.min():.1f} to "
        f"{lengths.max():.1f}. So the longest contribution is weight times length: **{parts[best]:.2f}**, from "
        f"{quote(attention.key_tokens[best])}. A large weight on a short value moves little.",
        error < 1e-4 and lengths.max() > 1.5 * lengths.min(),
    )


def explain_direction(view: View) -> Answer:
    """The weight of the strongest key of the row, and of the same pair with the roles exchanged."""
    row, name, weights = row_of_pronoun(view)
    attention, head = view.attention, view.head
    if attention.crosses:
        return Answer("In cross-attention the roles cannot be exchanged: queries and keys are two sentences.", False)
    best = int(np.where(np.arange(len(weights)) == row, 0, weights).argmax())
    key, back = quote(attention.key_tokens[best]), attention.pattern[head, best, row]
    scores = attention.pre_softmax[head]
    return Answer(
        f"{name} gives {key} a weight of **{weights[best]:.3f}** (score {scores[row, best]:.2f}); {key} gives {name} "
        f"**{back:.3f}** (score {scores[best, row]:.2f}). Queries come from W_Q and keys from W_K: what a token looks "
        "for is not what it offers to be found by. With one matrix for both, the scores would be symmetric.",
        weights[best] > 3 * back,
    )


def _station(slug: str, **fields: object) -> Station:
    place = {"source": PRONOUN, "kind": "encoder_self", "layer": 1, "head": 1}
    return Station(slug=slug, **place, **fields)


LOOKUP = Lesson(
    "lookup",
    "Attention as a soft lookup",
    "Query, key and value in words and in numbers: a dictionary that returns a mixture of all its entries.",
    10,
    (
        _station(
            "mixture",
            title="A row is a mixture",
            live="map",
            do="Find the row of “it”: it is the query, and the columns are the keys it is compared with.",
            look_for="One bright cell, “dog”, and several dim ones. No cell is exactly 0.",
            question="A dictionary returns the value of the one key that matches. What does attention return, and why "
            "is that worth more to a model that learns?",
            hints=(
                "Add up the row: what do the weights of one query sum to?",
                "Training needs a gradient. What happens to the result of a lookup when the query changes by very "
                "little?",
            ),
            answer=explain_mixture,
            page="attention_step_by_step",
            further="This head in seven steps",
        ),
        _station(
            "limits",
            title="From lookup to mean",
            live="temperature",
            do="Drag τ all the way to the left, then all the way to the right. Release it at 1 again.",
            look_for="On the left nearly every row has a single bright cell; on the right all cells look alike.",
            question="At which end is attention a dictionary, and what is it at the other?",
            hints=(
                "Dividing all scores by a small τ makes their differences large.",
                "Dividing them by a large τ makes them all nearly 0. What is the softmax of equal numbers?",
            ),
            answer=explain_limits,
            page="temperature",
            further="One row at many temperatures",
            tab={"part": "One row"},
        ),
        _station(
            "values",
            title="What is returned",
            live="values",
            do="Follow one row: weights × V = z.",
            look_for="Each row of z is made of rows of V, and the bright weights decide of which.",
            question="Does the key with the largest weight always contribute most?",
            hints=(
                "The weights say how much of each value is taken. How large is what is taken?",
                "Compare the lengths of the rows of V.",
            ),
            answer=explain_values,
            page="heads_and_layers",
            further="Choose “Norm-weighted” there",
        ),
        _station(
            "direction",
            title="Looking is not being looked at",
            live="map",
            do="Compare two cells: row “it”, column “dog”, and row “dog”, column “it”.",
            look_for="The map is not symmetric: the first cell is bright, the second nearly dark.",
            question="Both scores come from the same two tokens. Why do they differ?",
            hints=(
                "Which matrix turns a token into a query, and which turns it into a key?",
                "q · k would be symmetric if W_Q and W_K were the same matrix.",
            ),
            answer=explain_direction,
            page="temperature",
            further="Move a query yourself",
            tab={"part": "Move the query"},
        ),
    ),
)
