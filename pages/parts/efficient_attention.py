"""Efficient attention: one function per tab."""

import numpy as np
import pandas as pd
import streamlit as st

from model.analysis.flash import FlashRun, flash_attention, fused_kernel, tile_sizes
from model.analysis.linear_attention import DRAWS, FEATURES, FeatureSweep, LinearRun, linear_attention, sweep_features
from model.background import attention_costs as costs
from model.background.stopwatch import FITTED, Timings, fit_power, time_on
from model.needs import Need
from model.trace import Trace
from pages.compute.cache import shared_result
from pages.compute.on_request import measure_on_request
from pages.compute.view import View
from pages.parts.why_attention import how_measured
from pages.widgets import controls
from pages.widgets.chart import axis_labels, chart
from pages.widgets.export import Picture, export_tab
from pages.widgets.snippet import Call
from viz.charts import efficient_attention as charts
from viz.charts.masks import weight_maps
from viz.charts.timing import time_table
from viz.latex import error_text
from viz.theme import OKABE_ITO, symmetric_range

EXPLAINED = 8
"""a difference above so many roundings of the largest score is no rounding; trained heads stay below one"""
CLOSE = 0.1
"""error of z that counts as close"""
NO_ROUNDING = 1e-3
"""an error of the weights above this is no rounding"""
POWERS = range(-3, 4)
"""powers of ten that are written as decimals"""
RENARD = (10, 13, 16, 20, 25, 32, 40, 50, 63, 79)
LENGTHS = {n: f"{n:,}" for n in (*(each * 10**power for power in range(5) for each in RENARD), 1_000_000)}
WINDOWS = (64, 128, 256, 512, 1024, 2048, 4096)
BYTES = {4: "fp32", 2: "bf16", 1: "int8"}
MEMORY = {"memory": "All", "scores": "Scores", "cache": "Cache or state", "parameters": "Parameters"}
PARTS = {
    "memory": "scores, cache, parameters",
    "scores": "scores",
    "cache": "KV cache or state",
    "parameters": "parameters",
}
"""titles of the axis"""
MEASURED = {
    costs.EAGER: (OKABE_ITO[0], "circle"),
    costs.FUSED: (OKABE_ITO[5], "square"),
    costs.ELU: (OKABE_ITO[2], "diamond"),
}


def show_flash(view: View) -> None:
    """One head computed tile by tile, never holding more than one tile of scores."""
    for equation in (
        r"S_{ij} = \mathrm{scale}\cdot Q_i K_j^{\top}",
        r"m_i^{\mathrm{new}} = \max\big(m_i,\ \mathrm{rowmax}(S_{ij})\big)",
        r"\ell_i^{\mathrm{new}} = e^{m_i - m_i^{\mathrm{new}}}\,\ell_i + "
        r"\mathrm{rowsum}\big(e^{S_{ij} - m_i^{\mathrm{new}}}\big)",
        r"O_i \leftarrow \big(e^{m_i - m_i^{\mathrm{new}}}\,\ell_i\,O_i + e^{S_{ij} - m_i^{\mathrm{new}}} V_j\big)\,/\,"
        r"\ell_i^{\mathrm{new}}",
    ):
        st.latex(equation)
    st.caption(
        "Dao et al. 2022, “FlashAttention”, Algorithm 1; the softmax in one pass: Milakov & Gimelshein 2018, “Online "
        "normalizer calculation for softmax”. Attention temperature, soft cap and bias act on S where the model or the "
        "sidebar has them."
    )
    attention = view.attention
    sizes = {size: f"{size} × {size}" for size in tile_sizes(attention)}
    size = controls.choice(
        "Tile, queries × keys", sizes, "flash_tile", default=min(sizes, key=lambda one: abs(one - 4))
    )
    call = Call(flash_attention, attention, view.head, size)
    run: FlashRun = call.result
    steps = len(run.rows)
    if not steps:
        st.info("Every cell of this head is masked, so no tile is read.", icon=":material/info:")
        return
    if steps == 1:
        _show_tile(view, run, 1)
    else:
        controls.stepper(lambda step: _show_tile(view, run, step), "Tile", (1, steps), min(3, steps), "flash_step")
    _compare(view, run)
    export_tab(view, "flash-attention", call, *_pictures(view, run, steps))


def _pictures(view: View, run: FlashRun, step: int) -> list[Picture]:
    names, tiles = axis_labels(view.attention), np.hstack([run.rows, run.columns])
    read = charts.tile_chart(run.scores, names, tiles, step - 1, run.skipped)
    output = charts.output_chart(run.o[step], names[0], symmetric_range(run.o), tuple(run.rows[step - 1]))
    return [Picture("Tile", "flash-tile", read), Picture("Output", "flash-output", output)]


def _show_tile(view: View, run: FlashRun, step: int) -> None:
    """What is in fast memory at a step, and m, l and O before and after it."""
    (top, bottom), (left, right) = run.rows[step - 1], run.columns[step - 1]
    st.markdown(
        f"**Tile {step} of {len(run.rows)}**: queries {top} to {bottom - 1}, keys {left} to {right - 1}. In fast "
        "memory: their rows of Q, K and V, the scores S of this tile, and O, m and ℓ of its queries."
    )
    for column, picture, alt in zip(
        st.columns(2),
        _pictures(view, run, step),
        ("The scores of the tile that is read, among all queries and keys", "The output O of every query so far"),
        strict=True,
    ):
        with column:
            st.markdown(f"**{'Scores S of the tile' if picture.title == 'Tile' else 'Output O so far'}**")
            chart(picture.content, key=picture.key, alt=alt)
    rows = slice(top, bottom)
    controls.table(
        pd.DataFrame(
            {
                "query": axis_labels(view.attention)[0][rows],
                "m before": _as_text(run.m[step - 1, rows]),
                "m after": _as_text(run.m[step, rows]),
                "rescaled by": run.rescaling[step - 1, rows],
                "ℓ before": run.l[step - 1, rows],
                "ℓ after": run.l[step, rows],
            }
        ),
        floats="%.5g",
    )
    st.caption(
        "Orange frame: the tile in fast memory. Grey: tiles that were read before; their scores no longer exist. "
        "Crossed out: masked as a whole, never read. A tile with a larger score raises m, and what was summed before "
        "is rescaled by e^(m before − m after), which is 0 where no key had been read. Rows of O that have read no key "
        "yet are 0."
    )


def _as_text(values: np.ndarray) -> list[str]:
    return [f"{value:.5g}".replace("-", "−") if np.isfinite(value) else "−∞" for value in values]


def _compare(view: View, run: FlashRun) -> None:
    """The result beside the run's, what it saves, and the fused kernel."""
    attention, read = view.attention, len(run.rows)
    st.markdown(
        f"**After the last tile** O differs from this run's `pattern @ v` by at most **{run.difference:.1e}** of the "
        f"largest number in it. The run is in single precision, this in double: rounding the head's largest score can "
        f"change its weight by a share of {run.rounding:.1e}. "
        f"{read} of {read + len(run.skipped)} tiles were read"
        + (f"; {len(run.skipped)} are masked as a whole and skipped. " if len(run.skipped) else ". ")
        + f"A tile needs {run.tile_bytes:,} bytes in fast memory; all scores of this head are {run.square_bytes:,} "
        "bytes (float32), and grow with n²."
    )
    if run.tile_bytes > run.square_bytes:
        st.caption(
            "With so few tokens a tile with its vectors is larger than all scores; it stays as it is as n grows, and "
            "the scores do not."
        )
    if run.difference > EXPLAINED * run.rounding:
        st.caption("That is more than rounding: a change in this run acts on the scores or weights after q and k.")
    fused = fused_kernel(attention, view.head, view.trace.device)
    if fused is None:
        st.caption("torch's scaled_dot_product_attention has no soft cap and no sink, so there is nothing to compare.")
        return
    name, difference = fused
    search = "" if Need.MASKED_MODEL in view.translator.features else ", as in its search"
    own = Need.OWN_LAYERS in view.translator.features
    st.markdown(
        f"**The fused kernel**: for these q, k and v, `torch.nn.functional.scaled_dot_product_attention` picks "
        f"**{name}** on {view.trace.device}; its result differs from this run's "
        f"`pattern @ v` by at most **{difference:.1e}** of the largest number in it. "
        + (
            f"The model calls this function where nothing in an attention is changed or recorded{search}; what is "
            "drawn comes from the explicit formula."
            if own
            else "Whether this model calls it where nothing is recorded, its own code decides."
        )
    )


@shared_result()
def _sweep(trace: Trace, kind: str, layer: int, head: int) -> FeatureSweep:
    return sweep_features(trace.attention(kind, layer), head)


def show_linear(view: View) -> None:
    """One head with the weights of two feature maps, and how far they are from the softmax's."""
    for equation in (
        r"{z_i = \frac{\phi(q_i)^{\top} S_i}{\phi(q_i)^{\top} s_i},} \qquad \allowbreak "
        r"{S_i = \sum_{j} \phi(k_j)\,v_j^{\top},} \qquad \allowbreak {s_i = \sum_{j} \phi(k_j)}",
        r"\text{elu + 1:}\quad \phi(x) = \mathrm{elu}(x) + 1",
        r"\text{FAVOR+:}\quad \allowbreak {\phi(x) = \tfrac{1}{\sqrt m}\, e^{-\lVert x \rVert^2 / 2}\,"
        r"\big(e^{\omega_1 \cdot x}, \dots, e^{\omega_m \cdot x}\big),} \qquad \allowbreak "
        r"{\mathbb{E}\big[\phi(x)\cdot\phi(y)\big] = e^{x \cdot y}}",
    ):
        st.latex(equation)
    st.caption(
        "Katharopoulos et al. 2020, “Transformers are RNNs”, sections 3.2 to 3.4; Choromanski et al. 2021, “Rethinking "
        "Attention with Performers”, Lemma 1 and section 2.4: ω standard normal, orthogonal in blocks of d_k. The sums "
        "run over the keys that the query sees. x and y are q and k times √(scale / τ); elu + 1 reads q and k as they "
        "are."
    )
    attention, head = view.attention, view.head
    if not attention.mask[head].any():
        st.info("Every cell of this head is masked, so there are no weights to compare.", icon=":material/info:")
        return
    left, right = st.columns([3, 2])
    size = controls.steps("Random features m", FEATURES, "linear_features", default=256, place=left)
    draw = controls.slider("Draw (seed)", (0, DRAWS - 1), 0, "linear_draw", place=right)
    sweep = Call(sweep_features, attention, head, result=_sweep(view.trace, view.kind, view.layer, head))
    call = Call(linear_attention, attention, head, size, draw)
    pictures = _show_errors(sweep.result, call.result, size)
    st.markdown(_errors_in_words(view, sweep.result))
    pictures.append(_show_weights(view, call.result, size, draw))
    _show_work(view, call.result, size)
    export_tab(view, "linear-attention", {"sweep": sweep, "linear": call}, *pictures)


def _show_errors(sweep: FeatureSweep, run: LinearRun, size: int) -> list[Picture]:
    """Both errors over the number of features."""
    pictures = []
    for column, (title, key, band, elu, line) in zip(
        st.columns(2),
        (
            ("total variation of the weights", "linear-weights", sweep.weights_band, run.weight_errors[0], None),
            ("relative error of z", "linear-z", sweep.z_band, run.z_errors[0], CLOSE),
        ),
        strict=True,
    ):
        figure = charts.error_chart(sweep.features, band, float(elu), size, title, line)
        with column:
            chart(figure, key=key, alt=f"The {title} over the number of random features, for {DRAWS} draws")
        pictures.append(Picture(title.capitalize(), key, figure))
    st.caption(
        f"{DRAWS} draws of the features, with seeds 0 to {DRAWS - 1}: median, and the band from the 10th to the 90th "
        "percentile. Weights: total variation, half the sum of absolute differences of a row (0 equal, 1 disjoint), "
        f"mean over the queries. z: ‖z − pattern v‖ / ‖pattern v‖ with this run's pattern and v; dotted: {CLOSE:.0%}. "
        "Vertical line: the m of the maps below."
    )
    return pictures


def _errors_in_words(view: View, sweep: FeatureSweep) -> str:
    """What holds of the errors in this run."""
    first, *_, last = sweep.z_band[1]
    fewest, most = int(sweep.features[0]), int(sweep.features[-1])
    enough = sweep.enough(CLOSE)
    reached = (
        f"**{enough:,} features are the fewest here** whose median error is below {CLOSE:.0%}."
        if enough
        else f"**No number of features up to {most:,} brings it below {CLOSE:.0%}.**"
    )
    power = sweep.deviation(most)
    deviation = f"{10**power:.2g}" if POWERS[0] < power < POWERS[-1] else f"$10^{{{power:.0f}}}$"
    sentences = [
        f"The median error of z is {first:.1%} with {fewest} features and {last:.1%} with {most:,}. {reached}",
        f"The estimate is unbiased, but its spread grows with the length of the vectors: the median ‖x + y‖² of the "
        f"visible pairs is {sweep.distance:.3g}, so with {most:,} independent features the estimate of such a pair's "
        f"$e^{{x \\cdot y}}$ has a standard deviation of **{deviation} times** its value (Lemma "
        "2). Performers are trained with these features; this model was not.",
    ]
    if sweep.weights_limit > NO_ROUNDING:
        reason = (
            "this model caps its scores, and no feature map here has that cap"
            if view.attention.softcap is not None
            else "a change in this run acts on the scores or weights after q and k"
        )
        sentences.append(
            f"More features cannot remove all of it: the softmax of q and k itself is {sweep.weights_limit:.3g} away "
            f"from the run's weights and {sweep.z_limit:.3g} from its z, because {reason}."
        )
    return "\n\n".join(sentences)


def _show_weights(view: View, run: LinearRun, size: int, draw: int) -> Picture:
    """The run's weights and both approximations as maps."""
    titles = ("Softmax, this run", f"Random features, m = {size}", "elu + 1")
    mask = view.attention.mask[view.head]
    maps = dict(zip(titles, (run.exact, run.random, run.elu), strict=True))
    figure = weight_maps(*axis_labels(view.attention), mask, maps)
    chart(figure, key="linear-maps", alt="The weights of the run, of random features and of elu + 1", roomy=True)
    masks = "" if mask.all() else " Hatched: masked, in all three as in the run."
    st.caption(
        f"Draw {draw}. Rows are queries, columns keys; one colour range.{masks} Total variation from the run: "
        f"{run.weight_errors[1]:.3g} with random features, {run.weight_errors[0]:.3g} with elu + 1; relative error of "
        f"z: {run.z_errors[1]:.3g} and {run.z_errors[0]:.3g}. elu + 1 does not estimate the softmax: it is another "
        "attention, with which a model has to be trained."
    )
    return Picture("Weights", "linear-maps", figure)


def _show_work(view: View, run: LinearRun, size: int) -> None:
    """Multiply-adds and memory of the head, and the form with one state."""
    attention = view.attention
    (queries, d_k), (keys, d_v) = attention.q[view.head].shape, attention.v[view.head].shape
    random, elu = (
        costs.linear_products(queries + keys, m, d_k, d_v, drawn) for m, drawn in ((size, True), (d_k, False))
    )
    controls.table(
        pd.DataFrame(
            {
                "weights": ["softmax", "random features", "elu + 1"],
                "features": [None, size, d_k],
                "multiply-adds": [costs.attention_products(queries, keys, d_k, d_v), random, elu],
                "weights or state, numbers": [queries * keys, size * (d_v + 1), d_k * (d_v + 1)],
            }
        ).convert_dtypes()
    )
    even = [2 * size * (d_k + d_v + 1) // (d_k + d_v), 2 * d_k * (d_v + 1) // (d_k + d_v)]
    st.caption(
        f"This head, {queries} queries and {keys} keys, d_k = {d_k}, d_v = {d_v}. State: S and s. With as many queries "
        f"as keys, linear attention needs fewer multiply-adds above n = {even[0]:,} with these random features, above "
        f"n = {even[1]:,} with elu + 1. Exponentials are not counted."
    )
    if run.recurrence is not None:
        passing = "updated from query to query" if attention.causal else "summed over the keys once"
        st.markdown(
            f"**Without any matrix of weights**: S and s {passing}, z differs from that of the map above by at most "
            f"**{error_text(run.recurrence)}** of its largest number."
        )
    elif attention.bias is not None and attention.bias[view.head].any():
        st.caption("This attention adds a bias to each pair, which multiplies the kernel and needs all n × n of them.")
    else:
        st.caption("This head's mask drops keys that an earlier query saw, so S is not a running sum here.")


def show_cost(view: View) -> None:
    """Multiply-adds and memory of all layers over n, counted, and the time of one layer, measured."""
    for equation in (
        r"\text{full:}\quad \underbrace{n\,d\,(h + h_{kv})(d_k + d_v)}_{\text{projections}} + "
        r"\underbrace{n^2\,h\,(d_k + d_v)}_{Q K^{\top},\ \text{pattern } V}",
        r"\text{linear:}\quad \allowbreak {n\,d\,(h + h_{kv})(d_k + d_v)} "
        r"\allowbreak {{} + n\,(h + h_{kv})\,m\,(d_k + d_v + 1)}",
    ):
        st.latex(equation)
    sizes, attention = costs.layer_sizes(view.trace, view.kind), view.attention
    own = attention.window
    window_names = {size: f"{size:,}" for size in sorted({*WINDOWS, *([own] if own else [])})}
    columns = st.columns([3, 2, 2])
    n = controls.steps("n, tokens", LENGTHS, "cost_n", default=10_000, place=columns[0])
    window = controls.steps("Sliding window", window_names, "cost_window", default=own or 256, place=columns[1])
    features = controls.steps("Random features m", FEATURES, "cost_features", default=256, place=columns[2])
    left, right = st.columns(2)
    memory = controls.choice("Memory of", MEMORY, "cost_memory", place=left)
    width = controls.choice("A number takes", BYTES, "cost_bytes", place=right)
    here = len(attention.key_tokens)
    lengths = sorted({here, *LENGTHS})
    call = Call(costs.cost_over_n, view.trace, view.kind, lengths, window, features)
    pictures = _show_curves(call.result, {f"this run: {here:,}": here, f"n = {n:,}": n}, memory, width)
    counted = costs.attention_costs(sizes, n, window, features)
    table = _cost_table(counted, width)
    text_column = st.column_config.TextColumn(alignment="right")
    controls.table(table, **dict.fromkeys(table.columns[1:], text_column))
    st.markdown(_costs_in_words(sizes, counted, n, features, width))
    st.caption(_sizes_in_words(view, sizes))
    timings = _show_measured(view, sizes[0])
    calls = {"cost": call, "table": Call(costs.attention_costs, sizes, n, window, features, result=counted)}
    if timings:
        contenders = Call(costs.attention_contenders, attention, view.trace.device)
        calls["time"] = Call(time_on, contenders, view.trace.device, timings.lengths, result=timings)
    export_tab(view, f"cost-over-n-{view.kind}", calls, *pictures)


def _show_curves(curves: costs.CostCurves, marked: dict[str, int], memory: str, width: int) -> list[Picture]:
    """Multiply-adds and memory over n."""
    kinds = {
        "cost-work": ("multiply-adds", curves.multiply_adds, "multiply-adds"),
        "cost-memory": (f"bytes at {BYTES[width]}: {PARTS[memory]}", width * getattr(curves, memory), "bytes"),
    }
    pictures = []
    for column, (key, (title, values, unit)) in zip(st.columns(2), kinds.items(), strict=True):
        figure = charts.cost_chart(curves.n, dict(zip(curves.methods, values, strict=True)), title, marked, unit)
        with column:
            chart(figure, key=key, alt=f"The {unit} of each kind of attention over the number of tokens")
        pictures.append(Picture(title.capitalize(), key, figure))
    return pictures


def _cost_table(counted: dict[str, costs.Cost], width: int) -> pd.DataFrame:
    """Exact counts as text, since some exceed what a browser's numbers hold."""

    def column(values: list[int]) -> list[str]:
        return [f"{value:,}" for value in values]

    each = counted.values()
    return pd.DataFrame(
        {
            "attention": list(counted),
            "multiply-adds": column([cost.multiply_adds for cost in each]),
            "scores, bytes": column([width * cost.scores for cost in each]),
            "KV cache or state, bytes": column([width * cost.cache for cost in each]),
            "parameters, bytes": column([width * cost.parameters for cost in each]),
            "together, bytes": column([width * cost.memory for cost in each]),
        }
    )


def _costs_in_words(
    sizes: list[costs.LayerSize], counted: dict[str, costs.Cost], n: int, features: int, width: int
) -> str:
    """Who needs less than whom at n, and from where on."""
    pairs = sum(size.heads * (size.d_k + size.d_v) for size in sizes)
    parameters = sum(size.parameters for size in sizes)
    even = costs.even_length(sizes, features)
    full, linear = counted[costs.FULL], counted[costs.LINEAR]
    ratio = full.multiply_adds / linear.multiply_adds
    compared = f"{ratio:,.3g} times as many" if ratio >= 1 else f"{1 / ratio:,.3g} times fewer"
    return (
        f"At n = {n:,} full attention needs **{compared}** multiply-adds {'as' if ratio >= 1 else 'than'} linear "
        f"attention with m = {features:,}; linear needs fewer above n = {even:,}. The n² term is the larger part of "
        f"full attention above n = {parameters // pairs:,}; below, its projections are. One layer's scores and "
        f"attention weights take {_in_units(width * full.scores)}, the keys and values of all layers "
        f"{_in_units(width * full.cache)}; linear attention's state takes {_in_units(width * linear.cache)} at every n."
    )


def _in_units(count: int) -> str:
    """Bytes with a unit, powers of 1,000."""
    power = min(max(len(str(count)) - 1, 0) // 3, 5)
    return f"{count / 1000**power:.3g} {('bytes', 'kB', 'MB', 'GB', 'TB', 'PB')[power]}"


def _sizes_in_words(view: View, sizes: list[costs.LayerSize]) -> str:
    """What is counted, and for which sizes."""
    size, kind = sizes[0], view.trace.kind(view.kind)
    same = "each" if len(set(sizes)) == 1 else "of which the first has"
    shared = "".join(
        f"{name}: {heads} key/value head{'s' * (heads > 1)}. " for name, heads in costs.shared_heads(size).items()
    )
    notes = [
        f"{kind.title} of this model: {len(sizes)} layers, {same} d_model = {size.d_model}, {size.heads} heads, "
        f"{size.kv_heads} key/value heads, d_k = {size.d_k}, d_v = {size.d_v}; batch of one text. {shared}",
        "Multiply-adds: of all layers with their projections, all n² pairs; FlashAttention multiplies as often as full "
        "attention. Scores: what exists at once between q, k, v and z in one layer: scores and attention weights, a "
        f"tile of {costs.FLASH_TILE} × {costs.FLASH_TILE} a head, or the features of one token. Cache: keys and values "
        "of all layers, or a state that does not grow. Parameters: the matrices of these layers, without biases; the "
        "LSTM is as wide as the model, with four gates.",
    ]
    if kind.crosses:
        notes.append(
            "Cross-attention is counted with n queries and n keys; a recurrent layer would read one text only."
        )
    elif not kind.causal:
        notes.append(
            "An encoder reads its text at once and keeps no cache; the column is the size of its keys and values."
        )
    return " ".join(notes)


def _show_measured(view: View, size: costs.LayerSize) -> Timings | None:
    """Time of one layer's attention over n, on request, with fitted powers of n."""
    attention, lengths = view.attention, costs.measured_lengths(size)
    st.markdown(
        f"**Measured**: the attention of one layer, {size.heads} heads, in fp32, without mask and projections, on "
        f"layer {view.layer}'s own q, k and v, repeated to n = {lengths[0]} to {lengths[-1]:,}. The eager form goes "
        f"head by head, so it needs two n × n matrices at once: {_in_units(8 * lengths[-1] ** 2)}."
    )
    timings = measure_on_request(
        "cost-time",
        (view.trace.checkpoint_hash, view.kind, view.layer, size),
        view.trace.device,
        lambda: costs.attention_contenders(attention, view.trace.device),
        lengths,
    )
    if not timings:
        return None
    fits = {name: fit_power(timings.lengths, seconds) for name, seconds in timings.seconds.items()}
    chart(
        charts.growth_chart(timings.lengths, timings.samples, fits, FITTED, MEASURED),
        key="cost-times",
        alt="Measured time of three ways to compute attention over n, with fitted powers of n",
    )
    powers = ", ".join(f"**{power:.2f}** ({name})" for name, (_, power) in fits.items())
    longest = timings.lengths[-FITTED:]
    st.markdown(f"From n = {longest[0]:,} to {longest[-1]:,} the time grows as n to the power {powers}.")
    controls.table(time_table(timings.lengths, {f"{name}, ms": each * 1e3 for name, each in timings.seconds.items()}))
    st.caption(f"{how_measured(timings)} Dashed: c nᵖ, fitted by least squares to the logarithms.")
    return timings
