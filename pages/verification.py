"""Verification: the claims that every picture shows what the model computed, measured on this run."""

from pages.frame.render import show_page

show_page(__file__)
