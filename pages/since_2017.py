"""Since 2017: the parts that replaced the paper's, on the numbers of this run, and what each of them buys."""

from model.analysis.residual_stream import measure_stream
from model.analysis.since_2017 import activations, cache_bytes, compare_norms, rotate_pairs
from model.checkpoints.checkpoint import OWN_LAYERS
from model.network.attention import MultiHeadAttention
from model.network.feed_forward import FeedForward
from model.network.residual import Residual
from model.network.rotary import Rotary
from pages.frame.open_page import open_page
from pages.parts import since_2017 as parts
from pages.widgets.controls import tabs
from pages.widgets.explain import show_code
from pages.widgets.proof_strip import proof_strip

view = open_page(__file__)
parts.show_overview(view)
token = parts.choose_token(view)
tabs(
    {
        "RoPE": lambda: parts.show_rope(view, token),
        "RMSNorm": lambda: parts.show_norms(view, token),
        "Pre-norm": lambda: parts.show_placement(view, token),
        "SwiGLU": lambda: parts.show_gate(view, token),
        "Shared keys and values": lambda: parts.show_sharing(view),
        "What each part buys": lambda: parts.show_study(view),
    },
    "since",
)
own = (Rotary, Residual, FeedForward, MultiHeadAttention) if OWN_LAYERS in view.translator.features else ()
show_code(
    *own,
    rotate_pairs,
    compare_norms,
    measure_stream,
    activations,
    cache_bytes,
)
proof_strip(view)
