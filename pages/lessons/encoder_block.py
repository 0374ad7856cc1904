"""Lesson 6: the encoder's block, and the residual stream that runs through all of them."""

import numpy as np

from model.background.sizes import self_attention_layer
from model.interventions import ResidualOff, SublayerOff
from model.trace import SubLayer
from pages.compute.runs import rerun
from pages.compute.view import View
from pages.lessons.positions import CROSSING
from pages.lessons.station import Answer, Lesson, Station
from pages.lessons.tokens import quote
from viz.latex import signed


def _block(view: View) -> tuple[SubLayer, SubLayer]:
    """Self-attention and feed-forward network of the encoder's layer on screen."""
    layers = [each for each in view.trace.streams["encoder"].sublayers if each.layer == view.layer]
    return layers[0], layers[-1]


def _lengths(rows: np.ndarray) -> np.ndarray:
    return np.linalg.norm(rows.astype(np.float64), axis=-1)


def explain_stream(view: View) -> Answer:
    """Cosines of what leaves the block with what entered it, the token's own and the others'; what the block adds."""
    attention, feed_forward = _block(view)
    enters, leaves = attention.before.astype(np.float64), feed_forward.after.astype(np.float64)
    cosines = leaves @ enters.T / np.outer(_lengths(leaves), _lengths(enters))
    own, others = float(np.diag(cosines).mean()), float(cosines[~np.eye(len(cosines), dtype=bool)].mean())
    shares = [float(np.median(_lengths(each.out) / _lengths(each.before))) for each in (attention, feed_forward)]
    return Answer(
        f"It amends it. What leaves block {view.layer} still points where the token's vector pointed before: a cosine "
        f"of **{own:.2f}** on average, and of {others:.2f} with the vectors of the other tokens. For half of the "
        f"tokens, attention adds a vector of at most {shares[0]:.0%} of the stream's length, and the feed-forward "
        f"network one of at most {shares[1]:.0%}. Each sub-layer reads the stream, and adds to it.",
        bool(own > 0.5 > others),
    )


def explain_residual(view: View) -> Answer:
    """log p without the sub-layer's addition, and without the way around it."""
    change = {}
    for name, intervention in (("addition", SublayerOff), ("way around", ResidualOff)):
        off = (*view.trace.interventions, intervention("encoder", view.layer, "self_attn"))
        change[name] = rerun(view.translator, view.trace, off).log_probability - view.trace.log_probability
    return Answer(
        f"The self-attention of block {view.layer}. Without what it adds, log p of the translation changes by "
        f"{signed(change['addition'], '+.1f')} nats. Without the connection around it, so that its output replaces the "
        f"stream: **{signed(change['way around'], '+.1f')}**. The layers above were trained on the stream with a "
        "correction in it; the correction alone is not what they can read. The connection carries the gradient, too: "
        "the derivative of x + F(x) is I + F′(x), so part of it passes the sub-layer unchanged, however small F′ is.",
        change["way around"] < change["addition"] < 0,
    )


def explain_norm(view: View) -> Answer:
    """How much the tokens' spreads differ before the norm, and that they are alike after it."""
    _, feed_forward = _block(view)
    rows = feed_forward.added.astype(np.float64)
    spread = rows.std(axis=-1)
    normed = (rows - rows.mean(axis=-1, keepdims=True)) / spread[:, None]
    widest = view.trace.src_tokens[int(spread.argmax())]
    return Answer(
        f"After the feed-forward network of block {view.layer} is added, the components of a token's vector spread by "
        f"{spread.min():.2f} to **{spread.max():.2f}** (standard deviation), the most at "
        f"{quote(widest)}. LayerNorm subtracts each vector's mean and divides by this number, so that every vector has "
        f"a spread of {normed.std(axis=-1).mean():.2f}; then it multiplies each dimension by a learned γ and adds a "
        f"learned β. Without it this difference, a factor of **{spread.max() / spread.min():.1f}**, would reach the "
        "next block, and every score with such a token would grow in proportion.",
        bool(spread.max() > 2 * spread.min()),
    )


def explain_feed_forward(view: View) -> Answer:
    """The share of neurons that are active, the weights of the two sub-layers, and log p without the network."""
    _, feed_forward = _block(view)
    active = (feed_forward.hidden > 0).mean(axis=-1)
    config = view.translator.config
    own, matrices = self_attention_layer(config, 1).weights, 3 if config.gated else 2
    network = matrices * config.d_model * config.d_ff
    off = (*view.trace.interventions, SublayerOff("encoder", name="feed_forward"))
    lost = rerun(view.translator, view.trace, off).log_probability - view.trace.log_probability
    return Answer(
        "Attention carries values from token to token: sums of vectors times matrices. The network then works on each "
        f"token's vector by itself, and not linearly: max(0, x W₁ + b₁), {config.d_ff:,} numbers in block "
        f"{view.layer}. On average **{active.mean():.0%}** of them are above 0 ({active.min():.0%} to "
        f"{active.max():.0%}); all others add nothing. Its {matrices} matrices have {matrices} · {config.d_model} · "
        f"{config.d_ff} = **{network:,}** weights, the attention of the block {own:,}. Without the networks of all "
        f"encoder blocks log p of the translation changes by **{signed(lost, '+.1f')}** nats.",
        bool(active.mean() < 0.5) and network > own and lost < 0,
    )


def _box(name: str) -> dict[str, object]:
    """The whole model with everything on, and a box of the encoder's layer 1 open at the second token."""
    return {"whole_off": "", "whole_at": f"encoder.1.{name}~1~1"}


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
            do="Follow the line “cosine to previous step”; then click on other tokens in the map below it.",
            look_for="For “animal” it stays above 0.75 at every step: no sub-layer turns the vector far.",
            question="Does a block replace a token's vector, or amend it?",
            hints=(
                "What is added to what at the end of each sub-layer?",
                "Two vectors that point the same way have a cosine of 1.",
            ),
            answer=explain_stream,
            chosen={"layers_stack": "encoder", "layers_token": 1, "layers_step": 4},
            page="layer_by_layer",
            further="The whole path of a token",
        ),
        _station(
            "residual",
            title="The way around",
            live="whole model",
            do="The self-attention of encoder layer 1 is open. Press “Off” beside the picture, and read log p; then "
            "“All on”, and “Residual off”.",
            look_for="Without the box log p falls a little. Without the residual it collapses.",
            question="What is worse: to lose what a sub-layer adds, or to lose the connection around it?",
            hints=(
                "What does the next layer get in each case?",
                "Through which of the two does the gradient reach the layers below undiminished?",
            ),
            answer=explain_residual,
            chosen=_box("self_attn"),
            page="whole_model",
            further="Each box off, and each residual",
            tab={"whole_tab": "Each box off"},
        ),
        _station(
            "norm",
            title="All vectors to one measure",
            live="stream",
            do="Compare two lines of the upper chart: the length of the sum x + Sublayer(x), which enters the norm, "
            "and the length after the step.",
            look_for="At the marked step the sum of “</s>” is more than ten times as long as what leaves the norm.",
            question="What would happen without the norm?",
            hints=(
                "Does every token get the same amount added?",
                "A score is a product of two vectors. What if one of them is ten times as long?",
            ),
            answer=explain_norm,
            chosen={"layers_stack": "encoder", "layers_token": 14, "layers_step": 4},
            page="layer_by_layer",
            further="One norm in numbers",
            tab={"layers_tab": "Inside one sub-layer"},
        ),
        _station(
            "feed-forward",
            title="The larger half",
            live="whole model",
            do="The feed-forward network of encoder layer 1 is open. Read its parameters beside the picture; then "
            "click on the self-attention below it, and read those.",
            look_for="The feed-forward network has about twice as many.",
            question="What is the feed-forward network for, if attention already mixes the tokens?",
            hints=(
                "Without it a block would only average and multiply by matrices. Which of its steps is not linear?",
                "How many of its neurons does one token need?",
            ),
            answer=explain_feed_forward,
            chosen=_box("feed_forward"),
            page="layer_by_layer",
            further="The neurons of one token",
            tab={"layers_tab": "Neurons"},
        ),
    ),
)
