"""The family of the Transformer: published configurations, and what they come to by formula.

Parameters, cached numbers and multiply-adds are computed from each model's table of sizes; tests hold the parameters
to the classes of `transformers`, built on the meta device, where it has one. Nothing is read off a file of weights.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from model.language import Sentence, later, sentence

PARTS = ("embedding", "positions", "attention", "feed-forward", "state space", "norms", "output", "other")
HALF = 2
"""bytes of a number in half precision"""


TABLE = later("{work}, Table {number}")
SECTION = later("{work}, section {number}")
"""of a paper"""


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
    context: int | None
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
    norms_a_layer: tuple[int, int] = (2, 2)
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
        """Parameters of one feed-forward network, with all of its experts or with those that a token meets.

        Args:
            dense: one of the first layers, if these have no experts.
            active: counts those at work for a token.
        """
        matrices = 3 if self.gated else 2
        if dense and self.dense_d_ff:
            return matrices * self.d_model * self.dense_d_ff
        one = matrices * self.d_model * self.d_ff + (self.d_ff + self.d_model) * self.ff_biases
        if self.experts == 1:
            return one
        return (self.active_experts if active else self.experts) * one + self.shared_experts * one + self._router()

    def _router(self) -> int:
        return self.d_model * self.experts

    def norm_size(self) -> int:
        """Parameters of one norm."""
        return self.d_model * (2 if self.norm == "LayerNorm" and self.norm_biases else 1)

    def parameters(self, active: bool = False) -> dict[str, int]:
        """By part; `active`: those at work for a token."""
        attentions = self.layers + (self.decoder_layers if self.family == "encoder-decoder" else 0)
        dense = self.dense_layers
        norms = self.encoder_layers * self.norms_a_layer[0] + self.decoder_layers * self.norms_a_layer[1]
        counts = {
            "embedding": self.vocabulary * self.d_model,
            "positions": self.learned_positions * self.d_model,
            "attention": 0 if self.state else attentions * self.attention(),
            "feed-forward": 0
            if self.state
            else dense * self.feed_forward(True) + (self.layers - dense) * self.feed_forward(active=active),
            "state space": self.layers * self.state.parameters(self.d_model) if self.state else 0,
            "norms": (norms + self.last_norms) * self.norm_size(),
            "output": 0 if self.tied else self.vocabulary * self.d_model,
            "other": 0,
        }
        return {part: counts[part] + self.more.get(part, 0) for part in PARTS}

    @property
    def total(self) -> int:
        """All parameters."""
        return sum(self.parameters().values())

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
        counts = self.parameters(active=True)
        weights = sum(counts[part] for part in ("attention", "feed-forward", "state space"))
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
        norms = self.norm_size()
        columns = [("embedding", {part: counts[part] for part in ("embedding", "positions", "other")})]
        for stack, layers, many in zip(
            ("encoder", "decoder"), (self.encoder_layers, self.decoder_layers), self.norms_a_layer, strict=True
        ):
            crosses = stack == "decoder" and self.family == "encoder-decoder"
            for layer in range(layers):
                dense = layer < self.dense_layers
                parts = {
                    "attention": 0 if self.state else (2 if crosses else 1) * self.attention(),
                    "feed-forward": 0 if self.state else self.feed_forward(dense),
                    "state space": self.state.parameters(self.d_model) if self.state else 0,
                    "norms": many * norms,
                }
                columns.append((f"{stack} layer {layer}", parts))
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


_OLD = {"biases": "qkvo", "ff_biases": True}
_NEW = {"norm": "RMSNorm", "gated": True, "positions": "RoPE", "family": "decoder", "nearest": "everyday-lm"}

MEMBERS: tuple[Member, ...] = (
    Member(
        **_OLD,
        name="Transformer, base",
        year=2017.45,
        source=sentence(TABLE, work="Vaswani et al. 2017", number="3"),
        family="encoder-decoder",
        encoder_layers=6,
        decoder_layers=6,
        d_model=512,
        heads=8,
        d_ff=2048,
        vocabulary=37_000,
        context=None,
        positions="sinusoids",
        placement="post",
        norms_a_layer=(2, 3),
        last_norms=0,
        published=65e6,
        nearest="en-de",
    ),
    Member(
        **_OLD,
        name="Transformer, big",
        year=2017.45,
        source=sentence(TABLE, work="Vaswani et al. 2017", number="3"),
        family="encoder-decoder",
        encoder_layers=6,
        decoder_layers=6,
        d_model=1024,
        heads=16,
        d_ff=4096,
        vocabulary=37_000,
        context=None,
        positions="sinusoids",
        placement="post",
        norms_a_layer=(2, 3),
        last_norms=0,
        published=213e6,
        nearest="en-de",
    ),
    Member(
        **_OLD,
        name="GPT",
        year=2018.45,
        source=sentence(SECTION, work="Radford et al. 2018", number="4.1"),
        family="decoder",
        decoder_layers=12,
        d_model=768,
        heads=12,
        d_ff=3072,
        vocabulary=40_478,
        context=512,
        positions="learned table",
        learned_positions=512,
        placement="post",
        last_norms=0,
        published=117e6,
        nearest="everyday-lm-2017",
    ),
    Member(
        **_OLD,
        name="BERT, large",
        year=2018.78,
        source=sentence(SECTION, work="Devlin et al. 2019", number="3"),
        family="encoder",
        encoder_layers=24,
        d_model=1024,
        heads=16,
        d_ff=4096,
        vocabulary=30_522,
        context=512,
        positions="learned table",
        learned_positions=512,
        placement="post",
        predicts=False,
        more={"other": 2 * 1024},
        # Appendix A.2: 128 tokens a sequence for 90% of the steps, and 512 for the others.
        tokens=1e6 * 256 * (0.9 * 128 + 0.1 * 512),
        published=340e6,
        nearest="everyday-mlm",
    ),
    Member(
        **_OLD,
        name="GPT-2, XL",
        year=2019.12,
        source=sentence(TABLE, work="Radford et al. 2019", number="2"),
        family="decoder",
        decoder_layers=48,
        d_model=1600,
        heads=25,
        d_ff=6400,
        vocabulary=50_257,
        context=1024,
        positions="learned table",
        learned_positions=1024,
        published=1542e6,
        nearest="everyday-lm-2017",
    ),
    Member(
        name="T5, 11B",
        year=2019.81,
        source=sentence(SECTION, work="Raffel et al. 2020", number="3.7"),
        family="encoder-decoder",
        encoder_layers=24,
        decoder_layers=24,
        d_model=1024,
        heads=128,
        d_k=128,
        d_ff=65_536,
        vocabulary=32_128,
        context=512,
        positions="bias for each distance",
        norm="RMSNorm",
        norms_a_layer=(2, 3),
        last_norms=2,
        more={"positions": 2 * 32 * 128},
        tokens=1e12,
        published=11e9,
        nearest="en-de",
    ),
    Member(
        **_OLD,
        name="GPT-3",
        year=2020.41,
        source=sentence(TABLE, work="Brown et al. 2020", number="2.1"),
        family="decoder",
        decoder_layers=96,
        d_model=12_288,
        heads=96,
        d_ff=49_152,
        vocabulary=50_257,
        context=2048,
        positions="learned table",
        learned_positions=2048,
        tokens=300e9,
        published=175e9,
        nearest="everyday-lm-2017",
    ),
    Member(
        **_OLD,
        name="ViT, L/16",
        year=2020.81,
        source=sentence(TABLE, work="Dosovitskiy et al. 2021", number="1"),
        family="encoder",
        encoder_layers=24,
        d_model=1024,
        heads=16,
        d_ff=4096,
        vocabulary=0,
        context=197,
        positions="learned table",
        learned_positions=197,
        predicts=False,
        more={"embedding": 16 * 16 * 3 * 1024 + 1024 + 1024},
        published=307e6,
        nearest="everyday-mlm",
    ),
    Member(
        name="PaLM, 540B",
        year=2022.26,
        source=sentence(TABLE, work="Chowdhery et al. 2022", number="1"),
        family="decoder",
        decoder_layers=118,
        d_model=18_432,
        heads=48,
        kv_heads=1,
        d_k=256,
        d_ff=73_728,
        vocabulary=256_000,
        context=2048,
        positions="RoPE",
        norm_biases=False,
        norms_a_layer=(1, 1),
        placement="parallel",
        gated=True,
        tokens=780e9,
        published=540.35e9,
        nearest="everyday-lm",
    ),
    Member(
        name="Whisper, large-v2",
        year=2022.93,
        source=sentence(TABLE, work="Radford et al. 2022", number="1"),
        family="encoder-decoder",
        encoder_layers=32,
        decoder_layers=32,
        d_model=1280,
        heads=20,
        d_ff=5120,
        vocabulary=51_865,
        context=448,
        positions="sinusoids, learned table",
        learned_positions=448,  # the sinusoids of the encoder are not learned
        biases="qvo",
        ff_biases=True,
        norms_a_layer=(2, 3),
        last_norms=2,
        more={"embedding": 3 * 80 * 1280 + 1280 + 3 * 1280 * 1280 + 1280},
        published=1550e6,
        nearest="en-de",
    ),
    Member(
        **_NEW,
        name="Llama, 65B",
        year=2023.15,
        source=sentence(TABLE, work="Touvron et al. 2023", number="2"),
        decoder_layers=80,
        d_model=8192,
        heads=64,
        d_ff=22_016,
        vocabulary=32_000,
        context=2048,
        tied=False,
        tokens=1.4e12,
        published=65.2e9,
    ),
    Member(
        **_NEW,
        name="Mistral, 7B",
        year=2023.74,
        source=sentence(TABLE, work="Jiang et al. 2023", number="1"),
        decoder_layers=32,
        d_model=4096,
        heads=32,
        kv_heads=8,
        d_ff=14_336,
        vocabulary=32_000,
        context=8192,
        window=4096,
        tied=False,
        published=7.3e9,
    ),
    Member(
        name="Mamba, 2.8B",
        year=2023.92,
        source=sentence(TABLE, work="Gu and Dao 2023", number="12"),
        family="state space",
        decoder_layers=64,
        d_model=2560,
        vocabulary=50_280,
        context=2048,
        positions="none: a recurrence",
        norm="RMSNorm",
        norms_a_layer=(1, 1),
        state=StateSpace(inner=5120, state=16, kernel=4, rank=160),
        tokens=300e9,
        published=2.8e9,
        nearest="everyday-lm",
    ),
    Member(
        **_NEW,
        name="Mixtral, 8x7B",
        year=2024.02,
        source=sentence(TABLE, work="Jiang et al. 2024", number="1"),
        decoder_layers=32,
        d_model=4096,
        heads=32,
        kv_heads=8,
        d_ff=14_336,
        vocabulary=32_000,
        context=32_768,
        experts=8,
        active_experts=2,
        tied=False,
        published=47e9,
        active=13e9,
    ),
    Member(
        **_NEW,
        name="Llama 3.1, 405B",
        year=2024.56,
        source=sentence(TABLE, work="Grattafiori et al. 2024", number="3"),
        decoder_layers=126,
        d_model=16_384,
        heads=128,
        kv_heads=8,
        d_ff=53_248,
        vocabulary=128_256,
        context=131_072,
        tied=False,
        tokens=15.6e12,
        published=405e9,
    ),
    Member(
        **_NEW,
        name="DeepSeek-V3",
        year=2024.98,
        source=sentence(SECTION, work="DeepSeek-AI 2024", number="4.2"),
        decoder_layers=61,
        d_model=7168,
        heads=128,
        d_ff=2048,
        vocabulary=129_280,
        context=131_072,
        experts=256,
        active_experts=8,
        shared_experts=1,
        dense_layers=3,
        dense_d_ff=18_432,
        latent=Latent(q_rank=1536, kv_rank=512, plain=128, rotated=64, d_v=128),
        tied=False,
        tokens=14.8e12,
        published=671e9,
        active=37e9,
    ),
)


def member(name: str) -> Member:
    """The member of this name."""
    return next(one for one in MEMBERS if one.name == name)
