"""Figures of decoding: the text at one step, sampling, and two kinds of temperature."""

import html
from collections.abc import Mapping, Sequence

import numpy as np
import plotly.graph_objects as go

from model.language import later, tr
from viz.bars import PERCENT, candidate_axis, candidate_bars, candidate_names, with_rest
from viz.figure import GROUPED_BARS, figure
from viz.labels import say_label
from viz.theme import DECODER, FONT, GUIDE, OKABE_ITO
from viz.tokens import Verbatim, labels, text_width

Array = np.ndarray

STEP_HEIGHT = 290
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


def sampling_bars(pieces: Sequence[str], before: Array, after: Array, sampled: int, others: int) -> go.Figure:
    """The model's next-token probabilities, and those from which the token was sampled.

    Args:
        pieces: listed tokens, the most probable first.
        before: (listed + 1,), 0 to 1; the last is the sum over all other tokens.
        after: (listed + 1,), likewise; 0 where tokens were cut.
        sampled: index of the sampled token.
        others: number of tokens that are not listed.
    """
    names = candidate_names(pieces, others)
    marked = [Verbatim(f"▸ {name}") if i == sampled else name for i, name in enumerate(names)]
    series = {
        "the model's probability": (before, OKABE_ITO[7], "/"),
        "sampled from": (after, DECODER, ""),
    }
    bars = _candidate_series(names, series)
    for bar in bars:
        bar["text"] = [tr("cut") if value == 0 else text for value, text in zip(bar["x"], bar["text"], strict=True)]
    return _candidate_figure(bars, STEP_HEIGHT + 170, marked, sampled)


def temperature_bars(pieces: Sequence[str], probabilities: Mapping[str, Array], others: int) -> go.Figure:
    """One step's next-token probabilities: as trained, with tempered logits, and with tempered attention.

    Args:
        pieces: listed tokens.
        probabilities: name -> (listed,), 0 to 1; three of them.
        others: number of tokens that are not listed.
    """
    names = candidate_names(pieces, others)
    styles = ((OKABE_ITO[7], "/"), (OKABE_ITO[1], ""), (OKABE_ITO[2], "x"))
    values = map(with_rest, probabilities.values())
    series = {name: (bars, *style) for name, bars, style in zip(probabilities, values, styles, strict=True)}
    return _candidate_figure(_candidate_series(names, series), 60 + 46 * len(names), names)


def _candidate_series(names: Sequence[str], series: Mapping[str, tuple[Array, str, str]]) -> list[dict]:
    small = {"textfont": {"size": 10}, "constraintext": "none"}
    return [
        candidate_bars(names, values, name, {"color": colour, "pattern": {"shape": shape}}, **small)
        for name, (values, colour, shape) in series.items()
    ]


def _candidate_figure(bars: list[dict], height: int, names: Sequence[str], emphasised: int | None = None) -> go.Figure:
    return figure(
        bars,
        GROUPED_BARS,
        height=height,
        legend={"y": 1.01, "traceorder": "normal"},
        margin={"t": 50, "l": 21 + text_width(names)},
        xaxis=PERCENT | {"title": "probability, of the whole vocabulary", "range": [0, 1.08]},
        yaxis=candidate_axis(names, emphasised),
    )
