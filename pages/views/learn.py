"""Learn: what its stations show of the chosen head; their other pictures are views of other pages."""

from model.needs import Need
from model.network.attention import MultiHeadAttention
from model.run import Run
from pages.views import Result, answer, view
from pages.views.controls import slider
from pages.views.names import axes
from viz.forms import Canvas
from viz.special.heads_and_layers import head_map
from viz.steps.head import Choice, head_of
from viz.steps.steps import picture

STEP = slider("Step, {0} to {1}", (1, 7), 5)


@view("One head", code=(MultiHeadAttention._explicit,))
def head(run: Run) -> Result:
    """The attention weights of the chosen head."""
    attention, head = run.attention, run.head
    arrays = {"scaled": attention.pre_softmax[head], "mask": attention.mask[head], "pattern": attention.pattern[head]}
    figure = head_map(*axes(attention), arrays["pattern"], arrays["mask"], "attention weight")
    return Result({"map": figure}, {"place": run.place.title}, arrays)


@view("One step", code=(MultiHeadAttention._explicit,), needs=(Need.FULL_ROWS, Need.MATRICES))
def matrices(run: Run, step: int = STEP) -> Result:
    """The matrices of one of the seven steps of the chosen head."""
    one = head_of(run.attention, run.head)
    cell = Choice(min(2, len(one.queries.labels) - 1), 0)
    drawing = picture(step - 1, one, cell, f"{run.kind} layer {run.layer} head {run.head}")
    arrays = {"q": run.attention.q[run.head], "k": run.attention.k[run.head], "v": run.attention.v[run.head]}
    return Result({"matrices": Canvas(drawing)}, {"place": run.place.title}, arrays)


@answer
def one_line(run: Run) -> Result:
    """From how much of a run the answers are computed."""
    return Result(
        facts={
            "tokens": sum(len(stream.tokens) for stream in run.trace.streams.values()),
            "heads": sum(len(kind.layers) * kind.heads for kind in run.trace.kinds),
        }
    )
