"""The matrix equations of one attention head (paper, section 3.2), a function for each of the seven steps."""

from dataclasses import replace

import numpy as np

from viz.canvas.matrices import Array, Axis, Equation, Matrix
from viz.steps.head import PROJECTIONS, Head
from viz.theme import KEY, QUERY, VALUE, WEIGHTS, symmetric_range

SINGLE = Axis("", "", 1)
"""The one row of a bias."""
COLOURS = dict(zip(PROJECTIONS, (QUERY, KEY, VALUE), strict=True))


def projection(head: Head) -> tuple[Equation, ...]:
    model = head.model
    learned = robust_range(*head.weights.values(), *head.biases.values())

    def equation(name: str) -> Equation:
        rows = head.queries if name == "Q" else head.keys
        dimensions = head.dimensions(name)
        source, x = "Y" if head.crosses and name != "Q" else "X", head.inputs[name]
        bias = _matrix(f"b_{name}", head.biases[name][None], SINGLE, dimensions, learned, COLOURS[name])
        linear, product = head.linear[name], head.projected[name]
        turned = head.then and name != "V"
        limits = robust_range(linear, product)
        after = (
            (replace(_matrix(f"{name}_pre", linear, rows, dimensions, limits, COLOURS[name]), family=name), head.then)
            if turned
            else ()
        )
        return (
            _matrix(source, x, rows, model, robust_range(x)),
            "×",
            replace(_matrix(f"W_{name}", head.weights[name], model, dimensions, learned, COLOURS[name]), family="W, b"),
            *(("+", replace(bias, family="W, b")) if head.learns_biases else ()),
            "=",
            *after,
            replace(_matrix(name, product, rows, dimensions, limits, COLOURS[name]), result=True),
        )

    return tuple(equation(name) for name in PROJECTIONS)


def scores(head: Head) -> tuple[Equation, ...]:
    dimensions = head.dimensions("Q")
    q, k = head.projected["Q"], head.projected["K"]
    products = _matrix("scores", head.scores, head.queries, head.keys, symmetric_range(head.scores))
    return (
        (
            _matrix("Q", q, head.queries, dimensions, robust_range(q), QUERY),
            "×",
            _matrix("K^T", k.T, dimensions, head.keys, robust_range(k), KEY),
            "=",
            replace(products, result=True),
        ),
    )


def scaling(head: Head) -> tuple[Equation, ...]:
    shared = symmetric_range(head.scores, head.scaled)
    products = _matrix("scores", head.scores, head.queries, head.keys, shared)
    scaled = _matrix("scaled", head.scaled, head.queries, head.keys, shared)
    return ((products, f"÷ {head.divisor:.2f}", "=", replace(scaled, result=True)),)


def masking(head: Head) -> tuple[Equation, ...]:
    shared = symmetric_range(head.scaled)
    mask = Matrix("mask", head.mask.astype(np.float32), head.queries, head.keys, scale="mask", allowed=head.mask)
    scaled = _matrix("scaled", head.scaled, head.queries, head.keys, shared)
    read = _matrix("read", head.pre_softmax, head.queries, head.keys, shared)
    then = (f"{head.before_mask} =", read) if head.before_mask else ()
    return ((scaled, *then, "with", mask, "=", replace(_masked(head), result=True)),)


def softmax(head: Head) -> tuple[Equation, ...]:
    return (("softmax (", _masked(head), "÷ τ )", "=", replace(_weights(head), result=True)),)


def weighted_sum(head: Head) -> tuple[Equation, ...]:
    dimensions, v = head.dimensions(), head.projected["V"]
    limits = robust_range(v, head.z)
    z = _matrix(f"z_{head.index}", head.z, head.queries, dimensions, limits)
    return ((_weights(head), "×", _matrix("V", v, head.keys, dimensions, limits, VALUE), "=", replace(z, result=True)),)


def output(head: Head) -> tuple[Equation, ...]:
    model, h = head.model, head.index
    names = tuple(f"head {i}" for i in range(head.n_heads))
    blocks = Axis("", f"dimensions: {head.n_heads} × {head.d_v}", head.concat.shape[1], groups=names, lit=h)
    concat_range = robust_range(head.concat)
    w_o = head.w_o.reshape(-1, head.d_model)
    learned = robust_range(w_o, head.b_o)
    part = head.contributions()[h].astype(np.float32)
    outputs = robust_range(head.out, part)
    dimensions = replace(head.dimensions(), name="")
    bias = _matrix("b_O", head.b_o[None], SINGLE, model, learned)
    out = replace(_matrix("out", head.out, head.queries, model, outputs), result=True)
    concat = _matrix("concat(z)", head.concat, head.queries, blocks, concat_range)
    rows_of_w_o = _matrix(f"W_O,{h}", head.w_o[h], dimensions, model, learned)
    added = _matrix(f"out_{h}", part, head.queries, model, outputs)
    contribution = replace(added, note=f"what head {h} adds", result=True)
    return (
        (
            concat,
            "×",
            _matrix("W_O", w_o, blocks, model, learned),
            *(("+", bias) if head.learns_biases else ()),
            "=",
            out,
        ),
        (_matrix(f"z_{h}", head.z, head.queries, dimensions, concat_range), "×", rows_of_w_o, "=", contribution),
    )


def robust_range(*arrays: Array) -> tuple[float, float]:
    """A colour range centred on 0 that clips a few outliers, as the legend says.

    Some dimensions of a Transformer's vectors are many times larger than all others, which would turn pale.
    """
    sizes = np.abs(np.concatenate([array.ravel() for array in arrays]))
    limit = float(np.quantile(sizes, 0.995))
    return (-limit, limit) if sizes.max() > 1.5 * limit > 0 else symmetric_range(sizes)


def _matrix(
    symbol: str, values: Array, rows: Axis, columns: Axis, limits: tuple[float, float], colour: str = ""
) -> Matrix:
    return Matrix(symbol, values, rows, columns, colour, low=limits[0], high=limits[1])


def _masked(head: Head) -> Matrix:
    values = np.where(head.mask, head.pre_softmax, -np.inf)
    matrix = _matrix("masked", values, head.queries, head.keys, symmetric_range(head.pre_softmax))
    return replace(matrix, allowed=head.mask)


def _weights(head: Head) -> Matrix:
    return Matrix("weights", head.pattern, head.queries, head.keys, scale=WEIGHTS, allowed=head.mask)
