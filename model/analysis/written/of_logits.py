"""A logit as a sum: what each part, and each head through each key, adds directly to the score of a token."""

import numpy as np

from model.analysis.written.of_stream import head_of_part, pull_back
from model.checkpoints.checkpoint import Checkpoint
from model.language import Refusal
from model.trace import Array, Trace

BIAS, LAYERS, CAP = "output bias", "output layers", "soft cap"


def logit_parts(
    opened: Checkpoint, trace: Trace, position: int, token: int, against: int | None = None
) -> dict[str, float]:
    """The logit of a token at a row, or how far it is ahead of that of the token `against`, split by the part that
    wrote it.

    A part's direct contribution, which ignores what later layers make of it (logit attribution; Elhage et al. 2021). Of
    a head with layers of its own, such as BERT's, a part adds the gradient of the logit times what it wrote, and what
    the gradient leaves is the part "output layers". What a soft cap takes away is the part "soft cap".

    Raises:
        ValueError: there is no such row or token, or residual stream or output could not be read.
    """
    direction, rest = _direction(opened, trace, position, token, against)
    terms = pull_back(trace, _stack(trace), direction[None], [position])
    values = {name: float(term[0]) for name, term in terms.items()}
    values |= {LAYERS if opened.logits_head.layers else BIAS: rest} if rest else {}
    if opened.logits_head.softcap is None:
        return values
    logits = trace.logits[position].astype(np.float64)
    logit = float(logits[token] - (0 if against is None else logits[against]))
    return values | {CAP: logit - sum(values.values())}


def logit_parts_of_all(opened: Checkpoint, trace: Trace) -> dict[str, Array]:
    """The logits of the tokens that the rows should predict, split by part: {part: (row,)}; all rows at once.

    Raises:
        ValueError: residual stream or output could not be read.
    """
    rows = range(len(trace.next_ids))
    ways = [_direction(opened, trace, row, token, None) for row, token in enumerate(trace.next_ids)]
    directions, rest = np.stack([direction for direction, _ in ways]), np.array([number for _, number in ways])
    sums = pull_back(trace, _stack(trace), directions, rows)
    sums |= {LAYERS if opened.logits_head.layers else BIAS: rest} if rest.any() else {}
    if opened.logits_head.softcap is None:
        return sums
    logits = trace.logits[rows, list(trace.next_ids)].astype(np.float64)
    return sums | {CAP: logits - np.sum(list(sums.values()), axis=0)}


def logit_parts_by_key(
    opened: Checkpoint, trace: Trace, position: int, token: int, against: int | None = None
) -> dict[str, Array]:
    """The contributions of the heads, split by the key that each read: {head's part: (key,)}; arguments and errors as
    of `logit_parts`. NaN where an intervention changed what the head wrote.
    """
    direction, _ = _direction(opened, trace, position, token, against)
    terms = pull_back(trace, _stack(trace), direction[None], [position], keys=True)
    return {name: term[:, 0] for name, term in terms.items() if head_of_part(name)}


def _stack(trace: Trace) -> str:
    """The stack whose output the logits read."""
    return list(trace.streams)[-1]


def _direction(opened: Checkpoint, trace: Trace, position: int, token: int, against: int | None) -> tuple[Array, float]:
    """(d_model,) and a number: the logit, or the difference, is the stack's output times the vector + the number."""
    rows, vocabulary = trace.logits.shape
    if not 0 <= position < rows:
        raise ValueError(f"no position {position}; the logits have rows 0 to {rows - 1}")
    for wanted in (token, against):
        if wanted is not None and not 0 <= wanted < vocabulary:
            raise Refusal("no token {wanted}; the vocabulary has 0 to {last}", wanted=wanted, last=vocabulary - 1)
    final = trace.streams[_stack(trace)].final[position]
    direction, rest = opened.logit_direction(token, final)
    if against is None:
        return direction, rest
    other, other_rest = opened.logit_direction(against, final)
    return direction - other, rest - other_rest
