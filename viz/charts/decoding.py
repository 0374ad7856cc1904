"""Figures of decoding: one step of it, greedy and beam search, sampling, two kinds of temperature, and its cost."""

import html
from collections.abc import Mapping, Sequence

import numpy as np
import plotly.graph_objects as go

from viz.bars import PERCENT, candidate_axis, candidate_bars, candidate_names, position_bars, with_rest
from viz.figure import GROUPED_BARS, LEGEND_ABOVE, curve, escape, figure
from viz.heatmap import slanted_room
from viz.theme import DECODER, ENCODER, FONT, GUIDE, OKABE_ITO
from viz.tokens import as_plotly, labels, text_width, token_ticks

Array = np.ndarray

STEP_HEIGHT = 400
_LINE = f"""<style>
.written {{ display: flex; flex-wrap: wrap; gap: 0.25rem; font-family: {FONT}; }}
.written bdi {{ padding: 0.05rem 0.45rem; border: 1px solid transparent; border-radius: 0.35rem; }}
.written .given {{ border-color: color-mix(in srgb, {GUIDE} 45%, transparent); }}
.written .past {{ background: color-mix(in srgb, {DECODER} 16%, transparent); }}
.written .now {{ border: 2px solid {DECODER}; font-weight: 700; }}
.written .later {{ opacity: 0.75; }}
</style>"""
_STATES = {"given": "given", "past": "written", "now": "chosen at this step", "later": "not yet written"}


def progress_line(next_tokens: Sequence[str], step: int, n_given: int, what: str) -> str:
    """HTML, all markup escaped: the tokens of a text, told apart by whether they are written at `step`.

    Args:
        next_tokens: the pieces, the end token last.
        step: which of the written tokens is being chosen.
        n_given: how many of the pieces are a prompt.
        what: the written text is: "translation" or "continuation".
    """
    boxes = []
    for position, name in enumerate(labels(next_tokens), -n_given):
        state = "given" if position < 0 else "past" if position < step else "now" if position == step else "later"
        title = f"step {position}: {_STATES[state]}" if position >= 0 else "prompt: given"
        boxes.append(f'<bdi class="{state}" role="listitem" title="{title}">{html.escape(name)}</bdi>')
    return f'{_LINE}<div class="written" role="list" aria-label="The {what} at step {step}">{"".join(boxes)}</div>'


def key_weight_bars(weights: Array, key_tokens: Sequence[str], title: str, *, crosses: bool = True) -> go.Figure:
    """The attention weights of one decoder row over the source tokens, or over those of its own text.

    Args:
        weights: (key,), 0 to 1.
        key_tokens: their pieces.
        title: layer and head, plain text.
        crosses: whether the keys are the source.
    """
    what, colour = ("source", ENCODER) if crosses else ("text", DECODER)
    return figure(
        [position_bars(labels(key_tokens), weights, "attention weight", {"color": colour}, what=what)],
        height=STEP_HEIGHT,
        title={"text": as_plotly(title), "font": {"size": 13}},
        margin={"t": 50, "b": 54 + slanted_room(labels(key_tokens), 72)},
        xaxis=token_ticks(key_tokens) | {"title": f"{what} token (key)", "tickangle": -60},
        yaxis={"title": "attention weight, 0 to 1", "range": [0, 1]},
    )


def prefix_chart(runs: Mapping[str, tuple[Sequence[str], Array]]) -> go.Figure:
    """The log-probability of each prefix of up to two texts, token by token.

    Args:
        runs: name -> (pieces, log-probability in nats of the prefix up to each of them).
    """
    styles = ((OKABE_ITO[0], "solid", "circle"), (OKABE_ITO[5], "dash", "diamond"))
    return figure(
        [
            curve(
                np.arange(len(totals)),
                totals,
                name,
                colour,
                dash=dash,
                symbol=symbol,
                customdata=escape(labels(pieces)),
                hover=f"{name}, step %{{x}}: %{{customdata}}<br>log p so far <b>%{{y:.5f}}</b> nats",
            )
            for (name, (pieces, totals)), (colour, dash, symbol) in zip(runs.items(), styles, strict=False)
        ],
        height=320,
        legend=LEGEND_ABOVE,
        xaxis={"title": "step", "nticks": 20, "tickformat": "d"},
        yaxis={"title": "log p of the prefix (nats)"},
    )


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
    marked = [f"▸ {name}" if i == sampled else name for i, name in enumerate(names)]
    series = {
        "the model's probability": (before, OKABE_ITO[7], "/"),
        "sampled from": (after, DECODER, ""),
    }
    bars = _candidate_series(names, series)
    for bar in bars:
        bar["text"] = ["cut" if value == 0 else text for value, text in zip(bar["x"], bar["text"], strict=True)]
    return _candidate_figure(bars, STEP_HEIGHT + 130, marked, sampled)


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


def step_cost_chart(lengths: Array, cached: Array, uncached: Array, quantity: str, unit: str) -> go.Figure:
    """The cost of each decoding step with and without the cache, as the text grows.

    Args:
        lengths: (step,) tokens that the decoder reads.
        cached: (step,)
        uncached: (step,)
        quantity: title of the y axis.
        unit: of a value.
    """
    series = (
        ("whole prefix again (no cache)", uncached, OKABE_ITO[5], "dash"),
        ("newest token only (cache)", cached, OKABE_ITO[0], "solid"),
    )
    return figure(
        [
            curve(lengths, values, name, colour, dash=dash, hover=f"{name}<br>length %{{x}}: <b>%{{y:.4g}} {unit}</b>")
            for name, values, colour, dash in series
        ],
        height=340,
        legend=LEGEND_ABOVE,
        xaxis={"title": "decoder tokens (length t)"},
        yaxis={"title": quantity, "rangemode": "tozero"},
    )
