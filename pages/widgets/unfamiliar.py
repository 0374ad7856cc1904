"""The notice on a text that the model was not trained for: on every page, for each box that takes one."""

from model.run import Run
from pages.views.examples import unfamiliar
from pages.widgets.explain import say


def say_unfamiliar(run: Run) -> None:
    """Draw it, where there is one to draw, with what was measured."""
    translated = not run.trace.interventions and run.request.target is None
    if facts := unfamiliar(run.trace, translated):
        say("home", "An unfamiliar text", **facts)
