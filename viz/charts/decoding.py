"""Figures of decoding: one step of it, greedy against beam, sampling, two temperatures, and its cost."""

import html
from collections.abc import Mapping, Sequence

import numpy as np
import plotly.graph_objects as go

from viz.figure import Draft
from viz.theme import DECODER, ENCODER, FONT, OKABE_ITO, layout
from viz.tokens import labels, ticks

Array = np.ndarray

STEP_HEIGHT = 400
_LINE = f"""<style>
.written {{ display: flex; flex-wrap: wrap; gap: 0.25rem; font-family: {FONT}; }}
.written bdi {{ padding: 0.05rem 0.45rem; border: 1px solid transparent; border-radius: 0.35rem; }}
.written .past {{ background: color-mix(in srgb, {DECODER} 16%, transparent); }}
.written .now {{ border: 2px solid {DECODER}; font-weight: 700; }}
.written .later {{ opacity: 0.65; }}
</style>"""


def written_line(next_tokens: Sequence[str], step: int) -> str:
    """The translation's tokens as HTML without live markup: written, being chosen, and still to come.

    Args:
        next_tokens: the translation's pieces, the end token last.
        step: the one that is being chosen.
    """
    boxes = []
    for position, name in enumerate(labels(next_tokens)):
        state = "past" if position < step else "now" if position == step else "later"
        said = {"past": "written", "now": "chosen at this step", "later": "not yet there"}[state]
        boxes.append(f'<bdi class="{state}" role="listitem" title="step {position}: {said}">{html.escape(name)}</bdi>')
    return f'{_LINE}<div class="written" role="list" aria-label="The translation at step {step}">{"".join(boxes)}</div>'


def source_weights(weights: Array, src_tokens: Sequence[str], what: str) -> go.Figure:
    """Bars: the cross-attention weights of one decoder row over the source tokens.

    Args:
        weights: (source position,), 0 to 1.
        src_tokens: source pieces.
        what: which layer and head they are of, plain text.
    """
    names = [html.escape(label) for label in labels(src_tokens)]
    shown, texts = ticks(src_tokens)
    draft = Draft().add_bar(
        x=np.arange(len(names)),
        y=weights,
        customdata=names,
        marker_color=ENCODER,
        hovertemplate="source %{x}: %{customdata}<br>attention weight <b>%{y:.6f}</b><extra></extra>",
    )
    layout(draft, STEP_HEIGHT, "source token (key)", "attention weight, 0 to 1")
    draft.update_layout(title={"text": html.escape(what), "font": {"size": 13}}, margin={"t": 50})
    draft.update_xaxes(tickvals=shown, ticktext=texts, tickangle=-60, showgrid=False)
    draft.update_yaxes(range=[0, 1])
    return draft.figure()


def race(runs: Mapping[str, tuple[Sequence[str], Array]]) -> go.Figure:
    """Lines: log-probability of each prefix of some translations, token by token.

    Args:
        runs: name -> (pieces, log-probability of the prefix up to each of them).
    """
    draft = Draft()
    styles = ((OKABE_ITO[0], "solid", "circle"), (OKABE_ITO[5], "dash", "diamond"))
    for (name, (pieces, totals)), (colour, dash, symbol) in zip(runs.items(), styles, strict=False):
        draft.add_scatter(
            x=np.arange(len(totals)),
            y=totals,
            name=name,
            mode="lines+markers",
            customdata=[html.escape(label) for label in labels(pieces)],
            line={"color": colour, "dash": dash, "width": 2},
            marker={"symbol": symbol, "size": 8},
            hovertemplate=f"{name}, step %{{x}}: %{{customdata}}<br>log p so far <b>%{{y:.5f}}</b><extra></extra>",
        )
    layout(draft, 320, "step", "log p of the prefix")
    draft.update_layout(legend={"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0})
    draft.update_xaxes(nticks=20, tickformat="d", showgrid=False)
    return draft.figure()


def before_after(pieces: Sequence[str], before: Array, after: Array, drawn: int, others: int) -> go.Figure:
    """Bars: the model's own probabilities of one step beside those that the token was drawn from.

    Args:
        pieces: listed tokens, the model's best first.
        before: (listed + 1,), 0 to 1; the last is the sum over all other tokens.
        after: (listed + 1,), likewise; 0 where tokens were cut.
        drawn: index of the token that came.
        others: tokens of the vocabulary that are not listed.
    """
    names = [html.escape(label) for label in labels(pieces)]
    places = np.arange(len(names) + 1)
    shown = [f"<b>▸ {name}</b>" if i == drawn else name for i, name in enumerate(names)]
    hover = [*names, f"all {others:,} others"]
    draft = Draft()
    for name, values, colour, shape in (
        ("the model's own", before, OKABE_ITO[7], "/"),
        ("drawn from", after, DECODER, ""),
    ):
        draft.add_bar(
            x=values,
            y=places,
            orientation="h",
            name=name,
            customdata=hover,
            text=["cut" if value == 0 else f"{value:.2%}" for value in values],
            textposition="outside",
            textfont={"size": 10},
            constraintext="none",
            cliponaxis=False,
            marker={"color": colour, "pattern": {"shape": shape}},
            hovertemplate=f"%{{customdata}}<br>{name}: <b>%{{x:.6f}}</b><extra></extra>",
        )
    _shares(draft, STEP_HEIGHT + 130, [*shown, f"all {others:,} others"])
    return draft.figure()


def two_temperatures(pieces: Sequence[str], ways: Mapping[str, Array], others: int) -> go.Figure:
    """Bars: one step's next-token probabilities as trained, with tempered logits, and with tempered attention.

    Args:
        pieces: listed tokens.
        ways: name -> probabilities (listed,), 0 to 1.
        others: tokens of the vocabulary that are not listed.
    """
    names = [*(html.escape(label) for label in labels(pieces)), f"all {others:,} others"]
    draft = Draft()
    styles = ((OKABE_ITO[7], "/"), (OKABE_ITO[1], ""), (OKABE_ITO[2], "x"))
    for (name, values), (colour, shape) in zip(ways.items(), styles, strict=True):
        whole = np.append(values, max(1 - float(values.sum()), 0.0))
        draft.add_bar(
            x=whole,
            y=np.arange(len(names)),
            orientation="h",
            name=name,
            customdata=names,
            text=[f"{value:.2%}" for value in whole],
            textposition="outside",
            textfont={"size": 10},
            constraintext="none",
            cliponaxis=False,
            marker={"color": colour, "pattern": {"shape": shape}},
            hovertemplate=f"%{{customdata}}<br>{name}: <b>%{{x:.6f}}</b><extra></extra>",
        )
    _shares(draft, 60 + 46 * len(names), names)
    return draft.figure()


def _shares(draft: Draft, height: int, names: Sequence[str]) -> None:
    layout(draft, height, "probability, of the whole vocabulary", "")
    draft.update_layout(barmode="group", legend={"orientation": "h", "y": 1.01, "yanchor": "bottom", "x": 0})
    draft.update_layout(legend_traceorder="normal", margin={"t": 50})
    draft.update_yaxes(tickvals=np.arange(len(names)), ticktext=names, autorange="reversed", showgrid=False)
    draft.update_xaxes(range=[0, 1.08], tickvals=[0, 0.25, 0.5, 0.75, 1], tickformat=".0%")


def step_costs(lengths: Array, cached: Array, uncached: Array, what: str, unit: str) -> go.Figure:
    """Lines: what each step costs with and without the cache, as the sentence grows.

    Args:
        lengths: tokens that the decoder reads at each step.
        cached: (step,)
        uncached: (step,)
        what: what is counted, the title of the axis.
        unit: of one value, for hovering.
    """
    draft = Draft()
    for name, values, colour, dash in (
        ("whole prefix again (no cache)", uncached, OKABE_ITO[5], "dash"),
        ("newest token alone (cache)", cached, OKABE_ITO[0], "solid"),
    ):
        draft.add_scatter(
            x=lengths,
            y=values,
            name=name,
            mode="lines",
            line={"color": colour, "dash": dash, "width": 2},
            hovertemplate=f"{name}<br>length %{{x}}: <b>%{{y:.4g}} {unit}</b><extra></extra>",
        )
    layout(draft, 340, "tokens that the decoder has (length t)", what)
    draft.update_layout(legend={"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0})
    draft.update_yaxes(rangemode="tozero")
    draft.update_xaxes(showgrid=False)
    return draft.figure()
