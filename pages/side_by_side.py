"""Side by side: two heads, two sentences or two checkpoints on one colour scale, with the difference."""

from model.analysis.two_heads import align_tokens, join, word_table
from model.analysis.words import merge
from pages.frame.open_page import open_page
from pages.parts import side_by_side as parts
from pages.parts.right_side import choose_mode, choose_right
from pages.widgets.controls import tabs
from pages.widgets.explain import explain, show_code
from pages.widgets.export import Picture, export
from pages.widgets.page_links import links
from pages.widgets.proof_strip import proof_strip

TABS = {"Query by query": parts.show_rows, "In numbers": parts.show_numbers}

view = open_page(__file__)
mode = choose_mode()
right = choose_right(view, mode)
sides = parts.compare_sides(view, right, mode)
parts.show_texts(sides)
figure = parts.show_maps(sides)
tabs(TABS, "part", sides)
explain(
    "Two maps can be compared where their cells stand for the same pair of tokens. Two heads of one kind share all "
    "cells. Two sentences share the rows and columns of the tokens they have in common, in the same order; all "
    "others are hatched. Two checkpoints split words into different tokens, so whole words are compared: weights are "
    "summed over a word's keys and averaged over its queries. The total variation distance d is 0 where a query puts "
    "the same weights on the same keys on both sides, and 1 where it attends to entirely different keys.",
    r"\Delta_{ij} = \alpha^{\mathrm{right}}_{ij} - \alpha^{\mathrm{left}}_{ij}, \qquad "
    r"d_i = \tfrac12 \textstyle\sum_j \lvert \Delta_{ij} \rvert",
    "3.2.2",
)
links(heads_and_layers="Every head of every layer", what_if="One sentence before and after a change")
show_code(align_tokens, join, word_table, merge)
export(
    view,
    f"side-by-side-{mode}-{view.place.slug}",
    parts.arrays(sides),
    parts.table(sides),
    (Picture("Left, right and difference", parts.MAPS, figure),),
)
proof_strip(view, right)
