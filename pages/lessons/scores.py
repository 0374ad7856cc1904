"""Lesson 3: scaled dot-product attention, equation 1 of the paper."""

import numpy as np

from model.analysis.softmax import product_statistics, softmax_at, softmax_jacobian
from pages.compute.view import View
from pages.lessons.lookup import PRONOUN, row_of_pronoun
from pages.lessons.station import Answer, Lesson, Station
from pages.lessons.tokens import quote

LOOKUP_WEIGHT = 0.9
"""on one key, from which on a row is little more than a lookup"""


def explain_product(view: View) -> Answer:
    """The score of the row's strongest key, as a sum of d_k products."""
    row, name, weights = row_of_pronoun(view)
    attention, head, best = view.attention, view.head, int(weights.argmax())
    products = attention.q[head, row].astype(np.float64) * attention.k[head, best]
    rise, fall = products[products > 0].sum(), products[products < 0].sum()
    error = abs(products.sum() - attention.scores[head, row, best])
    return Answer(
        f"{name} and {quote(attention.key_tokens[best])}: {len(products)} products, of which "
        f"{int((products > 0).sum())} are positive and sum to {rise:.2f}, the others to {fall:.2f}. The score is "
        f"**{products.sum():.2f}**, before the division by √d_k. It measures how far q and k point in the same "
        "direction, times both lengths: not a cosine, so a long key can win every row.",
        error < 1e-3 and rise > -fall,
    )


def explain_difference(view: View) -> Answer:
    """The ratio of the row's two largest weights, from the difference of their scores."""
    row, name, weights = row_of_pronoun(view)
    attention = view.attention
    scores = attention.pre_softmax[view.head, row].astype(np.float64)
    if attention.mask[view.head, row].sum() < 2:
        return Answer(f"{name} has only one key here, and its weight is 1.", False)
    first, second = (int(i) for i in np.argsort(-weights)[:2])
    apart, ratio = scores[first] - scores[second], weights[first] / weights[second]
    keys = [quote(attention.key_tokens[i]) for i in (first, second)]
    return Answer(
        f"{name}: the scores of {keys[0]} and {keys[1]} are {scores[first]:.3f} and {scores[second]:.3f}, {apart:.3f} "
        f"apart. Their weights are {weights[first]:.3f} and {weights[second]:.3f}: a ratio of {ratio:.2f}, and "
        f"exp({apart:.3f}) = **{np.exp(apart):.2f}**. Adding 100 to every score of the row would change neither the "
        "ratio nor any weight. A score means nothing by itself, only beside the others of its row.",
        abs(np.log(ratio) - apart) < 1e-3,
    )


def explain_division(view: View) -> Answer:
    """Variance of the products and the mean of the largest weights, with and without the division."""
    attention, head = view.attention, view.head
    found = product_statistics(attention, head)
    plain = float(attention.pattern[head].max(axis=-1).mean())
    largest = softmax_at(attention.scores[head], attention.mask[head], 1.0).max(axis=-1)
    sharp, lookups = float(largest.mean()), int((largest > LOOKUP_WEIGHT).sum())
    return Answer(
        f"In this head the products q · k have a variance of **{found.variance:.1f}**; divided by √{attention.d_k}, "
        f"**{found.scaled_variance:.2f}**. The mean of the rows' largest weights is {plain:.2f} with the division and "
        f"**{sharp:.2f}** without it: {lookups} of {len(largest)} rows would put more than {LOOKUP_WEIGHT:.0%} on one "
        "key. The paper argues from "
        f"components with mean 0 and variance 1, whose sum of {attention.d_k} products has a variance of "
        f"{attention.d_k}. These trained ones need not have that variance.",
        sharp > plain + 0.2,
    )


def explain_gradient(view: View) -> Answer:
    """The largest eigenvalue of the softmax's Jacobian with and without the division, and what it means for q k."""
    attention, head = view.attention, view.head
    taus = (1.0, attention.scale)
    rows = range(len(attention.query_tokens))
    found = np.array([softmax_jacobian(attention, head, row, 1.0, taus).largest for row in rows])
    (plain, sharp), (most, _) = found.mean(axis=0), found.max(axis=0)
    return Answer(
        "The Jacobian of the softmax is diag(p) − p pᵀ: it is 0 where one weight is 1 and all others are 0. Its "
        "largest eigenvalue is the most by which it can scale a gradient. Over the rows of this head it is on average "
        f"**{plain:.3f}** as the model is, {most:.3f} in the largest row, and **{sharp:.3f}** without the division. "
        "That is at the softmax's input. On its way on to the products q · k the gradient is divided by √d_k as well: "
        f"**{plain * attention.scale:.3f}** with the division, {sharp:.3f} without it. {_flatness(plain, sharp)} At "
        f"q · k the bound is {'smaller' if plain * attention.scale < sharp else 'larger'} with it.",
        sharp < 0.8 * plain,
    )


def _flatness(plain: float, sharp: float) -> str:
    """Where the softmax is flatter, from its mean largest eigenvalue with the division and without."""
    if sharp < plain:
        return "So the division keeps this head's softmax away from the flat regions."
    return "This head's softmax is in no flat region without the division either."


def _station(slug: str, **fields: object) -> Station:
    place = {"source": PRONOUN, "kind": "encoder_self", "layer": 1}
    return Station(slug=slug, **place, **fields)


SCORES = Lesson(
    "scores",
    "Scaled dot products",
    "Equation 1, piece by piece: what a score is, what the softmax makes of it, and why it is divided by √d_k first.",
    12,
    (
        _station(
            "product",
            title="A score is a sum of products",
            head=1,
            live="scores",
            do="Compare a row of Q with two rows of K, and look up the two scores.",
            look_for="A large score where the colours of both rows agree in many columns, a low one where they are "
            "opposite.",
            question="The score of “it” and “dog” is one number from two vectors. Which of their properties does it "
            "measure?",
            hints=(
                "Multiply the vectors component by component. What does a product of two negative numbers add?",
                "q · k = ‖q‖ ‖k‖ cos(angle).",
            ),
            answer=explain_product,
            page="attention_step_by_step",
            further="Every product of one score",
        ),
        _station(
            "difference",
            title="Only differences count",
            head=1,
            live="softmax",
            do="Take two cells of one row of scores and find their weights.",
            look_for="The highest score of each row has the largest weight, but equal scores in two rows need not have "
            "equal weights.",
            question="What would happen to the weights of a row if all its scores grew by 100?",
            hints=(
                "Write down the ratio of two weights of a row. What cancels?",
                "exp(a) / exp(b) = exp(a − b).",
            ),
            answer=explain_difference,
            page="temperature",
            further="Move a query and watch its weights",
            tab={"part": "Move the query"},
        ),
        _station(
            "division",
            title="Why √d_k",
            head=1,
            live="scaling",
            do="Compare the two histograms: scores as they are, and divided by √d_k.",
            look_for="Without the division the scores spread √d_k times as far, and each row of the softmax is "
            "sharper.",
            question="The paper divides by √d_k and not by d_k. Where does the square root come from?",
            hints=(
                "A sum of d_k independent products with variance 1 has which variance?",
                "The division should bring the standard deviation, not the variance, to 1.",
            ),
            answer=explain_division,
            page="temperature",
            further="The whole tab, with reruns",
            tab={"part": "Divided by √d_k"},
        ),
        _station(
            "gradient",
            title="What a saturated softmax costs",
            head=1,
            live="jacobian",
            do="Move τ to the left, towards a lookup, and watch the size of the Jacobian.",
            look_for="Both curves fall to 0 where one key gets all the weight.",
            question="The paper fears “regions where it has extremely small gradients”. Where are they?",
            hints=(
                "The Jacobian is diag(p) − p pᵀ. Write it down for p = (1, 0, 0).",
                "If a weight is 1, can a small change of the scores change it?",
            ),
            answer=explain_gradient,
            page="gradients",
            further="The gradient through the softmax",
            tab={"part": "Through the softmax"},
        ),
    ),
)
