"""Every picture that a token's text goes into, drawn from one run, with nothing of that text become markup."""

import re

import numpy as np

from model.analysis.stream.vocabulary import spell
from model.checkpoints.tokenizer import Tokenizer
from model.run import Run
from model.trace import Trace
from pages.views import shared
from pages.views.attention import masks, temperature
from pages.views.model import layer_by_layer
from viz import heatmap, html
from viz.candidates import alternatives
from viz.canvas import lines, mosaic
from viz.forms import Form
from viz.heatmap import row_names
from viz.special import heads_and_layers, logit_lens, translate
from viz.steps import head, steps
from viz.tokens import labels, numbered

LIVE = re.compile(r"<(script|img|iframe|svg|a|style|object|textarea|math|link|meta)\b", re.IGNORECASE)
OWN = re.compile(r"<style>.*?</style>", re.DOTALL)


def draw(trace: Trace, tokenizer: Tokenizer) -> None:
    """Everything but the Plotly figures; raises AssertionError as they do."""
    for text in (
        html.translated(trace.translation, trace.source, trace.next_tokens, "cross"),
        html.chips("Source", trace.src_tokens, trace.src_ids, "#0072B2"),
        html.piece_boxes("Source", spell(tokenizer, trace.src_ids), "#0072B2", 0),
    ):
        check(OWN.sub("", text))
    _components(trace)


def _components(trace: Trace) -> None:
    """These send their labels as JSON and write them with textContent: they must arrive whole."""
    attention = trace.attention("encoder_self", 0)
    read = labels(attention.query_tokens)
    group = mosaic.Group("encoder_self", "Encoder", attention.pattern[None], read, read, attention.mask[None])
    found = head.head_of(attention, 0)
    payloads = (
        lines.lines(attention.pattern, read, read, allowed=attention.mask),
        mosaic.mosaic([group]),
        steps.picture(4, found, head.Choice(), "title"),
    )
    assert all(payloads)
    assert steps.result(4, found)[0]


def draw_figures(trace: Trace) -> None:
    """Every Plotly figure of tokens; raises AssertionError where one holds live markup or cannot be sent."""
    rows = row_names(trace.tgt_tokens, trace.next_tokens)
    cross, own = trace.attention("cross", 0), trace.attention("decoder_self", 0)
    chance = trace.target_probabilities
    first = (trace.next_tokens[0], trace.next_ids[0], float(chance[0]))
    options, shares, chosen = translate.rank_candidates(trace.candidates[0], first)
    named = heatmap.row_names(own.query_tokens, trace.next_tokens)
    drawn = (
        heads_and_layers.head_map(rows, numbered(trace.src_tokens), cross.pattern[0], cross.mask[0], "weight"),
        translate.certainty_bars(trace.next_tokens, chance, 0).draw(),
        alternatives(options, shares, chosen, trace.logits.shape[-1]).draw(),
        heads_and_layers.head_map(named, numbered(own.key_tokens), own.pattern[0], own.mask[0], "weight"),
        shared.probabilities(trace, chance, chance, ("one", "two")).draw(),
        logit_lens.lens_map(chance[:, None], np.ones((len(rows), 1)), ["step"], (named, trace.next_tokens), 0),
    )
    run = Run.of(None, trace, "decoder_self")
    views = masks.masks, masks.orders, temperature.one_row, layer_by_layer.path, layer_by_layer.similarity
    shows = [view(run).shows.values() for view in views]
    forms = [picture.draw() for pictures in shows for picture in pictures if isinstance(picture, Form)]
    for figure in (*drawn, *forms):
        check(figure.to_json())


def check(text: str) -> None:
    """Nothing of it is live markup, and it can be sent."""
    # JSON writes "<" as \\u003c, which the browser reads back as "<".
    text = text.replace("\\u003c", "<").replace("\\u003C", "<")
    assert not (found := LIVE.search(text)), text[max(0, found.start() - 40) : found.end() + 40]
    text.encode()
