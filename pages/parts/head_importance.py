"""What if, tab "Which heads matter": each head switched off alone, and the least important ones together."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from model.analysis.head_importance import WHOLE, HeadScores, Pair, Question, find_token, head_scores, prune
from model.analysis.head_pruning import PruningCurve, encode_pair, pruning_curve
from model.generation.long_text import split_sentences
from model.interventions import HeadGate
from model.trace import Array
from pages.compute.cache import store, stored
from pages.compute.on_request import compute_on_request, pressed
from pages.compute.queue import in_turns
from pages.compute.runs import Request, rerun, run, translate
from pages.compute.view import KINDS, Place, View
from pages.views.examples import examples_of
from pages.widgets.chart import chart, clicked_point
from pages.widgets.controls import choice, select, set_controls, slider, table, text_area
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
MOST_SENTENCES = 50
LONGEST_TEXT = 20_000
"""a person's own: how many, and of how many characters"""
CHART = ":material/show_chart:"
OF = {"kind": "this kind", "all": "all kinds"}
MEAN = "The mean over all positions; in the decoder over those up to the query."
MODES = {"zero": "by nothing (zero)", "mean": "by its mean"}
ON = {"sentence": "this sentence", "examples": f"{SENTENCES} example sentences", "own": "your own sentences"}
TOKENS_IN_A_PASS = 1024
"""rows times length of one batch; keeps the logits of a pass within 40 MB"""


@dataclass(frozen=True)
class Case:
    """What the heads are scored on."""

    view: View
    sentences: tuple[str, ...]
    mode: str
    question: Question
    """about the page's translation"""

    @cached_property
    def asked(self) -> list[tuple[str, str, Pair, Question]]:
        """Sentence, translation, their tokens and the question about them, where it can be asked."""
        view, trace, question = self.view, self.view.trace, self.question
        if self.sentences == (trace.source,):
            return [(trace.source, trace.translation, (trace.src_ids, trace.next_ids), question)]
        translations = translate(view.translator, self.sentences, view.request.beam_size, trace.interventions)
        found = []
        for sentence, translation in zip(self.sentences, translations, strict=True):
            pair = encode_pair(view.translator, sentence, translation)
            own = question
            if question.position is not None:
                own = find_token(pair[1], trace.next_ids[question.position], question.against)
            if own is not None:
                found.append((sentence, translation, pair, own))
        return found

    @property
    def setting(self) -> tuple[Any, ...]:
        """Everything that the scores depend on besides the page's run."""
        return self.sentences, self.mode, self.question, self.view.request.beam_size

    @property
    def pairs(self) -> list[Pair]:
        return [pair for *_, pair, _ in self.asked]

    @property
    def questions(self) -> Question | list[Question]:
        """One for each pair; where they are the same, that one."""
        found = [question for *_, question in self.asked]
        return found[0] if len(set(found)) == 1 else found


def show_which_heads(view: View) -> None:
    """Switch off every head alone, then the k least important ones together."""
    st.markdown(
        "Each head is **switched off alone** and the same translation is scored again: how much less probable does "
        "it become? A large drop means that the head was needed; no change means that it was not, or that other "
        "heads compensated."
    )
    question = _question(view)
    kinds, mode, sentences = _controls(view)
    if not sentences:
        st.caption("Nothing runs until there is a sentence.")
        return
    case = Case(view, sentences, mode, question)
    calls = _score(case, kinds)
    if calls is None:
        return
    scores = [call.result for call in calls.values()]
    changes = {found.kind: found.change for found in scores}
    with st.container(key=MAPS):
        figure = effect_maps(changes, KINDS, (view.kind, view.layer, view.head))
        chart(figure, key=f"{MAPS}-figure", alt="Change in log-probability without each head", on_select=_clicked)
    plain = scores[0].log_probabilities
    of = _in_words(view, question, one := sentences == (view.trace.source,))
    several = "" if one else f" over {_sentences(len(plain))}, a mean"
    st.caption(
        f"Change in {of}{several}. With all heads it is {plain.mean():.3f} nats. Blue: it falls without the head; red: "
        "it rises. Framed: the sidebar's head; click on a cell to select its head."
    )
    _show_list(scores)
    if not one:
        _show_sentences(case, plain)
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
    found = view.translator.tokenizer.encode_next(view.translator.prepare(word).strip())
    return Question(position, found[0] if found else None)


def _in_words(view: View, question: Question, one: bool) -> str:
    if question.position is None:
        return "log p of this translation" if one else "log p"
    tokens = view.translator.tokenizer.tokens
    token = labels([view.trace.next_tokens[question.position]])[0]
    other = "" if question.against is None else f" minus log p of “{labels(tokens([question.against]))[0]}”"
    return f"log p of “{as_markdown(token)}”" + (f" at position {question.position}" * one) + as_markdown(other)


def _sentences(count: int) -> str:
    return "1 sentence and its own translation" if count == 1 else f"{count} sentences and their own translations"


def _controls(view: View) -> tuple[tuple[str, ...], str, tuple[str, ...]]:
    """The kinds, what replaces a head, and the sentences; the page's own is measured on the page's translation."""
    left, middle, right = st.columns([2, 2.6, 4.4])
    kinds = choice("Heads of", OF, "which_of", place=left)
    mode = choice("Replaced", MODES, "which_mode", place=middle, help=MEAN)
    on = choice("Measured on", ON, "which_on", place=right)
    sentences = (view.trace.source,)
    if on == "examples":
        sentences = examples_of(view.translator.name).sentences[:SENTENCES]
    if on == "own":
        sentences = _own_sentences(view)
    return (view.kind,) if kinds == "kind" else tuple(kind.name for kind in view.translator.kinds), mode, sentences


def _own_sentences(view: View) -> tuple[str, ...]:
    typed = text_area(
        "Your sentences", "", "which_sentences", "Paste several sentences, as they stand in a text", "Use"
    )
    found = [part.strip() for part in split_sentences(typed[:LONGEST_TEXT], lambda _: True)]
    kept = dict.fromkeys(view.translator.truncate(sentence) for sentence in found if sentence)
    if len(kept) > MOST_SENTENCES or len(typed) > LONGEST_TEXT:
        st.caption(f"The first {min(MOST_SENTENCES, len(kept))} sentences are measured.")
    return tuple(kept)[:MOST_SENTENCES]


def _clicked() -> None:
    point = clicked_point(f"{MAPS}-figure")
    if point and point.get("customdata"):
        set_controls(dict(zip(("kind", "layer", "head"), point["customdata"], strict=True)))


def _score(case: Case, kinds: tuple[str, ...]) -> dict[str, Call] | None:
    """Scores of every head by kind, from the cache or, once the button is pressed, measured now."""
    view, translator = case.view, case.view.translator
    keys = {kind: ("head scores", view.trace, kind, *case.setting) for kind in kinds}
    scores = {kind: stored(*key) for kind, key in keys.items()}
    place = st.empty()
    if None in scores.values():
        count = sum(len(kind.layers) * kind.heads for kind in translator.kinds if kind.name in kinds)
        with place.container():
            if not pressed(f"Switch off each of {count} heads", "which_go"):
                st.caption("Nothing runs until you press the button.")
                return None
        bar = place.progress(0.0, "Reading the sentences …")
    if not case.pairs:
        place.info("No translation of these sentences has the chosen token, or the word against it.")
        return None
    rows = max(TOKENS_IN_A_PASS // max(len(side) for pair in case.pairs for side in pair), 1)
    calls = {}
    for number, kind in enumerate(kinds):
        arguments = translator.model, case.pairs, kind, case.mode, view.trace.interventions, rows, case.questions
        if scores[kind] is None:
            for result in in_turns(head_scores(*arguments)):
                bar.progress((number + result.done) / len(kinds), f"{KINDS[kind]}: {result.done:.0%}")
            scores[kind] = result
            store(result, *keys[kind])
        calls[kind] = Call(head_scores, *arguments, result=scores[kind])
    place.empty()
    return calls


def _show_sentences(case: Case, scores: Array) -> None:
    """What was measured, and what was left out."""
    left_out = len(case.sentences) - len(case.pairs)
    with st.expander(
        f"The {len(case.pairs)} sentences" + f", without {left_out} that have neither word" * bool(left_out)
    ):
        texts = [(sentence, translation) for sentence, translation, *_ in case.asked]
        frame = pd.DataFrame(texts, columns=["sentence", "the model's translation"]).assign(score=scores)
        table(frame.rename(columns={"score": "score with all heads, nats"}), floats="%.3f")


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
    before, after = (
        rerun(view.translator, view.trace, changes).log_probability for changes in (plain, (*plain, *gates))
    )
    with st.container(border=True):
        st.html(word_diff(own.translation, pruned.translation))
        same = "the same translation" if own.next_ids == pruned.next_ids else "a different translation"
        st.caption(
            f"Decoded again without {k} heads: {same}. Struck out with −: removed; underlined with +: added. Log p of "
            f"the page's translation: {before:.3f} before, {after:.3f} without these, {after - before:+.3f} "
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


def _describe_head(gate: HeadGate) -> str:
    return Place(gate.kind, gate.layer, gate.head).title
