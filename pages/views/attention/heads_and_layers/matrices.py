"""The two products of a head's matrices: singular values, and what each token promotes."""

import numpy as np
import pandas as pd

from model.analysis.heads import head_weights
from model.language import tr
from model.run import Run
from model.trace import Array
from pages.views import Result, view
from viz.forms import Line, Lines
from viz.latex import signed
from viz.theme import OKABE_ITO
from viz.tokens import labels, numbered


@view(
    "Weights of the head",
    code=(
        head_weights.singular_values,
        head_weights._of_product,
        head_weights.promoted_logits,
        head_weights.copy_score,
    ),
)
def weights(run: Run) -> Result:
    """Singular values of the two products of a head's matrices, and what each token promotes through the second."""
    attention = run.attention
    if attention.projections is None:
        return Result(facts={"read": False})
    arrays = run.compute(head_weights.weight_arrays, run.opened, run.trace, run.kind, run.layer, run.head)
    looks = zip(((OKABE_ITO[0], "circle"), (OKABE_ITO[5], "diamond-open")), PRODUCTS.items(), strict=True)
    curves = {name: Line(np.arange(1, len(arrays[key]) + 1), arrays[key], *look) for look, (key, name) in looks}
    axes = ("singular values, the largest first", "singular value")
    shows = {"values": Lines(curves, axes, ".4g", height=320, layout={"yaxis": {"rangemode": "tozero"}})}
    if "run_ids" in arrays:
        shows["dictionary"] = _dictionary(run, arrays)
    shared = attention.kv_head or ()
    mates = [number for number, group in enumerate(shared) if group == shared[run.head]]
    facts = {
        "read": True,
        "sizes": (attention.key_input.shape[-1], attention.d_k, attention.v.shape[-1]),
        "most": {key: _most_of_squares(arrays[key]) for key in PRODUCTS},
        "biases": attention.projections.biases,
        "mates": mates if len(mates) > 1 else [],
        "dictionary": "run_ids" in arrays,
        "writes": run.stream.predicts is not None,
        "copy_score": arrays.get("copy_score"),
    }
    return Result(shows, facts, arrays)


def _most_of_squares(values: Array) -> tuple[int, float]:
    """How many of the largest make up 90 % of the sum of all squares, and this sum."""
    squares = values**2
    return int(np.searchsorted(np.cumsum(squares), 0.9 * squares.sum())) + 1, float(squares.sum())


def _dictionary(run: Run, arrays: dict[str, Array]) -> pd.DataFrame:
    """A row for each token that the head may attend to, with the pieces that it promotes."""
    columns = {"token": numbered(run.attention.key_tokens)}
    for key, title in {"embedding": "its embedding promotes", "run": "its vector in this run promotes"}.items():
        pieces = [labels(run.opened.tokenizer.tokens(ids)) for ids in arrays[f"{key}_ids"].tolist()]
        columns[title] = [
            ", ".join(f"{piece} ({tr(signed(logit, '.2g'))})" for piece, logit in zip(*row, strict=True))
            for row in zip(pieces, arrays[f"{key}_logits"].tolist(), strict=True)
        ]
    return pd.DataFrame(columns)


PRODUCTS = {"qk": "W_Q W_Kᵀ", "ov": "W_V W_O"}
