"""The error of one run for each claim of `model.proof.claims`; where a claim does not apply, a sentence that says why.

A measure takes a `Case` in the precision of its model, so the same code gives the error in single and in double
precision. A violation without a size (a wrong label, weight on a pad) counts as infinite.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass

import numpy as np

from model.analysis.words import attention_words, hide_keys, merge
from model.analysis.written import logit_parts, side_parts, stages, total
from model.checkpoints.checkpoint import Checkpoint
from model.checkpoints.store import checkpoint_path, sha256
from model.interventions import Intervention, SublayerOff
from model.needs import Need
from model.network.config import BOS
from model.proof.checks import relative_error
from model.trace import Array, Attention, Trace


@dataclass(frozen=True)
class Case:
    """A run, and the head chosen in it."""

    opened: Checkpoint
    trace: Trace
    kind: str
    layer: int
    head: int

    def again(self, *more: Intervention) -> Trace:
        """A run on the same tokens, with the same interventions and `more`."""
        return self.opened.rerun(self.trace, (*self.trace.interventions, *more))

    @property
    def own_layers(self) -> bool:
        """True if the model is one of this project's own code."""
        return Need.OWN_LAYERS in self.opened.features

    @property
    def has_logits(self) -> bool:
        """True if the model gives each token of the vocabulary a probability."""
        return self.trace.logits.size > 0

    @property
    def with_matrices(self) -> list[Attention]:
        """The attentions whose matrices could be read."""
        return [each for each in self.trace.attentions.values() if each.projections is not None]

    @property
    def position_free(self) -> bool:
        """True if no intervention names positions, so that a cached step or a padded batch computes the same."""
        return all(change.position_free for change in self.trace.interventions)


MOST_ROWS = 64
"""of one stream, whose parts are summed for claim 21"""
NO_MATRICES = "Not all matrices of this model's heads could be read."
NO_LOGITS = "This model gives vectors but no token probabilities."
SUBLAYER_OFF = "A sub-layer is switched off, so its output is not the sum of its heads."


def contributions(case: Case) -> float | str:
    """Claim 4: the sum of all heads' contributions and b_O against the attention's output."""
    if is_off(case.trace):
        return SUBLAYER_OFF
    if not case.with_matrices:
        return NO_MATRICES
    return _largest(
        relative_error((a.z @ a.projections.w_o).sum(axis=0) + a.projections.b_o, a.out) for a in case.with_matrices
    )


def labels_and_scores(case: Case) -> float:
    """Claim 12: the labels of rows and columns, and each score against the product of its query and its key."""
    trace = case.trace
    rows = list(trace.streams.values())[-1]
    start = _first_id(case)
    honest = start is None or rows.tokens.ids[0] == start
    if rows.name == "decoder":
        honest &= trace.next_tokens[:-1] == trace.tgt_tokens[1:]
    for attention in trace.attentions.values():
        kind = trace.kind(attention.kind)
        queries, keys = (trace.streams[name].tokens.labels for name in (kind.queries, kind.keys))
        honest &= (attention.query_tokens, attention.key_tokens) == (queries, keys)
    if not honest:
        return math.inf
    return _largest(relative_error(np.einsum("hid,hjd->hij", a.q, a.k), a.scores) for a in trace.attentions.values())


def _first_id(case: Case) -> int | None:
    """Id of the token that the last stack's text begins with; None where a model begins with the text itself."""
    if case.own_layers:
        return BOS
    if len(case.trace.streams) > 1:
        return case.opened.model.start
    prompt, tokenizer = case.trace.prompt, case.opened.tokenizer
    # A chat template may begin otherwise than the tokenizer begins a text.
    ids = tokenizer.read(prompt) if isinstance(prompt, str) else tokenizer.describe_chat(prompt).ids
    return next(iter(ids), None)


def vocabulary(case: Case) -> float | str:
    """Claim 14: each row's probabilities sum to 1; the listed candidates have theirs, all other tokens the rest."""
    if not case.has_logits:
        return NO_LOGITS
    found = case.trace.probabilities
    errors = [float(np.abs(found.sum(axis=-1) - 1).max())]
    for row, listed in zip(found, case.trace.candidates, strict=True):
        ids, told = ([getattr(c, name) for c in listed] for name in ("id", "probability"))
        errors.append(float(np.abs(row[ids] - told).max()))
        errors.append(abs(np.delete(row, ids).sum() - (1 - sum(told))))
    return float(np.max(errors))


def hidden_tokens(case: Case) -> float | str:
    """Claim 15: what remains of each row and the share removed add up to it; renormalised, what remains does alone."""
    if not any(any(attention.key_special) for attention in case.trace.attentions.values()):
        return "This text has no special tokens: nothing can be hidden."
    errors = []
    for attention in case.trace.attentions.values():
        pattern, hidden = attention.pattern, np.array(attention.key_special)
        before = pattern.sum(axis=-1)
        kept, removed = hide_keys(pattern, hidden)
        errors.append(float(np.abs(kept.sum(axis=-1) + removed * before - before).max()))
        if kept.shape[-1]:
            scaled = hide_keys(pattern, hidden, renormalise=True)[0].sum(axis=-1)
            left = kept.sum(axis=-1) > 0
            errors.append(float(np.abs(scaled - before)[left].max(initial=0)))
    return float(np.max(errors))


def words(case: Case) -> float:
    """Claim 16: rows merged into words sum to the mean of their pieces' sums: 1, if every piece may see some key.

    With a sink, which takes a share of each row, those sums are less than 1.
    """
    errors = []
    for attention in case.trace.attentions.values():
        queries, keys = attention_words(attention)
        merged = merge(attention.pattern, queries, keys).sum(axis=-1)
        sums = attention.mask.any(axis=-1) if attention.sink is None else attention.pattern.sum(axis=-1)
        whole = np.stack([sums[:, list(group)].mean(axis=-1) for group in queries], axis=-1)
        errors.append(float(np.abs(merged - whole).max()))
    return float(np.max(errors))


def positions(case: Case) -> float | str:
    """Claim 17: what the run did for each position, in each way that the model has."""
    if any("Positions" in type(change).__name__ for change in case.trace.interventions):
        return "The positions were changed: they are not meant to be the model's."
    attentions = case.trace.attentions.values()
    rotated = [_rotation_error(case, attention) for attention in attentions if attention.rotary is not None]
    biased = [_bias_error(case, a) for a in attentions if a.bias is not None and not a.crosses]
    if errors := [*_added_positions(case), *rotated, *biased]:
        return float(np.max(errors))
    if case.opened.config.positions != "none":
        return "How this model encodes positions could not be read."
    return "This model adds nothing for positions, rotates nothing, and adds no bias to its scores."


def _added_positions(case: Case) -> Iterator[float]:
    """What was added for each position against the model's table and, if sinusoidal, the paper's formula."""
    for stream in case.trace.streams.values():
        shown, rows = stream.embedded.positional, case.opened.positional_rows(stream)
        if rows is not None:
            yield float(np.abs(rows - shown).max())
            if case.own_layers and case.opened.config.positions == "sinusoidal":
                yield float(np.abs(_paper(*shown.shape) - shown).max())


def _rotation_error(case: Case, attention: Attention) -> float:
    """The angles of RoPE against m theta_i, relative to the largest angle where that is above 1.

    theta_i is base^(-2i / d_k) in models of this project; in a Hugging Face model, the angle between two positions.
    """
    turned = np.unwrap(
        np.arctan2(*(a.astype(np.float64) for a in (attention.rotary.sin, attention.rotary.cos))), axis=0
    )
    n, pairs = turned.shape
    if case.own_layers:
        theta = case.opened.config.rope_base ** (-np.arange(pairs) / pairs)
    else:
        turned -= turned[0]
        theta = turned[-1] / max(n - 1, 1)
    expected = np.arange(n)[:, None] * theta
    return float(np.abs(turned - expected).max() / max(1.0, expected.max()))


def _bias_error(case: Case, attention: Attention) -> float:
    """The bias of each pair against ALiBi's slope times the distance, or against another pair's at the same offset."""
    bias = attention.bias.astype(np.float64)
    heads, queries, keys = bias.shape
    offset = np.arange(keys) - np.arange(queries)[:, None]
    if case.own_layers:
        slopes = 2.0 ** (-8 * np.arange(1, heads + 1) / heads)
        return float(np.abs(bias + slopes[:, None, None] * np.abs(offset))[attention.mask].max())
    # The first column and the first row have one pair at each offset.
    of_offset = np.concatenate([bias[:, ::-1, 0], bias[:, 0, 1:]], axis=-1)
    return float(np.abs(bias - of_offset[:, offset + queries - 1]).max())


def _paper(length: int, d_model: int) -> Array:
    """(position, d_model): the formula of section 3.5."""
    dimension = np.arange(d_model)
    angle = np.arange(length)[:, None] / 10_000.0 ** (2 * (dimension // 2) / d_model)
    return np.where(dimension % 2 == 0, np.sin(angle), np.cos(angle))


def addresses(case: Case) -> float | str:
    """Claim 19: head h of layer l against its columns of that layer's W_Q, W_K and W_V in the model."""
    errors = []
    for (kind, layer), attention in case.trace.attentions.items():
        if (attention.kind, attention.layer) != (kind, layer):
            return math.inf
        if attention.projections is None:
            continue
        for name, (matrix, starts) in case.opened.head_columns(kind, layer).items():
            shown = getattr(attention.projections, f"w_{name}")
            width = shown.shape[-1]
            own = np.stack([matrix[:, start : start + width] for start in starts])
            errors.append(float(np.abs(own - shown).max()))
    return float(np.max(errors)) if errors else NO_MATRICES


def weights_file(case: Case) -> float | str:
    """Claim 20: hexadecimal digits in which the SHA-256 of the file, read now, differs from that in the exports."""
    path = checkpoint_path(case.trace.checkpoint) / "model.safetensors"
    if not path.is_file():
        return "The weights are not in one file model.safetensors that could be read again."
    return float(sum(a != b for a, b in zip(sha256(path), case.trace.checkpoint_hash, strict=True)))


def written(case: Case) -> float | str:
    """Claim 21: streams, the chosen head's scores and, where there are any, logits against the sums over their parts.

    Of a long text at most MOST_ROWS positions are summed, evenly spaced, and three rows of logits of any.
    """
    trace, kind = case.trace, case.trace.kind(case.kind)
    if Need.STREAM not in case.opened.features:
        return "The residual stream could not be read in every layer."
    if Need.MATRICES not in case.opened.features:
        return NO_MATRICES
    spaced = {name: _spaced(len(stream.tokens)) for name, stream in trace.streams.items()}
    errors = []
    for name, stream in trace.streams.items():
        for sublayer, parts in stages(trace, name, spaced[name]):
            whole = stream.final if sublayer is None else sublayer.before
            errors.append(relative_error(total(parts), whole[spaced[name]]))
    sides = {"q": spaced[kind.queries], "k": spaced[kind.keys]}
    q, k = (total(side_parts(trace, case.kind, case.layer, case.head, side, rows)) for side, rows in sides.items())
    scores = trace.attention(case.kind, case.layer).scores[case.head]
    errors.append(relative_error(q @ k.T, scores[np.ix_(*sides.values())]))
    if Need.LOGITS in case.opened.features:
        rows = _spaced(len(trace.next_ids), 3)
        ids = [trace.next_ids[row] for row in rows]
        logits = [sum(logit_parts(case.opened, trace, *place).values()) for place in zip(rows, ids, strict=True)]
        errors.append(relative_error(np.array(logits), trace.logits[rows, ids]))
    return _largest(errors)


def _spaced(count: int, most: int = MOST_ROWS) -> list[int]:
    """At most so many of the positions of a text, the first and the last among them."""
    return np.unique(np.linspace(0, count - 1, min(count, most)).round().astype(int)).tolist()


def is_off(trace: Trace) -> bool:
    """True if an intervention turns a sub-layer off: its output is then not the sum of its heads."""
    return any(isinstance(change, SublayerOff) for change in trace.interventions)


def _largest(errors: Iterator[float]) -> float:
    """The maximum; NaN if there is one, unlike Python's `max`."""
    return float(np.max(list(errors)))


def arrays(part: object) -> Iterator[Array]:
    """Every array inside a Trace, in a fixed order."""
    if isinstance(part, np.ndarray):
        yield part
    elif is_dataclass(part):
        for field in fields(part):
            yield from arrays(getattr(part, field.name))
    elif isinstance(part, dict | tuple):
        for item in part.values() if isinstance(part, dict) else part:
            yield from arrays(item)
