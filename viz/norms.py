"""One dimension of a residual block in LaTeX, a line a step: the sum, and the layer norm, in numbers."""

from collections.abc import Mapping

from viz.formulas import bracketed, latex_number

DIGITS = 6


def block_equation(numbers: Mapping[str, float], dimension: int, pre: bool) -> str:
    """s = x + Sublayer(x), then gamma (s - mu) / sigma + beta; with pre-norm the norm, of x, comes first.

    Args:
        numbers: `before`, `out`, `added` and `normed` of the dimension, and `mean`, `std`, `gamma` and `beta`.
        dimension: which.
        pre: pre-norm.
    """
    lines = [_sum(numbers, dimension, pre), _norm(numbers, dimension, pre)]
    body = r" \\[6pt] ".join(reversed(lines) if pre else lines)
    return rf"\begin{{aligned}} {body} \end{{aligned}}"


def _sum(numbers: Mapping[str, float], j: int, pre: bool) -> str:
    read = r"\mathrm{LayerNorm}(x)" if pre else "x"
    x, added = (latex_number(numbers[name], DIGITS) for name in ("before", "added"))
    return (
        rf"s_{{{j}}} &= x_{{{j}}} + \mathrm{{Sublayer}}({read})_{{{j}}} = {x} + {_in(numbers['out'])} "
        rf"= \mathbf{{{added}}}"
    )


def _norm(numbers: Mapping[str, float], j: int, pre: bool) -> str:
    symbol, source = ("x", "before") if pre else ("s", "added")
    read, normed = (latex_number(numbers[name], DIGITS) for name in (source, "normed"))
    gamma, mean, std, beta = (_in(numbers[name]) for name in ("gamma", "mean", "std", "beta"))
    return (
        rf"\mathrm{{LayerNorm}}({symbol})_{{{j}}} &= \gamma_{{{j}}}\,\frac{{{symbol}_{{{j}}} - \mu}}{{\sigma}} "
        rf"+ \beta_{{{j}}} \\[6pt] &= {gamma} \cdot \frac{{{read} - {mean}}}{{{std}}} + {beta} "
        rf"= \mathbf{{{normed}}}"
    )


def _in(value: float) -> str:
    return bracketed(float(value), DIGITS)
