"""Model card: the summary above the figure, and one function per tab."""

import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace

import pandas as pd
import streamlit as st

from model.analysis import tab_arrays as tab
from model.background.sizes import Work, count_parameters, multiply_adds
from model.background.table_3 import TABLE_3, rounded_millions
from model.checkpoints.card import Card, Score, evaluate_command, read_card
from model.checkpoints.store import CheckpointError, checkpoint_path, load_checkpoint, shown_name
from model.checkpoints.translator import Translator
from model.needs import Need
from model.network.config import PRESETS
from model.trace import KIND_TITLES
from pages.compute.cache import shared_result
from pages.compute.view import View
from pages.widgets import controls
from pages.widgets.export import export_tab
from pages.widgets.glossary import define
from pages.widgets.snippet import Call
from viz.charts.model_card import amount, percentages
from viz.tokens import as_markdown

PARTS = {
    **{name: title.lower() for name, title in KIND_TITLES.items()},
    "encoder_feed_forward": "encoder feed-forward",
    "decoder_feed_forward": "decoder feed-forward",
    "output": "output over the vocabulary",
}
OF_OTHERS = {
    "metrics.json": "A Hugging Face model has no metrics.json; its README may say how well it does.",
    "log.csv": "A Hugging Face model has no log.csv: how it was trained is not recorded here.",
}
"""instead of how to write these files, for models that this project did not train"""
PAPER = "Vaswani et al. 2017, “Attention Is All You Need”, arXiv:1706.03762, Table 3"


def card_of(view: View) -> Card:
    """The card of this page's checkpoint; warns if its files have changed since the model was loaded.

    The folder of a Hugging Face model has no files of this project's, and names no hash.
    """
    card = read_card(checkpoint_path(view.translator.name))
    if Need.OWN_LAYERS not in view.translator.features:
        lacking = {name: sentence for name, sentence in OF_OTHERS.items() if name in card.missing}
        return replace(card, missing={**card.missing, **lacking})
    if card.weights_hash != view.translator.hash:
        st.warning(
            "The checkpoint's folder has changed since the app loaded it: the files below may describe other weights "
            "than the loaded model's. Restart the app.",
            icon=":material/warning:",
        )
    return card


def show_summary(view: View, card: Card) -> None:
    """Four metrics: the first score, parameters, file size and loading time."""
    places = st.columns(4)
    score = next((score for score in card.scores if not score.metric.endswith(" BLEU")), None)
    label = f"{as_markdown(score.metric)}, {as_markdown(score.dataset)}" if score else "Score"
    places[0].metric(label, f"{score.value:.{_digits(score)}f}" if score else "not measured")
    parameters = sum(view.translator.parameters_by_part().values())
    places[1].metric("Parameters", amount(parameters), help=f"{parameters:,}")
    places[2].metric("Weights file", f"{_weights_size(card) / 1e6:.3g} MB")
    places[3].metric(
        "Loads in",
        _loading_time(view.translator),
        help="Measured once in this process: the checkpoint is loaded a second time, hashes checked and weights "
        "moved to the device. The files are then probably in the system's file cache; a first read from disk "
        "takes longer.",
    )


def _weights_size(card: Card) -> int:
    """Bytes; Hugging Face models may have several files."""
    return sum(size for name, size in card.files.items() if name.endswith(".safetensors"))


def _digits(score: Score) -> int:
    return 2 if score.metric.endswith("BLEU") else 4


def show_scores(view: View, card: Card) -> None:
    """Every score in metrics.json with its signature and command, and the last row of the training log."""
    _say_missing(card, "metrics.json", "log.csv")
    if card.scores:
        table = {
            "set": [score.dataset for score in card.scores],
            "metric": [score.metric for score in card.scores],
            "score": [f"{score.value:.{_digits(score)}f}" for score in card.scores],
            "beam": [score.beam_size for score in card.scores],
            "sacreBLEU signature, or amount of text": [score.signature for score in card.scores],
        }
        controls.table(pd.DataFrame(table).convert_dtypes(), floats=None)
        sets = dict.fromkeys(score.dataset for score in card.scores)
        commands = [evaluate_command(view.translator.name, dataset, card.scores) for dataset in sets]
        st.code("\n".join(commands), language="bash", wrap_lines=True)
        translates = Need.CROSS_ATTENTION in view.translator.features
        st.caption(
            "One command per test set: it prints these scores and signatures and stores them in metrics.json. That "
            "file does not record the path of the data, so FILE (one "
            f"{'source, tab and target' if translates else 'text'} a line) and REFERENCE are placeholders."
        )
    if card.log:
        _show_end_of_log(card.log)
    if card.scores or card.log:
        export_tab(view, "scores", Call(tab.card_arrays, view.translator))


def show_configuration(view: View, card: Card) -> None:
    """Configuration, parameters by part and files, compared with the paper's base and big models."""
    config, parts = view.translator.config, view.translator.parameters_by_part()
    with st.spinner("Counting the paper's models …"):
        paper = {name: _preset_parameters(name) for name in ("base", "big")}
    configs = {shown_name(view.translator.name): config} | {f"paper's {name}": PRESETS[name] for name in paper}
    rows = {name: {**asdict(c), "d_k": c.d_k} for name, c in configs.items()}
    left, right = st.columns(2, gap="large")
    with left:
        st.markdown("**Configuration**")
        names = list(dict.fromkeys(field for values in rows.values() for field in values))
        fields = {name: [str(values.get(field, "")) for field in names] for name, values in rows.items()}
        controls.table(pd.DataFrame({"field": names, **fields}))
        st.caption(
            "The paper states its vocabulary as “about 37000” and no max_len; those two values are this project's. "
            "The dropout of its big model is the one for English to German."
        )
    with right:
        st.markdown("**Parameters by part**")
        counts = dict(zip(configs, (parts, *paper.values()), strict=True))
        named = list(dict.fromkeys(part for count in counts.values() for part in count))
        columns = {name: [*(count.get(part) for part in named), sum(count.values())] for name, count in counts.items()}
        controls.table(pd.DataFrame({"part": [*named, "together"], **columns}).convert_dtypes(), floats=None)
        st.caption(
            "A matrix shared by embeddings and output is counted once, as embeddings. " + _compare_with_table_3(paper)
        )
        st.markdown("**Files**")
        controls.table(
            pd.DataFrame({"file": list(card.files), "bytes": list(card.files.values())}).convert_dtypes(), floats=None
        )
        st.caption(
            f"The weights file has {_weights_size(card) / sum(parts.values()):.2f} bytes per parameter; on "
            f"{view.translator.device.partition(':')[0]} they are {view.translator.dtype}."
        )
    export_tab(view, "parameters", Call(tab.size_arrays, view.translator, tuple(PRESETS[name] for name in paper)))


def show_work(view: View, works: Mapping[str, Work]) -> None:
    """Multiply-adds of one pass over the current sentence, one row per part."""
    totals = [work.total for work in works.values()]
    columns = {
        "part": [PARTS[part] for part in works],
        "layers": [work.layers for work in works.values()],
        "queries × keys": [f"{w.queries} × {w.keys}" if w.keys else f"{w.queries}" for w in works.values()],
        "Q Kᵀ": [work.scores or None for work in works.values()],
        "weights · V": [work.weighted or None for work in works.values()],
        "learned matrices": [work.weights for work in works.values()],
        "share": percentages(totals),
    }
    controls.table(pd.DataFrame(columns).convert_dtypes(), floats=None)
    st.caption(
        f"{sum(totals):,} multiply-adds in total, for one teacher-forced pass over the tokens of this page's run."
        " Masked cells are counted, because the model computes them before masking; "
        "biases, norms, residual connections and the softmax are not. Learned matrices are the projections W_Q, W_K, "
        "W_V and W_O, W_1 and W_2 of the feed-forward layers, and the output matrix.",
        help=define("teacher-forced"),
    )
    trace = view.trace
    call = Call(multiply_adds, view.translator.config, len(trace.src_tokens), len(trace.tgt_tokens), result=works)
    export_tab(view, "work-of-this-sentence", call)


def show_table_3(view: View) -> None:
    """The paper's ablations, each with its difference from the base model."""
    st.markdown(
        f"**The paper's numbers, not ours** ({PAPER}): English to German on newstest2013, perplexity per word piece. "
        "They cannot be compared with this checkpoint's scores, which differ in training data, model size and test "
        "set."
    )
    base = TABLE_3[0]
    columns = {
        "": [row.group for row in TABLE_3],
        "changed": [row.change for row in TABLE_3],
        "PPL (dev)": [row.perplexity for row in TABLE_3],
        "BLEU (dev)": [row.bleu for row in TABLE_3],
        "BLEU against base": [row.bleu - base.bleu for row in TABLE_3],
        "parameters, millions": [row.millions for row in TABLE_3],
    }
    controls.table(
        pd.DataFrame(columns).convert_dtypes(),
        floats=None,
        **{
            "": st.column_config.TextColumn(width=40),
            "changed": st.column_config.TextColumn(width="large"),
            "PPL (dev)": st.column_config.NumberColumn(format="%.2f"),
            "BLEU (dev)": st.column_config.NumberColumn(format="%.1f"),
            "BLEU against base": st.column_config.NumberColumn(format="%+.1f"),
        },
    )
    st.caption(
        "A: number of heads at constant computation. B: key size. C: model size. D: dropout and label smoothing. E: "
        "positional encoding. Empty cells: “unlisted values are identical to those of the base model”. Base: N = 6, "
        "d_model = 512, d_ff = 2048, h = 8, d_k = d_v = 64, P_drop = 0.1, ε_ls = 0.1, 100,000 steps. Big: d_model = "
        "1024, d_ff = 4096, h = 16, P_drop = 0.3, 300,000 steps."
    )
    export_tab(view, "table-3", Call(tab.table_3_arrays))


def show_readme(card: Card) -> None:
    """The checkpoint's README.md: data, licence and limits."""
    _say_missing(card, "README.md")
    if card.readme:
        with st.container(border=True):
            st.markdown(calm_markdown(card.readme))


def calm_markdown(text: str) -> str:
    """A README for display inside a page: headings two levels lower, images as links so that none is fetched, without
    the YAML that a Hugging Face one begins with. What looks like code but may be none keeps its text, parted."""
    text = re.sub(r"(?s)\A---\n.*?\n---\n", "", text)
    pieces = re.split(r"(?ms)(^```.*?^```)", text)
    for i in range(0, len(pieces), 2):
        pieces[i] = re.sub(r"(?m)^(#{1,4} )", r"##\1", pieces[i]).replace("![", "[")
    return "".join(pieces).replace("![", "!\u2060[")


def _show_end_of_log(log: Sequence[Mapping[str, float]]) -> None:
    end = log[-1]
    names = {
        "train_loss": "training loss",
        "dev_loss": "development loss",
        "dev_bleu": "development BLEU, greedy",
        "dev_bits_per_byte": "development bits per byte",
        "dev_accuracy": "accuracy on masked tokens",
    }
    found = [f"{name} {end[column]:.4g}" for column, name in names.items() if column in end]
    where = [f"{name} {end[name]:,.0f}" for name in ("step", "epoch") if name in end]
    hours = [f"{end['hours']:.2f} hours"] if "hours" in end else []
    st.caption(f"Last of {len(log)} rows in log.csv: {', '.join(where + hours)}; {', '.join(found)}.")


def _compare_with_table_3(paper: Mapping[str, Mapping[str, int]]) -> str:
    """How the counts differ from the paper's rounded ones; no single vocabulary size explains both."""
    found, needed = [], []
    for name, parts in paper.items():
        total, said, d_model = sum(parts.values()), rounded_millions(name), PRESETS[name].d_model
        found.append(f"{name} {total / 1e6:.1f} M, {100 * (total / (said * 1e6) - 1):+.1f} % from {said} M")
        low, high = ((1e6 * (said + half) - total) / d_model + PRESETS[name].vocab_size for half in (-0.5, 0.5))
        needed.append(f"{low:,.0f} to {high:,.0f} for {name}")
    return (
        f"Compared with the paper's Table 3: {'; '.join(found)}. The paper states only “about 37000” tokens. With "
        f"this code's layers its rounded totals would require {' and '.join(needed)}: no single vocabulary size "
        "matches both, so the vocabulary alone does not explain the difference. We do not know what else does."
    )


def _say_missing(card: Card, *names: str) -> None:
    for name in names:
        if name in card.missing:
            st.info(card.missing[name], icon=":material/info:")


def _loading_time(translator: Translator) -> str:
    try:
        return f"{_load_seconds(translator):.2f} s"
    except CheckpointError:
        return "damaged"


@shared_result()
def _preset_parameters(name: str) -> dict[str, int]:
    return count_parameters(PRESETS[name])


@shared_result()
def _load_seconds(translator: Translator) -> float:
    """Seconds that loading this checkpoint takes, measured by loading it again."""
    start = time.perf_counter()
    load_checkpoint(translator.name, translator.device)
    return time.perf_counter() - start
