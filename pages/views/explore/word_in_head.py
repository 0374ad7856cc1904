"""One word in one head, step by step, as the home page explores it: what each box holds, and its one sentence."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from model.language import joined, sentence, tr
from model.on_demand import MappingOnDemand
from model.run import Run
from model.trace import Array, Attention, Stream
from pages.views.words import blocks_of
from viz.canvas.explore import Box, Part, Side, whole_or_row
from viz.drawing import named
from viz.latex import number
from viz.theme import KEY, QUERY, VALUE, WEIGHTS
from viz.tokens import decoder_names, labels

LEAST = 0.005
"""a smaller weight is 0.00 on screen, and not worth a word"""


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
    return int(stream.following is not None)


def _tokens(run: Run, stream: Stream) -> tuple[list[str], list[float | None]]:
    """Every token of a text, the last one predicted and never read, with its probability where it was predicted."""
    tokens, read = stream.tokens.labels, len(stream.tokens)
    if not _first(stream):
        return labels(tokens), [None] * read
    known = run.trace.logits.size > 0
    given = run.trace.target_probabilities.tolist() if known else [None] * read
    return labels((*tokens[:1], *stream.predicts.labels)), [None, *given]


def stacks_of(run: Run) -> list[dict[str, Any]]:
    """Figure 1 of the paper in short: each stack with its kinds of attention and their layers."""
    kinds = run.trace.kinds
    return [
        {
            "name": name,
            "kinds": [
                {"name": kind.name, "title": kind.title, "layers": list(kind.layers)}
                for kind in kinds
                if kind.queries == name
            ],
        }
        for name in dict.fromkeys(kind.queries for kind in kinds)
    ]


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
    def queries(self) -> list[str]:
        return labels(self.attention.query_tokens)

    @cached_property
    def keys(self) -> list[str]:
        return labels(self.attention.key_tokens)

    @property
    def notes(self) -> list[str]:
        """What each query's row predicts, if it predicts a token."""
        predicts = self.attention.predicts
        return [tr("predicts {token}", token=word) for word in labels(predicts.labels)] if predicts else []

    @property
    def name(self) -> str:
        """What the row stands for: the token that it predicts, where it predicts one, else the one that it reads."""
        predicts = self.attention.predicts
        return labels(predicts.labels)[self.query] if predicts else self.queries[self.query]

    @property
    def row(self) -> str:
        """ "zu → müde": what it reads, and what it predicts."""
        read = self.queries[self.query]
        return decoder_names([read], [self.name])[0] if self.attention.predicts else read

    @property
    def largest(self) -> list[tuple[str, float, bool]]:
        """The one or two keys with the largest weights: name, weight, and whether it is the word itself."""
        weights, crosses = self.attention.pattern[self.head, self.query], self.attention.crosses
        best = [int(key) for key in np.argsort(-weights, kind="stable")[:2] if weights[key] >= LEAST]
        own = self.query if not crosses and self.attention.predicts is None else None
        return [(self.keys[key], float(weights[key]), key == own) for key in best]

    @property
    def chosen(self) -> tuple[str, float, bool] | None:
        """The chosen key in the same way; None where it is one of those with the largest weights."""
        weight = float(self.attention.pattern[self.head, self.query, self.key])
        own = not self.attention.crosses and self.attention.predicts is None and self.key == self.query
        one = (self.keys[self.key], weight, own)
        return None if one in self.largest else one

    @property
    def stack(self) -> str:
        """Where its query comes from."""
        return self.run.trace.kind(self.run.kind).queries

    @property
    def path(self) -> str:
        """Of the attention in the model."""
        return self.attention.path


def boxes_of(word: Word) -> list[Box]:
    """What there is of the way from x to the head's part of the output, in the order of reading."""
    steps = _input, _projected, _scores, _divided, _before_softmax, _mask, _softmax, _weighted, _output
    place = {"query": word.query, "key": word.key}
    boxes = (step(word) for step in steps)
    return [
        replace(box, equation=tuple(p if isinstance(p, str) else whole_or_row(p, place[p.rows]) for p in box.equation))
        for box in boxes
        if box is not None
    ]


def _vectors(
    word: Word, symbol: str, name: str, values: Array, rows: str = "query", colour: str = "", note: str = ""
) -> Part:
    """A matrix with a vector for each query or key, all of its numbers on one scale."""
    columns = "model" if values.shape[1] == word.attention.out.shape[1] else "dimension"
    return Part(symbol, name, values, rows, columns, colour, note=note or name)


def _of_head(word: Word, symbol: str, name: str, rows: str = "query", colour: str = "") -> Part:
    """The vectors of the chosen head."""
    values = word.attention.array(name)[word.head]
    return _vectors(word, symbol, named(word.path, name, word.head), values, rows, colour, named(word.path, name))


def _square(word: Word, symbol: str, name: str, *shared: str, **more: Any) -> Part:
    """A number for each query and key, with the mask; `shared` are in the same range of colours."""

    def of_head(name: str) -> tuple[str, Array]:
        return named(word.path, name, word.head), word.attention.array(name)[word.head]

    more = {"note": named(word.path, name)} | more
    others = tuple(map(of_head, shared))
    return Part(symbol, *of_head(name), "query", "key", shared=others, mask=of_head("mask"), **more)


def _why(box: str, word: Word, **facts: bool) -> str:
    """The one sentence of a box."""
    (block,) = blocks_of("explore", box, {"attention": word.attention} | facts)
    return block.text


def _input(word: Word) -> Box:
    attention, embedded = word.attention, word.run.stream.embedded
    x = _vectors(word, "x", f"{word.path}.query_input", attention.query_input)
    first = embedded is not None and np.array_equal(embedded.sum, attention.query_input)
    positional = embedded is not None and bool(embedded.positional.any())
    later = word.run.layer > 0 or attention.crosses
    why = _why("x", word, first=first, positional=positional, later=later)
    if first and positional:
        terms = [
            _vectors(word, symbol, f"{word.stack}.{name}", values)
            for symbol, values, name in (
                ("embedding", embedded.embedding, "embedding"),
                ("position", embedded.positional, "positional"),
            )
        ]
        return Box("x", "x = embedding + position", why, (terms[0], "+", terms[1], "=", x))
    return Box("x", "x = embedding" if first else f"x, the input in layer {word.run.layer}", why, (x,))


def _projected(word: Word) -> Box:
    q = _of_head(word, "q", "q", "query", QUERY)
    k = _of_head(word, "k", "k", "key", KEY)
    v = _of_head(word, "v", "v", "key", VALUE)
    return Box("qkv", "q, k, v: queries, keys, values", _why("qkv", word), (q, k, v))


def _scores(word: Word) -> Box:
    matrix = _square(word, "scores", "scores", *([] if word.attention.scale == 1 else ["scaled"]))
    return Box("scores", "q · k: scores", _why("scores", word), (matrix,))


def _divided(word: Word) -> Box | None:
    attention = word.attention
    if attention.scale == 1:
        return None
    divisor = number(1 / attention.scale, 3)
    divisor = f"√dₖ = {divisor}" if attention.divides_by_root else divisor
    matrix = _square(word, "scaled", "scaled", "scores")
    return Box("divided", f"÷ {divisor}", _why("divided", word), (matrix,))


def _before_softmax(word: Word) -> Box | None:
    attention = word.attention
    if attention.reads_scaled:
        return None
    what = [sentence("soft cap")] * (attention.softcap is not None) + [sentence("bias")] * (attention.bias is not None)
    matrix = _square(word, "capped", "pre_softmax")
    return Box("before", sentence("with the {parts}", parts=joined(what)), _why("before", word), (matrix,))


def _mask(word: Word) -> Box:
    mask = word.attention.mask[word.head]
    why = _why("mask", word, open=bool(mask.all()))
    return Box("mask", "mask", why, (_square(word, "mask", "mask", scale="mask"),))


def _softmax(word: Word) -> Box:
    read = "scaled" if word.attention.reads_scaled else "pre_softmax"
    masked = _square(word, "masked", read, made="masked", note="")
    weights = _square(word, "weights", "pattern", scale=WEIGHTS)
    return Box("softmax", "softmax: weights", _why("softmax", word), (weights, masked))


def _weighted(word: Word) -> Box:
    return Box("z", "Σ weight × v: weighted values", _why("z", word), (_of_head(word, "z", "z"),))


def _output(word: Word) -> Box | None:
    attention, head = word.attention, word.head
    if attention.projections is None:
        return None
    part = (attention.z[head] @ attention.projections.w_o[head]).astype(np.float32)
    name = f"{named(word.path, 'z', head)} @ {named(word.path, 'w_o', head)}"
    out = _vectors(word, "out", f"{word.path}.out", attention.out)
    own = _vectors(word, "z W_O", name, part, note=f"{word.path}.z @ W_O")
    return Box("out", "z W_O: output", _why("out", word), (own, "→", out))
