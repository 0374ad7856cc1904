"""Since 2017: the parts that replaced the paper's, on the numbers of this run, and what each of them buys."""

from model.analysis.residual_stream import measure_stream
from model.analysis.since_2017 import activations, cache_bytes
from model.network.feed_forward import FeedForward
from pages.frame.render import show_page
from pages.parts import since_2017 as parts

show_page(
    __file__,
    parts.show_overview,
    {
        "Pre-norm": lambda run: parts.show_placement(run, parts.token_of(run)),
        "SwiGLU": lambda run: parts.show_gate(run, parts.token_of(run)),
        "Shared keys and values": parts.show_sharing,
        "What each part buys": lambda run: parts.show_study(run),
    },
    (FeedForward, measure_stream, activations, cache_bytes),
)
