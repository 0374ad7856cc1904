"""The ablations of the paper (Vaswani et al. 2017, Table 3), as its authors measured them."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Ablation:
    """One row of Table 3, on newstest2013, the development set of WMT 2014 English to German."""

    group: str
    """the paper's letter; empty for base and big"""
    change: str
    """what differs from base"""
    perplexity: float
    """per vocabulary piece, not per word"""
    bleu: float
    millions: int | None
    """of parameters; None where the paper leaves the cell empty, meaning as many as base"""


TABLE_3 = (
    Ablation("", "base", 4.92, 25.8, 65),
    Ablation("A", "h = 1, dₖ = d_v = 512", 5.29, 24.9, None),
    Ablation("A", "h = 4, dₖ = d_v = 128", 5.00, 25.5, None),
    Ablation("A", "h = 16, dₖ = d_v = 32", 4.91, 25.8, None),
    Ablation("A", "h = 32, dₖ = d_v = 16", 5.01, 25.4, None),
    Ablation("B", "dₖ = 16", 5.16, 25.1, 58),
    Ablation("B", "dₖ = 32", 5.01, 25.4, 60),
    Ablation("C", "N = 2", 6.11, 23.7, 36),
    Ablation("C", "N = 4", 5.19, 25.3, 50),
    Ablation("C", "N = 8", 4.88, 25.5, 80),
    Ablation("C", "d_model = 256, dₖ = d_v = 32", 5.75, 24.5, 28),
    Ablation("C", "d_model = 1024, dₖ = d_v = 128", 4.66, 26.0, 168),
    Ablation("C", "d_ff = 1024", 5.12, 25.4, 53),
    Ablation("C", "d_ff = 4096", 4.75, 26.2, 90),
    Ablation("D", "P_drop = 0.0", 5.77, 24.6, None),
    Ablation("D", "P_drop = 0.2", 4.95, 25.5, None),
    Ablation("D", "ε_ls = 0.0", 4.67, 25.3, None),
    Ablation("D", "ε_ls = 0.2", 5.47, 25.7, None),
    Ablation("E", "learned positions, no sinusoids", 4.92, 25.7, None),
    Ablation("", "big", 4.33, 26.4, 213),
)


def rounded_millions(name: str) -> int:
    """Parameters of "base" or "big" in millions, as the paper rounds them."""
    return next(row.millions for row in TABLE_3 if row.change == name and row.millions is not None)
