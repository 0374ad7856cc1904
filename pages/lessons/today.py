"""Lesson 10: what language models have kept of 2017, and what they have changed."""

import numpy as np

from model.analysis.distributions import entropy
from model.analysis.since_2017 import rotate_pairs
from model.trace import KIND_TITLES
from pages.compute.view import View
from pages.lessons.station import LANGUAGE_MODEL, MASKED_MODEL, Answer, Lesson, Station
from pages.lessons.tokens import quote

BEGINNING = "The girl likes the dog because"
HIDDEN = "The <mask> sat on the mat."
DOOR = "When the old woman opened the door,"
FAR = 100
"""positions by which both tokens are moved"""
NUCLEUS = 0.9
"""top-p"""


def explain_one_stack(view: View) -> Answer:
    """How many cells of the causal map are open, and that there is one kind of attention."""
    mask = view.attention.mask[view.head]
    n, seen = len(mask), mask.sum(axis=-1)
    kinds = " and ".join(KIND_TITLES[kind.name].lower() for kind in view.trace.kinds)
    return Answer(
        f"The only attention of this model is {kinds}. There is no second text: what is given and what is written are "
        f"one sequence of {n} tokens, and token t sees those up to itself. {int(seen.sum())} of {n * n} cells are "
        f"open: n (n + 1) / 2. A translator of this kind reads the source as the beginning of the text, and needs no "
        "encoder; but the first words of the source are read without knowing the last ones.",
        bool((seen == np.arange(1, n + 1)).all()),
    )


def explain_rotation(view: View) -> Answer:
    """A score with both tokens far away, and with one of them moved."""
    attention = view.attention
    query = len(attention.query_tokens) - 1
    key = max(query - 2, 0)
    found = rotate_pairs(attention, view.head, query, key)
    q, k = (each[1, :, 0] + 1j * each[1, :, 1] for each in (found.q, found.k))  # as complex numbers, turned already
    turn = np.exp(1j * FAR * found.frequency)
    own, moved = float((q.conj() * k).real.sum()), float(((q * turn).conj() * (k * turn)).real.sum())
    apart = float((q.conj() * k * np.exp(-5j * found.frequency)).real.sum())
    names = f"{quote(attention.query_tokens[query])} and {quote(attention.key_tokens[key])}"
    return Answer(
        f"{names}: q · k = {own:.3f}. Both moved by {FAR} positions, so that every pair turns by another angle: "
        f"**{moved:.3f}**. The key alone moved five positions further away: **{apart:.3f}**. The score depends on the "
        "distance and not on the place, and nothing had to be added to the embeddings: RoPE (Su et al. 2021) turns "
        "queries and keys, and leaves values alone.",
        abs(own - moved) < 1e-3 * max(abs(own), 1) and abs(own - apart) > 1e-2,
    )


def explain_sharing(view: View) -> Answer:
    """How many heads of keys and values there are, and the bytes of the cache."""
    config, n = view.translator.config, len(view.trace.row_tokens)
    layers = len({layer for _, layer in view.trace.attentions})
    full, shared = (layers * heads * (config.d_k + config.d_v) * 2 for heads in (config.n_heads, config.kv_heads))
    return Answer(
        f"{config.n_heads} query heads, **{config.kv_heads}** heads of keys and values: "
        f"{config.n_heads // config.kv_heads} queries read the same ones (grouped-query attention, Ainslie et al. "
        f"2023). The KV cache takes {shared:,} bytes a token in half precision, where {full:,} would be needed; "
        f"{n * shared:,} for these {n} tokens. When a model writes, reading this cache takes much of the time of a "
        "step, and of the memory: with a smaller one it serves more texts at once.",
        config.kv_heads < config.n_heads,
    )


def explain_norm(view: View) -> Answer:
    """How small the mean of a vector is beside its root mean square."""
    sublayers = next(iter(view.trace.streams.values())).sublayers
    rows = np.concatenate([each.norm_input for each in sublayers]).astype(np.float64)
    mean, rms = np.abs(rows.mean(axis=-1)), np.sqrt((rows**2).mean(axis=-1))
    share = float((mean / rms).mean())
    # Without gamma, the vector and the vector minus its mean: their cosine is std / rms.
    alike = float((rows.std(axis=-1) / rms).min())
    return Answer(
        f"LayerNorm subtracts the mean of a vector and divides by its standard deviation; RMSNorm (Zhang and Sennrich "
        f"2019) only divides by the root mean square. In this run the mean is on average **{share:.0%}** of the root "
        f"mean square; the two results have a cosine of at least **{alike:.3f}**. And it stands before the sub-layer "
        "(pre-norm): the stream itself is never normed. Xiong et al. (2020) could train such models without warm-up.",
        share < 0.2 and alike > 0.95,
    )


def explain_sampling(view: View) -> Answer:
    """The distribution of the first written token: how many tokens it is among, greedy, top-p and a low temperature."""
    trace = view.trace
    row = min(trace.first_written, len(trace.next_ids) - 1)
    probabilities = trace.probabilities[row]
    ordered = np.sort(probabilities)[::-1]
    best = trace.candidates[row][0]
    # A token stays while those before it have less than top-p in sum; T = 0.5 squares each probability.
    kept = int((ordered.cumsum() - ordered < NUCLEUS).sum())
    cold = float(ordered[0] ** 2 / (ordered**2).sum())
    bits = float(entropy(probabilities))
    return Answer(
        f"After {quote(trace.tgt_tokens[row])} the most probable token is {quote(best.token)} with "
        f"{best.probability:.2f}: greedy writing takes it every time. The distribution has "
        f"{bits:.1f} bits, as over {2**bits:.0f} equally likely tokens. Top-p {NUCLEUS:g} keeps **{kept}** of "
        f"{len(ordered):,} and draws among those; T = 0.5 raises "
        f"the first to {cold:.2f}. The model is the same each time: it gives probabilities, and what is written is a "
        "choice made outside of it.",
        1 < kept < len(ordered) / 10 and cold > best.probability,
    )


def explain_both_sides(view: View) -> Answer:
    """The weight that the hidden token puts on what stands before and after it, and the first guesses."""
    tokens = view.trace.row_tokens
    hidden = [i for i, token in enumerate(tokens) if "<mask>" in token]
    if not hidden:
        return Answer("Hide a word: type <mask> in its place.", False)
    row = hidden[0]
    weights = np.stack([each.pattern[:, row].astype(np.float64) for each in view.trace.attentions.values()])
    after = float(weights[..., row + 1 :].sum(axis=-1).mean())
    guesses = ", ".join(f"{quote(each.token)} {each.probability:.2f}" for each in view.trace.candidates[row][:3])
    return Answer(
        f"Its first guesses: {guesses}. Averaged over all heads and layers, the hidden place has **{after:.0%}** of "
        "its weight on what stands after it. A language model that reads from left to right would have to guess from "
        "what stands before. Seeing both sides suits reading, searching and classifying (BERT, Devlin et al. 2019). A "
        "model that writes from left to right cannot do so, because what follows is not there yet.",
        0.2 < after < 0.95,
    )


def _station(slug: str, source: str = BEGINNING, checkpoint: str = LANGUAGE_MODEL, **fields: object) -> Station:
    kind = "encoder_self" if checkpoint == MASKED_MODEL else "decoder_self"
    return Station(slug=slug, source=source, kind=kind, layer=1, head=0, checkpoint=checkpoint, **fields)


TODAY = Lesson(
    "today",
    "Today's models",
    "A language model and a masked one, trained on texts of the same collection: what is left of the paper, and what "
    "each change since then does.",
    18,
    (
        _station(
            "one-stack",
            title="One stack, one text",
            live="map",
            do="Compare the sidebar's map of the model with that of the translator.",
            look_for="There is a decoder, and neither an encoder nor cross-attention.",
            question="How can a model without an encoder answer a question, or translate?",
            hints=(
                "Where would the question be, if there is one text only?",
                "Which tokens does the first written token see?",
            ),
            answer=explain_one_stack,
            page="continue_text",
            further="Let it write on",
        ),
        _station(
            "rotation",
            title="Positions as rotations",
            live="rope",
            do="Choose another token, and compare the angles of the first pairs with those of the last.",
            look_for="q and k are turned before they are multiplied; nothing was added to the embeddings.",
            question="How does a score know the distance of two tokens, but not where they stand?",
            hints=(
                "Turn two arrows by the same angle. What becomes of the angle between them?",
                "By how much does token t turn its pair, and token t + 5?",
            ),
            answer=explain_rotation,
            page="since_2017",
            further="RoPE, pair by pair",
            tab={"since": "RoPE"},
        ),
        _station(
            "sharing",
            title="Keys and values for several heads",
            live="sharing",
            do="See which query heads read the same keys.",
            look_for="Query heads in groups, each with one head of keys and values.",
            question="Why share keys and values, but not queries?",
            hints=(
                "Which of the three has to be kept for all earlier tokens?",
                "What does a model read from memory for each token that it writes?",
            ),
            answer=explain_sharing,
            page="since_2017",
            further="Shared keys and values",
            tab={"since": "Shared keys and values"},
        ),
        _station(
            "norm",
            title="A simpler norm, in another place",
            live="norms",
            do="Compare both norms of the same vector.",
            look_for="The two results can hardly be told apart.",
            question="What is lost if the mean is not subtracted?",
            hints=(
                "How large is the mean of a vector with hundreds of components of either sign?",
                "Which of the two steps keeps the scores from growing?",
            ),
            answer=explain_norm,
            page="since_2017",
            further="RMSNorm",
            tab={"since": "RMSNorm"},
        ),
        _station(
            "sampling",
            source=DOOR,
            title="To write is to choose",
            live="sampling",
            do="Lower the output temperature to 0.1, then raise it to 2.",
            look_for="At 0.1 some samples are the same; at 2 all differ, and few words fit together.",
            question="Does the model know what it is going to write?",
            hints=(
                "What does the last layer give: a token, or a number for every token?",
                "Change the seed. Which part of the result changes, and which does not?",
            ),
            answer=explain_sampling,
            page="decoding",
            further="Greedy, beam and samples",
            tab={"part": "Sampling"},
        ),
        _station(
            "both-sides",
            source=HIDDEN,
            checkpoint=MASKED_MODEL,
            title="A word from both sides",
            live="map",
            do="Find the row of <mask>, and where its weight lies.",
            look_for="Nothing is hatched: every token sees all others.",
            question="What does a masked model know that a language model cannot?",
            hints=(
                "“The … barked at the postman.” When does one know what the word is?",
                "Which keys are open in the row of <mask>?",
            ),
            answer=explain_both_sides,
            page="fill_in",
            further="Hide words of your own",
        ),
    ),
)
