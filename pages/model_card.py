"""Model card: scores, size and configuration of this checkpoint, and the cost of its attention."""

import pandas as pd

from model.background.sizes import Work, break_even, count_parameters, multiply_adds, work_by_length
from model.needs import Need
from model.network.config import TransformerConfig
from model.network.encoder_decoder import Transformer
from pages.frame.open_page import open_page
from pages.parts import model_card as parts
from pages.parts.swapped_weights import show_explanation
from pages.widgets.chart import chart
from pages.widgets.controls import tabs
from pages.widgets.explain import explain, show_code
from pages.widgets.export import Picture, export
from pages.widgets.proof_strip import proof_strip
from pages.widgets.snippet import Call
from viz.charts.model_card import COLOURS, lengths_to_plot, work_chart


def show_formula(config: TransformerConfig, works: dict[str, Work], even: float) -> None:
    own = sum(work.scores + work.weighted for work in works.values())
    split = (
        "since the heads split d_model, h cancels out."
        if config.kv_heads * config.d_k == config.kv_heads * config.d_v == config.d_model
        else f"here d_k = {config.d_k} and d_v = {config.d_v}, and h_kv = {config.kv_heads} heads of keys and values: "
        "the first two terms become n² h (d_k + d_v) and n d (h + h_kv) (d_k + d_v)."
    )
    explain(
        f"An encoder layer of the paper over n tokens: d = d_model = {config.d_model} in h = {config.n_heads} heads; "
        f"{split} {_count_layers(config)} The n² term is Q Kᵀ"
        " and the weighted sum: with all texts equally long it exceeds projections and feed-forward layers together "
        f"beyond n = {even:,.0f}; its share of your sentence's multiply-adds is "
        f"{100 * own / sum(work.total for work in works.values()):.1f} %.",
        r"\underbrace{2\,n^2 d}_{Q K^\top,\ \text{weights}\cdot V} \;+\; \underbrace{4\,n\,d^2}_{W_Q, W_K, W_V, W_O} "
        r"\;+\; \underbrace{2\,n\,d\,d_{ff}}_{\text{feed-forward}}",
        "4",
    )


def _count_layers(config: TransformerConfig) -> str:
    if config.family == "encoder_decoder":
        return (
            f"This model has {config.n_encoder_layers} such layers, and {config.n_decoder_layers} decoder layers with "
            "two attentions each."
        )
    layers = f"This model has {config.n_encoder_layers or config.n_decoder_layers} layers with one attention each"
    gate = ", whose gated feed-forward has a third matrix: 3 n d d_ff" if config.gated else ""
    shared = f"; its {config.n_heads} query heads share {config.kv_heads} heads of keys and values"
    return f"{layers}{gate}{shared if config.kv_heads < config.n_heads else ''}."


view = open_page(__file__)
config, trace = view.translator.config, view.trace
card = parts.card_of(view)
works = multiply_adds(config, len(trace.src_tokens), len(trace.tgt_tokens))
parts.show_summary(view, card)

even = break_even(config)
n = len(next(iter(trace.streams.values())).tokens)
lengths = lengths_to_plot(n, config.max_len, even)
arrays = Call(work_by_length, config, lengths.tolist())
work = dict(zip(COLOURS, arrays.result["multiply_adds"], strict=True))
figure = work_chart(lengths, work, n, config.max_len, even)
chart(figure, key="work", alt="Multiply-adds of attention, projections, feed-forward and output by sentence length.")
show_formula(config, works, even)
explained = {Need.CROSS_ATTENTION, Need.OWN_LAYERS} <= view.translator.features
tabs(
    {
        "Scores": lambda: parts.show_scores(view, card),
        "Configuration": lambda: parts.show_configuration(view, card),
        "This sentence's work": lambda: parts.show_work(view, works),
        **({"Is attention an explanation?": lambda: show_explanation(view)} if explained else {}),
        "The paper's Table 3": lambda: parts.show_table_3(view),
        "Data, terms, limits": lambda: parts.show_readme(card),
    },
    "card",
)
show_code(multiply_adds, break_even, count_parameters, Transformer.parameters_by_part)
table = pd.DataFrame({"n": lengths, **work})
export(
    view,
    "model-card",
    arrays,
    table,
    (Picture("Multiply-adds by sentence length", "work", figure),),
)
proof_strip(view)
