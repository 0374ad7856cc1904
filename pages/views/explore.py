"""One word in one head, step by step, as the home page explores it: what each box holds, and its one sentence."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from model.on_demand import MappingOnDemand
from model.run import Run
from model.trace import Array, Attention, Stream
from pages.views.words import blocks_of
from viz.canvas.explore import Box, Side, whole_or_row
from viz.canvas.matrices import Axis, Equation, Matrix
from viz.latex import number
from viz.theme import KEY, QUERY, VALUE, WEIGHTS, symmetric_range
from viz.tokens import decoder_names, labels

LEAST = 0.005
"""a smaller weight is 0.00 on screen, and not worth a word"""
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
    known = run.trace.logits.size > 0
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


@dataclass(frozen=True)
class Word:
    """One word in the chosen head."""

    run: Run
    attention: Attention
    """of the run: of a long text, it is computed whenever the run is asked for it"""
    query: int
    key: int

    @property
    def head(self) -> int:
        return self.run.head

    @cached_property
    def queries(self) -> Axis:
        read, predicts = labels(self.attention.query_tokens), self.attention.predicts
        notes = [f"predicts {word}" for word in labels(predicts.labels)] if predicts else ()
        return Axis("query", "queries", len(read), tuple(read), tuple(notes))

    @cached_property
    def keys(self) -> Axis:
        names = labels(self.attention.key_tokens)
        return Axis("key", "keys", len(names), tuple(names))

    @property
    def name(self) -> str:
        """What the row stands for: the token that it predicts, where it predicts one, else the one that it reads."""
        predicts = self.attention.predicts
        return labels(predicts.labels)[self.query] if predicts else self.queries.labels[self.query]

    @property
    def row(self) -> str:
        """ "zu → müde": what it reads, and what it predicts."""
        read = self.queries.labels[self.query]
        return decoder_names([read], [self.name])[0] if self.attention.predicts else read

    @property
    def largest(self) -> list[tuple[str, float, bool]]:
        """The one or two keys with the largest weights: name, weight, and whether it is the word itself."""
        weights, crosses = self.attention.pattern[self.head, self.query], self.attention.crosses
        best = [int(key) for key in np.argsort(-weights, kind="stable")[:2] if weights[key] >= LEAST]
        own = self.query if not crosses and self.attention.predicts is None else None
        return [(self.keys.labels[key], float(weights[key]), key == own) for key in best]

    @property
    def stack(self) -> str:
        """Where its query comes from."""
        return self.run.trace.kind(self.run.kind).queries

    @property
    def path(self) -> str:
        """Of the attention in a model of this project, as in the keys of its weights."""
        return f"{self.stack}.layers.{self.run.layer}.{MODULES[self.run.kind]}"


def boxes_of(word: Word) -> list[Box]:
    """What there is of the way from x to the head's part of the output, in the order of reading."""
    steps = _input, _projected, _scores, _divided, _before_softmax, _mask, _softmax, _weighted, _output
    place = {"query": word.query, "key": word.key}
    boxes = (step(word) for step in steps)
    return [replace(box, equation=_cut(box.equation, place)) for box in boxes if box is not None]


def _cut(equation: Equation, place: dict[str, int]) -> Equation:
    return tuple(p if isinstance(p, str) else whole_or_row(p, place[p.rows.name]) for p in equation)


def _vectors(word: Word, symbol: str, values: Array, by: str = "query", colour: str = "", path: str = "") -> Matrix:
    """A matrix with a vector for each query or key, all of its numbers on one scale."""
    rows = word.keys if by == "key" else word.queries
    model = values.shape[1] == word.attention.out.shape[1]
    columns = Axis("model" if model else "dimension", "dimensions", values.shape[1])
    low, high = symmetric_range(values)
    return Matrix(symbol, values, rows, columns, colour, low=low, high=high, note=path)


def _square(word: Word, symbol: str, values: Array, path: str, shared: Sequence[Array] = ()) -> Matrix:
    low, high = symmetric_range(values, *shared)
    allowed = word.attention.mask[word.head]
    return Matrix(symbol, values, word.queries, word.keys, low=low, high=high, note=path, allowed=allowed)


def _why(box: str, word: Word, **facts: bool) -> str:
    """The one sentence of a box."""
    (block,) = blocks_of("explore", box, {"attention": word.attention} | facts)
    return block.text


def _input(word: Word) -> Box:
    attention, embedded = word.attention, word.run.stream.embedded
    x = _vectors(word, "x", attention.query_input, path=f"{word.path}.query_input")
    first = embedded is not None and np.array_equal(embedded.sum, attention.query_input)
    positional = embedded is not None and bool(embedded.positional.any())
    later = word.run.layer > 0 or attention.crosses
    why = _why("x", word, first=first, positional=positional, later=later)
    if first and positional:
        terms = [
            _vectors(word, symbol, values, path=f"{word.stack}.{path}")
            for symbol, values, path in (
                ("embedding", embedded.embedding, "embedding"),
                ("position", embedded.positional, "positional"),
            )
        ]
        return Box("x", "x = embedding + position", why, (terms[0], "+", terms[1], "=", x))
    return Box("x", "x = embedding" if first else f"x, the input in layer {word.run.layer}", why, (x,))


def _projected(word: Word) -> Box:
    attention, head, path = word.attention, word.head, word.path
    q = _vectors(word, "q", attention.q[head], "query", QUERY, f"{path}.q")
    k = _vectors(word, "k", attention.k[head], "key", KEY, f"{path}.k")
    v = _vectors(word, "v", attention.v[head], "key", VALUE, f"{path}.v")
    return Box("qkv", "q, k, v: queries, keys, values", _why("qkv", word), (q, k, v))


def _scores(word: Word) -> Box:
    scores = word.attention.scores[word.head]
    shared = (word.attention.scaled[word.head],)
    matrix = _square(word, "scores", scores, f"{word.path}.scores", shared)
    return Box("scores", "q · k: scores", _why("scores", word), (matrix,))


def _divided(word: Word) -> Box | None:
    attention, head = word.attention, word.head
    if attention.scale == 1:
        return None
    divisor = number(1 / attention.scale, 3)
    divisor = f"√d_k = {divisor}" if attention.divides_by_root else divisor
    matrix = _square(word, "scaled", attention.scaled[head], f"{word.path}.scaled", (attention.scores[head],))
    return Box("divided", f"÷ {divisor}", _why("divided", word), (matrix,))


def _before_softmax(word: Word) -> Box | None:
    attention = word.attention
    if attention.reads_scaled:
        return None
    what = " and ".join(
        name
        for name, there in (("soft cap", attention.softcap is not None), ("bias", attention.bias is not None))
        if there
    )
    matrix = _square(word, "capped", attention.pre_softmax[word.head], f"{word.path}.pre_softmax")
    return Box("before", f"with the {what}", _why("before", word), (matrix,))


def _mask(word: Word) -> Box:
    mask = word.attention.mask[word.head]
    matrix = Matrix(
        "mask", mask.astype(np.float32), word.queries, word.keys, scale="mask", allowed=mask, note=f"{word.path}.mask"
    )
    return Box("mask", "mask", _why("mask", word, open=bool(mask.all())), (matrix,))


def _softmax(word: Word) -> Box:
    attention, head = word.attention, word.head
    mask, path = attention.mask[head], word.path
    weights = Matrix(
        "weights", attention.pattern[head], word.queries, word.keys, "", WEIGHTS, 0, 1, mask, note=f"{path}.pattern"
    )
    masked = np.where(mask, attention.pre_softmax[head], -np.inf)
    read = Matrix("masked", masked, word.queries, word.keys, allowed=mask)
    return Box("softmax", "softmax: weights", _why("softmax", word), (weights, read))


def _weighted(word: Word) -> Box:
    z = _vectors(word, "z", word.attention.z[word.head], path=f"{word.path}.z")
    return Box("z", "Σ weight × v: weighted values", _why("z", word), (z,))


def _output(word: Word) -> Box | None:
    attention, head = word.attention, word.head
    if attention.projections is None:
        return None
    part = attention.z[head] @ attention.projections.w_o[head]
    out = _vectors(word, "out", attention.out, path=f"{word.path}.out")
    own = _vectors(word, "z W_O", part.astype(np.float32), path=f"{word.path}.z @ W_O")
    return Box("out", "z W_O: output", _why("out", word), (own, "→", out))
