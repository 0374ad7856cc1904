"""The paper, line by line: its sentences, equations, figures and tables, each beside this run's number."""

from pages.frame.render import show_page

show_page(__file__)
