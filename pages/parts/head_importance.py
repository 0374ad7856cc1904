"""What if, tab "Which heads matter": each head switched off alone, and the least important ones together."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import streamlit as st

from model.analysis.head_importance import WHOLE, HeadScores, Pair, Question, head_scores, prune
from model.analysis.head_pruning import PruningCurve, encode_pair, pruning_curve
from model.generation.long_text import one_line
from model.interventions import HeadGate
from pages.compute.cache import store, stored
from pages.compute.on_request import compute_on_request, pressed
from pages.compute.queue import in_turns
from pages.compute.runs import Request, rerun, run, translate
from pages.frame.examples import examples_of
from pages.frame.view import KINDS, Place, View
from pages.widgets.chart import chart, clicked_point
from pages.widgets.controls import choice, select, slider
from pages.widgets.explain import show_code
from pages.widgets.export import export_tab
from pages.widgets.snippet import Call
from viz.charts.head_importance import effect_maps, effect_table, pruning_chart
from viz.html import word_diff
from viz.tokens import as_markdown, decoder_rows, labels

PART = "Which heads matter"
"""title of the tab"""
AT = "which_at"
"""in session and URL: the position whose token is scored"""
SCORED = {"all": "all tokens", "token": "one token"}
MAPS = "which-maps"
SENTENCES = 10
CHART = ":material/show_chart:"
OF = {"kind": "this kind", "all": "all kinds"}
MEAN = "The mean over all positions; in the decoder over those up to the query."
MODES = {"zero": "by nothing (zero)", "mean": "by its mean"}
ON = {"sentence": "this sentence", "examples": f"{SENTENCES} example sentences"}
TOKENS_IN_A_PASS = 1024
"""rows times length of one batch; keeps the logits of a pass within 40 MB"""


def show_which_heads(view: View) -> None:
    """Switch off every head alone, then the k least important ones together."""
    st.markdown(
        "Each head is **switched off alone** and the same translation is scored again: how much less probable does "
        "it become? A large drop means that the head was needed; no change means that it was not, or that other "
        "heads compensated."
    )
    question = _question(view)
    kinds, mode, on = _controls(view, question)
    calls = _score(view, kinds, mode, on, question)
    if calls is None:
        return
    scores = [call.result for call in calls.values()]
    changes = {found.kind: found.change for found in scores}
    with st.container(key=MAPS):
        figure = effect_maps(changes, KINDS, (view.kind, view.layer, view.head))
        chart(figure, key=f"{MAPS}-figure", alt="Change in log-probability without each head", on_select=_clicked)
    plain = scores[0].log_probabilities
    several = f"log p over {len(plain)} sentences and their own translations, a mean"
    st.caption(
        f"Change in {several if len(plain) > 1 else _in_words(view, question)}. With all heads it is "
        f"{plain.mean():.3f} nats. Blue: it falls without the head; red: it rises. Framed: the sidebar's head; click "
        "on a cell to select its head."
    )
    _show_list(scores)
    _show_pruning(view, calls)
    show_code(head_scores, prune, pruning_curve)


def _question(view: View) -> Question:
    """Choose what is scored: the whole translation, one token of it, or that token against another word."""
    trace = view.trace
    left, middle, right = st.columns([2, 3, 3])
    if choice("Scored by", SCORED, "which_score", place=left) == "all":
        return WHOLE
    rows = dict(enumerate(decoder_rows(trace.tgt_tokens, trace.next_tokens)))
    position = min(select("The row that", rows, AT, default=0, place=middle), len(rows) - 1)
    others = [candidate for candidate in trace.candidates[position] if candidate.id != trace.next_ids[position]]
    names = dict(zip((c.id for c in others), labels([c.token for c in others]), strict=True))
    word = right.selectbox(
        "Against",
        list(names),
        index=None,
        format_func=lambda i: names.get(i, str(i)),
        key=f"which-against-{position}",
        accept_new_options=True,
        placeholder="nothing, or another word there",
        help="One of the most probable tokens, or any word that you type: the score is then log p of the token minus "
        "log p of this one. Heads whose removal lowers it prefer the token to the other word.",
    )
    if word is None or isinstance(word, int):
        return Question(position, word)
    found = view.translator.tokenizer.encode_next(one_line(word))
    return Question(position, found[0] if found else None)


def _in_words(view: View, question: Question) -> str:
    if question.position is None:
        return "log p of this translation"
    tokens = view.translator.tokenizer.tokens
    token = labels([view.trace.next_tokens[question.position]])[0]
    other = "" if question.against is None else f" minus log p of “{labels(tokens([question.against]))[0]}”"
    return f"log p of “{as_markdown(token)}” at position {question.position}{as_markdown(other)}"


def _controls(view: View, question: Question) -> tuple[tuple[str, ...], str, str]:
    left, middle, right = st.columns([2, 3, 3])
    kinds = choice("Heads of", OF, "which_of", place=left)
    mode = choice("Replaced", MODES, "which_mode", place=middle, help=MEAN)
    one = question.position is not None
    on = "sentence" if one else choice("Measured on", ON, "which_on", place=right)
    return (view.kind,) if kinds == "kind" else tuple(kind.name for kind in view.translator.kinds), mode, on


def _clicked() -> None:
    point = clicked_point(f"{MAPS}-figure")
    if point and point.get("customdata"):
        st.session_state.update(zip(("kind", "layer", "head"), point["customdata"], strict=True))


def _score(view: View, kinds: tuple[str, ...], mode: str, on: str, question: Question) -> dict[str, Call] | None:
    """Scores of every head by kind, from the cache or, once the button is pressed, measured now."""
    trace, translator = view.trace, view.translator
    cases = {kind: ("head scores", trace, on, kind, mode, question) for kind in kinds}
    scores = {kind: stored(*case) for kind, case in cases.items()}
    place = st.empty()
    if None in scores.values():
        count = sum(len(kind.layers) * kind.heads for kind in translator.kinds if kind.name in kinds)
        with place.container():
            if not pressed(f"Switch off each of {count} heads", "which_go"):
                st.caption("Nothing runs until you press the button.")
                return None
        bar = place.progress(0.0, "Reading the sentences …")
    pairs = [(trace.src_ids, trace.next_ids)] if on == "sentence" else _example_pairs(view)
    rows = max(TOKENS_IN_A_PASS // max(len(side) for pair in pairs for side in pair), 1)
    calls = {}
    for number, kind in enumerate(kinds):
        arguments = translator.model, pairs, kind, mode, trace.interventions, rows, question
        if scores[kind] is None:
            for result in in_turns(head_scores(*arguments)):
                bar.progress((number + result.done) / len(kinds), f"{KINDS[kind]}: {result.done:.0%}")
            scores[kind] = result
            store(result, *cases[kind])
        calls[kind] = Call(head_scores, *arguments, result=scores[kind])
    place.empty()
    return calls


def _example_pairs(view: View) -> list[Pair]:
    sentences = examples_of(view.translator.name).sentences[:SENTENCES]
    translations = translate(view.translator, sentences, 4, view.trace.interventions)
    return [encode_pair(view.translator, *pair) for pair in zip(sentences, translations, strict=True)]


def _show_list(scores: list[HeadScores]) -> None:
    table = effect_table({found.kind: found.changes for found in scores}, KINDS)
    numbers = {name: st.column_config.NumberColumn(format="%+.5f") for name in table.select_dtypes("float")}
    share = st.column_config.ProgressColumn(format="percent", min_value=0, max_value=1)
    st.dataframe(
        table, hide_index=True, height=260, column_config=numbers | {"share of all changes": share}, key="which_list"
    )
    several = len(scores[0].log_probabilities) > 1
    st.caption(
        "Largest loss first. Share: absolute change, as a fraction of the sum over all listed heads."
        + " Falls in: number of sentences whose log p falls without the head." * several
    )


@st.fragment
def _show_pruning(view: View, calls: dict[str, Call]) -> None:
    st.markdown(
        "**Prune**: the k heads whose removal costs least are switched off *together* (Michel et al. 2019; Voita et "
        "al. 2019). Each was scored alone: two redundant heads both look dispensable until both are removed."
    )
    scores = [call.result for call in calls.values()]
    count = sum(found.change.size for found in scores)
    k = slider(f"k, of {count} heads", (0, count), min(count // 4, count), "which_k")
    gates, plain = prune(scores, k), view.trace.interventions
    wanted = replace(view.request, target=None, interventions=plain)
    own = run(view.translator, wanted)
    pruned = run(view.translator, replace(wanted, interventions=(*plain, *gates)))
    before, after = (_log_probability(view, changes) for changes in (plain, (*plain, *gates)))
    with st.container(border=True):
        st.html(word_diff(own.translation, pruned.translation))
        same = "the same translation" if own.next_ids == pruned.next_ids else "a different translation"
        st.caption(
            f"Decoded again without {k} heads: {same}. Struck out with −: removed; underlined with +: added. Log p of "
            f"the page's translation: {before:.3f} with all heads, {after:.3f} without these, {after - before:+.3f} "
            "nats."
        )
    curve = _show_curve(view, scores, k)
    with st.expander(f"The {k} heads that are switched off"):
        st.text("\n".join(map(_describe_head, gates)) or "none")
    export_tab(view, "head-importance", calls if curve is None else {**calls, "curve": curve})


def _show_curve(view: View, scores: list[HeadScores], k: int) -> Call | None:
    """log p as a function of k, and from which k on the greedy translation changes."""
    gates = prune(scores, sum(found.change.size for found in scores))
    curve: PruningCurve | None = compute_on_request(
        "Draw the curve for every k", "which_curve", (view.trace, gates), lambda: _each_step(view, gates), CHART
    )
    if curve is None:
        return None
    chart(
        pruning_chart(curve.log_probabilities, curve.same, k, list(map(_describe_head, gates))),
        key="which-curve",
        alt="Log-probability of the translation against the number of heads switched off",
    )
    first = np.flatnonzero(curve.same == 0)
    st.caption(
        "Greedy decoding gives the same translation "
        + (f"for every k below {first[0]}." if len(first) else "for every k.")
        + " Heads are removed in the order of the scores above."
    )
    return Call(pruning_curve, *_curve_arguments(view, gates), result=curve)


def _each_step(view: View, gates: tuple[HeadGate, ...]) -> Iterator[tuple[float, PruningCurve]]:
    for curve in pruning_curve(*_curve_arguments(view, gates)):
        yield curve.done, curve


def _curve_arguments(view: View, gates: tuple[HeadGate, ...]) -> tuple[Any, ...]:
    trace = view.trace
    greedy = run(view.translator, Request(trace.source, None, 1, trace.interventions))
    return view.translator.model, (trace.src_ids, trace.next_ids), greedy.next_ids, gates, trace.interventions


def _log_probability(view: View, interventions: tuple) -> float:
    return float(rerun(view.translator, view.trace, interventions).target_log_probabilities.sum())


def _describe_head(gate: HeadGate) -> str:
    return Place(gate.kind, gate.layer, gate.head).title
