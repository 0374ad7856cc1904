"""Random tiny models, sentences and interventions for hypothesis."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import cache, cached_property, lru_cache
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from model.checkpoints.checkpoint import Checkpoint
from model.checkpoints.tokenizer import Tokenizer
from model.checkpoints.translator import Translator
from model.checkpoints.typed_text import prepare_text
from model.generation import beam_tree, sampling, search
from model.generation.steps import length_limits
from model.interventions import (
    SUBLAYERS,
    AttentionTemperature,
    ForbidSource,
    HeadGate,
    Intervention,
    LiftCausalMask,
    MaskEdit,
    NormOff,
    PatternEdit,
    PatternMask,
    PermutedAttention,
    PositionsOff,
    PositionsShuffled,
    ResidualOff,
    SharedKeysValues,
    SublayerOff,
    UniformAttention,
    Unscaled,
    ValueZeroing,
)
from model.network.config import TransformerConfig
from model.trace import Trace
from tests import fixture
from tests.model.tiny import SENTENCES, random_checkpoint

KINDS = ("encoder_self", "decoder_self", "cross")
few = settings(max_examples=settings.default.max_examples // 6, suppress_health_check=[HealthCheck.too_slow])
"""Fewer examples than the profile asks for, where each one runs a model."""


@contextmanager
def short_texts(most: int = 6) -> Iterator[None]:
    """Whatever is searched here ends after `most` tokens: models of random weights write to the limit."""

    def limits(*args: object, **options: object) -> list[int]:
        return [min(limit, most) for limit in length_limits(*args, **options)]

    with pytest.MonkeyPatch.context() as patch:
        for module in (beam_tree, sampling, search):
            patch.setattr(module, "length_limits", limits)
        yield


@cache
def shared_tokenizer() -> Tokenizer:
    """The vocabulary of tests/fixture."""
    return Tokenizer((Path(fixture.__file__).parent / "tokenizer.model").read_bytes())


@lru_cache(maxsize=256)
def translator_for(config: TransformerConfig, dtype: torch.dtype = torch.float32) -> Translator:
    """The same random model for the same configuration."""
    return random_checkpoint(config, shared_tokenizer(), dtype)


FAMILIES = {
    "translator": {},
    "language model": {"n_encoder_layers": 0},
    "masked": {"n_decoder_layers": 0},
}
SHAPES = {
    "post": {},
    "post, RMSNorm, learned positions": {"norm_function": "rms_norm", "positions": "learned"},
    "pre": {"norm": "pre"},
    "pre, RMSNorm, RoPE, wide shared keys": {
        "norm": "pre",
        "norm_function": "rms_norm",
        "positions": "rope",
        "n_kv_heads": 2,
        "d_key": 12,
        "activation": "swiglu",
    },
    "ALiBi, norm of queries and keys": {"positions": "alibi", "qk_norm": True},
    "RoPE after a norm, no biases": {"positions": "rope", "qk_norm": True, "biases": False, "norm": "pre"},
    "no positions, a window": {"positions": "none", "window": 3},
    "unscaled, narrow heads, small embeddings": {"scale_scores": False, "d_key": 6, "scale_embeddings": False},
}
"""Choices that the paper did not make, by name, a few together."""


def shaped(shape: str, family: str = "translator", dtype: torch.dtype = torch.float32, **sizes: int) -> Checkpoint:
    """The random model of a shape: two layers in each stack that its family has, four heads, d_model 32, or `sizes`."""
    chosen = {"d_model": 32, "n_heads": 4, "d_ff": 48, "n_encoder_layers": 2, "n_decoder_layers": 2, "max_len": 48}
    chosen |= FAMILIES[family] | SHAPES[shape] | sizes
    return translator_for(TransformerConfig(len(shared_tokenizer()), **chosen), dtype)


@st.composite
def configs(draw: st.DrawFn) -> TransformerConfig:
    """Every choice the paper itself varies, at a size that runs in milliseconds; with dropout, which must not show."""
    heads = draw(st.sampled_from((1, 2, 4)))
    return TransformerConfig(
        vocab_size=len(shared_tokenizer()),
        d_key=draw(st.sampled_from((0, 0, 6))),
        d_model=heads * draw(st.sampled_from((4, 8))),
        n_heads=heads,
        d_ff=16,
        n_encoder_layers=draw(st.integers(1, 2)),
        n_decoder_layers=draw(st.integers(1, 2)),
        dropout=0.3,
        max_len=48,
        norm=draw(st.sampled_from(("post", "pre"))),
        positions=draw(st.sampled_from(("sinusoidal", "learned"))),
        activation=draw(st.sampled_from(("relu", "gelu"))),
        tie_embeddings=draw(st.booleans()),
        scale_scores=draw(st.booleans()),
    )


def sentences(side: int) -> st.SearchStrategy[str]:
    """One to five words of the source (0) or target (1) language, in any order, or any short text, as it is read."""
    words = sorted({word for pair in SENTENCES for word in pair[side].split()})
    listed = st.lists(st.sampled_from(words), min_size=1, max_size=5).map(" ".join)
    return listed | st.text(min_size=1, max_size=6).map(lambda text: prepare_text(text, "encoder_decoder")).filter(bool)


@st.composite
def interventions(draw: st.DrawFn, config: TransformerConfig, causal: bool) -> Intervention:
    """One change to the model; with `causal`, one that lets no decoder row see what comes after it."""
    kind = draw(st.sampled_from((None, *KINDS)))
    head = draw(st.none() | st.integers(0, config.n_heads - 1))
    layer = draw(st.sampled_from((None, 0)))
    cells = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), max_size=4).map(tuple)
    choices = [
        st.builds(AttentionTemperature, st.floats(0.2, 5), st.just(kind), st.just(layer), st.just(head)),
        st.builds(
            HeadGate, st.floats(0, 1), st.just(kind), st.just(layer), st.just(head), st.sampled_from(("zero", "mean"))
        ),
        st.builds(MaskEdit, cells, st.just(()) if causal else cells, st.just(kind), st.just(layer), st.just(head)),
    ]
    choices += [change(st.just(kind), st.just(layer), st.just(head)) for change in ADDRESSED]
    if not causal:
        choices.append(st.builds(LiftCausalMask, st.just(layer)))
    groups = st.sampled_from((1, config.n_heads))
    choices.append(st.builds(SharedKeysValues, groups, st.just(kind), st.just(layer)))
    choices += ANYWHERE
    # Only the one that is drawn is made ready: of all of them that takes longer than the test.
    return draw(choices[draw(st.integers(0, len(choices) - 1))])


positions = st.lists(st.integers(0, 6), max_size=4).map(tuple)
orders = st.integers(0, 6).flatmap(lambda n: st.permutations(range(n))).map(tuple)
weights = st.lists(st.floats(0, 1e300), min_size=1, max_size=6).filter(any).map(tuple)
seeds = st.integers(0, 2**32 - 1)
ADDRESSED = (
    lambda *where: st.builds(Unscaled, *where),
    lambda *where: st.builds(UniformAttention, *where),
    lambda *where: st.builds(PermutedAttention, seeds, st.none() | orders, *where),
    lambda *where: st.builds(PatternEdit, st.integers(0, 6), weights, *where),
    lambda *where: st.builds(ValueZeroing, positions, *where),
)
"""Strategies of interventions with an address in the attentions: (kind, layer, head) -> strategy."""
ANYWHERE = (
    st.builds(ForbidSource, positions, st.sampled_from((None, "encoder_self", "cross"))),
    st.builds(
        PatternMask,
        st.integers(1, 4),
        st.none() | st.integers(1, 5),
        positions,
        st.none() | st.integers(1, 5),
        st.sampled_from((None, "encoder_self", "decoder_self")),
    ),
    st.builds(PositionsOff, st.sampled_from((None, "source", "target"))),
    st.builds(PositionsShuffled, orders, st.sampled_from(("source", "target"))),
    st.builds(SublayerOff, st.none(), st.sampled_from((None, 0)), st.sampled_from((None, "self_attn", "feed_forward"))),
    st.builds(NormOff, st.sampled_from((None, "decoder")), st.just(0), st.sampled_from((None, "feed_forward"))),
    st.builds(ResidualOff, st.just("decoder"), st.just(0), st.sampled_from(SUBLAYERS)),
)


@dataclass(frozen=True, repr=False)
class Run:
    """A model, a sentence pair, and what is changed in the model."""

    translator: Translator
    source: str
    target: str
    interventions: tuple[Intervention, ...]

    def __repr__(self) -> str:
        config = self.translator.model.config
        return f"Run({config}, {self.source!r}, {self.target!r}, {self.interventions})"

    @cached_property
    def trace(self) -> Trace:
        return self.translator.trace(self.source, self.target, interventions=self.interventions)


@st.composite
def runs(draw: st.DrawFn, causal: bool = False, changed: bool = True, dtype: torch.dtype = torch.float32) -> Run:
    """`changed`: with up to two interventions at work; `causal`: with none that lets a row see the future."""
    config = draw(configs())
    changes = draw(st.lists(interventions(config, causal), max_size=2)) if changed else []
    return Run(translator_for(config, dtype), draw(sentences(0)), draw(sentences(1)), tuple(changes))


def with_stream(trace: Trace, name: str, **changes: object) -> Trace:
    """`trace` with other fields of its stream `name`."""
    streams = dict(trace.streams)
    streams[name] = replace(streams[name], **changes)
    return replace(trace, streams=streams)


def arrays(record: object, path: str = "trace") -> Iterator[tuple[str, np.ndarray]]:
    """Every array inside a Trace, with where it stands."""
    if isinstance(record, np.ndarray):
        yield path, record
    elif is_dataclass(record):
        for field in fields(record):
            yield from arrays(getattr(record, field.name), f"{path}.{field.name}")
    elif isinstance(record, dict):
        for key, value in record.items():
            yield from arrays(value, f"{path}[{key}]")
    elif isinstance(record, tuple):
        for i, value in enumerate(record):
            yield from arrays(value, f"{path}[{i}]")


def assert_bit_equal(one: object, other: object) -> None:
    """Every array of two Traces holds the same bits."""
    for (path, a), (_, b) in zip(arrays(one), arrays(other), strict=True):
        assert a.dtype == b.dtype, path
        assert np.array_equal(a, b), f"{path} differs by {np.abs(a.astype(float) - b).max()}"
