"""The whole model: figure 1 of the paper with the numbers of this run, and a token that travels through it."""

from model.analysis.residual_stream import measure_stream
from model.analysis.whole_model import box_arrays, model_boxes
from model.interventions import ResidualOff, SublayerOff
from model.needs import Need
from model.network.layers import DecoderLayer, EncoderLayer
from model.network.residual import Residual
from pages.frame.open_page import open_page
from pages.parts import whole_model as parts
from pages.widgets.controls import tabs
from pages.widgets.explain import explain, show_code
from pages.widgets.export import Picture, export
from pages.widgets.proof_strip import proof_strip
from pages.widgets.snippet import Call
from viz.latex import multiplied

view = open_page(__file__)
shown = parts.choose(view)
drawing = parts.show_picture(shown)
parts.show_switches(shown)
tabs({"All boxes in numbers": parts.show_boxes, "Each box off": parts.show_each_off}, "whole_tab", shown)
explain(
    "A sub-layer reads the stream of a token and adds to it; attention alone reads other tokens, too. A line is as "
    "thick as the vector that it carries is long. The **share** of a sub-layer is ‖Sublayer(x)‖ / (‖x‖ + "
    "‖Sublayer(x)‖): 0.5 means that what it adds is as long as the stream itself. A **switch** runs the model again "
    "on the same text, without what the box adds or without its residual connection."
    + parts.DROPOUT
    * (Need.OWN_LAYERS in view.translator.features),
    multiplied(parts.SUMS[view.trace.sublayers[-1].placement], view.trace.sublayers[-1].multiplier),
    "3.1",
)
layers = DecoderLayer if len(view.trace.streams) == 2 else EncoderLayer
own = (layers, Residual) if Need.OWN_LAYERS in view.translator.features else ()
show_code(*own, model_boxes, measure_stream, SublayerOff, ResidualOff)
export(
    shown.view,
    "whole-model",
    Call(box_arrays, view.translator, shown.view.trace),
    pictures=(Picture("The whole model", parts.PICTURE, drawing),),
)
proof_strip(shown.view)
