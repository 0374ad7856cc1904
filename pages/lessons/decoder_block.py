"""Lesson 7: the decoder's block: causal, with a second attention, and trained on the target that it has to predict."""

import numpy as np

from model.analysis.heads.softmax import mask_orders
from model.analysis.written import head_of_part, logit_parts, logit_parts_by_key
from model.interventions import LiftCausalMask
from model.run import Run
from pages.lessons.reading import Facts, find


def mask(run: Run) -> Facts:
    """What lifting the causal mask does to a model that was trained with it."""
    lifted = run.forced(*run.trace.interventions, LiftCausalMask())
    pattern = run.trace.attention("decoder_self", run.layer).pattern
    before, after = run.trace.log_probability, lifted.trace.log_probability
    return {"weight": np.triu(pattern, 1).max(), "before": before, "after": after}


def shift(run: Run) -> Facts:
    """What the first rows read and should predict, and how often the most probable token is that one."""
    trace = run.trace
    right = [row[0].id == wanted for row, wanted in zip(trace.candidates, trace.next_ids, strict=True)]
    pairs = list(zip(trace.tgt_tokens, trace.next_tokens, strict=True))[:3]
    return {"pairs": pairs, "right": sum(right), "rows": len(right)}


def memory(run: Run) -> Facts:
    """That the keys of cross-attention are the encoder's output times W_K, and what one target token looks at."""
    attention, head = run.attention, run.head
    if not attention.crosses:
        return None
    weights = attention.projections
    keys = run.trace.memory.astype(np.float64) @ weights.w_k[head] + weights.b_k[head]
    text = np.where(np.array(attention.key_special), 0.0, attention.pattern[head])
    row, key = np.unravel_index(int(text.argmax()), text.shape)
    return {
        "error": np.abs(keys - attention.k[head]).max(),
        "weight": text.max(),
        "key": attention.key_tokens[key],
        "wanted": run.trace.next_tokens[row],
    }


def cache(run: Run) -> Facts:
    """That the keys and values of a prefix stay what they are when the text goes on."""
    trace, steps, config = run.trace, len(run.trace.next_ids), run.opened.config
    n = max(steps // 2, 1)
    prefix = run.opened.trace_ids(trace.source, trace.next_ids[:n], trace.interventions)
    whole, part = (each.attention("decoder_self", run.layer) for each in (trace, prefix))
    apart = max(np.abs(a[:, :n] - b[:, :n]).max() for a, b in ((whole.k, part.k), (whole.v, part.v)))
    return {"n": n, "steps": steps, "apart": apart, "numbers": config.kv_heads * (config.d_k + config.d_v)}


def choice(run: Run) -> Facts:
    """The row where the model is least sure, with its first choices."""
    trace, sure = run.trace, np.array([row[0].probability for row in run.trace.candidates])
    row = int(sure.argmin())
    return {
        "sure": sure.mean(),
        "after": trace.tgt_tokens[row],
        "first": trace.candidates[row][:3],
        "vocabulary": trace.logits.shape[-1],
    }


def writer(run: Run) -> Facts:
    """The head that adds most to the lead of a written word over its runner-up, and the source word that it read."""
    trace = run.trace
    if not any(kind.crosses for kind in trace.kinds):
        return None
    row = find(trace.next_tokens, "Tier", len(trace.next_tokens) // 2)
    token = trace.next_ids[row]
    other = next(one for one in trace.candidates[row] if one.id != token)
    by_key = logit_parts_by_key(run.opened, trace, row, token, other.id)
    crossing = {name: values for name, values in by_key.items() if head_of_part(name)[0] == "cross"}
    best = max(crossing, key=lambda name: np.nan_to_num(crossing[name]).sum())
    values, (_, layer, head) = np.nan_to_num(crossing[best]), head_of_part(best)
    return {
        "word": trace.next_tokens[row],
        "other": other.token,
        "layer": layer,
        "head": head,
        "lead": float(trace.logits[row, token]) - float(trace.logits[row, other.id]),
        "adds": values.sum(),
        "source": trace.src_tokens[int(values.argmax())],
        "through": values.max(),
    }


def rest(run: Run) -> Facts:
    """How much of the same lead heads add, how much feed-forwards, and how much all else."""
    trace = run.trace
    row = find(trace.next_tokens, "Tier", len(trace.next_tokens) // 2)
    token = trace.next_ids[row]
    other = next(one for one in trace.candidates[row] if one.id != token)
    parts = logit_parts(run.opened, trace, row, token, other.id)
    heads = sum(value for name, value in parts.items() if head_of_part(name))
    forward = sum(value for name, value in parts.items() if name.endswith("feed_forward"))
    return {
        "word": trace.next_tokens[row],
        "other": other.token,
        "count": len(parts),
        "heads": heads,
        "forward": forward,
        "else_": sum(parts.values()) - heads - forward,
        "lead": float(trace.logits[row, token]) - float(trace.logits[row, other.id]),
        "error": abs(sum(parts.values()) - float(trace.logits[row, token]) + float(trace.logits[row, other.id])),
    }


def after(run: Run) -> Facts:
    """How far masking after the softmax is from masking before it, and how much of each row it leaves."""
    attention, head = run.attention, run.head
    mask = attention.mask[head]
    if mask.all():
        return None
    orders = mask_orders(attention.pre_softmax[head], mask, float(attention.temperature[head]))
    left = orders.after.sum(axis=-1)
    return {"apart": np.abs(orders.renormalised - orders.before).max(), "least": left.min(), "most": left.max()}
