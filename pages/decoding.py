"""Decoding: a text written step by step, greedily, with beam search, by sampling, and what the cache saves."""

from pages.frame.render import show_page

show_page(__file__)
