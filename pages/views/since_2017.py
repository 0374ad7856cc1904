"""Since 2017: the parts that replaced the paper's, on the numbers of this run. Two tabs are views so far."""

import numpy as np
import pandas as pd

from model.analysis import since_2017 as since
from model.analysis.residual_stream import step_name
from model.network.residual import Residual
from model.network.rotary import Rotary
from model.run import Run
from pages.views import Need, Result, view
from pages.views.controls import choice, menu, slider
from pages.views.names import axes
from viz.charts.since_2017 import rotation_plane
from viz.forms import Bars, Line, Lines, Mark, Strips
from viz.heatmap import row_names
from viz.latex import signed
from viz.theme import CHOSEN, GUIDE, OKABE_ITO

OWN, OTHER = OKABE_ITO[0], OKABE_ITO[5]
"""the model's own part, and the one beside it"""
SUBLAYERS = {"self_attn": "self-attention", "cross_attn": "cross-attention", "feed_forward": "feed-forward"}


def _tokens(run: Run) -> dict[int, str]:
    stream = run.stream
    return dict(enumerate(row_names(stream.tokens.labels, stream.predicts.labels if stream.predicts else None)))


TOKEN = menu("Token", _tokens, lambda run: len(_tokens(run)) // 2, key="since_token")


def _keys(run: Run, token: int) -> dict[int, str]:
    """Those that the token may attend to, in a head that rotates."""
    if run.attention.rotary is None:
        return {}
    _, keys = axes(run.attention)
    visible = run.attention.mask[run.head, token]
    return {int(n): keys[n] for n in (np.flatnonzero(visible) if visible.any() else range(len(keys)))}


def _heaviest(run: Run, token: int) -> int | None:
    """Not the token itself, nor the first one, which is not rotated."""
    weights = run.attention.pattern[run.head, token]
    return max(_keys(run, token), key=lambda n: (n not in (0, token), weights[n]), default=None)


def _pairs(run: Run) -> tuple[int, int]:
    rotary = run.attention.rotary
    return 0, -1 if rotary is None or rotary.cos.shape[-1] < 2 else rotary.cos.shape[-1] - 1


KEY = menu("Key", _keys, _heaviest, key="since_key", in_link=False)
PAIR = slider("Pair of dimensions", _pairs, 2, key="since_pair")


@view("RoPE", code=(Rotary, since.rotate_pairs))
def rope(run: Run, token: int = TOKEN, key: int | None = KEY, pair: int | None = PAIR) -> Result:
    """One query and one key before and after their rotation, pair by pair, and their score over the distance."""
    attention = run.attention
    if attention.rotary is None:
        return _added(run, token)
    rotation, rotary, pair = since.rotate_pairs(attention, run.head, token, key), attention.rotary, pair or 0
    half = len(rotation.frequency)
    dimensions = (2 * pair, 2 * pair + 1) if rotary.interleaved else (pair, pair + half)
    rows, keys = axes(attention)
    score, theta = float(attention.scores[run.head, token, key]), rotation.frequency[pair]
    products = {
        f"{when} the rotation: {signed(p.sum(), '.4g')} in all": p
        for when, p in zip(("before", "after"), rotation.products, strict=True)
    }
    hatched = {"color": GUIDE, "pattern": {"shape": "/"}}
    chosen = Mark(x=pair - 0.5, to=pair + 0.5)
    ends, plain, here = [rotation.offsets[0], rotation.offsets[-1]], rotation.unrotated_score, key - token
    offsets = {
        "rotated": Line(rotation.offsets, rotation.scores, symbol="circle", width=1.5, size=4),
        f"in your sentence: offset {signed(here, '+d')}": Line(
            [here], rotation.scores[rotation.offsets == here], CHOSEN, "circle-open", "", size=14
        ),
        f"not rotated: {signed(plain, '.4g')}": Line(ends, [plain, plain], GUIDE, dash="dot", width=1.5),
    }
    places = ("pair i, fastest rotation first", "its part of q · k")
    return Result(
        {
            "plane": rotation_plane(
                rotation.q[:, pair], rotation.k[:, pair], rotation.angle[:, pair], (rows[token], keys[key]), dimensions
            ),
            "pairs": Bars(
                np.arange(half), products, places, None, (hatched, OWN), what="pair", height=430, marks=[chosen]
            ),
            "offsets": Lines(offsets, ("offset n − m, key minus query", "score q · k"), height=320),
        },
        {
            "rotates": True,
            "base": since.rotation_base(rotation.frequency, 2 * half),
            "half": half,
            "pair": pair,
            "dimensions": dimensions,
            "turns": [(what, at, theta, at * theta) for what, at in (("the query", token), ("the key", key))],
            "lengthened": None if np.isclose(rotation.factor, 1, rtol=1e-4) else rotation.factor,
            "rest": rotary.q.shape[-1] - 2 * half,
            "score": score,
            "off": abs(rotation.score - score),
        },
        {name: getattr(rotation, name) for name in ("frequency", "angle", "q", "k", "products")},
    )


def _added(run: Run, token: int) -> Result:
    """What a model that does not rotate has instead: a vector that is added to the embedding."""
    positions = run.opened.config.positions
    facts = {"rotates": False, "positions": positions, "token": token}
    if positions == "rope":
        return Result(facts=facts)
    if positions in ("alibi", "relative bias", "none", "unread"):
        return Result(facts=facts, lacks=Need.ROPE)
    terms = since.embedded_token(run.trace, run.stream.name, token)
    names = {"embedding": "embedding", "positional": "PE(pos)", "sum": "their sum"}
    added = Strips({title: terms[name] for name, title in names.items()}, height=250)
    return Result({"added": added}, facts | {"width": len(terms["sum"])}, lacks=Need.ROPE)


def _norms(run: Run) -> dict[int, str]:
    sublayers = [step.sublayer for step in since.norm_steps(run.trace, run.stream.name)]
    return {i: SUBLAYERS[s.name] for i, s in enumerate(sublayers) if s.layer == run.layer}


NORM = choice(lambda run: f"Norm of layer {run.layer}, at the", _norms, key="since_norm")


@view("RMSNorm", code=(Residual, since.compare_norms))
def norms(run: Run, token: int = TOKEN, norm: int | None = NORM) -> Result:
    """LayerNorm and RMSNorm of one vector of this run; one of them is the model's own."""
    if norm is None:
        return Result(facts={"own": None})
    found = since.norm_steps(run.trace, run.stream.name)
    own, steps = found[norm].norm, [step_name(step.sublayer) for step in found]
    compared = since.compare_norms(run.trace, run.stream.name, norm, token)
    other = {"LayerNorm": "RMSNorm", "RMSNorm": "LayerNorm"}[own.kind]
    results, numbers = {"LayerNorm": compared.layer_norm, "RMSNorm": compared.rms_norm}, np.arange(len(compared.x))
    points = {
        f"{other} of the same vector": Line(
            compared.x, results[other], OTHER, "diamond-open", "", size=11, names=numbers
        ),
        f"{own.kind}, this model": Line(compared.x, results[own.kind], OWN, "circle", "", size=6, names=numbers),
    }
    x, low = np.arange(len(steps)), float(compared.cosine.min())
    room = 0.1 * (1 - low) + 1e-6
    cosines = {
        "all tokens": Line(
            x, compared.cosine[:, token], between=(compared.cosine.min(axis=1), compared.cosine.max(axis=1))
        ),
        "this token": Line(x, compared.cosine[:, token], OWN, "circle", names=steps),
    }
    zero = {"xaxis": {"zeroline": True}, "yaxis": {"zeroline": True}}
    table = pd.DataFrame(
        {
            "": ["subtracts", "divides by", "result’s length"],
            "LayerNorm": [compared.mean, compared.std, np.linalg.norm(compared.layer_norm)],
            "RMSNorm": [0.0, compared.rms, np.linalg.norm(compared.rms_norm)],
        }
    )
    return Result(
        {
            "norms": Lines(
                points,
                ("component of x, as the norm reads it", "after the norm, before γ"),
                of="dimension",
                height=430,
                marks=[Mark(x=compared.mean, text="mean μ")],
                layout=zero,
            ),
            "norm-cosines": Lines(
                cosines,
                ("norm of layer and sub-layer", "cosine of both results"),
                ticks=steps,
                of="norm of",
                height=430,
                marks=[Mark(x=norm)],
                layout={"xaxis": {"tickangle": -45}, "yaxis": {"range": [low - room, 1 + room]}},
            ),
            "table": table,
        },
        {
            "own": own.kind,
            "other": other,
            "learns_beta": own.beta is not None,
            "cosine": compared.cosine[norm, token],
            "share": abs(compared.mean) / compared.rms,
            "off": np.abs(own(compared.x) - compared.normed).max(),
        },
        lacks=Need.RMS_NORM if found[0].norm.kind == "LayerNorm" else None,
    )
