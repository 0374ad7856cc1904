"""Lesson 5: how a model that compares vectors in no order knows where a token stands."""

import numpy as np

from model.analysis import position_table
from model.analysis.head_summary import summarise
from model.analysis.word_order import reorder, run_both_orders, source_words
from model.interventions import PositionsOff
from model.network.network import EMBEDDINGS
from pages.compute.runs import rerun
from pages.compute.view import View
from pages.lessons.station import Answer, Lesson, Station
from viz.latex import signed

CROSSING = "The animal didn't cross the street because it was too tired."
ORDER = "The dog bites the man."


def explain_order(view: View) -> Answer:
    """How far the encoder's output moves when the words are reversed, with positions and without."""
    words = source_words(view.trace.src_tokens)
    if len(words) < 2:
        return Answer("A single word has only one order.", False)
    permutation = reorder(view.trace.src_tokens, range(len(words))[::-1])
    place = view.kind, view.layer
    with_positions, without = (
        run_both_orders(view.translator, view.trace, permutation, off, place) for off in ((), (EMBEDDINGS["encoder"],))
    )
    moved = float(with_positions.moved.mean())
    return Answer(
        "The words in reverse, once with the positions and once without. Without them each token keeps its final "
        f"vector up to rounding: no element differs by more than {without.memory_error:.0e}; the vectors only stand in "
        f"another order. With positions each vector moves, by **{moved:.0%}** of its length on average. Nothing in q "
        "· k says where a token stands. Such a function is called permutation-equivariant.",
        without.memory_error < 1e-4 and moved > 0.1,
    )


def explain_sum(view: View) -> Answer:
    """Lengths of the embeddings and of the encodings that are added to them."""
    embedded = view.trace.src_embedded
    word, place = (
        np.linalg.norm(each.astype(np.float64), axis=-1) for each in (embedded.embedding, embedded.positional)
    )
    d = view.translator.config.d_model
    return Answer(
        f"On average a token's embedding, times √d_model = {np.sqrt(d):g}, has a length of **{word.mean():.1f}**; "
        f"every encoding has √(d_model / 2) = **{place.mean():.1f}**, since sin² + cos² = 1 in each of {d // 2} pairs. "
        "Neither drowns the other. Without the factor √d_model, which the paper mentions in half a sentence (section "
        f"3.4), the embeddings would have a length of {word.mean() / np.sqrt(d):.1f}.",
        bool(0.2 < place.mean() / word.mean() < 1),
    )


def explain_wavelengths(view: View) -> Answer:
    """How many pairs of dimensions turn once within the sentence, and how alike positions are."""
    encoding, n = view.translator.positional_encoding("source"), len(view.trace.src_tokens)
    lengths = position_table.wavelengths(encoding.shape[-1])
    fast = int((lengths <= n).sum())
    alike = position_table.similarity(encoding, cosine=True)
    twins = float(alike[~np.eye(len(alike), dtype=bool)].max())
    return Answer(
        f"Of {len(lengths)} pairs, **{fast}** turn at least once within these {n} positions; the slowest would need "
        f"{lengths[-1]:,.0f}. The fast ones tell neighbours apart, and repeat; the slow ones tell beginning from end, "
        f"and hardly differ between neighbours. Together they repeat nowhere among {len(alike)} positions: no two of "
        f"them have a cosine above {twins:.2f}. Positions 0 and 1 have {alike[0, 1]:.2f}, the first and the last one "
        f"of this sentence {alike[0, n - 1]:.2f}.",
        0 < fast < len(lengths) and alike[0, 1] > alike[0, n - 1] and twins < 0.99,
    )


def explain_rotation(view: View) -> Answer:
    """The largest error of M_k PE(pos) = PE(pos + k)."""
    encoding, k = view.translator.positional_encoding("source"), 3
    error = float(np.abs(position_table.rotate(encoding, k) - encoding[k:]).max())
    return Answer(
        f"One matrix M for “{k} positions further”, the same at every position: it turns each pair of dimensions by an "
        f"angle of its own. Over all {len(encoding) - k} positions of the table the largest error is **{error:.0e}**. "
        "W_Q and W_K are matrices, too, so a head can learn to compare a token with the one a fixed distance away. The "
        "paper gives this as its reason for sines and cosines (section 3.5). RoPE later turned queries and keys "
        "themselves.",
        error < 1e-3,
    )


def explain_habit(view: View) -> Answer:
    """What is left of a head's weight on the previous token when the encoder gets no positions."""
    if view.attention.crosses:
        return Answer("Cross-attention has no previous token: its keys are another sentence.", False)
    off = rerun(view.translator, view.trace, (*view.trace.interventions, PositionsOff(side="source")))
    before, after = (
        summarise(trace.attention(view.kind, view.layer))[view.head].previous or 0.0 for trace in (view.trace, off)
    )
    lost = off.log_probability - view.trace.log_probability
    made = before > 0.4 and after < before / 3
    verdict = "The habit is made of positions." if made else "This head has no such habit here, or keeps part of it."
    return Answer(
        f"Head {view.head} of layer {view.layer} has **{before:.0%}** of its weight on the previous token; without "
        f"positions in the encoder **{after:.0%}**. {verdict} Without them log p of the whole translation changes by "
        f"{signed(lost, '+.1f')} nats.",
        made and lost < -2,
    )


def _station(slug: str, source: str = CROSSING, layer: int = 1, head: int = 5, **fields: object) -> Station:
    return Station(slug=slug, source=source, kind="encoder_self", layer=layer, head=head, **fields)


POSITIONS = Lesson(
    "positions",
    "Positions",
    "Attention sees a set, not a sequence. What is added so that the model knows the order, why in this form, and what "
    "becomes of a head without it.",
    14,
    (
        _station(
            "order",
            source=ORDER,
            title="A set, not a sequence",
            live="order",
            do="Shuffle the words, and compare the two rows of translations.",
            look_for="With positions the two orders are translated differently; without them every order has the same "
            "translation.",
            question="Why can attention alone not tell who bites whom?",
            hints=(
                "Where does a token's place enter into q · k?",
                "If two tokens change places, which terms does the weighted sum of a third one have?",
            ),
            answer=explain_order,
            page="positional_encoding",
            further="Word order",
            tab={"part": "Word order"},
        ),
        _station(
            "sum",
            title="Word plus place",
            live="sum",
            do="Compare the three maps: embedding, encoding, sum.",
            look_for="The encoding is the same stripe pattern for every sentence; the embeddings look like noise.",
            question="Two vectors are added, and only their sum goes on. Does the place drown the word?",
            hints=(
                "How long is a vector whose pairs are all (sin a, cos a)?",
                "The embeddings are multiplied by √d_model before the sum.",
            ),
            answer=explain_sum,
            page="positional_encoding",
            further="Your sentence",
            tab={"part": "Your sentence"},
        ),
        _station(
            "wavelengths",
            title="Clocks with many hands",
            live="wavelengths",
            do="Follow the curves from dimension 0 to dimension 254; draw others, if you like.",
            look_for="Dimension 0 turns once in about six positions; dimension 254 hardly moves.",
            question="Why so many wavelengths, and not one?",
            hints=(
                "A clock with a second hand alone: what does it show after one minute?",
                "And one with an hour hand alone, if you ask it for seconds?",
            ),
            answer=explain_wavelengths,
            chosen={"waves": [0, 48, 112, 254]},
            page="positional_encoding",
            further="Wavelengths",
            tab={"part": "Wavelengths"},
        ),
        _station(
            "rotation",
            title="A step is a rotation",
            live="rotation",
            do="Move pos, then the offset k, and watch the two hands of each pair.",
            look_for="Wherever pos is, the hands of a pair keep their angle. Only k changes it.",
            question="How can one head look “one to the left” from every position?",
            hints=(
                "What do sin(a + b) and cos(a + b) have to do with sin a and cos a?",
                "Which matrix turns a point of the circle by a fixed angle, wherever it is?",
            ),
            answer=explain_rotation,
            page="positional_encoding",
            further="Rotation",
            tab={"part": "Rotation"},
        ),
        _station(
            "habit",
            title="A habit made of positions",
            live="map",
            do="Follow the bright cells beside the diagonal.",
            look_for="Most tokens look at the one before them.",
            question="Does this head know its neighbour by its meaning or by its place?",
            hints=(
                "What would happen to the diagonal if every token lost its place?",
                "The run can be repeated with the encoding set to 0.",
            ),
            answer=explain_habit,
            page="what_if",
            further="Positions off, and other changes",
        ),
    ),
)
