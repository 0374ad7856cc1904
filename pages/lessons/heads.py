"""Lesson 4: several heads instead of one."""

import numpy as np

from model.analysis.heads.head_summary import summarise
from model.interventions import HeadGate
from model.run import Run
from pages.lessons.reading import Facts, log_p_change


def difference(run: Run) -> Facts:
    """The two heads of the chosen layer whose weights differ most, as total variation distance."""
    pattern = run.attention.pattern.astype(np.float64)
    apart = np.abs(pattern[:, None] - pattern[None]).sum(axis=-1).mean(axis=-1) / 2
    one, other = np.unravel_index(int(apart.argmax()), apart.shape)
    return {"one": one, "other": other, "apart": apart.max()}


def previous(run: Run) -> Facts:
    """The share of the chosen head's weight on the previous token, beside the others of its layer."""
    if run.attention.crosses:
        return None
    shares = [each.previous or 0.0 for each in summarise(run.attention)]
    return {"share": shares.pop(run.head), "others": max(shares, default=0.0)}


def size(run: Run) -> Facts:
    """Parameters of the four matrices by number of heads, and the rank that each head has."""
    config = run.opened.config
    d, h, d_k = config.d_model, config.n_heads, config.d_k
    divides = config.kv_heads * d_k == config.kv_heads * config.d_v == d
    return {"d": d, "h": h, "d_k": d_k, "matrices": 4 * d * d} if divides else None


def removal(run: Run) -> Facts:
    """log p of the same target with each head of the chosen layer off, and with all of them off."""
    place = {"kind": run.kind, "layer": run.layer}
    alone = [log_p_change(run, HeadGate(0.0, **place, head=head)) for head in range(run.attention.n_heads)]
    together, worst = log_p_change(run, HeadGate(0.0, **place)), int(np.argmin(alone))
    return {"heads": len(alone), "worst": worst, "change": alone[worst], "sum": sum(alone), "together": together}
