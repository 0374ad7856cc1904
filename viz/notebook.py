"""The app's pictures in a notebook: `heads(trace)`, `lines(trace)`, `steps(trace)` as a cell's last line show them.

The output is an HTML page of its own in an <iframe>: it has scripts and numbers inside, loads nothing, and shares no
styles and no names with the notebook or with other outputs. It stays in the file that a notebook is exported to.
"""

import html
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from viz.canvas import lines as line_picture
from viz.canvas.mosaic import MOST_GROUPS, Group, mosaic
from viz.drawing import Drawing, html_page, mounting_scripts
from viz.steps.head import Choice, head_of
from viz.steps.steps import all_steps, picture
from viz.tokens import decoder_names, decoder_rows, labels

FIRST_HEIGHT = 480
"""of the output in pixels, until its script has measured it"""
STYLE = """<style>
body { margin: 0; max-width: none; padding: 0 8px 8px; box-sizing: border-box; }
summary { cursor: pointer; padding: 6px 0; font-weight: 600; }
p { margin: 4px 0; }
footer { margin-top: 8px; font-size: 12px; opacity: 0.75; overflow-wrap: anywhere; }
</style>"""
FIT = """<script>
new ResizeObserver(() => {
  if (frameElement) frameElement.style.height = `${document.documentElement.offsetHeight}px`;
}).observe(document.body);
</script>"""
"""makes the <iframe> as high as what it shows; where the notebook does not let it, the output scrolls"""


@dataclass(frozen=True)
class Output:
    """Pictures of a run, as the output of a cell."""

    title: str
    drawings: tuple[Drawing, ...]
    footer: str
    """which run it is"""
    sections: tuple[tuple[str, str], ...] = ()
    """for each picture its heading and a sentence; one is open at a time. Empty: one picture without heading"""

    def html(self) -> str:
        """The page in the <iframe>, complete: it can be saved as a file."""
        places = [f'<div id="picture-{number}"></div>' for number in range(len(self.drawings))]
        if self.sections:
            places = [
                f'<details name="sections"{"" if number else " open"}><summary>{html.escape(heading)}</summary>'
                f"<p>{html.escape(text)}</p>{place}</details>"
                for number, (place, (heading, text)) in enumerate(zip(places, self.sections, strict=True))
            ]
        footer = f"<footer dir='auto'>{html.escape(f'{self.title} · {self.footer}')}</footer>"
        scripts = mounting_scripts(dict(enumerate(self.drawings)))
        return html_page(self.title, f"{''.join(places)}{footer}{scripts}{FIT}", STYLE)

    def _repr_html_(self) -> str:
        return framed(self.title, self.html())

    def __repr__(self) -> str:
        return f"<{self.title}: trust the notebook, or run the cell again, to see the picture>"


def framed(title: str, page: str) -> str:
    """A complete HTML page as the output of a cell."""
    style = f"width: 100%; height: {FIRST_HEIGHT}px; border: 0; background: #ffffff"
    return f'<iframe title="{html.escape(title)}" srcdoc="{html.escape(page)}" style="{style}"></iframe>'


def heads(trace: Any, kinds: Sequence[str] | None = None) -> Output:
    """Every head of every layer in one picture: rows are queries, columns keys.

    Args:
        trace: a model.trace.Trace.
        kinds: encoder_self, decoder_self, cross; None: all that the model has.

    Raises:
        ValueError: the model has no such kind, or the picture would be too large.
    """
    chosen = trace.kinds[:MOST_GROUPS] if kinds is None else [trace.kind(name) for name in kinds]
    title = f"{trace.checkpoint} {trace.checkpoint_hash[:8]}, attention weights"
    drawing = mosaic([_group(trace, kind) for kind in chosen], title=title)
    return Output("Every head of every layer", (drawing,), _run(trace))


def lines(trace: Any, kind: str | None = None, layer: int | None = None, heads: Sequence[int] | None = None) -> Output:
    """Lines between queries and keys, one colour a head; buttons show and hide the heads.

    Args:
        trace: a model.trace.Trace.
        kind: encoder_self, decoder_self or cross; None: the first that the model has.
        layer: None: the first.
        heads: at most eight; None: the first eight.

    Raises:
        ValueError: the model has no such attention.
    """
    kind, layer = _place(trace, kind, layer)
    weights, mask = _weights(trace, kind, layer)
    heads = list(range(min(len(weights), line_picture.MOST_HEADS))) if heads is None else list(heads)
    for head in heads:
        _check_head(head, len(weights))
    queries, keys, predicts = _texts(trace, trace.kind(kind))
    title = f"Attention weights, {trace.kind(kind).title.lower()}, layer {layer}"
    drawing = line_picture.lines(
        weights[heads],
        labels(queries),
        labels(keys),
        heads=heads,
        allowed=mask[heads],
        predicts=None if predicts is None else labels(predicts),
        title=title,
        path=trace.kind(kind).path(layer),
    )
    return Output(title, (drawing,), _run(trace))


def steps(trace: Any, kind: str | None = None, layer: int | None = None, head: int = 0, cell: tuple = (0, 0)) -> Output:
    """The seven steps of one head, from its projections to W_O, with the run's own numbers.

    Args:
        trace: a model.trace.Trace.
        kind: encoder_self, decoder_self or cross; None: the first that the model has.
        layer: None: the first.
        head: its number in the layer.
        cell: query and key that are marked.

    Raises:
        ValueError: the model has no such attention or head, or its queries and keys could not be read.
    """
    kind, layer = _place(trace, kind, layer)
    attention = trace.attention(kind, layer)
    _check_head(head, attention.n_heads)
    if attention.projections is None:
        raise ValueError(f"The matrices of {kind} {layer} could not be read from this model: lines(trace) shows it.")
    queries, _, predicts = _texts(trace, trace.kind(kind))
    slices = head_of(attention, head, tuple(decoder_rows(queries, predicts)) if predicts is not None else ())
    title = f"{trace.checkpoint} {trace.checkpoint_hash[:8]}, {kind} layer {layer} head {head}"
    drawings = tuple(
        picture(number, slices, Choice(*cell), f"{title}, step {number + 1}: {step.title}")
        for number, step in enumerate(all_steps())
    )
    sections = tuple(
        (f"{number}. {step.title}", step.text(slices).replace("$", "")) for number, step in enumerate(all_steps(), 1)
    )
    place = f"{trace.kind(kind).title}, layer {layer}, head {head}, in seven steps"
    return Output(place, drawings, _run(trace), sections)


def _place(trace: Any, kind: str | None, layer: int | None) -> tuple[str, int]:
    found = trace.kinds[0] if kind is None else trace.kind(kind)
    return found.name, found.layers[0] if layer is None else layer


def _check_head(head: int, n_heads: int) -> None:
    if not 0 <= head < n_heads:
        raise ValueError(f"there is no head {head}; heads are 0 to {n_heads - 1}")


def _weights(trace: Any, kind: str, layer: int) -> tuple[np.ndarray, np.ndarray]:
    """Attention weights and mask, both (heads, query, key); of some models the weights are all that was read."""
    if (kind, layer) in trace.weights:
        weights = trace.weights[kind, layer]
        return weights, np.ones(weights.shape, bool)
    attention = trace.attention(kind, layer)
    return attention.pattern, attention.mask


def _texts(trace: Any, kind: Any) -> tuple[Sequence[str], Sequence[str], Sequence[str] | None]:
    """Pieces of the queries, of the keys, and of what each query's row should predict, if it predicts the next one."""
    queries, keys = trace.streams[kind.queries], trace.streams[kind.keys]
    predicts = queries.following.labels if queries.following else None
    return queries.tokens.labels, keys.tokens.labels, predicts


def _group(trace: Any, kind: Any) -> Group:
    weights, masks = zip(*(_weights(trace, kind.name, layer) for layer in kind.layers), strict=True)
    queries, keys, predicts = _texts(trace, kind)
    rows = labels(queries) if predicts is None else decoder_names(labels(queries), labels(predicts))
    paths = [kind.path(layer) for layer in kind.layers]
    return Group(kind.name, kind.title, np.stack(weights), rows, labels(keys), np.stack(masks), paths=paths)


def _run(trace: Any) -> str:
    """Which run it is: the text, the checkpoint with its hash, and how many changes were made."""
    texts = [trace.source, *([] if trace.translation == trace.source else [trace.translation])]
    changes = [f"{len(trace.interventions)} changes in the model"] if trace.interventions else []
    checkpoint = f"checkpoint {trace.checkpoint}, SHA-256 {trace.checkpoint_hash}"
    return " · ".join([" → ".join(texts), checkpoint, *changes])
