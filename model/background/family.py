"""The family of the Transformer: published configurations, and what they come to by formula.

Parameters, cached numbers and multiply-adds are computed from each model's table of sizes; tests hold the parameters
to the classes of `transformers`, built on the meta device, where it has one. Nothing is read off a file of weights.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any

from model.beside import read_beside
from model.language import Sentence, joined, later, sentence

PARTS = ("embedding", "positions", "attention", "feed-forward", "state space", "norms", "output", "other")
HALF = 2
"""bytes of a number in half precision"""


TABLE = later("{work}, Table {number}")
SECTION = later("{work}, section {number}")
SECTIONS = later("{work}, sections {numbers}")
"""of a paper"""


@dataclass(frozen=True, kw_only=True)
class Descent:
    """From whom a model descends, as its authors say; what it took from there, dropped, and has new."""

    parent: str
    took: str
    dropped: str = ""
    new: str = ""
    source: Sentence | str


@dataclass(frozen=True, kw_only=True)
class Relative:
    """A model whose sizes are not published; fields as in `Member`."""

    name: str
    year: float
    source: Sentence | str
    family: str
    """of an encoder-decoder, encoder or decoder; where its authors say only “Transformer”, how it writes"""
    descent: Descent


@dataclass(frozen=True, kw_only=True)
class Member:
    """One model as its authors describe it, with everything that its parameters follow from."""

    name: str
    year: float
    """with the month as a fraction: of the first version of the paper, or of the release"""
    source: Sentence
    """who published the configuration"""
    family: str
    """encoder-decoder, encoder, decoder or state space"""
    encoder_layers: int = 0
    decoder_layers: int = 0
    d_model: int
    heads: int = 0
    kv_heads: int = 0
    """0: as many as heads"""
    d_k: int = 0
    """of a head; 0: d_model / heads"""
    d_ff: int = 0
    vocabulary: int
    """0: it reads no tokens"""
    context: int | None = None
    """positions that it was trained for; None: not published"""
    positions: str
    learned_positions: int = 0
    """rows of learned tables, all together"""
    norm: str = "LayerNorm"
    placement: str = "pre"
    gated: bool = False
    biases: str = ""
    """of which projections of an attention: letters of q, k, v, o; the feed-forward has both or none"""
    ff_biases: bool = False
    norm_biases: bool = True
    norms_a_layer: Sequence[int] = (2, 2)
    """in a layer of the encoder, and of the decoder"""
    last_norms: int = 1
    """after the stacks, or before them"""
    tied: bool = True
    """whether the output matrix is that of the embedding, or there is none"""
    predicts: bool = True
    """whether it has an output matrix"""
    experts: int = 1
    active_experts: int = 1
    window: int = 0
    """keys that a query sees at most; 0: all"""
    more: Mapping[str, int] = field(default_factory=dict)
    """parameters by part that no other field tells"""
    tokens: float | None = None
    """read in training; None: not published"""
    published: float
    """parameters, as its authors give them"""
    active: float | None = None
    """parameters at work for each token, as its authors give them, where not all are"""
    nearest: str
    """the shipped checkpoint that is built most alike"""
    latent: "Latent | None" = None
    state: "StateSpace | None" = None
    dense_layers: int = 0
    """first layers without experts, with a feed-forward network of `dense_d_ff`"""
    dense_d_ff: int = 0
    shared_experts: int = 0
    descent: Descent | None = None
    """None: no other member stands before it"""

    @property
    def layers(self) -> int:
        return self.encoder_layers + self.decoder_layers

    @property
    def width(self) -> int:
        """Of one head's queries and keys."""
        return self.d_k or (self.d_model // self.heads if self.heads else 0)

    @property
    def key_heads(self) -> int:
        return self.kv_heads or self.heads

    @property
    def mask(self) -> str:
        """What a token may attend to."""
        seen = {
            "encoder-decoder": "all of the source, what is written before",
            "encoder": "all tokens",
            "decoder": "what comes before",
            "state space": "what comes before, as a state",
        }[self.family]
        return f"{seen}, at most {self.window:,} back" if self.window else seen

    def attention(self) -> int:
        """Parameters of one attention."""
        if self.latent:
            return self.latent.parameters(self.d_model, self.heads)
        inner, keys = self.heads * self.width, self.key_heads * self.width
        biases = {"q": inner, "k": keys, "v": keys, "o": self.d_model}
        return 2 * self.d_model * (inner + keys) + sum(biases[letter] for letter in self.biases)

    def feed_forward(self, dense: bool = False, active: bool = False) -> int:
        """Parameters of one feed-forward network, with all of its experts or with those that are at work for a token
        (`active`); `dense`: of one of the first layers, if these have no experts."""
        matrices = 3 if self.gated else 2
        if dense and self.dense_d_ff:
            return matrices * self.d_model * self.dense_d_ff
        one = matrices * self.d_model * self.d_ff + (self.d_ff + self.d_model) * self.ff_biases
        if self.experts == 1:
            return one
        at_work = self.active_experts if active else self.experts
        return (at_work + self.shared_experts) * one + self.d_model * self.experts

    def norm_size(self) -> int:
        """Parameters of one norm."""
        return self.d_model * (2 if self.norm == "LayerNorm" and self.norm_biases else 1)

    def parameters(self, active: bool = False) -> dict[str, int]:
        """By part; `active`: those at work for a token."""
        counts = Counter(self.more)
        counts.update(
            embedding=self.vocabulary * self.d_model,
            positions=self.learned_positions * self.d_model,
            norms=self.last_norms * self.norm_size(),
            output=0 if self.tied else self.vocabulary * self.d_model,
        )
        for _, parts in self._layers(active):
            counts.update(parts)
        return {part: counts[part] for part in PARTS}

    def _layers(self, active: bool = False) -> Iterator[tuple[str, dict[str, int]]]:
        """What each layer is called, from the first of the encoder on, and its parameters by part."""
        for stack, layers, norms in zip(
            ("encoder", "decoder"), (self.encoder_layers, self.decoder_layers), self.norms_a_layer, strict=True
        ):
            attentions = 2 if stack == "decoder" and self.family == "encoder-decoder" else 1
            for layer in range(layers):
                parts = (
                    {"state space": self.state.parameters(self.d_model)}
                    if self.state
                    else {
                        "attention": attentions * self.attention(),
                        "feed-forward": self.feed_forward(layer < self.dense_layers, active),
                    }
                )
                yield f"{stack} layer {layer}", parts | {"norms": norms * self.norm_size()}

    @cached_property
    def total(self) -> int:
        """All parameters."""
        return sum(self.parameters().values())

    @cached_property
    def _at_work(self) -> dict[str, int]:
        """Parameters by part that are at work for a token."""
        return self.parameters(active=True)

    def cached(self, n: int) -> int:
        """Numbers that are kept of n tokens for those that follow; 0 where nothing is written token by token.

        Of an encoder-decoder: n tokens written after a source of n tokens.
        """
        if self.family == "encoder":
            return 0
        if self.state:
            return self.layers * self.state.kept
        if self.latent:
            return self.decoder_layers * n * self.latent.kept
        seen = min(n, self.window) if self.window else n
        crossed = n if self.family == "encoder-decoder" else 0
        return self.decoder_layers * 2 * self.key_heads * self.width * (seen + crossed)

    def multiply_adds(self, n: int) -> int:
        """Of one pass over n tokens; of an encoder-decoder, n of the source and n of the target.

        Products with matrices at work, and of queries, keys, weights and values; masked cells are counted, those out of
        a window are not.
        """
        weights = sum(self._at_work[part] for part in ("attention", "feed-forward", "state space"))
        # A token meets one of the two stacks; keys and values of the memory are made of n tokens of the source.
        output = self.vocabulary * self.d_model if self.predicts else 0
        if self.state:
            return n * (weights + output + self.layers * self.state.products)
        seen = min(n, self.window) if self.window else n
        widths = (self.latent.d_k + self.latent.d_v) if self.latent else 2 * self.width
        crossed = self.decoder_layers if self.family == "encoder-decoder" else 0
        return n * (weights + output) + (self.layers * seen + crossed * n) * n * self.heads * widths

    def columns(self) -> list[tuple[str, dict[str, int]]]:
        """The model from its embedding to its output: what it is called, and parameters by part, one column each.

        Together they are all parameters.
        """
        counts = self.parameters()
        columns = [
            ("embedding", {part: counts[part] for part in ("embedding", "positions", "other")}),
            *self._layers(),
        ]
        drawn = {part: sum(parts.get(part, 0) for _, parts in columns) for part in PARTS}
        columns.append(("output", {part: counts[part] - drawn[part] for part in PARTS}))
        return [(name, {part: count for part, count in parts.items() if count}) for name, parts in columns]


@dataclass(frozen=True)
class Latent:
    """Latent attention (DeepSeek-V2): keys and values are made of one short vector per token, which is what is kept."""

    q_rank: int
    kv_rank: int
    plain: int
    """dimensions of a head's queries and keys without positions"""
    rotated: int
    """those with RoPE, whose key all heads share"""
    d_v: int

    @property
    def d_k(self) -> int:
        return self.plain + self.rotated

    @property
    def kept(self) -> int:
        """Numbers of a token."""
        return self.kv_rank + self.rotated

    def parameters(self, d_model: int, heads: int) -> int:
        """Of one attention, with the norms of the short vectors."""
        queries = d_model * self.q_rank + self.q_rank + self.q_rank * heads * self.d_k
        keys = d_model * self.kept + self.kv_rank + self.kv_rank * heads * (self.plain + self.d_v)
        return queries + keys + heads * self.d_v * d_model


@dataclass(frozen=True)
class StateSpace:
    """A layer of Mamba (Gu and Dao 2023): a state of fixed size in place of attention."""

    inner: int
    state: int
    kernel: int
    rank: int

    @property
    def kept(self) -> int:
        """Numbers of the state and of the convolution's last inputs, whatever the length."""
        return self.inner * (self.state + self.kernel)

    @property
    def products(self) -> int:
        """Multiply-adds of a token that no matrix of weights takes: the state decays, takes in, and is read."""
        return 3 * self.inner * self.state

    def parameters(self, d_model: int) -> int:
        """Of one layer."""
        ends = d_model * 2 * self.inner + self.inner * d_model
        convolution = self.inner * self.kernel + self.inner
        steps = self.inner * (self.rank + 2 * self.state) + self.rank * self.inner + self.inner
        return ends + convolution + steps + self.inner * self.state + self.inner


@cache
def members() -> tuple[Member, ...]:
    """All of them, in the order of their years; family.toml has their sizes."""
    parts = {"latent": Latent, "state": StateSpace}
    return tuple(
        Member(**{name: parts[name](**value) if name in parts else value for name, value in row.items()})
        for row in _rows("member")
    )


@cache
def relatives() -> tuple[Relative, ...]:
    """Those without published sizes, in the order of their years."""
    return tuple(Relative(**row) for row in _rows("relative"))


def member(name: str) -> Member:
    """The member of this name."""
    return next(one for one in members() if one.name == name)


def _rows(kind: str) -> Iterator[dict[str, Any]]:
    """Its tables in family.toml, with what they are of."""
    for row in read_beside(__file__)[kind]:
        if told := row.get("descent"):
            row["descent"] = Descent(**_with_source({"paper": row["paper"]} | told))
        yield _with_source(row)


def _with_source(row: dict[str, Any]) -> dict[str, Any]:
    work, table, section, sections = (row.pop(name, None) for name in ("paper", "table", "section", "sections"))
    if sections:
        return row | {"source": sentence(SECTIONS, work=work, numbers=joined(sections))}
    where = TABLE if table else SECTION
    return row | {"source": sentence(where, work=work, number=table or section) if table or section else work}
