"""Tokens and embeddings (paper, section 3.4): neighbours as bars, and the computation of one number as LaTeX."""

from collections.abc import Mapping

import numpy as np

from model.language import language


def sum_equation(
    numbers: Mapping[str, float], token_id: int, position: int, dimension: int, d_model: int, added: str = "PE"
) -> str:
    """LaTeX: the computation of one dimension of the input.

    Args:
        numbers: `weight` (of the matrix E), `scale` (the root of d_model in the paper), `embedding`, `positional` and
            `sum`.
        token_id: row of E.
        position: row of the positional encoding.
        dimension: column of both.
        d_model: the number under the root.
        added: symbol of what is added for the position; empty where nothing is.
    """
    n = {name: equation_number(value, bracketed=name != "sum") for name, value in numbers.items()}
    factor, product = "", ""
    symbol, value = (rf" + {added}_{{{position},\,{dimension}}}", f" + {n['positional']}") if added else ("", "")
    if numbers["scale"] != 1:
        paper = np.isclose(numbers["scale"], d_model**0.5)
        factor = rf"\cdot\sqrt{{{d_model}}}" if paper else rf"\cdot {n['scale']}"
        product = rf"\\ &= {n['weight']} \cdot {n['scale']}{value} "
    total = rf"\\ &= {n['embedding']}{value} " if value else ""
    return (
        rf"\begin{{aligned}} x_{{{dimension}}} &= E_{{{token_id},\,{dimension}}}{factor}{symbol} {product}{total}"
        rf"= \mathbf{{{n['sum']}}} \end{{aligned}}"
    )


def equation_number(value: float, bracketed: bool = True) -> str:
    """The seven digits of single precision, in brackets where a sign or a power would be misread."""
    mantissa, _, exponent = f"{float(value):.7g}".partition("e")
    mantissa = language().number(mantissa).replace(",", "{,}")
    text = rf"{mantissa} \cdot 10^{{{int(exponent)}}}" if exponent else mantissa
    return f"({text})" if bracketed and (text.startswith("-") or exponent) else text
