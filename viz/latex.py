"""LaTeX: the formula of attention with Q, K and V in their colours, the equations of a norm, numbers as text."""

import math
from collections.abc import Mapping
from typing import Any

from model.language import Numeral, language, printed
from viz.theme import KEY, QUERY, VALUE, Array

DIMMED = "#8C8C8C"
"""Colour of steps that are still to come, readable on light and dark."""


def coloured(colour: str, latex: str) -> str:
    return rf"\textcolor{{{colour}}}{{{latex}}}"


def number(value: float, digits: int = 4) -> Numeral:
    """`digits` significant digits, with a true minus sign, powers of ten as in print, and ∞ for infinity."""
    if math.isinf(value):
        return Numeral("−∞" if value < 0 else "∞")
    return Numeral(printed(_rounded(value, digits)).replace("-", "−"))


def signed(value: float, format: str = ".3g") -> Numeral:
    """With a true minus sign, powers of ten as in print, and ∞ for infinity: "−4.5"."""
    if math.isinf(value):
        return number(value)
    return Numeral(printed(f"{value:{format}}").replace("-", "−"))


def span(low: float, high: float, format: str = ".3g") -> str:
    """A label of a range, each end as in `signed`: "−19 to 19"."""
    return f"{signed(low, format)} to {signed(high, format)}"


def error_text(value: float) -> Numeral:
    """A difference that is rounding, such as 1.2 · 10⁻⁷; or 0."""
    return signed(value, ".1e") if value else Numeral("0")


def _rounded(value: float, digits: int) -> str:
    """So many significant digits, as Python writes them."""
    return (f"{value:#.{digits}g}" if value else "0").removesuffix(".")


def latex_decimal(value: float, digits: int) -> str:
    """The number as LaTeX with so many digits behind the decimal sign of this run's language."""
    return language().number(f"{value:.{digits}f}").replace(",", "{,}")


def latex_number(value: float, digits: int = 5) -> str:
    """The number as LaTeX, with the decimal sign of this run's language, and powers of ten written out."""
    if math.isinf(value):
        return r"-\infty" if value < 0 else r"\infty"
    mantissa, _, exponent = _rounded(value, digits).partition("e")
    mantissa = language().number(mantissa).replace(",", "{,}")
    return rf"{mantissa} \cdot 10^{{{int(exponent)}}}" if exponent else mantissa


def sum_of_products(left: Array, right: Array) -> str:
    """The first two products of a sum, and an ellipsis if there are more."""
    shown = [rf"{bracketed(a, 3)} \cdot {bracketed(b, 3)}" for a, b in zip(left[:2], right[:2], strict=True)]
    return " + ".join(shown) + (r" + \cdots" if len(left) > 2 else "")


def bracketed(value: float, digits: int = 4) -> str:
    """The number as LaTeX, in brackets if it is negative."""
    text = latex_number(value, digits)
    return f"({text})" if value < 0 else text


def dot_product(query: int, key: int) -> str:
    """q_i · k_j in their colours."""
    return rf"{coloured(QUERY, 'q')}_{{{query}}} \cdot {coloured(KEY, 'k')}_{{{key}}}"


def entry(symbol: str, row: int | str, column: int | str, colour: str) -> str:
    """An entry of Q, K or V: x_{row,column}."""
    return rf"{coloured(colour, symbol)}_{{{row},{column}}}"


def root_of_width(scale: float, d_k: int) -> str:
    """What products are divided by: the square root of d_k, a number, or nothing in a model whose `scale` is 1."""
    if scale == 1:
        return ""
    return r"\sqrt{d_k}" if math.isclose(scale, d_k**-0.5, rel_tol=1e-4) else latex_number(1 / scale, 4)


def scaled_scores(attention: Any, product: str = r"QK^{\top}", bias: str = "B", tau: bool = False) -> str:
    """What the softmax reads: `product` over the square root of d_k, with the soft cap and the bias of the model.

    Args:
        attention: a model.trace.Attention, or anything with its `scale`, `d_k`, `softcap` and `bias`.
        product: of queries and keys.
        bias: symbol of what the model adds, where it does.
        tau: divided by the temperature, too.
    """
    root, cap = root_of_width(attention.scale, attention.d_k), attention.softcap
    plain = cap is None and attention.bias is None
    divisor = (f"{cap:g}" + (r"\," if root else "") if cap else "") + (r"\tau " if tau and plain else "") + root
    scores = rf"\frac{{{product}}}{{{divisor}}}" if divisor else product
    scores = scores if cap is None else rf"{cap:g}\tanh\!\left({scores}\right)"
    scores = scores if attention.bias is None else f"{scores} + {bias}"
    return rf"\left({scores}\right) / \tau" if tau and not plain else scores


def attention_formula(step: int, head: Any) -> tuple[str, str]:
    """One head: Q, K, V, and the rest; the part of `step` (0 to 6) is framed, later parts are dimmed.

    `head`: a viz.steps.head.Head, or anything with its properties.
    """
    source = "Y" if head.crosses else "X"

    def piece(of: int, latex: str) -> str:
        return latex if of <= step else coloured(DIMMED, latex)

    def framed(of: int, latex: str) -> str:
        return rf"\boxed{{{latex}}}" if of == step else latex

    q, k, v = coloured(QUERY, "Q"), coloured(KEY, "K"), coloured(VALUE, "V") if step >= 5 else coloured(DIMMED, "V")
    first = r",\quad ".join(
        f"{coloured(colour, name)} = {x}{coloured(colour, f'W_{name}')}"
        + (f" + {coloured(colour, f'b_{name}')}" if head.learns_biases else "")
        for name, x, colour in (("Q", "X", QUERY), ("K", source, KEY), ("V", source, VALUE))
    )
    product = framed(1, q + k + r"^{\top}") if step >= 1 else coloured(DIMMED, r"QK^{\top}")
    root = root_of_width(head.scale, head.d_k)
    scaled = framed(2, piece(2, rf"\frac{{{product}}}{{{piece(2, root)}}}") if root else product)
    if head.softcap is not None:
        cap = f"{head.softcap:g}"
        scaled = piece(3, rf"{cap}\tanh\Big(") + scaled + piece(3, rf"\Big/\,{cap}\Big)")
    scaled += piece(3, " + B") if head.adds_bias else ""
    masked = framed(3, piece(3, r"\mathrm{mask}\Big(") + scaled + piece(3, r"\Big)"))
    weights = framed(4, piece(4, r"\mathrm{softmax}\Big(") + masked + piece(4, r"\Big/\,\tau") + piece(4, r"\Big)"))
    z = framed(5, rf"{weights}\,{v}")
    heads = r"\,|\,".join(
        [r"z_{0}", r"\cdots", rf"z_{{{head.n_heads - 1}}}"]
        if head.n_heads > 3
        else [f"z_{{{i}}}" for i in range(head.n_heads)]
    )
    out = framed(6, piece(6, rf"\mathrm{{out}} = [\,{heads}\,]\,W_O" + (" + b_O" if head.learns_biases else "")))
    equation = rf"{piece(5, f'z_{{{head.index}}} =')} {z}"
    # Leaves room for the frames of every step, so that nothing moves between them.
    return (
        framed(0, first) + r"\vphantom{\boxed{W_Q}}",
        rf"{equation} \qquad {out}" + r"\vphantom{\boxed{\frac{\boxed{QK^{\top}}}{\sqrt{d_k}}}}",
    )


def multiplied(formula: str, multiplier: float) -> str:
    """LaTeX of a sum x + Sublayer(x), whose further terms a model multiplies before it adds them."""
    return formula if multiplier == 1 else formula.replace("+ ", rf"+ {multiplier:.4g}\,")


def block_equation(numbers: Mapping[str, float], dimension: int, pre: bool, norm: str) -> str:
    """LaTeX of s = x + Sublayer(x), then the norm of s; with pre-norm first the norm, of x.

    Args:
        numbers: of the dimension, `before`, `out`, `added` and `normed`; `mean`, `std` and `gamma`; `beta` if the norm
            has one; `layer_input`, u, if the norm reads that instead of x; `result`, if `out` is a norm of it. Without
            `normed`, that norm, y to `out`, is the only one.
        dimension: its number.
        pre: whether the norm comes before the sub-layer.
        norm: LayerNorm or RMSNorm.
    """
    n = {name: latex_number(value, 6) for name, value in numbers.items()}
    b = {name: bracketed(float(value), 6) for name, value in numbers.items()}
    name = rf"\mathrm{{{norm}}}"
    symbol, source = ("x", "before") if pre else ("s", "added")
    symbol, source = ("u", "layer_input") if "layer_input" in n else (symbol, source)
    alone = "normed" not in n
    symbol, source = ("y", "result") if alone else (symbol, source)
    j, read = dimension, f"{name}({symbol})" if pre and not alone else "x"
    part = rf"{name}(\mathrm{{Sublayer}}({read}))" if "result" in n else rf"\mathrm{{Sublayer}}({read})"
    residual = (
        rf"s_{{{j}}} &= x_{{{j}}} + {part}_{{{j}}} = {n['before']} + {b['out']} "
        rf"= \mathbf{{{n['added']}}}"
    )
    centred, mean = (r" - \mu", f" - {b['mean']}") if norm != "RMSNorm" else ("", "")
    divisor = r"\sigma" if norm != "RMSNorm" else r"\mathrm{RMS}(" + symbol + ")"
    offset, beta = (rf" + \beta_{{{j}}}", f" + {b['beta']}") if "beta" in b else ("", "")
    target = n["out" if alone else "normed"]
    normed = (
        rf"{name}({symbol})_{{{j}}} &= \gamma_{{{j}}}\,\frac{{{symbol}_{{{j}}}{centred}}}{{{divisor}}}{offset} "
        rf"\\[6pt] &= {b['gamma']} \cdot \frac{{{n[source]}{mean}}}{{{b['std']}}}{beta} = \mathbf{{{target}}}"
    )
    normed += r",\quad y = \mathrm{Sublayer}(x)" if alone else ""
    body = r" \\[6pt] ".join((normed, residual) if pre else (residual, normed))
    return rf"\begin{{aligned}} {body} \end{{aligned}}"
