"""Said, and measured, tab "The paper's results": Tables 2 and 4, who came after, and this checkpoint beside them."""

import pandas as pd
import streamlit as st

from model.background.paper_results import LATER, TABLE_2, TABLE_4, TRAINING_HOURS, operations_of
from model.checkpoints.card import read_card
from model.checkpoints.store import checkpoint_path
from model.needs import Need
from pages.compute.view import View
from pages.widgets.controls import table
from pages.widgets.page_links import link_with
from viz.tokens import as_markdown


def show_results(view: View) -> None:
    """The paper's tables, each with what it shows and what it does not."""
    st.markdown("**Table 2: translation, newstest2014**")
    table(_translations(), floats="%.2f", system=st.column_config.TextColumn(width="large"))
    hours = "; ".join(f"{name}: {count} hours → {operations_of(count):.1e}" for name, count in TRAINING_HOURS.items())
    st.caption(
        "Tokenised BLEU. The operations of a training are its time × 8 GPUs × 9.5 · 10¹² a second, an estimate "
        f"({hours}). The much-quoted 26.30 of GNMT is an ensemble's; its single model has 24.6. For English to "
        "French the first abstract says 41.0, the later one 41.8."
    )
    st.markdown(f"**This checkpoint beside it.** {_own(view)}")
    st.markdown("**Table 4: English constituency parsing, WSJ section 23**")
    table(
        pd.DataFrame([(row.parser, row.training, row.f1) for row in TABLE_4], columns=["parser", "training", "F1"]),
        floats="%.1f",
    )
    st.caption(
        "The same architecture, hardly tuned, on another task: with 40,000 sentences it beats all discriminative "
        "parsers but one, and with more text all but a multi-task and a generative one."
    )
    link_with("The paper's Table 3, and our own", "model_card", card="The paper's Table 3")


def _translations() -> pd.DataFrame:
    rows = [("the paper", row) for row in TABLE_2] + [("later", row) for row in LATER]
    return pd.DataFrame(
        {
            "reported by": [by for by, _ in rows],
            "system": [row.system for _, row in rows],
            "EN-DE BLEU": [row.en_de for _, row in rows],
            "EN-FR BLEU": [row.en_fr for _, row in rows],
            "EN-DE training operations": [_count(row.en_de_operations) for _, row in rows],
            "EN-FR training operations": [_count(row.en_fr_operations) for _, row in rows],
        }
    )


def _count(operations: float | None) -> str:
    return "" if operations is None else f"{operations:.1e}"


def _own(view: View) -> str:
    if Need.OWN_LAYERS not in view.translator.features:
        return "It is a Hugging Face model; its authors' card says how good it is."
    card = read_card(checkpoint_path(view.translator.name))
    scores = [f"{as_markdown(each.metric)} {each.value:.2f} on {as_markdown(each.dataset)}" for each in card.scores]
    if not scores:
        return "No score of it has been measured."
    return (
        f"{'; '.join(scores)}. Other texts, and other ways to count: none of these can be held against a row above. "
        "The base model of the paper has 65 million parameters and read 4.5 million sentence pairs."
    )
