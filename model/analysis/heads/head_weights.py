"""What the weights of one head say without any sentence: singular values, the OV circuit (Elhage et al. 2021)."""

import numpy as np

from model.checkpoints.checkpoint import Checkpoint
from model.needs import Need
from model.trace import Array, Kind, Projections, Trace

PROMOTED = 5
"""pieces of the vocabulary listed for a token"""


def singular_values(projections: Projections, head: int) -> dict[str, Array]:
    """Of W_Q W_K^T, (d_k,), and of W_V W_O, (d_v,), the largest first; all others are 0. Biases are left out."""
    w_q, w_k, w_v, w_o = (
        each[head].astype(np.float64)
        for each in (projections.w_q, projections.w_k, projections.w_v, projections.w_o.swapaxes(-1, -2))
    )
    return {"qk": _of_product(w_q, w_k), "ov": _of_product(w_v, w_o)}


def _of_product(left: Array, right: Array) -> Array:
    """Singular values of left right^T, both (d_model, width): orthogonal columns leave them as they are."""
    return np.linalg.svd(np.linalg.qr(left, "r") @ np.linalg.qr(right, "r").T, compute_uv=False)


def has_dictionary(opened: Checkpoint, trace: Trace, kind: Kind) -> bool:
    """True if an output matrix reads the stream that this attention writes into, as wide as the embeddings."""
    if trace.streams[kind.queries].predicts is None or Need.LOGITS not in opened.features:
        return False
    width = trace.attention(kind.name, kind.layers[0]).key_input.shape[-1]
    return opened.output_matrix().shape[1] == _embeddings(opened, kind).shape[1] == width


def promoted_logits(projections: Projections, head: int, output: Array, x: Array) -> Array:
    """x W_V W_O U^T, (token, vocabulary): what a head adds to the logits for each vector, x (token, d_model), that it
    copies.

    Biases are left out, which add the same for every token, and so is all that follows the head: residual connection,
    norms, feed-forward networks, layers above. U, `output`, is (vocabulary, d_model).
    """
    return x @ projections.w_v[head] @ projections.w_o[head] @ output.T


def copy_score(projections: Projections, head: int, embedding: Array, output: Array) -> float | None:
    """Sum of the eigenvalues of E W_V W_O U^T over the sum of their magnitudes, -1 to 1 (Elhage et al. 2021); E and U
    are (vocabulary, d_model) each.

    1: each direction of the vocabulary that the head moves promotes itself. None where tokens read and tokens written
    are numbered differently.
    """
    if embedding.shape != output.shape:
        return None
    # A B and B A have the same eigenvalues but for zeros: (d_v, d_v) instead of (vocabulary, vocabulary).
    moved = (projections.w_o[head] @ output.T) @ (embedding @ projections.w_v[head])
    eigenvalues = np.linalg.eigvals(moved.astype(np.float64))
    total = np.abs(eigenvalues).sum()
    return float(eigenvalues.real.sum() / total) if total else 0.0


def copy_score_of(opened: Checkpoint, trace: Trace, kind: Kind, layer: int, head: int) -> float | None:
    """`copy_score` of a head of an opened model; None where its OV circuit has no dictionary."""
    projections = trace.attention(kind.name, layer).projections
    if projections is None or not has_dictionary(opened, trace, kind):
        return None
    return copy_score(projections, head, _embeddings(opened, kind), opened.output_matrix())


def weight_arrays(opened: Checkpoint, trace: Trace, kind: str, layer: int, head: int) -> dict[str, Array]:
    """Singular values (`qk`, `ov`) and, where the OV circuit has a dictionary, what each key of the run promotes.

    `embedding_ids`, `embedding_logits` (key, PROMOTED): the pieces that its embedding alone promotes most; `run_ids`,
    `run_logits`: those that its vector in this run does; `copy_score`, if it has one.
    """
    attention, described = trace.attention(kind, layer), trace.kind(kind)
    arrays = singular_values(attention.projections, head)
    if not has_dictionary(opened, trace, described):
        return arrays
    output, ids = opened.output_matrix(), trace.streams[described.keys].tokens.ids
    vectors = {
        "embedding": _embeddings(opened, described)[list(ids)] * opened.embedding_scale,
        "run": attention.key_input,
    }
    for name, x in vectors.items():
        logits = promoted_logits(attention.projections, head, output, x)
        best = np.argsort(-logits, axis=-1, kind="stable")[:, :PROMOTED]
        arrays |= {f"{name}_ids": best, f"{name}_logits": np.take_along_axis(logits, best, axis=-1)}
    score = copy_score(attention.projections, head, _embeddings(opened, described), output)
    return arrays if score is None else arrays | {"copy_score": np.array(score)}


def _embeddings(opened: Checkpoint, kind: Kind) -> Array:
    """(vocabulary, d_model): of the tokens that are this attention's keys."""
    return opened.embedding_matrix("source" if kind.keys == "encoder" else "target")
