"""Lesson 6: the encoder's block, and the residual stream that runs through all of them."""

import numpy as np

from model.background.sizes import self_attention_layer
from model.interventions import ResidualOff, SublayerOff
from model.run import Run
from model.trace import SubLayer
from pages.lessons.reading import Facts, lengths_of, log_p_change


def _block(run: Run) -> tuple[SubLayer, SubLayer]:
    """Self-attention and feed-forward network of the encoder's layer on screen."""
    layers = [each for each in run.trace.streams["encoder"].sublayers if each.layer == run.layer]
    return layers[0], layers[-1]


def stream(run: Run) -> Facts:
    """Cosines of what leaves the block with what entered it, the token's own and the others'; what the block adds."""
    attention, feed_forward = _block(run)
    enters, leaves = attention.before.astype(np.float64), feed_forward.after.astype(np.float64)
    cosines = leaves @ enters.T / np.outer(lengths_of(leaves), lengths_of(enters))
    shares = [np.median(lengths_of(each.out) / lengths_of(each.before)) for each in (attention, feed_forward)]
    others = cosines[~np.eye(len(cosines), dtype=bool)].mean()
    return {"own": np.diag(cosines).mean(), "others": others, "shares": shares}


def residual(run: Run) -> Facts:
    """log p without the sub-layer's addition, and without the way around it."""
    place = "encoder", run.layer, "self_attn"
    return {"addition": log_p_change(run, SublayerOff(*place)), "around": log_p_change(run, ResidualOff(*place))}


def norm(run: Run) -> Facts:
    """How much the tokens' spreads differ before the norm, and that they are alike after it."""
    _, feed_forward = _block(run)
    rows = feed_forward.added.astype(np.float64)
    spread = rows.std(axis=-1)
    normed = (rows - rows.mean(axis=-1, keepdims=True)) / spread[:, None]
    return {
        "least": spread.min(),
        "most": spread.max(),
        "widest": run.trace.src_tokens[int(spread.argmax())],
        "after": normed.std(axis=-1).mean(),
    }


def feed_forward(run: Run) -> Facts:
    """The share of neurons that are active, the weights of the two sub-layers, and log p without the network."""
    _, network = _block(run)
    active, config = (network.hidden > 0).mean(axis=-1), run.opened.config
    matrices = 3 if config.gated else 2
    return {
        "active": active,
        "config": config,
        "matrices": matrices,
        "network": matrices * config.d_model * config.d_ff,
        "attention_weights": self_attention_layer(config, 1).weights,
        "lost": log_p_change(run, SublayerOff("encoder", name="feed_forward")),
    }
