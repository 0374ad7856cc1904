"""One word in one head, step by step, as the home page explores it: what each box holds, and its one sentence."""

import math
from collections.abc import Sequence

import numpy as np

from model.on_demand import MappingOnDemand
from model.run import Run
from model.trace import Array, Attention, Stream
from viz.canvas.explore import Box, Side, whole_or_row
from viz.canvas.matrices import Axis, Equation, Matrix
from viz.latex import number
from viz.theme import KEY, QUERY, VALUE, WEIGHTS, symmetric_range
from viz.tokens import labels

MODULES = {"encoder_self": "self_attn", "decoder_self": "self_attn", "cross": "cross_attn"}
"""kind of attention -> its name in a layer of this project's models"""


def sides_of(run: Run) -> list[Side]:
    """The texts whose tokens can be chosen: source and target, or the one text that the model reads."""
    kind, several = run.trace.kind(run.kind), len(run.trace.streams) > 1
    opens = {"encoder": "encoder_self", "decoder": "cross"}
    return [
        Side(
            {"encoder": "source", "decoder": "target"}[name] if several else "text",
            *_tokens(run, stream),
            run.kind if kind.queries == name else opens[name] if several else run.kind,
            _first(stream),
            kind.queries == name,
            kind.keys == name,
        )
        for name, stream in run.trace.streams.items()
    ]


def _first(stream: Stream) -> int:
    """The token that row 0 stands for: what it predicts, where rows predict what follows, else what it reads."""
    return int(stream.name == "decoder" and stream.predicts is not None)


def _tokens(run: Run, stream: Stream) -> tuple[list[str], list[float | None]]:
    """Every token of a text, the last one predicted and never read, with its probability where it was predicted."""
    tokens, read = stream.tokens.labels, len(stream.tokens)
    if not _first(stream):
        return labels(tokens), [None] * read
    known = run.trace.logits is not None
    given = run.trace.target_probabilities.tolist() if known else [None] * read
    return labels((*tokens[:1], *stream.predicts.labels)), [None, *given]


def rows_of_all_heads(run: Run, query: int) -> tuple[list[tuple[int, int]], Array, Array]:
    """(layer, head) of every head of the chosen kind, the weights of the row `query` in each, and its mask.

    Of a long text, whose layers are computed when they are asked for, only those of layers that are at hand.
    """
    trace = run.trace
    layers = trace.kind(run.kind).layers
    if isinstance(trace.attentions, MappingOnDemand):
        layers = [n for n in layers if n == run.layer or (run.kind, n) in trace.attentions.known]
    read = [trace.weights_and_mask(run.kind, layer) for layer in layers]
    places = [(layer, head) for layer, (weights, _) in zip(layers, read, strict=True) for head in range(len(weights))]
    weights, mask = (np.concatenate([part[number][:, query] for part in read]) for number in (0, 1))
    return places, weights, mask


def axes_of(attention: Attention) -> tuple[Axis, Axis]:
    """Queries and keys."""
    read, keys = labels(attention.query_tokens), labels(attention.key_tokens)
    notes = [f"predicts {word}" for word in labels(attention.predicts.labels)] if attention.predicts else ()
    return Axis("query", "queries", len(read), tuple(read), tuple(notes)), Axis("key", "keys", len(keys), tuple(keys))


def path_of(run: Run) -> str:
    """Of the chosen attention in a model of this project, as in the keys of its weights."""
    return f"{run.trace.kind(run.kind).queries}.layers.{run.layer}.{MODULES[run.kind]}"


def boxes_of(run: Run, query: int, key: int) -> list[Box]:
    """What there is of the way from x to the head's part of the output, in the order of reading."""
    steps = _input, _projected, _scores, _divided, _before_softmax, _mask, _softmax, _weighted, _output
    boxes = (step(run) for step in steps)
    place = {"query": query, "key": key}
    return [Box(box.name, box.title, box.why, _cut(box.equation, place)) for box in boxes if box is not None]


def _cut(equation: Equation, place: dict[str, int]) -> Equation:
    return tuple(p if isinstance(p, str) else whole_or_row(p, place[p.rows.name]) for p in equation)


def _vectors(run: Run, symbol: str, values: Array, by: str = "query", colour: str = "", path: str = "") -> Matrix:
    """A matrix with a vector for each query or key, all of its numbers on one scale."""
    rows = axes_of(run.attention)[by == "key"]
    model = values.shape[1] == run.attention.out.shape[1]
    columns = Axis("model" if model else "dimension", "dimensions", values.shape[1])
    low, high = symmetric_range(values)
    return Matrix(symbol, values, rows, columns, colour, low=low, high=high, note=path)


def _square(run: Run, symbol: str, values: Array, path: str, shared: Sequence[Array] = ()) -> Matrix:
    low, high = symmetric_range(values, *shared)
    rows, keys = axes_of(run.attention)
    allowed = run.attention.mask[run.head]
    return Matrix(symbol, values, rows, keys, low=low, high=high, note=path, allowed=allowed)


def _input(run: Run) -> Box:
    attention, embedded = run.attention, run.stream.embedded
    x = _vectors(run, "x", attention.query_input, path=f"{path_of(run)}.query_input")
    first = embedded is not None and np.array_equal(embedded.sum, attention.query_input)
    if first and embedded.positional.any():
        stack = run.trace.kind(run.kind).queries
        terms = [
            _vectors(run, symbol, values, path=f"{stack}.{path}")
            for symbol, values, path in (
                ("embedding", embedded.embedding, "embedding"),
                ("position", embedded.positional, "positional"),
            )
        ]
        why = "What the token means and where it stands, added up: positions are part of the input."
        return Box("x", "x = embedding + position", why, (terms[0], "+", terms[1], "=", x))
    if first:
        return Box("x", "x = embedding", "What the token means; its position is not added here.", (x,))
    made = "its embedding" + (" and position" if embedded is not None and embedded.positional.any() else "")
    since = "" if run.layer == 0 and not attention.crosses else ", and all that was added since"
    why = f"The token's vector, as this attention reads it: {made}{since}."
    return Box("x", f"x, the input in layer {run.layer}", why, (x,))


def _projected(run: Run) -> Box:
    attention, head, path = run.attention, run.head, path_of(run)
    q = _vectors(run, "q", attention.q[head], "query", QUERY, f"{path}.q")
    k = _vectors(run, "k", attention.k[head], "key", KEY, f"{path}.k")
    v = _vectors(run, "v", attention.v[head], "key", VALUE, f"{path}.v")
    turned = " RoPE turns q and k by their positions." if attention.rotary is not None else ""
    why = f"Learned matrices make three vectors: q asks, k answers, v is what a token hands on.{turned}"
    if attention.crosses:
        why = "q asks, made of x; k answers and v is handed on, both made of the encoder's output."
    return Box("qkv", "q, k, v: queries, keys, values", why, (q, k, v))


def _scores(run: Run) -> Box:
    scores = run.attention.scores[run.head]
    shared = (run.attention.scaled[run.head],)
    matrix = _square(run, "scores", scores, f"{path_of(run)}.scores", shared)
    return Box(
        "scores", "q · k: scores", "How well the query fits each key, as one number: their dot product.", (matrix,)
    )


def _divided(run: Run) -> Box | None:
    attention, head = run.attention, run.head
    if attention.scale == 1:
        return None
    root = math.isclose(attention.scale, attention.d_k**-0.5, rel_tol=1e-4)
    divisor = f"√d_k = {number(1 / attention.scale, 3)}" if root else number(1 / attention.scale, 3)
    matrix = _square(run, "scaled", attention.scaled[head], f"{path_of(run)}.scaled", (attention.scores[head],))
    why = "Keeps them in a range in which the softmax does not give all to one key."
    return Box("divided", f"÷ {divisor}", why, (matrix,))


def _before_softmax(run: Run) -> Box | None:
    attention = run.attention
    if attention.reads_scaled:
        return None
    what = " and ".join(
        name
        for name, there in (("soft cap", attention.softcap is not None), ("bias", attention.bias is not None))
        if there
    )
    matrix = _square(run, "capped", attention.pre_softmax[run.head], f"{path_of(run)}.pre_softmax")
    return Box("before", f"with the {what}", "What this model does to its scores before the softmax.", (matrix,))


def _mask(run: Run) -> Box:
    attention = run.attention
    rows, keys = axes_of(attention)
    mask = attention.mask[run.head]
    why = "A query may not look at what comes later." if attention.causal else "What a query may look at."
    if mask.all():
        why = "Nothing is hidden here: every query may look at every key."
    matrix = Matrix(
        "mask", mask.astype(np.float32), rows, keys, scale="mask", allowed=mask, note=f"{path_of(run)}.mask"
    )
    return Box("mask", "mask", why, (matrix,))


def _softmax(run: Run) -> Box:
    attention, head = run.attention, run.head
    rows, keys = axes_of(attention)
    mask, path = attention.mask[head], path_of(run)
    weights = Matrix("weights", attention.pattern[head], rows, keys, "", WEIGHTS, 0, 1, mask, note=f"{path}.pattern")
    masked = np.where(mask, attention.pre_softmax[head], -np.inf)
    why = "Scores become weights that add up to 1."
    if attention.sink is not None:
        why = "Scores become weights; a sink that is no key takes the rest up to 1."
    return Box("softmax", "softmax: weights", why, (weights, Matrix("masked", masked, rows, keys, allowed=mask)))


def _weighted(run: Run) -> Box:
    z = _vectors(run, "z", run.attention.z[run.head], path=f"{path_of(run)}.z")
    return Box("z", "Σ weight × v: weighted values", "What it takes in: a mix of all values, by weight.", (z,))


def _output(run: Run) -> Box | None:
    attention, head = run.attention, run.head
    if attention.projections is None:
        return None
    part = attention.z[head] @ attention.projections.w_o[head]
    out = _vectors(run, "out", attention.out, path=f"{path_of(run)}.out")
    own = _vectors(run, "z W_O", part.astype(np.float32), path=f"{path_of(run)}.z @ W_O")
    why = f"What this head adds; out is the sum of all {attention.n_heads} heads."
    return Box("out", "z W_O: output", why, (own, "→", out))
