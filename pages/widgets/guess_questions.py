"""The questions of Guess first: one function a page, each answered by this run's own numbers."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from model.analysis.head_summary import summarise
from model.analysis.softmax import softmax_at
from model.background.sizes import multiply_adds
from model.interventions import HeadGate
from model.needs import Need
from model.trace import KIND_TITLES, Array
from pages.compute.runs import rerun
from pages.compute.view import View
from pages.widgets.chart import axis_labels
from viz.latex import signed
from viz.tokens import numbered, visible


@dataclass(frozen=True)
class Question:
    """A multiple-choice question; all texts are plain text, because they may quote tokens."""

    text: str
    options: tuple[str, ...]
    right: tuple[int, ...]
    """the correct options; several if numbers are equal"""
    answer: str
    """the number, and where the page shows it"""
    row: int | None = None
    """the query it is about, if it is about one"""


MOST_OPTIONS = 12
ANOTHER = "another"


def about_steps(view: View, number: int) -> Question | None:
    """Which key has the largest weight in one row."""
    attention, head = view.attention, view.head
    rows = rows_with_choice(attention.mask[head])
    if not rows:
        return None
    queries, keys = axis_labels(attention)
    row = rows[(len(rows) // 2 + number) % len(rows)]
    best, weight = highest(attention.pattern[head, row])
    centre = row * (len(keys) - 1) / max(len(queries) - 1, 1)
    options, right = _choose_options(keys, np.flatnonzero(attention.mask[head, row]), centre, best)
    return Question(
        f"Which key gets the largest weight from the query “{queries[row]}” in this head?",
        options,
        right,
        f"{_join(keys, best)}, with a weight of {weight:.3f}: row {row} of step 5, the softmax.",
        row,
    )


def about_heads(view: View, number: int) -> Question | None:
    """Which head of the layer has the largest value of a measure."""
    found = summarise(view.attention)
    if len(found) < 2 or not found[0].choice:
        return None
    asked = [measure for measure in _MEASURES if getattr(found[0], measure[0]) is not None]
    field, question, unit, column = asked[number % len(asked)]
    values = np.array([getattr(head, field) for head in found])
    best, value = highest(values)
    heads = [f"head {head}" for head in range(len(found))]
    options, right = _choose_options(heads, range(len(heads)), 0, best)
    where = f"Column “{column}” of “All heads in numbers” lists all of them."
    return Question(
        f"Which head of layer {view.layer} {question}?",
        options,
        right,
        f"{_join(heads, best).capitalize()}: {unit.format(value)}. {where}",
    )


_MEASURES = (
    ("previous", "looks most at the previous token", "{:.3f} of its weight lies there", "previous"),
    ("entropy", "spreads its weights most evenly", "{:.3f} bits of entropy, the mean of its rows", "entropy (bits)"),
    ("special", "looks most at <s> and </s>", "{:.3f} of its weight lies there", "special"),
    (
        "confidence",
        "is the most confident (largest weight of each row, on average)",
        "{:.3f}, the mean of its rows",
        "confidence",
    ),
)
"""field of a summary, question, unit, column of the table"""


def about_masks(view: View, number: int) -> Question | None:
    """How many keys a row may attend to, or the weight of a masked cell."""
    mask, pattern = view.attention.mask[view.head], view.attention.pattern[view.head]
    if number % 2 and not mask.all():
        return _about_hidden(pattern, mask)
    rows, size = mask.shape
    row = (2 * rows // 3 + number // 2) % rows
    count = int(mask[row].sum())
    counts = sorted({n for n in (1, count, row, row + 1, size - row, size // 2, size) if 1 <= n <= size})
    if len(counts) < 2:
        return None
    queries, _ = axis_labels(view.attention)
    return Question(
        f"At how many of the {size} keys may the query “{queries[row]}” attend?",
        tuple(map(str, counts)),
        (counts.index(count),),
        f"At {count} of {size}: row {row} of the first map has {count} blue and {size - count} hatched cells.",
        row,
    )


def _about_hidden(pattern: Array, mask: Array) -> Question:
    weight = heaviest_hidden(pattern, mask)
    return Question(
        "What is the weight of a masked cell, after the softmax?",
        ("exactly 0", "above 0, but below 0.001", "0.001 or more"),
        (0 if weight == 0 else 1 if weight < 0.001 else 2,),
        f"The largest weight of the {int((~mask).sum())} masked cells of this head is "
        f"{'0.000, exactly 0' if weight == 0 else f'{weight:.3g}'}: the hatched cells of the fourth map.",
    )


def about_temperature(view: View, number: int) -> Question | None:
    """Whether another temperature moves a row's largest weight above a threshold."""
    scaled, mask = view.attention.pre_softmax[view.head], view.attention.mask[view.head]
    rows, tau = rows_with_choice(mask), (0.5, 2.0)[number % 2]
    queries, keys = axis_labels(view.attention)
    for i in range(len(rows)):
        row = rows[(len(rows) // 2 + number // 2 + i) % len(rows)]
        plain, weight, line = halfway(scaled[row], mask[row], tau)
        if round(weight, 3) != line:
            break
    else:
        return None
    best, _ = highest(np.where(mask[row], scaled[row], -np.inf))
    return Question(
        f"At τ = 1 the largest weight of the query “{queries[row]}” is {plain:.3f}. "
        f"Will it be above or below {line:.3f} at τ = {tau:g}?",
        (f"Above {line:.3f}", f"Below {line:.3f}"),
        (0 if weight > line else 1,),
        f"It is {weight:.3f}, on {_join(keys, best)}: softmax(scaled / {tau:g}) of row {row}. "
        f"Move the picture's slider to {tau:g} and see.",
        row,
    )


def about_doubt(view: View, number: int) -> Question | None:
    """Which token of the text the model was least sure of."""
    del number
    trace, first = view.trace, view.trace.first_written
    if len(trace.next_tokens) - first < 2:
        return None
    return _most(
        "Which of the tokens that the model wrote was it least sure of?",
        numbered(trace.next_tokens[first:]),
        -trace.target_probabilities[first:],
        lambda name, value: f"{name}, with a probability of {-value:.3f}.",
    )


def about_hidden(view: View, number: int) -> Question | None:
    """What the model puts in the place of a hidden word."""
    tokens = view.trace.row_tokens
    mask = view.translator.tokenizer.mask_token
    hidden = [i for i, token in enumerate(tokens) if mask and token.strip("▁") == mask]
    if not hidden:
        return None
    found = sorted(view.trace.candidates[hidden[number % len(hidden)]][:6], key=lambda each: each.token)
    which = f", number {number % len(hidden) + 1} of {len(hidden)}," if len(hidden) > 1 else ""
    return _most(
        f"What is the model's first guess for the hidden word{which}?",
        [visible(each.token) for each in found],
        np.array([each.probability for each in found]),
        lambda name, value: f"{name}, with a probability of {value:.3f}.",
    )


def about_parameters(view: View, number: int) -> Question | None:
    """Which part of the model has most parameters."""
    del number
    parts = {name: count for name, count in view.translator.parameters_by_part().items() if count}
    return _most(
        "Which part of this model has the most parameters?",
        list(parts),
        np.array(list(parts.values())),
        lambda name, value: f"{name}: {value:,} of {sum(parts.values()):,}.",
    )


def about_embeddings(view: View, number: int) -> Question | None:
    """Which token begins with the longest vector."""
    stream = list(view.trace.streams.values())[number % len(view.trace.streams)]
    lengths = np.linalg.norm(stream.embedded.embedding.astype(np.float64), axis=-1)
    return _most(
        f"Which token of the {stream.name} has the longest embedding?",
        numbered(stream.tokens.labels),
        lengths,
        lambda name, value: (
            f"{name}: a length of {value:.2f}, before its position is added; the mean is {lengths.mean():.2f}."
        ),
    )


def about_positions(view: View, number: int) -> Question | None:
    """Which of a few positions has the encoding most like that of a given one."""
    encoding = view.translator.positional_encoding()
    if encoding is None or len(encoding) < 40:
        return None
    start = 10 + number % 10
    others = [start - 10, start - 3, start + 1, start + 5, start + 20]
    rows = encoding.astype(np.float64)
    cosines = rows[others] @ rows[start] / np.linalg.norm(rows[others], axis=-1) / np.linalg.norm(rows[start])
    return _most(
        f"Which position's encoding is most like that of position {start}?",
        [f"position {other}" for other in others],
        cosines,
        lambda name, value: f"{name.capitalize()}: a cosine of {value:.3f}. Neighbours differ most in the fast pairs.",
    )


def about_cells(view: View, number: int) -> Question | None:
    """How many cells are open if source and target are one matrix."""
    del number
    n, m = (len(stream.tokens) for stream in view.trace.streams.values())
    whole, causal, own = (n + m) ** 2, (n + m) * (n + m + 1) // 2, n * n + n * m + m * (m + 1) // 2
    counts = sorted({whole, causal, own, n * m})
    return Question(
        f"Source and target have {n} and {m} tokens. In one matrix over all {n + m}, how many cells does this model "
        "use?",
        tuple(f"{count:,}" for count in counts),
        (counts.index(own),),
        f"{own:,} of {whole:,}: n² in the encoder, n m in cross-attention, m (m + 1) / 2 in the decoder. A decoder "
        f"alone would use {causal:,}.",
    )


def about_additions(view: View, number: int) -> Question | None:
    """Which sub-layer of a stack adds the longest vectors."""
    stream = list(view.trace.streams.values())[-1 - number % len(view.trace.streams)]
    titles = {"self_attn": "self-attention", "cross_attn": "cross-attention", "feed_forward": "feed-forward"}
    names = [f"{titles[each.name]}, layer {each.layer}" for each in stream.sublayers]
    lengths = np.array([np.linalg.norm(each.out.astype(np.float64), axis=-1).mean() for each in stream.sublayers])
    return _most(
        f"Which sub-layer of the {stream.name} adds the longest vectors to the residual stream, on average?",
        names,
        lengths,
        lambda name, value: f"{name.capitalize()}: a mean length of {value:.2f}.",
    )


def about_first_choice(view: View, number: int) -> Question | None:
    """How probable the first choice of a step is."""
    trace, first = view.trace, view.trace.first_written
    row = first + number % (len(trace.candidates) - first)
    best = trace.candidates[row][0]
    bounds = (0.25, 0.5, 0.75)
    return Question(
        f"The decoder has just read “{visible(trace.row_tokens[row])}” (step {row - first}). How probable is its first "
        "choice?",
        ("below 0.25", "0.25 to 0.5", "0.5 to 0.75", "above 0.75"),
        (int(np.searchsorted(bounds, best.probability)),),
        f"“{visible(best.token)}”, with a probability of {best.probability:.3f}.",
    )


def about_slope(view: View, number: int) -> Question | None:
    """Whose weight answers most to a change of its own score: the softmax's Jacobian."""
    attention = view.attention
    rows = rows_with_choice(attention.mask[view.head])
    if not rows:
        return None
    queries, keys = axis_labels(attention)
    row = rows[(len(rows) // 2 + number) % len(rows)]
    weights = attention.pattern[view.head, row].astype(np.float64)
    open_keys = np.flatnonzero(attention.mask[view.head, row])
    slopes = (weights * (1 - weights))[open_keys]
    if np.isclose(np.sort(slopes)[-2:], slopes.max(), rtol=1e-4).all():
        return None
    return _most(
        f"In the row of “{queries[row]}” each score is raised a little, one at a time. Whose own weight changes most?",
        [keys[i] for i in open_keys],
        slopes,
        lambda name, value: (
            f"{name}: its weight a changes by a (1 − a) = {value:.3f} for each unit of its score. A weight "
            "near 0 or near 1 hardly changes."
        ),
    )


def about_missed_head(view: View, number: int) -> Question | None:
    """Which head of the layer the text needs most."""
    del number
    if Need.OWN_LAYERS not in view.translator.features or view.attention.n_heads < 2:
        return None
    trace = view.trace
    changes = [
        rerun(
            view.translator, trace, (*trace.interventions, HeadGate(0.0, view.kind, view.layer, head))
        ).log_probability
        - trace.log_probability
        for head in range(view.attention.n_heads)
    ]
    return _most(
        f"{KIND_TITLES[view.kind]}, layer {view.layer}: which head does the text miss most when it is switched off?",
        [f"head {head}" for head in range(len(changes))],
        -np.array(changes),
        lambda name, value: f"{name.capitalize()}: log p changes by {signed(-value, '+.2f')} nats.",
    )


def about_unlike_head(view: View, number: int) -> Question | None:
    """Which head of the layer looks elsewhere most often."""
    del number
    pattern = view.attention.pattern.astype(np.float64)
    others = [head for head in range(len(pattern)) if head != view.head]
    if len(others) < 2:
        return None
    apart = np.abs(pattern[others] - pattern[view.head]).sum(axis=-1).mean(axis=-1) / 2
    return _most(
        f"Which head of layer {view.layer} is least like head {view.head}?",
        [f"head {head}" for head in others],
        apart,
        lambda name, value: f"{name.capitalize()}: on average {value:.0%} of a row's weight lies on other keys.",
    )


def about_path(view: View, number: int) -> Question | None:
    """How many steps lie between the first token and the last in a recurrent network."""
    del number
    n = len(next(iter(view.trace.streams.values())).tokens)
    if n < 4:
        return None
    counts = sorted({1, int(np.ceil(np.log2(n))), n - 1, n * n})
    return Question(
        f"This text has {n} tokens. Through how many steps does the last one hear of the first in a recurrent network?",
        tuple(f"{count:,}" for count in counts),
        (counts.index(n - 1),),
        f"{n - 1}: one state after the other. In self-attention it is 1, whatever the distance.",
    )


def about_loss(view: View, number: int) -> Question | None:
    """The loss of a model that gives every token the same probability."""
    del number
    size = view.trace.logits.shape[-1]
    values = [np.log2(size) / 2, np.log(size), np.log2(size), np.sqrt(size)]
    options = sorted({round(float(value), 2) for value in values})
    return Question(
        f"The vocabulary has {size:,} tokens. What is the loss, in nats a token, of a model that knows nothing?",
        tuple(f"{value:.2f}" for value in options),
        (options.index(round(float(np.log(size)), 2)),),
        f"ln {size:,} = {np.log(size):.2f}: −ln of 1 / {size:,}. Compare it with the first point of the curve.",
    )


def about_work(view: View, number: int) -> Question | None:
    """Which part of the model does most multiply-adds on this text."""
    del number
    if Need.OWN_LAYERS not in view.translator.features:
        return None
    works = multiply_adds(view.translator.config, len(view.trace.src_tokens), len(view.trace.tgt_tokens))
    totals = {name: work.total for name, work in works.items() if work.total}
    return _most(
        "Which part does the most multiply-adds on this text?",
        [KIND_TITLES.get(name, name.replace("_", " ")) for name in totals],
        np.array(list(totals.values())),
        lambda name, value: f"{name}: {value:,} of {sum(totals.values()):,}.",
    )


def about_sharing(view: View, number: int) -> Question | None:
    """How many query heads read one head of keys and values."""
    del number
    kind = view.trace.kind(view.kind)
    group = kind.heads // kind.kv_heads
    counts = sorted({1, 2, 4, 8, group, kind.heads})
    return Question(
        f"This attention has {kind.heads} query heads. How many of them read the same keys and values?",
        tuple(map(str, counts)),
        (counts.index(group),),
        f"{group}: there are {kind.kv_heads} heads of keys and values.",
    )


def about_memory(view: View, number: int) -> Question | None:
    """How much memory the weights of one layer would need for a long text."""
    n, heads = (4096, 16_384)[number % 2], view.attention.n_heads
    mebibytes = heads * n * n * 4 // 2**20
    sizes = sorted({mebibytes // 64, mebibytes // heads, mebibytes, mebibytes * 8})
    return Question(
        f"A text of {n:,} tokens: how much memory do the attention weights of one layer with {heads} heads take, at 4 "
        "bytes a number?",
        tuple(f"{size:,} MiB" for size in sizes),
        (sizes.index(mebibytes),),
        f"{heads} · {n:,}² · 4 bytes = {mebibytes:,} MiB. FlashAttention never stores them.",
    )


def _most(text: str, names: Sequence[str], values: Array, say: Callable[[str, float], str]) -> Question | None:
    """Which of these has the largest value; None where there is no choice."""
    if len(names) < 2:
        return None
    best, value = highest(np.asarray(values))
    options, right = _choose_options(names, range(len(names)), float(best[0]), best)
    return Question(text, options, right, say(_join(list(names), best), value))


Ask = Callable[[View, int], Question | None]


QUESTIONS: Mapping[str, Ask] = MappingProxyType(
    {
        "attention_step_by_step": about_steps,
        "heads_and_layers": about_heads,
        "masks": about_masks,
        "temperature": about_temperature,
        "translate": about_doubt,
        "continue_text": about_doubt,
        "fill_in": about_hidden,
        "whole_model": about_parameters,
        "tokens_and_embeddings": about_embeddings,
        "positional_encoding": about_positions,
        "three_families": about_cells,
        "layer_by_layer": about_additions,
        "decoding": about_first_choice,
        "gradients": about_slope,
        "what_if": about_missed_head,
        "side_by_side": about_unlike_head,
        "why_attention": about_path,
        "training": about_loss,
        "model_card": about_work,
        "since_2017": about_sharing,
        "efficient_attention": about_memory,
    }
)


def subject_of(view: View, page: str) -> Hashable:
    """What a page's question is about; when it changes, the page asks another question."""
    trace = view.trace
    run = (trace.checkpoint_hash, *(stream.tokens.ids for stream in trace.streams.values()))
    if page == "temperature":
        # The page's slider moves τ, which is how a person checks the answer: that must not replace the question.
        return (*run, view.kind, view.layer, view.head)
    layer = (view.kind, view.layer)
    where = {
        "attention_step_by_step": (*layer, view.head),
        "gradients": (*layer, view.head),
        "side_by_side": (*layer, view.head),
        "heads_and_layers": layer,
        "what_if": layer,
        "masks": (view.kind,),
    }
    return (*run, trace.interventions, *where.get(page, ()))


def _choose_options(
    names: Sequence[str], candidates: Sequence[int], centre: float, best: Sequence[int]
) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """Names of the candidates to choose from, and which of them are correct.

    If there are too many, those nearest to `centre` stay, in their order, and "another" stands for the rest.
    """
    shown = sorted(map(int, candidates), key=lambda place: (abs(place - centre), place))
    if len(shown) > MOST_OPTIONS:
        shown = shown[: MOST_OPTIONS - 1]
    shown.sort()
    options, right = [names[place] for place in shown], [shown.index(place) for place in best if place in shown]
    if len(shown) < len(candidates):
        options.append(ANOTHER)
        right += [len(shown)] * any(place not in shown for place in best)
    return tuple(options), tuple(right)


def _join(names: Sequence[str], chosen: Sequence[int]) -> str:
    texts = [names[i] for i in chosen]
    return texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} and {texts[-1]} alike"


def highest(values: Array) -> tuple[tuple[int, ...], float]:
    """Every position of the largest of (n,) numbers, and that number."""
    most = values.max()
    return tuple(map(int, np.flatnonzero(values == most))), float(most)


def rows_with_choice(mask: Array) -> tuple[int, ...]:
    """The queries of a bool (query, key) mask that may attend to more than one key."""
    return tuple(map(int, np.flatnonzero(mask.sum(axis=-1) > 1)))


def heaviest_hidden(pattern: Array, mask: Array) -> float:
    """The largest weight of any masked cell, of (query, key) weights; 0 where none is masked."""
    return float(pattern[~mask].max(initial=0.0))


def halfway(scaled: Array, mask: Array, tau: float) -> tuple[float, float, float]:
    """A row's largest weight at tau = 1 and at `tau`, and a threshold to compare the second with.

    softmax(x / tau) is softmax(x) to the power of 1 / tau, renormalised, so the new largest weight depends on the
    others: its extremes are reached where the others are equal and where they lie on one key. The threshold is the
    mean of these extremes, rounded to three digits.

    Args:
        scaled: (key,) scores / sqrt(d_k).
        mask: bool (key,), True = may be attended to; at least two keys.
        tau: a temperature other than 1.
    """
    plain = float(softmax_at(scaled, mask, 1.0).max())
    others = int(mask.sum()) - 1
    ends = [plain ** (1 / tau) / (plain ** (1 / tau) + n * ((1 - plain) / n) ** (1 / tau)) for n in (1, others)]
    return plain, float(softmax_at(scaled, mask, tau).max()), round(sum(ends) / 2, 3)
