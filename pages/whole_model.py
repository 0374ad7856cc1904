"""The whole model: figure 1 of the paper with the numbers of this run, and a token that travels through it."""

from pages.frame.render import show_page

show_page(__file__)
