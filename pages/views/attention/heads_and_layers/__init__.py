"""Heads and layers: every head on this sentence, and over many."""

from pages.views.attention.heads_and_layers.alignment import aligned
from pages.views.attention.heads_and_layers.in_numbers import all_heads, one_line, rules
from pages.views.attention.heads_and_layers.kinds_of_work import works
from pages.views.attention.heads_and_layers.matrices import weights
from pages.views.attention.heads_and_layers.mosaic import heads
from pages.views.attention.heads_and_layers.over_sentences import find, many, one_head

VIEWS = (heads, all_heads, weights, rules, many, one_head, find, works, aligned, one_line)
"""in the order of the tabs"""
