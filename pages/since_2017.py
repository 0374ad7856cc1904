"""Since 2017: the parts that replaced the paper's, on the numbers of this run, and what each of them buys."""

from pages.frame.render import show_page

show_page(__file__)
