"""Figures of decoding: the text at one step, sampling, and two kinds of temperature."""

import html
from collections.abc import Sequence

import numpy as np

from model.language import later, tr
from viz.labels import say_label
from viz.theme import DECODER, FONT, GUIDE
from viz.tokens import labels

Array = np.ndarray

_LINE = f"""<style>
.written {{ display: flex; flex-wrap: wrap; gap: 0.25rem; font-family: {FONT}; font-size: 1rem; }}
.written :is(.given, button) {{ display: inline-block; height: auto; min-width: 0; padding: 0.05rem 0.45rem;
  border: 1px solid transparent; border-radius: 0.35rem; font-size: inherit; line-height: 1.5; }}
.written .given {{ border-color: color-mix(in srgb, {GUIDE} 45%, transparent); }}
.written .past {{ background: color-mix(in srgb, {DECODER} 16%, transparent); }}
.written .now {{ border: 2px solid {DECODER}; background: transparent; font-weight: 700; }}
.written .later {{ opacity: 0.75; }}
</style>"""
_STATES = {"past": later("written"), "now": later("chosen at this step"), "later": later("not yet written")}


def progress_line(next_tokens: Sequence[str], step: int, n_given: int, what: str) -> str:
    """HTML, all markup escaped: the tokens of a text, told apart by whether they are written at `step`.

    Those that are not given are buttons, for the component `chips`.

    Args:
        next_tokens: the pieces, the end token last.
        step: which of the written tokens is being chosen.
        n_given: how many of the pieces are a prompt.
        what: the written text is: "translation" or "continuation".
    """
    boxes = []
    for position, name in enumerate(labels(next_tokens), -n_given):
        text = f"<bdi>{html.escape(name)}</bdi>"
        if position < 0:
            boxes.append(f'<span class="given" role="listitem" title="{tr("prompt: given")}">{text}</span>')
            continue
        state = "past" if position < step else "now" if position == step else "later"
        said = html.escape(tr("step {position}: {state}", position=position, state=tr(_STATES[state])))
        title = f'title="{said}" aria-pressed="{str(state == "now").lower()}"'
        button = f'<button class="{state}" data-position="{position}" {title}>{text}</button>'
        boxes.append(f'<span role="listitem">{button}</span>')
    name = html.escape(tr("The {what} at step {step}", what=say_label(what), step=step))
    return f'{_LINE}<div class="written" role="list" aria-label="{name}">{"".join(boxes)}</div>'
