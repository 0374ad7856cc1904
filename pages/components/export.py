"""Downloads of exactly what a page shows; each file names the checkpoint and its hash."""

import io
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import streamlit as st

from viz.standalone import standalone_html

if TYPE_CHECKING:
    from pages.components.frame import View


def export(
    view: "View",
    name: str,
    arrays: dict[str, np.ndarray],
    table: pd.DataFrame | None = None,
    figure: Any | None = None,
) -> None:
    """Offer the page's numbers (NPZ, CSV) and its figure (HTML) for download.

    Args:
        view: the run they came from.
        name: of the file, without ending.
        arrays: what the NPZ holds, besides the run's own tokens.
        table: what the CSV holds.
        figure: the Plotly figure of the HTML file.
    """
    files = [("NPZ", "all arrays, for numpy.load", "npz", lambda: _npz(view, arrays))]
    if table is not None:
        files.insert(0, ("CSV", "the table, for a spreadsheet", "csv", lambda: _csv(view, table)))
    if figure is not None:
        files.append(("HTML", "the figure; its camera button saves SVG", "html", lambda: _html(view, figure)))
    stem = f"{name}-{view.trace.checkpoint}-{view.trace.checkpoint_hash[:8]}"
    with st.expander("Export", icon=":material/download:"):
        for kind, help_text, ending, content in files:
            st.download_button(
                f"{kind}: {help_text}",
                data=content,
                file_name=f"{stem}.{ending}",
                key=f"export-{name}-{ending}",
                on_click="ignore",
            )


def _run_of(view: "View") -> dict[str, str]:
    trace = view.trace
    return {
        "checkpoint": trace.checkpoint,
        "checkpoint_sha256": trace.checkpoint_hash,
        "source": trace.source,
        "translation": trace.translation,
        "interventions": "; ".join(map(repr, trace.interventions)) or "none",
    }


def _csv(view: "View", table: pd.DataFrame) -> bytes:
    return table.assign(**_run_of(view)).to_csv(index=False).encode()


def _npz(view: "View", arrays: dict[str, np.ndarray]) -> bytes:
    trace = view.trace
    run = _run_of(view) | {"src_tokens": trace.src_tokens, "tgt_tokens": trace.tgt_tokens}
    file = io.BytesIO()
    np.savez_compressed(file, **{key: np.array(value) for key, value in run.items()}, **arrays)
    return file.getvalue()


def _html(view: "View", figure: Any) -> bytes:
    caption = ", ".join(f"{key}: {value}" for key, value in _run_of(view).items())
    return standalone_html(figure, caption).encode()
