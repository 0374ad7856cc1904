"""Lesson 6: the encoder's block, and the residual stream that runs through all of them."""

import numpy as np

from model.interventions import ResidualOff, SublayerOff
from model.trace import SubLayer
from pages.compute.runs import rerun
from pages.compute.view import View
from pages.lessons.positions import CROSSING
from pages.lessons.station import Answer, Lesson, Station
from pages.lessons.tokens import signed


def _block(view: View) -> tuple[SubLayer, SubLayer]:
    """Self-attention and feed-forward network of the encoder's layer on screen."""
    layers = [each for each in view.trace.streams["encoder"].sublayers if each.layer == view.layer]
    return layers[0], layers[-1]


def _lengths(rows: np.ndarray) -> np.ndarray:
    return np.linalg.norm(rows.astype(np.float64), axis=-1)


def explain_stream(view: View) -> Answer:
    """The cosine between what enters the block and what leaves it, beside what the block adds."""
    attention, feed_forward = _block(view)
    enters, leaves = attention.before.astype(np.float64), feed_forward.after.astype(np.float64)
    cosine = float(((enters * leaves).sum(-1) / _lengths(enters) / _lengths(leaves)).mean())
    shares = [float((_lengths(each.out) / _lengths(each.before)).mean()) for each in (attention, feed_forward)]
    return Answer(
        f"It amends it. What leaves block {view.layer} still points where it came from: a cosine of **{cosine:.2f}** "
        f"on average. Attention adds a vector of {shares[0]:.0%} of the stream's length, the feed-forward network one "
        f"of {shares[1]:.0%}. Each block reads the whole stream and writes a correction into it.",
        cosine > 0.5,
    )


def explain_residual(view: View) -> Answer:
    """log p without the sub-layer's addition, and without the way around it."""
    change = {}
    for name, intervention in (("addition", SublayerOff), ("way around", ResidualOff)):
        off = (*view.trace.interventions, intervention("encoder", view.layer, "self_attn"))
        change[name] = rerun(view.translator, view.trace, off).log_probability - view.trace.log_probability
    return Answer(
        f"The self-attention of block {view.layer}. Without what it adds, log p of the translation changes by "
        f"{signed(change['addition'])} nats. Without the connection around it, so that its output replaces the stream: "
        f"**{signed(change['way around'])}**. The sub-layers have learned corrections, which mean nothing alone. And "
        "the connection carries the gradient: the derivative of x + F(x) is I + F′(x), so it cannot vanish on the way "
        "down, however small F′ is.",
        change["way around"] < change["addition"] < 0,
    )


def explain_norm(view: View) -> Answer:
    """How much the tokens' spreads differ before the norm, and that they are alike after it."""
    _, feed_forward = _block(view)
    rows = feed_forward.added.astype(np.float64)
    spread = rows.std(axis=-1)
    normed = (rows - rows.mean(axis=-1, keepdims=True)) / spread[:, None]
    widest = view.trace.src_tokens[int(spread.argmax())]
    special = widest.startswith("<")
    return Answer(
        f"After the feed-forward network of block {view.layer} is added, the components of a token's vector spread by "
        f"{spread.min():.2f} to **{spread.max():.2f}** (standard deviation), the most at "
        f"{'the token ' if special else ''}`{widest.replace('`', '')}`. LayerNorm subtracts each vector's mean and "
        f"divides by this number, so that all have {normed.std(axis=-1).mean():.2f}; then it multiplies and shifts "
        "each dimension by a learned γ and β. Without it the vectors of some tokens would be many times as long as the "
        "others after a few blocks, and their scores with them.",
        bool(spread.max() > 2 * spread.min()),
    )


def explain_feed_forward(view: View) -> Answer:
    """The share of neurons that are active, and the parameters of the two sub-layers."""
    _, feed_forward = _block(view)
    active = (feed_forward.hidden > 0).mean(axis=-1)
    config = view.translator.config
    attention, network = 4 * config.d_model**2, 2 * config.d_model * config.d_ff
    return Answer(
        f"The network of block {view.layer} computes {config.d_ff} numbers for each token, max(0, x W₁ + b₁). In the "
        f"mean **{active.mean():.0%}** of them are above 0 ({active.min():.0%} to {active.max():.0%}); all others add "
        "nothing. No other token takes part: the same network runs at every position by itself. It has "
        f"2 · {config.d_model} · {config.d_ff} = **{network:,}** weights, the attention of the block {attention:,}.",
        bool(active.mean() < 0.5) and network > attention,
    )


def _station(slug: str, layer: int = 1, **fields: object) -> Station:
    return Station(slug=slug, source=CROSSING, kind="encoder_self", layer=layer, head=5, **fields)


ENCODER_BLOCK = Lesson(
    "encoder-block",
    "The encoder block",
    "Attention is half of a block, and not the larger half. What the residual stream, the norm and the feed-forward "
    "network are for.",
    12,
    (
        _station(
            "stream",
            title="A stream with corrections",
            live="stream",
            do="Click along the path, from the embedding to the last block.",
            look_for="The path never jumps back to 0: each step starts where the one before ended.",
            question="Does a block replace a token's vector, or amend it?",
            hints=(
                "What is added to what at the end of each sub-layer?",
                "Two vectors that point the same way have a cosine of 1.",
            ),
            answer=explain_stream,
            chosen={"layers_stack": "encoder"},
            page="layer_by_layer",
            further="The whole path of a token",
        ),
        _station(
            "residual",
            title="The way around",
            live="whole model",
            do="Open block 1 of the encoder, and switch off the residual of its self-attention; then switch off the "
            "box.",
            look_for="log p below the picture, after each switch.",
            question="What is worse: to lose what a sub-layer adds, or to lose the connection around it?",
            hints=(
                "What does the next layer get in each case?",
                "Through which of the two does the gradient reach the layers below undiminished?",
            ),
            answer=explain_residual,
            chosen={"whole_at": {"box": "encoder.1.self_attn", "positions": {"encoder": 1, "decoder": 1}}},
            page="whole_model",
            further="Each box off, and each residual",
            tab={"whole_tab": "Each box off"},
        ),
        _station(
            "norm",
            title="All vectors to one measure",
            live="stream",
            do="Choose the steps before and after a norm.",
            look_for="The length of the vector before the norm, and after it.",
            question="What would happen without the norm?",
            hints=(
                "Each sub-layer adds something, and nothing is ever taken away.",
                "A score is a product of two vectors. What if one of them is ten times as long?",
            ),
            answer=explain_norm,
            chosen={"layers_stack": "encoder", "layers_step": 4},
            page="layer_by_layer",
            further="One norm in numbers",
            tab={"layers_tab": "Inside one sub-layer"},
        ),
        _station(
            "feed-forward",
            title="The larger half",
            live="whole model",
            do="Compare the parameters of the boxes in block 1.",
            look_for="The feed-forward network has more of them than the attention below it.",
            question="What is the feed-forward network for, if attention already mixes the tokens?",
            hints=(
                "Without it a block would only average and multiply by matrices. Which of its steps is not linear?",
                "How many of its neurons does one token need?",
            ),
            answer=explain_feed_forward,
            chosen={"whole_at": {"box": "encoder.1.feed_forward", "positions": {"encoder": 1, "decoder": 1}}},
            page="layer_by_layer",
            further="The neurons of one token",
            tab={"layers_tab": "Neurons"},
        ),
    ),
)
