"""Why attention, tabs "Recurrence and attention" and "Three models compared": small models of the letters task."""

from string import ascii_lowercase

import numpy as np
import pandas as pd
import streamlit as st

from model.background import rivals
from model.background.rivals import (
    ADDITIVE,
    EXACT_MATCH,
    FIXED,
    GRADIENT_AFTER,
    GRADIENT_BEFORE,
    TESTED_LENGTHS,
    TRAINED_LENGTHS,
    TRANSFORMER,
    RivalRun,
)
from pages.compute.cache import shared_result
from pages.compute.view import View
from pages.views.names import RIVALS as TITLES
from pages.widgets.chart import chart
from pages.widgets.controls import select, stepper, table, text
from pages.widgets.explain import explain
from pages.widgets.export import Picture, export_tab
from pages.widgets.snippet import Call
from viz.charts.heads_and_layers import head_map
from viz.charts.rivals import Schedule, exact_match_chart, gradient_chart, mean_gradients_chart, schedule_chart
from viz.heatmap import row_names
from viz.theme import symmetric_range
from viz.tokens import numbered

DEFAULT, LONGEST = "sequence", TESTED_LENGTHS[-1]
LENGTHS = f"{TRAINED_LENGTHS[0]} to {TRAINED_LENGTHS[-1]} letters"


@st.fragment
def show_rivals(view: View) -> None:
    """Three models reverse the typed letters: what they write, step by step, attention and gradient."""
    st.markdown(
        "Three small models of about equal size, trained here on one task: **write the letters in reverse order**. An "
        "LSTM encoder-decoder that hands over one fixed vector (Sutskever et al. 2014), the same with additive "
        f"attention (Bahdanau et al. 2015), and a Transformer. They were trained on texts of {LENGTHS}."
    )
    letters = _choose_letters()
    runs = {name: run_rival(name, letters) for name in TITLES}
    _show_outputs(runs)
    place = _choose_head(runs[TRANSFORMER])
    schedules = [_schedule(name, run, place) for name, run in runs.items()]
    _show_schedules(schedules, len(letters))
    _show_attention(runs, place)
    figure = _show_gradients(runs)
    _explain_rivals()
    calls = {name: Call(rivals.run_rival, name, letters, result=run) for name, run in runs.items()}
    pictures = (Picture("Gradient over distance", "rivals-gradient", figure),)
    export_tab(view, "recurrence-and-attention", calls, *pictures)


def clean_letters(typed: str) -> str:
    """The letters a to z of a text, at most LONGEST; DEFAULT if there are none."""
    return "".join(letter for letter in typed.lower() if letter in ascii_lowercase)[:LONGEST] or DEFAULT


def _choose_letters() -> str:
    typed = text("Letters to reverse", "letters", default=DEFAULT, max_chars=4 * LONGEST)
    letters = clean_letters(typed)
    beyond = "" if len(letters) in TRAINED_LENGTHS else f" **No model has seen {len(letters)} letters in training.**"
    st.caption(
        f"The models read: {' '.join(letters)}. The letters a to z, at most {LONGEST}; everything else is left out."
        f"{beyond}"
    )
    return letters


def _show_outputs(runs: dict[str, RivalRun]) -> None:
    rows = [
        {
            "model": TITLES[name],
            "writes": " ".join(run.writes),
            "exact match": "✓ yes" if run.exact else "✗ no",
            "probability of the whole output": float(run.probability.prod()),
            "parameters": sizes()[name],
        }
        for name, run in runs.items()
    ]
    table(pd.DataFrame(rows))


def _choose_head(run: RivalRun) -> tuple[int, int]:
    """Layer and head of the Transformer's cross-attention; at first the one that reads the right letters most."""
    layers, heads = run.patterns.shape[:2]
    shares = rivals.right_letter_weights(run)
    best = np.unravel_index(shares.argmax(), shares.shape)
    options = {(i, j): f"layer {i}, head {j}" for i in range(layers) for j in range(heads)}
    default = tuple(int(i) for i in best)
    return select("Cross-attention of the Transformer", options, "rival_head", default=default, width=300)


def _schedule(name: str, run: RivalRun, place: tuple[int, int]) -> Schedule:
    recurrent = name != TRANSFORMER
    weights = None if name == FIXED else run.patterns[(0, 0) if recurrent else place]
    limit = 1.0 if recurrent else symmetric_range(run.encoder, run.decoder)[1]
    return Schedule(TITLES[name], run.reads, run.writes, run.encoder, run.decoder, weights, recurrent, limit)


def _show_schedules(schedules: list[Schedule], n: int) -> None:
    st.markdown("#### Step by step")
    last = max(schedule.steps for schedule in schedules)

    def show(step: int) -> None:
        figure = schedule_chart(schedules, step)
        chart(figure, key="rivals-schedule", alt=f"What three models have computed after step {step} of {last}")

    stepper(show, "Step", (1, last), min(n + 2, last), "rivals_step")
    st.caption(
        "Left what the encoder computes, right what the decoder computes: one column a token, one line a dimension, "
        "blue negative, red positive. LSTM: hidden states, colours from −1 to 1. Transformer: the output of each "
        f"layer, from −{schedules[-1].limit:.3g} to {schedules[-1].limit:.3g}. The frame is what this step computes. "
        "Dots above the encoder: what the token being written reads from there, the diameter in proportion to the "
        "weight; of the Transformer, in the layer and head chosen above. The fixed vector is the LSTM's last state, "
        "read once; not drawn is its cell state, which is handed over as well. A Transformer's layer counts as one "
        "step for all positions, a written token as one step for every model. **Writing is sequential in all three.** "
        "In training, where the right output is known, the Transformer's decoder also computes all positions at "
        "once; an LSTM cannot."
    )


def _show_attention(runs: dict[str, RivalRun], place: tuple[int, int]) -> None:
    st.markdown("#### What is read for each letter")
    titles = {ADDITIVE: (0, 0), TRANSFORMER: place}
    for (name, (layer, head)), column in zip(titles.items(), st.columns(2), strict=True):
        run = runs[name]
        weights = run.patterns[layer, head]
        rows = row_names(("<s>", *run.writes[:-1]), run.writes)
        where = "" if name == ADDITIVE else f", layer {layer}, head {head}"
        share = rivals.right_letter_weights(run)[layer, head]
        with column:
            st.markdown(f"**{TITLES[name]}**{where}")
            figure = head_map(rows, numbered(run.reads), weights, np.ones_like(weights, bool), "attention weight")
            chart(
                figure, key=f"rivals-{name}", alt=f"Attention weights of the decoder over the letters: {TITLES[name]}"
            )
            st.caption(f"Mean weight on the letter that should be written: {share:.1%}.")
    st.caption(
        "A row is a token being written, a column a token read; rows sum to 1. The query of additive attention is the "
        "decoder's state *before* it reads its last token (section 3.1 of Bahdanau et al.), and the weights are taken "
        "of states that have already read everything to their left. So a large weight one column beside the letter "
        "need not be a mistake."
    )


def _show_gradients(runs: dict[str, RivalRun]) -> object:
    st.markdown("#### How much the last letter's loss depends on each token read")
    first = runs[FIXED]
    away = rivals.distances(len(first.reads) - 1)
    figure = gradient_chart(away, first.reads, {TITLES[name]: run.gradient for name, run in runs.items()})
    chart(figure, key="rivals-gradient", alt="Norm of the gradient at each source token by distance, three models")
    st.caption(
        "Norm of the gradient of −log p of the last correct letter, with the right letters before it given, at each "
        f"embedded token. That letter is the first one read, {first.reads[0]}, at the largest distance. The loss of a "
        "model that is sure of the letter is almost flat, so **compare the shape of the curves, not their height**. "
        "The distance is counted in steps of the LSTMs; in the Transformer every token is equally far."
    )
    return figure


def _explain_rivals() -> None:
    explain(
        "An LSTM computes its states one after another, and without attention everything that the decoder learns of "
        "the source passes through the last one. Additive attention keeps all states and lets each step read them; "
        "the states are still computed one after another. The Transformer drops the recurrence: each layer computes "
        "all positions at once, and any two are one attention apart. $s_{i-1}$ is the decoder's previous state, $h_j$ "
        "the encoder's state at position j. Unlike in the paper of Bahdanau et al., whose encoder reads in both "
        "directions and has gated recurrent units, our two LSTMs differ in nothing but attention, and in width (100 "
        "and 86) so that their numbers of parameters are about equal.",
        r"e_{ij} = v^{\top} \tanh(W_1 s_{i-1} + W_2 h_j), \qquad \alpha_{ij} = "
        r"\frac{\exp e_{ij}}{\sum_k \exp e_{ik}}, \qquad c_i = \sum_j \alpha_{ij} h_j",
        "4; Sutskever et al. 2014, “Sequence to Sequence Learning with Neural Networks”; Bahdanau et al. 2015, “Neural "
        "Machine Translation by Jointly Learning to Align and Translate”, section 3.1",
    )


def show_comparison(view: View) -> None:
    """Exact match over length and gradient over distance, of three seeds each."""
    results = read_results()
    st.markdown("**Exact match**: share of texts that a model reverses without a mistake, greedily")
    matches = {TITLES[name]: rivals.by_seed(results, EXACT_MATCH, name) for name in TITLES}
    figure = exact_match_chart(matches, (TRAINED_LENGTHS[0], TRAINED_LENGTHS[-1]))
    chart(figure, key="rivals-exact", alt="Exact match by number of letters, three models, three seeds each")
    st.caption(
        "300 random texts of each length, none of them in training. Line: mean of three seeds; band: lowest to "
        f"highest. Shaded: the trained lengths, {LENGTHS}."
    )
    st.markdown("**Gradient** of the last letter's loss over the distance to the token read")
    titles = {GRADIENT_BEFORE: "before training", GRADIENT_AFTER: "after training"}
    gradients = {
        title: {TITLES[name]: rivals.by_seed(results, measure, name) for name in TITLES}
        for measure, title in titles.items()
    }
    second = mean_gradients_chart(gradients)
    chart(second, key="rivals-gradients", alt="Norm of the gradient by distance, before and after training")
    st.caption(
        "Before training, the gradient of the LSTM without attention falls by about the same factor at each step, a "
        "straight line on this axis: what Bengio et al. (1994) call vanishing gradients. Attention is one step long "
        "whatever the distance. After training the loss of a model that is sure of its letter is almost flat: compare "
        f"shapes, not heights. Mean of three seeds, on texts of {TRAINED_LENGTHS[-1]} letters."
    )
    call = Call(rivals.result_arrays, result=rivals.result_arrays())
    pictures = (
        Picture("Exact match over length", "rivals-exact", figure),
        Picture("Gradient over distance", "rivals-gradients", second),
    )
    export_tab(view, "three-models-compared", call, *pictures, table=results)


run_rival = shared_result("Three models are running …")(rivals.run_rival)
read_results = shared_result()(rivals.read_results)
sizes = shared_result()(rivals.count_rival_parameters)
