"""Who chose this word? The logit of a token as the sum over what each part of the model wrote."""

from pages.frame.render import show_page

show_page(__file__)
