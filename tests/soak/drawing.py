"""Every picture that a token's text goes into, drawn from one run, with nothing of that text become markup."""

import re

from model.analysis.stream.vocabulary import spell
from model.checkpoints.translator import Translator
from model.run import Run
from model.trace import Trace
from pages.views.attention import masks, temperature
from pages.views.attention.heads_and_layers import mosaic
from pages.views.explore import translate
from pages.views.model import layer_by_layer
from pages.views.shared import probability_changes
from viz import html, notebook
from viz.figure import StableFigure
from viz.forms import Form

LIVE = re.compile(r"<(script|img|iframe|svg|a|style|object|textarea|math|link|meta)\b", re.IGNORECASE)
OWN = re.compile(r"<style>.*?</style>", re.DOTALL)
FIGURES = (
    *(translate.alignment, translate.certainty, mosaic.heads, masks.masks, masks.orders, temperature.one_row),
    *(layer_by_layer.path, layer_by_layer.lens, layer_by_layer.similarity),
)
"""views that draw with Plotly"""


def draw(trace: Trace, translator: Translator) -> None:
    """Everything but the Plotly figures; raises AssertionError as they do."""
    for text in (
        html.translated(trace.translation, trace.source, trace.next_tokens, "cross"),
        html.chips("Source", trace.src_tokens, trace.src_ids, "#0072B2"),
        html.piece_boxes("Source", spell(translator.tokenizer, trace.src_ids), "#0072B2", 0),
    ):
        check(OWN.sub("", text))
    # These send their labels as JSON and write them with textContent: they must arrive whole.
    for show in (notebook.heads, notebook.lines, notebook.steps):
        assert all(drawing.data for drawing in show(trace).drawings)


def draw_figures(trace: Trace, translator: Translator) -> None:
    """Every Plotly figure of tokens; raises AssertionError where one holds live markup or cannot be sent."""
    run = Run.of(translator, trace, "decoder_self")
    chance = trace.target_probabilities
    drawn = [picture for view in FIGURES for picture in view(run).shows.values()]
    for picture in (*drawn, probability_changes(trace, chance, chance, ("one", "two"))):
        figure = picture.draw() if isinstance(picture, Form) else picture
        if isinstance(figure, StableFigure):
            check(figure.to_json())


def check(text: str) -> None:
    """Nothing of it is live markup, and it can be sent."""
    # JSON writes "<" as \\u003c, which the browser reads back as "<".
    text = text.replace("\\u003c", "<").replace("\\u003C", "<")
    assert not (found := LIVE.search(text)), text[max(0, found.start() - 40) : found.end() + 40]
    text.encode()
