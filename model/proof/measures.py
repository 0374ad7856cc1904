"""The error of one run for each claim of `model.proof.claims`; None where the run has nothing to measure.

A measure takes a `Case` in the precision of its model, so the same code gives the error in single and in double
precision. A violation without a size (a wrong label, weight on a pad) counts as infinite.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass

import numpy as np

from model.analysis.words import attention_words, hide_keys, merge
from model.checkpoints.checkpoint import OWN_LAYERS
from model.checkpoints.store import checkpoint_path, sha256
from model.checkpoints.translator import Translator
from model.interventions import Intervention, SublayerOff
from model.network.config import BOS, SPECIAL_TOKENS
from model.proof.checks import relative_error
from model.trace import Array, Trace


@dataclass(frozen=True)
class Case:
    """A run, and the head chosen in it."""

    translator: Translator
    trace: Trace
    kind: str
    layer: int
    head: int

    def again(self, *more: Intervention) -> Trace:
        """A run on the same tokens, with the same interventions and `more`."""
        return self.translator.rerun(self.trace, (*self.trace.interventions, *more))

    @property
    def own_layers(self) -> bool:
        """Whether the model is one of this project's own code."""
        return OWN_LAYERS in self.translator.features

    @property
    def position_free(self) -> bool:
        """Whether no intervention names positions, so that a cached step or a padded batch computes the same."""
        return all(change.position_free for change in self.trace.interventions)


def contributions(case: Case) -> float | None:
    """Claim 4: the sum of all heads' contributions and b_O against the attention's output."""
    if is_off(case.trace):
        return None
    return _largest(
        relative_error((a.z @ a.projections.w_o).sum(axis=0) + a.projections.b_o, a.out)
        for a in case.trace.attentions.values()
    )


def labels_and_scores(case: Case) -> float:
    """Claim 12: the labels of rows and columns, and each score against the product of its query and its key."""
    trace = case.trace
    rows = list(trace.streams.values())[-1]
    honest = rows.tokens.labels[0] == SPECIAL_TOKENS[BOS] or not case.own_layers
    if rows.name == "decoder":
        honest &= trace.next_tokens[:-1] == trace.tgt_tokens[1:]
    for attention in trace.attentions.values():
        kind = trace.kind(attention.kind)
        queries, keys = (trace.streams[name].tokens.labels for name in (kind.queries, kind.keys))
        honest &= (attention.query_tokens, attention.key_tokens) == (queries, keys)
    if not honest:
        return math.inf
    return _largest(relative_error(np.einsum("hid,hjd->hij", a.q, a.k), a.scores) for a in trace.attentions.values())


def vocabulary(case: Case) -> float:
    """Claim 14: each row's probabilities sum to 1; the listed candidates have theirs, all other tokens the rest."""
    found = case.trace.probabilities
    errors = [float(np.abs(found.sum(axis=-1) - 1).max())]
    for row, listed in zip(found, case.trace.candidates, strict=True):
        ids, told = ([getattr(c, name) for c in listed] for name in ("id", "probability"))
        errors.append(float(np.abs(row[ids] - told).max()))
        errors.append(abs(np.delete(row, ids).sum() - (1 - sum(told))))
    return float(np.max(errors))


def hidden_tokens(case: Case) -> float:
    """Claim 15: what remains of each row and the share removed add up to it; renormalised, what remains does alone."""
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
    """Claim 16: rows merged into words sum to the mean of their pieces' sums: 1, if every piece may see some key."""
    errors = []
    for attention in case.trace.attentions.values():
        queries, keys = attention_words(attention)
        merged = merge(attention.pattern, queries, keys).sum(axis=-1)
        sees = attention.mask.any(axis=-1)
        whole = np.stack([sees[:, list(group)].mean(axis=-1) for group in queries], axis=-1)
        errors.append(float(np.abs(merged - whole).max()))
    return float(np.max(errors))


def positions(case: Case) -> float | None:
    """Claim 17: what was added for each position, against the model's table and, if sinusoidal, the paper's formula.

    None where the model adds nothing.
    """
    if any("Positions" in type(change).__name__ for change in case.trace.interventions):
        return None
    errors = []
    for stream in case.trace.streams.values():
        shown, rows = stream.embedded.positional, case.translator.positional_rows(stream)
        if rows is None:
            return None
        errors.append(float(np.abs(rows - shown).max()))
        if case.own_layers and case.translator.config.positions == "sinusoidal":
            errors.append(float(np.abs(_paper(*shown.shape) - shown).max()))
    return float(np.max(errors))


def _paper(length: int, d_model: int) -> Array:
    """(position, d_model): the formula of section 3.5."""
    dimension = np.arange(d_model)
    angle = np.arange(length)[:, None] / 10_000.0 ** (2 * (dimension // 2) / d_model)
    return np.where(dimension % 2 == 0, np.sin(angle), np.cos(angle))


def addresses(case: Case) -> float | None:
    """Claim 19: head h of layer l against columns h d_k to (h + 1) d_k of that layer's W_Q, W_K and W_V.

    PyTorch stores a Linear's matrix transposed, so these are rows of `weight`. None for a model of others, whose
    matrices lie where they were found; claim 3 multiplies with them.
    """
    if not case.own_layers:
        return None
    parameters, errors = dict(case.translator.model.named_parameters()), []
    paths = {"encoder_self": "encoder.layers.{}.self_attn", "decoder_self": "decoder.layers.{}.self_attn"}
    paths["cross"] = "decoder.layers.{}.cross_attn"
    for (kind, layer), attention in case.trace.attentions.items():
        if (attention.kind, attention.layer) != (kind, layer):
            return math.inf
        for name in "qkv":
            weight = parameters[f"{paths[kind].format(layer)}.w_{name}.weight"].detach().cpu().numpy()
            shown = getattr(attention.projections, f"w_{name}")
            own = weight.reshape(-1, shown.shape[-1], weight.shape[1]).transpose(0, 2, 1)
            own = own.repeat(attention.n_heads // len(own), axis=0)
            errors.append(float(np.abs(own - shown).max()))
    return float(np.max(errors))


def weights_file(case: Case) -> float | None:
    """Claim 20: hexadecimal digits in which the SHA-256 of the file, read now, differs from that in the exports."""
    path = checkpoint_path(case.trace.checkpoint) / "model.safetensors"
    if not path.is_file():
        return None
    return float(sum(a != b for a, b in zip(sha256(path), case.trace.checkpoint_hash, strict=True)))


def is_off(trace: Trace) -> bool:
    """Whether an intervention turns a sub-layer off: its output is then not the sum of its heads."""
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
