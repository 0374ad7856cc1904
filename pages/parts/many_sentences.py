"""Heads and layers: what each head does over many sentences, beside what it does on this one."""

import pandas as pd
import streamlit as st

from model.analysis.head_summary import HeadSummary
from model.analysis.induction import CHANCE, EVERY, LENGTH, SEQUENCES
from model.analysis.many_sentences import NOT_OF_A_SENTENCE, SCORES, Head, ManySentences, read_heads, score_arrays
from pages.compute.view import KINDS, View
from pages.widgets.chart import chart, clicked_point
from pages.widgets.controls import choice, select, set_controls, table
from pages.widgets.export import export_tab
from pages.widgets.snippet import Call
from viz.charts.heads_and_layers import many_sentences_chart
from viz.tokens import as_markdown

CHART, BEST = "many-sentences", "many-sentences-best"
ORDERS = {"score": "By score", "layer": "By layer"}
BEST_IS_LOW = ("errors",)


def show_many_sentences(view: View, here: tuple[HeadSummary, ...]) -> None:
    """One score of all heads over many sentences; the opened head's name and sentences; a click opens a head.

    Args:
        view: of the page.
        here: all heads of its kind on this sentence.
    """
    try:
        found = read_heads(view.translator)
    except ValueError as error:
        st.info(as_markdown(str(error)), icon=":material/info:")
        return
    opened = found.head(view.kind, view.layer, view.head)
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        score = select("Score", {name: SCORES[name] for name in SCORES if name in opened.mean}, "many_score", width=320)
        by_layer = choice("Order", ORDERS, "many_order") == "layer"
    call = Call(score_arrays, view.translator, view.trace, view.kind, score)
    scores = pd.DataFrame(call.result)
    if not by_layer:
        scores = scores.sort_values("mean", ascending=score in BEST_IS_LOW, kind="stable", ignore_index=True)
    places = list(zip(scores["layer"].tolist(), scores["head"].tolist(), strict=True))
    figure = many_sentences_chart(
        [f"{layer}.{head}" for layer, head in places],
        {name: scores[name].to_numpy() for name in ("mean", "spread", "here", "layer_mean")},
        places.index((view.layer, view.head)),
        SCORES[score],
        _OVER.get(score, "mean over the sentences"),
        by_layer,
    )
    st.session_state["many-sentences-places"] = places
    chart(figure, key=CHART, alt=f"{SCORES[score]} of every head, {KINDS[view.kind]}", on_select=_open)
    layers = scores.drop_duplicates("layer").sort_values("layer")
    means = ", ".join(f"{row.layer}: {row.layer_mean:.3f}" for row in layers.itertuples())
    st.caption(
        f"{KINDS[view.kind]}: {_explain(view, found, score)} Means by layer: {means}. The larger marks are the opened "
        "head's; a click on a mark opens another."
    )
    names = {(head.layer, head.head): head.type for head in here}
    _describe(opened, names[view.layer, view.head], found.sentences)
    _describe_score(scores.iloc[places.index((view.layer, view.head))], scores["mean"], score, found.sentences)
    usual = [found.head(view.kind, *place) for place in places]
    shown = scores.assign(
        usually=[head.type for head in usual],
        share=[head.types.get(head.type, 0.0) for head in usual],
        now=[names[place] for place in places],
    )
    labels = {"usually": f"type over {found.sentences:,}", "share": "on", "now": "type here", "spread": "±"}
    labels |= {"mean": "score"} if score in NOT_OF_A_SENTENCE else {}
    shown = shown.drop(columns="layer_mean").dropna(axis="columns", how="all").rename(columns=labels)
    left, right = st.columns([5, 4])
    with left:
        table(shown, floats="%.3f", height=400, **{"on": st.column_config.NumberColumn(format="percent")})
    with right:
        _show_best(opened)
    st.caption(
        f"The type over {found.sentences:,} sentences is the first rule that the means meet; “on” is the share "
        f"of the sentences on which the head has it. Measured with {as_markdown(found.command)}."
    )
    export_tab(view, f"many-sentences-{view.kind}-{score}", call, table=shown)


_OVER = {"copy": "of the weights", "induction": "mean over random sequences", "errors": "over all sentence pairs"}


def _explain(view: View, found: ManySentences, score: str) -> str:
    """What the marks of a score are."""
    if score == "copy":
        return (
            "sum of the eigenvalues of a head's OV circuit over the sum of their magnitudes (Elhage et al. 2021; tab "
            "“Weights of the head”). It comes from the weights alone and is the same for every sentence."
        )
    if score == "induction":
        first = f"{SEQUENCES} sequences of {LENGTH} random tokens, each repeated once (as in Olsson et al. 2022). "
        causal = "The score is the mean weight of each repeated token on the token that followed it the first time"
        masked = f"Every {EVERY}th repeated token is hidden, and the score is the mean weight on it in the first half"
        chance = CHANCE if view.attention.causal else 1 / (2 * LENGTH + 2)
        return f"{first}{causal if view.attention.causal else masked}; equal weights would give {chance:.3f}."
    if score == "errors":
        return (
            "each target word is linked to the source word with the largest weight in the rows that predict it; 0 if "
            "every link is right (Och and Ney 2003). The reference is **silver**, not gold: no person aligned these "
            f"{found.sentences:,} sentence pairs, so a statistical model did ({found.aligned})."
        )
    return f"every head over {found.sentences:,} sentences of {found.of}, and on this one."


def _describe(head: Head, here: str, sentences: int) -> None:
    """Name the opened head over many sentences and on this one."""
    kinds = ", ".join(f"{name} on {share:.0%}" for name, share in head.types.items())
    same = "as on this one" if head.type == here else f"but **{here}** on this one"
    st.markdown(
        f"**{KINDS[head.kind]}, layer {head.layer}, head {head.head}**: **{head.type}** over {sentences:,} sentences "
        f"({head.rule}), {same}. Sentence by sentence: {kinds}."
    )


def _describe_score(row: pd.Series, means: pd.Series, score: str, sentences: int) -> None:
    """The opened head's score, its rank, and how far this sentence is from the mean."""
    better = means < row["mean"] if score in BEST_IS_LOW else means > row["mean"]
    rank = f"number {better.sum() + 1} of {len(means)}, from the {'lowest' if score in BEST_IS_LOW else 'highest'}"
    if score in NOT_OF_A_SENTENCE:
        st.markdown(f"Its {SCORES[score]}: **{row['mean']:.3f}**, {rank}.")
        return
    apart = row["here"] - row["mean"]
    far = f", {abs(apart) / row['spread']:.1f} standard deviations" if row["spread"] else ""
    side = f"{far} {'above' if apart > 0 else 'below'} the mean" if apart else ", the same"
    over = f"**{row['mean']:.3f}** over {sentences:,} sentences ({rank})"
    st.markdown(f"Its {SCORES[score]}: {over}, **{row['here']:.3f}** on this one{side}.")


def _show_best(head: Head) -> None:
    """The sentences on which the head is most itself; a click on one runs it."""
    texts, scores = zip(*head.best, strict=True)
    st.session_state["many-sentences-texts"] = texts
    sentences = pd.DataFrame({"score": scores, f"most itself on, by {SCORES[head.shows]}": texts})
    st.dataframe(
        sentences,
        hide_index=True,
        height=400,
        key=BEST,
        on_select=_take_sentence,
        selection_mode="single-row",
        column_config={"score": st.column_config.NumberColumn(format="%.3f", width=60)},
        alt=f"The sentences on which this head is most itself, by {SCORES[head.shows]}",
    )


def _open() -> None:
    if point := clicked_point(CHART):
        layer, head = st.session_state["many-sentences-places"][point["point_index"]]
        set_controls({"layer": layer, "head": head})


def _take_sentence() -> None:
    """The ticked sentence becomes the source; its tick goes with it."""
    rows = st.session_state[BEST]["selection"]["rows"]
    if rows and rows[0] < len(st.session_state["many-sentences-texts"]):
        set_controls({"source": st.session_state["many-sentences-texts"][rows[0]]})
