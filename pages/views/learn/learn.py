"""Learn: what its stations show of the chosen head; their other pictures are views of other pages."""

from collections.abc import Iterator

from model.analysis.runs.patching import Restored, restored
from model.language import tr
from model.needs import Need
from model.network.attention import MultiHeadAttention
from model.run import Run
from pages.views import OnRequest, Result, answer, is_quick, view
from pages.views.controls import slider
from pages.views.experiment.two_texts import first_question, share_maps, with_word
from pages.views.shared import axes
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
    figure = head_map(*axes(attention), arrays["pattern"], arrays["mask"])
    return Result({"map": figure}, numbers=arrays)


@view("One step", code=(MultiHeadAttention._explicit,), needs=(Need.FULL_ROWS, Need.MATRICES))
def matrices(run: Run, step: int = STEP) -> Result:
    """The matrices of one of the seven steps of the chosen head."""
    one = head_of(run.attention, run.head)
    cell = Choice(min(2, len(one.queries.labels) - 1), 0)
    drawing = picture(step - 1, one, cell, tr(run.place.title))
    arrays = {"q": run.attention.q[run.head], "k": run.attention.k[run.head], "v": run.attention.v[run.head]}
    return Result({"matrices": Canvas(drawing)}, numbers=arrays)


OLD, NEW = "tired", "wide"


def _restore(run: Run) -> Iterator[tuple[float, Restored]]:
    both = with_word(run, OLD, NEW)
    return restored(run.opened, both.trace, both.other, both.pairs, first_question(run, both))


def _restore_case(run: Run) -> tuple | None:
    both = with_word(run, OLD, NEW)
    return None if both is None or first_question(run, both) is None else (both.trace, both.other)


@view(
    "Patches",
    code=(restored,),
    needs=(Need.LOGITS,),
    on_request=OnRequest(
        "Patch each layer and position, and each head",
        "learn_patches",
        _restore,
        _restore_case,
        icon=":material/play_arrow:",
        at_once=is_quick,
    ),
)
def patches(run: Run, outcome: Restored | None = None) -> Result:
    """What each activation of the text with another word restores of the difference that the word makes."""
    both = with_word(run, OLD, NEW)
    question = both and first_question(run, both)
    if question is None or outcome is None:
        return Result(facts={"words": (OLD, NEW), "known": question is not None, "patched": False})
    facts = {
        "words": (OLD, NEW),
        "known": True,
        "patched": True,
        "word": run.opened.tokenizer.tokens([question.token])[0],
        "row": question.row,
    }
    return Result(share_maps(run, outcome), facts)


@answer
def one_line(run: Run) -> Result:
    """From how much of a run the answers are computed."""
    return Result(
        facts={
            "tokens": sum(len(stream.tokens) for stream in run.trace.streams.values()),
            "heads": sum(len(kind.layers) * kind.heads for kind in run.trace.kinds),
        }
    )
