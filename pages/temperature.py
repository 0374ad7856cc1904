"""Temperature: softmax(x / tau) of the run's own scores, the division by sqrt(d_k), and the effect of tau."""

from pages.frame.render import show_page

show_page(__file__)
