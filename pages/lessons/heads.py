"""Lesson 4: several heads instead of one."""

import numpy as np

from model.analysis.head_summary import summarise
from model.interventions import HeadGate
from pages.compute.runs import rerun
from pages.compute.view import View
from pages.lessons.lookup import PRONOUN
from pages.lessons.station import Answer, Lesson, Station


def explain_difference(view: View) -> Answer:
    """The two heads of the chosen layer whose weights differ most, as total variation distance."""
    pattern = view.attention.pattern.astype(np.float64)
    apart = np.abs(pattern[:, None] - pattern[None]).sum(axis=-1).mean(axis=-1) / 2
    one, other = np.unravel_index(int(apart.argmax()), apart.shape)
    return Answer(
        f"In layer {view.layer}, heads {one} and {other} differ most: on average over the rows, **{apart.max():.0%}** "
        "of the weight lies on other keys. Each row of one head sums to 1, so a single head that is to look at two "
        "places has to divide its weight and mix both values into one vector. Two heads keep them apart, in dimensions "
        "of their own, until W_O joins them.",
        apart.max() > 0.6,
    )


def explain_previous(view: View) -> Answer:
    """The share of the chosen head's weight on the previous token, beside the others of its layer."""
    if view.attention.crosses:
        return Answer("Cross-attention has no previous token: its keys are another sentence.", False)
    shares = [each.previous or 0.0 for each in summarise(view.attention)]
    others = max((share for i, share in enumerate(shares) if i != view.head), default=0.0)
    return Answer(
        f"Head {view.head} has **{shares[view.head]:.0%}** of its weight on the previous token; the other heads of "
        f"layer {view.layer} have at most {others:.0%}. Nobody told it to: it was trained on translations alone. "
        "Through such a head a token can learn what precedes it, such as the first piece of its own word. The number "
        "says what the weights do on this sentence, not what the head is for.",
        shares[view.head] > 0.55 and shares[view.head] > others + 0.2,
    )


def explain_size(view: View) -> Answer:
    """Parameters of the four matrices by number of heads, and the rank that each head has."""
    config = view.translator.config
    d, h, d_k = config.d_model, config.n_heads, config.d_k
    if not config.kv_heads * d_k == config.kv_heads * config.d_v == d:
        return Answer("In this model the heads do not divide d_model among them: choose a translator.", False)
    matrices = 4 * d * d
    return Answer(
        f"d_model = {d}, h = {h}, d_k = {d_k} = {d} / {h}. W_Q, W_K, W_V and W_O have {d} × {d} numbers each, "
        f"**{matrices:,}** together; with a single head of {d} dimensions it would be the same {matrices:,}. What "
        f"{h} heads give up is rank: the scores of one head depend on W_Q W_Kᵀ, a {d} × {d} matrix of rank at most "
        f"**{d_k}**. In the paper's Table 3, one head loses 0.9 BLEU against eight, and 32 heads lose 0.4.",
        True,
    )


def explain_removal(view: View) -> Answer:
    """log p of the same target with each head of the chosen layer off, and with all of them off."""
    trace, heads = view.trace, range(view.attention.n_heads)

    def change(**place: int) -> float:
        off = (*trace.interventions, HeadGate(0.0, kind=view.kind, layer=view.layer, **place))
        return rerun(view.translator, trace, off).log_probability - trace.log_probability

    single = [change(head=head) for head in heads]
    together, worst = change(), int(np.argmin(single))
    numbers = [f"{value:.2f}".replace("-", "−") for value in (single[worst], sum(single), together)]
    return Answer(
        f"With head {worst} of this layer off, log p of the same translation changes by {numbers[0]} nats, the most of "
        f"all {len(single)}; the {len(single)} changes, one at a time, sum to {numbers[1]}. All off at once: "
        f"**{numbers[2]}**. {_together(together, sum(single))}",
        together < 2 * sum(single) < 0,
    )


def _together(together: float, alone: float) -> str:
    if together < alone:
        return "Heads stand in for each other, so a head that can be removed alone is not a head that does nothing."
    return "Here the heads of the layer do not stand in for each other."


def _station(slug: str, kind: str = "encoder_self", layer: int = 1, head: int = 5, **fields: object) -> Station:
    return Station(slug=slug, source=PRONOUN, kind=kind, layer=layer, head=head, **fields)


HEADS = Lesson(
    "heads",
    "Multi-head attention",
    "What eight small heads can do that one large head cannot, what they give up, and how to ask whether a head "
    "matters.",
    12,
    (
        _station(
            "difference",
            title="Eight heads, eight maps",
            live="mosaic",
            do="Click on the squares of one row, one after another.",
            look_for="Diagonals, columns and scattered cells: the heads of one layer read the same vectors and look at "
            "different tokens.",
            question="Why can a single head not do the work of two?",
            hints=(
                "What does each row of weights sum to?",
                "If a head looks at two keys by one half each, what arrives: two values, or one?",
            ),
            answer=explain_difference,
            page="side_by_side",
            further="Two heads side by side",
        ),
        _station(
            "previous",
            title="A head with a simple habit",
            live="map",
            do="Follow the bright cells from the second row down.",
            look_for="Most of them lie just below the diagonal: most tokens look at the one before them.",
            question="What is the previous token good for?",
            hints=(
                "Which tokens of this sentence are not whole words?",
                "A token's vector begins as its embedding alone. What does it learn from its neighbour?",
            ),
            answer=explain_previous,
            page="heads_and_layers",
            further="All heads in numbers",
            tab={"heads_part": "All heads in numbers"},
        ),
        _station(
            "size",
            title="What several heads cost",
            live="head weights",
            do="Look at the singular values of this head, and count them.",
            look_for="The curves end at d_k: all further singular values of the d_model × d_model matrices are 0.",
            question="Has a layer with eight heads more parameters than one with a single head of full width?",
            hints=(
                "Each head projects to d_k = d_model / h dimensions.",
                "Put the heads' matrices side by side. How wide do they become?",
            ),
            answer=explain_size,
            page="heads_and_layers",
            further="The weights of this head",
            tab={"heads_part": "Weights of the head"},
        ),
        _station(
            "removal",
            title="Does a head matter?",
            kind="cross",
            layer=3,
            live="map",
            do="Guess which head of this layer the translation would miss most; the sidebar opens each of them.",
            look_for="Several heads of this layer look at the same source words.",
            question="Switching off one head at a time hardly changes the translation. May one switch off all of them?",
            hints=(
                "Several heads read the same source token. Who is missed, if one of them is gone?",
                "An experiment with one head off says what the others can replace, not what the head does.",
            ),
            answer=explain_removal,
            page="what_if",
            further="Switch off every head in turn",
            tab={"part": "Which heads matter"},
        ),
    ),
)
