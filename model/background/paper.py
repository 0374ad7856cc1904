"""Attention Is All You Need (Vaswani et al. 2017): the sentences of its figures, and what it counts GPUs with."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Figure:
    """One of the attention visualisations in the paper's appendix."""

    sentence: str
    query: str
    """the word whose row is looked at"""
    key: str
    """the word that it is said to attend to"""
    alone: bool
    """whether the paper shows the row of this word alone"""


_MAJORITY = (
    "It is in this spirit that a majority of American governments have passed new laws since 2009 making the "
    "registration or voting process more difficult."
)
_LAW = "The Law will never be perfect, but its application should be just - this is what we are missing, in my opinion."
FIGURES = {
    3: Figure(_MAJORITY, "making", "difficult", alone=True),
    4: Figure(_LAW, "its", "Law", alone=True),
    5: Figure(_LAW, "its", "Law", alone=False),
}

TFLOPS = {"K80": 2.8, "K40": 3.7, "M40": 6.0, "P100": 9.5}
"""10^12 operations a second that the paper credits a GPU with (footnote 5)"""
