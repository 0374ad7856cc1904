"""Positional encoding: what is added or rotated, what follows from it, and the alternatives."""

from pages.views.attention.positional_encoding.encoding import head_rotation, one_line, positions, scores, sentence
from pages.views.attention.positional_encoding.offset_as_rotation import table_rotation
from pages.views.attention.positional_encoding.offsets import distance
from pages.views.attention.positional_encoding.other_schemes import schemes
from pages.views.attention.positional_encoding.waves import wavelengths
from pages.views.attention.positional_encoding.word_orders import order

VIEWS = (order, positions, sentence, head_rotation, scores, wavelengths, distance, table_rotation, schemes, one_line)
"""in the order of the tabs"""
