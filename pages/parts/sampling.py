"""Decoding, tabs "Sampling", "Two temperatures" and "Cost"."""

import numpy as np
import pandas as pd
import streamlit as st

from model.analysis import tab_arrays as tab
from model.analysis.distributions import entropy
from model.generation.sampling import SampledText, Sampling, sample_again, two_temperatures
from model.generation.step_cost import fastest_steps
from model.generation.steps import steps_of
from model.needs import Need
from model.network.config import TransformerConfig
from pages.compute.view import View
from pages.parts.decoding import (
    draw_samples,
    new_token_limit,
    pieces_of,
    rerun_at_temperature,
    text_of,
    time_decoding,
    wording,
)
from pages.widgets.chart import chart
from pages.widgets.controls import choice, number, slider
from pages.widgets.explain import explain
from pages.widgets.export import export_tab
from pages.widgets.snippet import Call
from viz.charts.decoding import sampling_bars, step_cost_chart, temperature_bars
from viz.latex import scaled_scores

SAMPLES = 5
LONGEST, REPETITIONS = 96, 3
SEED = "decoding-seed"
LARGEST_SEED = 999_999


def show_sampling(view: View, step: int) -> None:
    """Sampled texts, and the distribution that one of their tokens was drawn from."""
    sampling, seed = choose_sampling(view.trace.logits.shape[-1])
    limit = new_token_limit(view)
    found = draw_samples(view.translator, view.trace, sampling, seed, SAMPLES, *limit)
    st.dataframe(
        pd.DataFrame(
            {
                "sample": range(1, len(found) + 1),
                wording(view.trace).written: [text_of(view, one.tokens) for one in found],
                "tokens": [len(one.tokens) for one in found],
                "log p(Y | X)": [one.log_probability for one in found],
            }
        ),
        hide_index=True,
    )
    st.caption(
        "log p is the model's own, at temperature 1 and over the whole vocabulary, however the sample was drawn."
    )
    _show_draw(view, found, step)
    explain(
        "The temperature T divides the **logits**. Top-k then keeps the k most probable tokens, top-p the smallest "
        "set with total probability at least p (the nucleus); the rest is renormalised and sampled. T → 0 is greedy "
        "decoding.",
        r"\begin{gathered} p_i = \frac{e^{z_i / T}}{\sum_j e^{z_j / T}} \\ "
        r"V^{(p)} = \text{smallest } V' \text{ with } \textstyle\sum_{i \in V'} p_i \ge p \end{gathered}",
    )
    st.caption(
        "Top-p: Holtzman et al. 2020, “The Curious Case of Neural Text Degeneration”. The 2017 paper does not sample."
    )
    run = view.translator.model, view.trace
    export_tab(view, "samples", {"sample": Call(sample_again, *run, sampling, seed, SAMPLES, *limit, result=found)})


def choose_sampling(vocabulary: int) -> tuple[Sampling, int]:
    """Controls for temperature, top-k, top-p and the seed."""
    columns = st.columns([3, 2, 3, 2, 2], vertical_alignment="bottom")
    temperature = slider("Output temperature T", (0.1, 3.0), 1.0, "decoding-temperature", step=0.1, place=columns[0])
    top_k = number("Top-k (0: all)", (0, vocabulary), 0, "decoding-top-k", place=columns[1])
    top_p = slider("Top-p (1: all)", (0.05, 1.0), 1.0, "decoding-top-p", step=0.05, place=columns[2])
    seed = number("Seed", (0, LARGEST_SEED), 0, SEED, place=columns[3])
    columns[4].button("Sample again", icon=":material/casino:", on_click=_next_seed, width="stretch")
    return Sampling(temperature, top_k, top_p), seed


def _next_seed() -> None:
    st.session_state[SEED] = ((st.session_state.get(SEED) or 0) + 1) % (LARGEST_SEED + 1)


def _show_draw(view: View, found: tuple[SampledText, ...], step: int) -> None:
    which = choice("Show the draw of sample", range(1, len(found) + 1), "decoding-sample", in_link=False)
    one = found[which - 1]
    place = min(step, len(one.draws) - 1)
    look = one.draws[place]
    vocabulary = view.trace.logits.shape[-1]
    before = text_of(view, one.tokens[:place])
    st.text(f"Step {place}, after: {before}" if before else f"Step {place}, at the start")
    chart(
        sampling_bars(pieces_of(view, look.ids), look.before, look.after, look.chosen, vocabulary - len(look.ids)),
        key="decoding-draw",
        alt="The model's probabilities, and the distribution that the token was drawn from",
    )
    ended = f" This sample has only {len(one.draws)} steps: showing its last one." if place < step else ""
    st.caption(
        f"▸ marks the sampled token. It was drawn from {look.kept:,} of {vocabulary:,} tokens, to which the model "
        f"itself gives {look.kept_before:.2%}. {_excluded(view)}{ended}"
    )


def _excluded(view: View) -> str:
    if Need.OWN_LAYERS in view.translator.features:
        return "The start, unknown and padding tokens are excluded."
    barred = view.translator.model.barred
    return f"Excluded, as its configuration asks: {', '.join(pieces_of(view, tuple(barred)))}." if barred else ""


def show_temperatures(view: View, step: int) -> None:
    """One number as temperature of the output and as temperature of all attentions."""
    value = slider("Temperature, output or attention", (0.2, 5.0), 2.0, "decoding-either", step=0.1)
    row = view.trace.first_written + step
    distributions = rerun_at_temperature(view.translator, view.trace, row, value)
    titles = "this run", f"output: logits / {value:g}", f"attention: scores / {value:g} everywhere, rerun"
    ways = dict(zip(titles, distributions.values(), strict=True))
    best = {int(i) for p in ways.values() for i in np.argsort(-p)[:5]}
    listed = sorted(best, key=lambda i: -ways["this run"][i])
    pieces = pieces_of(view, tuple(listed))
    figure = temperature_bars(
        pieces, {name: p[listed] for name, p in ways.items()}, len(ways["this run"]) - len(listed)
    )
    chart(figure, key="decoding-two-temperatures", alt="One step under two temperatures")
    st.caption(
        "Entropy of this step: "
        + ", ".join(
            f"{name} **{float(entropy(p)):.3f} bits**"
            for name, p in zip(("in this run", "output tempered", "attention tempered"), ways.values(), strict=True)
        )
        + ". Hatched, plain and crossed bars follow the order of the legend."
    )
    plain, _, tempered_run = ways.values()
    tempered = scaled_scores(view.attention, tau=True)
    same = "the same" if plain.argmax() == tempered_run.argmax() else "another"
    explain(
        "**Output temperature** divides the logits at the very end: it sharpens or flattens the final distribution "
        "and never changes the ranking of the tokens. **Attention temperature** divides the scores inside each head, "
        "before the attention softmax: everything downstream is computed from different mixtures of values, so the "
        f"ranking can change. Here the most probable token is then {same} one. Both are 1 in the paper.",
        r"\begin{aligned} \text{output:}\quad & \mathrm{softmax}\!\left(\frac{\mathrm{logits}_t}{T}\right) \\ "
        rf"\text{{attention:}}\quad & \mathrm{{softmax}}\!\left({tempered}\right)V \end{{aligned}}",
    )
    rerun = Call(two_temperatures, view.translator.model, view.trace, row, value, result=distributions)
    export_tab(view, f"two-temperatures-step-{step}", rerun)


def show_cost(view: View, step: int) -> None:
    """Cost of a step with and without the cache: counted, and timed on request."""
    del step  # the costs of all steps are drawn
    config, n_src = view.translator.config, len(view.trace.src_ids)
    steps = min(LONGEST, config.max_len - 1)
    lengths = np.arange(1, steps + 1)
    counted = Call(tab.step_costs, config, n_src, steps)
    counts = list(counted.result.values())
    left, right = st.columns(2, gap="large")
    with left:
        figure = step_cost_chart(lengths, *counts, "multiply-adds per step, counted", "multiply-adds")
        chart(figure, key="decoding-counted", alt="Multiply-adds of each step with and without the cache")
    with right:
        measured, said = _measured(view, steps)
        if measured is None:
            with st.container(height=340, border=True, vertical_alignment="center", horizontal_alignment="center"):
                st.markdown(f"Measure {2 * REPETITIONS} decodings of {steps} tokens on this machine.")
                st.button("Measure", icon=":material/timer:", on_click=_ask, args=_measured_run(view))
        else:
            figure = step_cost_chart(lengths, *measured, "time per step, ms, measured", "ms")
            chart(figure, key="decoding-measured", alt="Measured time of each step with and without the cache")
    ratio = counts[1].sum() / counts[0].sum()
    st.caption(said)
    source = f"Source: {n_src} tokens. " if n_src else ""
    st.caption(
        f"{source}Over all {steps} steps, decoding without the cache takes {ratio:.1f} times as many multiply-adds. "
        "One multiply-add is two floating-point operations."
    )
    if not config.d_ff:
        st.caption("The feed-forward layers of this model could not be read: they are not counted.")
    _explain_cost(config, n_src, config.window or view.attention.window)
    calls = {"multiply_adds": counted}
    if measured is not None:
        for name, use_cache, seconds in (("cached", True, measured[0]), ("uncached", False, measured[1])):
            run = view.translator.model, _source(view), steps, use_cache, REPETITIONS
            calls[f"milliseconds_{name}"] = Call(fastest_steps, *run, result=seconds)
    export_tab(view, "cost-of-a-step", calls)


def _explain_cost(config: TransformerConfig, n_src: int, window: int | None) -> None:
    why = (
        "Keys and values of earlier tokens never change, because the causal mask hides later tokens from them. So the "
        "decoder caches them and computes each step for the newest token alone"
    )
    sizes = f"Here N = {config.n_decoder_layers} layers, d = {config.d_model}, d_ff = {config.d_ff}"
    matrices = 3 if config.gated else 2
    plain = config.kv_heads == config.n_heads and config.d_k == config.d_v == config.d_model / config.n_heads
    if n_src and not plain:
        explain(f"{why}; the keys and values of the encoder's output are projected once, at the first step. {sizes}.")
        return
    if n_src:
        explain(
            f"{why}; the keys and values of the encoder's output (2 n d² per layer) are projected once, at the first "
            f"step. {sizes}, V = {config.vocab_size:,} tokens, n = {n_src} of the source.",
            rf"\begin{{aligned}} \text{{cache:}}\quad & N\,[\,6d^2 + 2d\,(t+n) + {matrices}d\,d_{{ff}}\,] + dV \\ "
            rf"\text{{none:}}\quad & N\,[\,(6t+2n)\,d^2 + 2td\,(t+n) + {matrices}td\,d_{{ff}}\,] + tdV \end{{aligned}}",
        )
        return
    windowed = (
        f" The window of {window} positions saves nothing here: the cache holds every earlier position, and "
        "scores outside the window are computed and then masked."
    )
    layer = rf"(d_k + d_v)\,[\,d\,(h + h_{{kv}}) + h\,t\,] + {matrices}d\,d_{{ff}}"
    explain(
        f"{why}. {sizes}, h = {config.n_heads} heads of queries and h_kv = {config.kv_heads} of keys and values, "
        f"d_k = {config.d_k}, d_v = {config.d_v}, V = {config.vocab_size:,} tokens." + (windowed if window else ""),
        rf"\begin{{aligned}} \text{{cache:}}\quad & N\,\{{{layer}\}} + dV \\ "
        rf"\text{{none:}}\quad & tN\,\{{{layer}\}} + tdV \end{{aligned}}",
    )


def _measured_run(view: View) -> tuple[str, tuple[int, ...]]:
    """What a measurement is of: the weights, and the source."""
    return view.trace.checkpoint_hash, _source(view)


def _source(view: View) -> tuple[int, ...]:
    """What a measured decoding starts from: the source, or a single token."""
    if view.trace.src_ids or steps_of(view.translator.model).adds_start:
        return view.trace.src_ids
    return view.trace.tgt_ids[:1]


def _ask(weights: str, src_ids: tuple[int, ...]) -> None:
    st.session_state["decoding-asked"] = weights, src_ids


def _measured(view: View, steps: int) -> tuple[tuple[np.ndarray, np.ndarray] | None, str]:
    """Milliseconds per step with and without the cache, and a caption; None until asked for."""
    if st.session_state.get("decoding-asked") != _measured_run(view):
        return None, "Timings are measured on request, once, and cached."
    bar = st.progress(0.0, "Measuring …")
    tokens: set[tuple[int, ...]] = set()
    seconds: dict[bool, list[tuple[float, ...]]] = {True: [], False: []}
    for done in range(2 * REPETITIONS):
        use_cache = done % 2 == 0
        written, times = time_decoding(view.translator, _source(view), steps, use_cache, done // 2)
        tokens.add(written)
        seconds[use_cache].append(times)
        bar.progress((done + 1) / (2 * REPETITIONS), f"{done + 1} of {2 * REPETITIONS} decodings")
    bar.empty()
    cached, uncached = (1000 * np.array(seconds[use_cache]).min(axis=0) for use_cache in (True, False))
    same = "the same tokens" if len(tokens) == 1 else "**not** the same tokens (rounding broke a tie differently)"
    return (cached, uncached), (
        f"On {view.trace.device}: {cached.sum():,.0f} ms with the cache, {uncached.sum():,.0f} ms without, summed "
        f"over all {steps} steps, each the fastest of {REPETITIONS} repetitions. Both generated **{same}**. The end "
        "token was excluded so that the output reaches this length; attention is as trained."
    )
