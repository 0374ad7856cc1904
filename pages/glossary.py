"""Glossary: the words of this field in plain English, and questions about them, each with a link to see it live."""

from pages.frame.render import show_page

show_page(__file__)
