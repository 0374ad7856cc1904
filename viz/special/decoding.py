"""Figures of decoding: the text at one step, sampling, and two kinds of temperature."""

import html
from collections.abc import Sequence

from model.language import later, tr
from viz.labels import say_label
from viz.theme import DECODER, FONT, GUIDE
from viz.tokens import labels

_LINE = f"""<style>
.written {{ display: flex; flex-wrap: wrap; gap: 0.25rem; font-family: {FONT}; font-size: 1rem; }}
.written :is(.given, button) {{ display: inline-block; height: auto; min-width: 0; padding: 0.05rem 0.45rem;
  border: 1px solid transparent; border-radius: 0.35rem; font-size: inherit; line-height: 1.5; }}
.written .given {{ border-color: color-mix(in srgb, {GUIDE} 45%, transparent); }}
.written .past {{ background: color-mix(in srgb, var(--hue) 16%, transparent); }}
.written .now {{ border: 2px solid var(--hue); background: transparent; font-weight: 700; }}
.written .later {{ border: 1px dashed {GUIDE}; opacity: 0.75; }}
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
    steps = [position if position >= 0 else None for position in range(-n_given, len(next_tokens) - n_given)]
    return line_of_steps(next_tokens, steps, step, tr("The {what} at step {step}", what=say_label(what), step=step))


def line_of_steps(
    tokens: Sequence[str], steps: Sequence[int | None], now: int, name: str, colour: str = DECODER
) -> str:
    """The same of tokens that are written in any order.

    Args:
        tokens: the pieces of the whole text.
        steps: at which step each is written; None: it is given.
        now: the step that is shown.
        name: what the line is, for a screen reader.
        colour: of what is written.
    """
    boxes = []
    for step, token in zip(steps, labels(tokens), strict=True):
        text = f"<bdi>{html.escape(token)}</bdi>"
        if step is None:
            boxes.append(f'<span class="given" role="listitem" title="{tr("given")}">{text}</span>')
            continue
        state = "past" if step < now else "now" if step == now else "later"
        said = html.escape(tr("step {position}: {state}", position=step, state=tr(_STATES[state])))
        title = f'title="{said}" aria-pressed="{str(state == "now").lower()}"'
        button = f'<button class="{state}" data-position="{step}" {title}>{text}</button>'
        boxes.append(f'<span role="listitem">{button}</span>')
    look = f'class="written" style="--hue: {colour}"'
    return f'{_LINE}<div {look} role="list" aria-label="{html.escape(name)}">{"".join(boxes)}</div>'
