"""Efficient attention: one function per tab."""

import numpy as np
import pandas as pd
import streamlit as st

from model.analysis.flash import FlashRun, flash_attention, fused_kernel, tile_sizes
from pages.compute.view import View
from pages.widgets import controls
from pages.widgets.chart import axis_labels, chart
from pages.widgets.export import Picture, export_tab
from pages.widgets.snippet import Call
from viz.charts import efficient_attention as charts
from viz.theme import symmetric_range

EXPLAINED = 8
"""a difference above so many roundings of the largest score is no rounding; trained heads stay below one"""


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
    search = "" if "a masked language model" in view.translator.features else ", as in its search"
    own = "layers of this project's own code" in view.translator.features
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
