"""Lesson 7: the decoder's block: causal, with a second attention, and trained on the target that it has to predict."""

import numpy as np

from model.interventions import LiftCausalMask
from pages.compute.runs import rerun
from pages.compute.view import View
from pages.lessons.positions import CROSSING
from pages.lessons.station import Answer, Lesson, Station
from pages.lessons.tokens import quote
from viz.latex import signed


def explain_mask(view: View) -> Answer:
    """What lifting the causal mask does to a model that was trained with it."""
    lifted = rerun(view.translator, view.trace, (*view.trace.interventions, LiftCausalMask()))
    before, after = view.trace.log_probability, lifted.log_probability
    pattern = view.trace.attention("decoder_self", view.layer).pattern
    weight = float(np.triu(pattern, 1).max())
    return Answer(
        f"The largest weight above the diagonal is {weight:g}. With the mask lifted in all layers, log p of the same "
        f"translation goes from {signed(before, '+.1f')} to **{signed(after, '+.1f')}** nats: this model gets worse, "
        "although it could now see the answer. It was never trained on rows that look ahead. One that was would learn "
        "to copy the next token, and fail as soon as it has to write a text that is not there yet.",
        weight == 0 and after < before,
    )


def explain_shift(view: View) -> Answer:
    """What the first rows read and should predict, and how often the most probable token is that one."""
    trace = view.trace
    right = [row[0].id == wanted for row, wanted in zip(trace.candidates, trace.next_ids, strict=True)]
    rows = "; ".join(
        f"{quote(reads)} → {quote(wanted)}"
        for reads, wanted in list(zip(trace.tgt_tokens, trace.next_tokens, strict=True))[:3]
    )
    return Answer(
        f"What the first rows read, and should predict: {rows}. The target moved by one place. So one pass trains all "
        f"{len(right)} predictions at once, each as if only the tokens before it existed: teacher forcing. In "
        f"**{sum(right)} of {len(right)}** rows the expected token is the model's first choice.",
        np.mean(right) > 0.7,
    )


def explain_memory(view: View) -> Answer:
    """That the keys of cross-attention are the encoder's output times W_K, and what one target token looks at."""
    if not view.attention.crosses:
        return Answer("This is self-attention: its queries and keys read the same text.", False)
    attention, head = view.attention, view.head
    weights = attention.projections
    keys = view.trace.memory.astype(np.float64) @ weights.w_k[head] + weights.b_k[head]
    error = float(np.abs(keys - attention.k[head]).max())
    text = attention.pattern[head].copy()
    text[:, np.array(attention.key_special)] = 0
    row, key = np.unravel_index(int(text.argmax()), text.shape)
    wanted = quote(view.trace.next_tokens[row])
    return Answer(
        f"The encoder's output, times W_K of this head, gives its keys up to {error:.0e}; W_V gives the values, and "
        "only the queries come from the decoder. All decoder layers read the same encoder output. The largest weight "
        f"on a word in this head, **{text.max():.2f}**, lies on {quote(attention.key_tokens[key])}, where the decoder "
        f"is to write {wanted}.",
        error < 1e-3 and text.max() > 0.8,
    )


def explain_cache(view: View) -> Answer:
    """That the keys and values of a prefix stay what they are when the text goes on."""
    trace, n = view.trace, max(len(view.trace.next_ids) // 2, 1)
    prefix = view.translator.trace_ids(trace.source, trace.next_ids[:n], trace.interventions)
    place = "decoder_self", view.layer
    whole, part = trace.attention(*place), prefix.attention(*place)
    apart = max(float(np.abs(a[:, :n] - b[:, :n]).max()) for a, b in ((whole.k, part.k), (whole.v, part.v)))
    steps, config = len(trace.next_ids), view.translator.config
    numbers = config.kv_heads * (config.d_k + config.d_v)
    return Answer(
        f"The decoder run on the first {n} tokens alone, and on all {steps}: the keys and values of those {n} differ "
        f"by at most **{apart:.0e}**. The mask hides what follows, so nothing that comes later can change them, and a "
        "program keeps them: the KV cache. Each step then computes one new row, not all of them: for this text "
        f"{steps} rows in each layer, and not {steps * (steps + 1) // 2}. The cache takes {numbers:,} numbers a token "
        "and layer.",
        apart < 1e-3,
    )


def explain_choice(view: View) -> Answer:
    """The row where the model is least sure, with its first choices."""
    trace = view.trace
    row = int(np.argmin([found[0].probability for found in trace.candidates]))
    listed = ", ".join(f"{quote(each.token)} {each.probability:.2f}" for each in trace.candidates[row][:3])
    sure = float(np.mean([found[0].probability for found in trace.candidates]))
    return Answer(
        f"On average the first choice has a probability of {sure:.2f}. It is least sure after "
        f"{quote(trace.tgt_tokens[row])}: {listed}. A softmax over {trace.logits.shape[-1]:,} pieces never says 0: "
        "every piece gets some probability, and a translation is a chain of such choices. Beam search keeps several "
        "chains, because the best first word need not begin the best sentence.",
        trace.candidates[row][0].probability < 0.6 < sure,
    )


def _station(slug: str, kind: str = "decoder_self", layer: int = 1, head: int = 0, **fields: object) -> Station:
    return Station(slug=slug, source=CROSSING, kind=kind, layer=layer, head=head, **fields)


DECODER_BLOCK = Lesson(
    "decoder-block",
    "The decoder block",
    "Why the decoder may not look ahead, what it reads and what it predicts, and how it sees the source.",
    14,
    (
        _station(
            "mask",
            title="No look ahead",
            live="mask",
            do="Look at the hatched triangle above the diagonal, and count the keys that the first row has left.",
            look_for="Row 0 may attend to <s> alone; each later row has one key more.",
            question="What would a trained decoder do if it could see the words to come?",
            hints=(
                "What did it never see in training?",
                "And a decoder that was trained without the mask: what is the easiest way to predict the next word?",
            ),
            answer=explain_mask,
            page="masks",
            further="Lift the mask",
            tab={"part": "Lift the causal mask"},
        ),
        _station(
            "shift",
            title="One place to the right",
            live="map",
            do="Read the labels of the rows and of the columns.",
            look_for="What a row predicts, the next row reads; the first one reads <s>.",
            question="Why does the decoder read <s> first, and never the last token of the translation?",
            hints=(
                "Row t reads token t. What is it to predict?",
                "What follows the last token?",
            ),
            answer=explain_shift,
            page="translate",
            further="Each token with its probability",
        ),
        _station(
            "memory",
            kind="cross",
            layer=3,
            title="Two texts in one attention",
            live="map",
            do="Find the row that is to write “Tier”, and its brightest cell.",
            look_for="Its weight is on “animal”: queries are German, keys are English.",
            question="Where do the keys and values of cross-attention come from?",
            hints=(
                "Which side of figure 1 does the arrow into the middle of the decoder come from?",
                "The encoder runs once. How often is its output read?",
            ),
            answer=explain_memory,
            page="heads_and_layers",
            further="All cross-attention heads",
        ),
        _station(
            "cache",
            title="What never changes",
            live="values",
            do="Count the weights above 0 in the first rows: whose values can they sum?",
            look_for="Row 0 sums the value of <s> alone, whatever is written later; row 1 has two values.",
            question="Decoding runs the decoder once for every token. Must it compute everything each time?",
            hints=(
                "What does the row of token 3 depend on?",
                "If token 9 is added, which keys and values change?",
            ),
            answer=explain_cache,
            page="decoding",
            further="The search, step by step",
        ),
        _station(
            "choice",
            kind="cross",
            layer=3,
            title="The last softmax",
            live="whole model",
            do="The decoder reads “Tier”. Read its first choices at the top left; then click on other tokens at the "
            "foot of the picture.",
            look_for="After “Das” one token is nearly certain, after “Tier” none.",
            question="Where was the translation in doubt?",
            hints=(
                "At which token are the first two choices closest?",
                "Where could the sentence go on in another way, and where does grammar leave one choice?",
            ),
            answer=explain_choice,
            chosen={
                "whole_off": "",
                "whole_at": "decoder.softmax~1~2",
            },
            page="decoding",
            further="The tree of the beam search",
            tab={"part": "Beam"},
        ),
    ),
)
