"""What if, tab "Broken on purpose": a classic mistake in the running code, and what the claims say of it."""

from collections.abc import Iterator

import numpy as np
import streamlit as st

from model.proof.mistakes import (
    MISTAKES,
    BrokenRun,
    Lines,
    Verdict,
    check_mistake,
    code_around,
    lines_of,
    mistake_errors,
    run_mistake,
    verdict_arrays,
    why_not,
)
from pages.compute.cache import shared_result
from pages.compute.on_request import compute_on_request
from pages.compute.view import View
from pages.widgets.chart import axis_labels, chart
from pages.widgets.controls import select
from pages.widgets.explain import show_code
from pages.widgets.export import Picture, export_tab
from pages.widgets.glossary import define
from pages.widgets.page_links import links
from pages.widgets.snippet import Call
from viz.charts.mistakes import mistake_maps
from viz.html import word_diff
from viz.latex import signed
from viz.tokens import numbered

CHECK = ":material/fact_check:"


def show_mistakes(view: View) -> None:
    """Choose a mistake: its lines, what is written, log p, one head, and which claims fail."""
    _show_mistake(view)
    links(verification="The claims, measured on the run without mistakes")


@st.fragment
def _show_mistake(view: View) -> None:
    st.markdown(
        "Ten mistakes that are easily made when one implements the paper, made here in the running code: the weights "
        "do not change. Other visitors, the other pages and the numbers above are not affected."
    )
    titles = {name: f"{i}. {mistake.title}" for i, (name, mistake) in enumerate(MISTAKES.items(), start=1)}
    name = select("Mistake", titles, "mistake", width=400)
    mistake = MISTAKES[name]
    st.markdown(mistake.what)
    if reason := why_not(view.translator.model, name):
        st.info(f"This model cannot make this mistake. {reason}", icon=":material/info:")
        return
    for lines in lines_of(view.translator.model, name):
        _show_lines(lines)
    run = view.translator, view.trace, name, view.kind, view.layer
    try:
        found = read_mistake(*run)
    except (ValueError, RuntimeError) as error:
        st.text(f"The model cannot run with this mistake: {error}")
        return
    _show_text(view, found)
    figure = _show_weights(view, found)
    case = *run, view.head
    verdict = compute_on_request(
        "Check all claims on this run", "mistake_check", case, lambda: _each_claim(*case), CHECK
    )
    calls = {"run": Call(run_mistake, *run, result=found)}
    if verdict is None:
        st.caption("Nothing is checked until you press the button; some claims run the model many times.")
    else:
        _show_verdict(verdict)
        calls["claims"] = Call(mistake_errors, *case, result=verdict_arrays(verdict))
    show_code(run_mistake, check_mistake)
    export_tab(view, f"mistake-{name}", calls, Picture("Without and with the mistake", "mistake-maps", figure))


def _show_lines(lines: Lines) -> None:
    path = f"{lines.owner.__module__.replace('.', '/')}.py"
    st.caption(f"{path}, {lines.owner.__name__}.{lines.method}; with −: the mistake, with +: the line as it should be")
    pairs = zip(*(code.splitlines() for code in code_around(lines)), strict=True)
    diff = [f"  {right}" if right == wrong else f"- {wrong}\n+ {right}" for right, wrong in pairs]
    st.code("\n".join(diff), language="diff", wrap_lines=True)


def _show_text(view: View, found: BrokenRun) -> None:
    decode = view.translator.tokenizer.decode
    with st.container(border=True):
        right, written = (decode(list(ids)) for ids in (found.right, found.written))
        if right or written:
            st.html(word_diff(right, written))
        else:
            st.markdown("*Nothing is written, with or without the mistake: the text ends here.*")
        before, after = view.trace.log_probability, found.log_p
        values = {"log p, right": before, "log p, wrong": after, "difference": after - before}
        with st.container(horizontal=True):
            for label, value in values.items():
                shown = "NaN" if np.isnan(value) else signed(value, "+.3f" if label == "difference" else ".3f")
                st.metric(label, shown, width="content")
        shown = "greedy decoding" if view.trace.tgt_ids else "the most probable token at each position"
        st.caption(
            f"Above: {shown}; struck out with −: only without the mistake, underlined with +: only with it. log p in "
            "nats, of the target at the top of the page.",
            help=define("nats"),
        )


def _show_weights(view: View, found: BrokenRun) -> object:
    """The sidebar's head without and with the mistake."""
    attention, head = view.attention, view.head
    rows, keys = axis_labels(attention)
    width, own = found.pattern.shape[-1], list(attention.key_tokens)
    # Padding follows the sentence's own keys; keys that are not the source's are the decoder's.
    if width > len(own) and not _reads_itself(view, found):
        own += ["<pad>"] * (width - len(own))
    elif _reads_itself(view, found):
        own = list(view.trace.tgt_tokens)
    pattern, mask = found.pattern[head], found.mask[head]
    figure = mistake_maps(rows, (keys, numbered(own)), (attention.pattern[head], pattern), (attention.mask[head], mask))
    chart(figure, key="mistake-maps", alt="The head's attention weights without and with the mistake", roomy=True)
    unknown = " Orange cells are NaN: not a number." if np.isnan(pattern).any() else ""
    same = np.array_equal(pattern, attention.pattern[head])
    unaffected = (
        " The mistake does not reach this head: choose another kind of attention in the sidebar." if same else ""
    )
    st.caption(f"{view.place.title}, rows are queries, columns keys.{unknown}{unaffected}")
    return figure


def _reads_itself(view: View, found: BrokenRun) -> bool:
    """Whether the mistake makes cross-attention read the decoder: then there are as many keys as queries."""
    return view.attention.crosses and found.pattern.shape[1] == found.pattern.shape[2] == len(view.trace.tgt_tokens)


def _show_verdict(verdict: Verdict) -> None:
    if verdict.refusal:
        st.markdown(":red[**✗ There is no Trace of this run**]: its parts do not fit each other.")
        st.text(verdict.refusal)
        return
    measured = [one for one in verdict.measurements if one.error is not None]
    broken = verdict.broken
    if broken:
        st.markdown(f":red[**✗ {len(broken)} of {len(measured)} claims {'fails' if len(broken) == 1 else 'fail'}**]:")
        st.markdown(
            "\n".join(f"- :red[✗] {one.claim.label} **{one.claim.title}**: error {_error(one.error)}" for one in broken)
        )
    holding = [one.claim for one in measured if one not in broken]
    if holding:
        names = "; ".join(f"{claim.label} {claim.title}" for claim in holding)
        st.markdown(f":green[**✓ {len(holding)} hold**]: {names}.")
    st.caption(
        "Measured in single precision. A claim that holds has not noticed the mistake: it is about something else."
    )


def _error(error: float) -> str:
    return "NaN" if np.isnan(error) else "∞" if np.isinf(error) else f"{error:.3g}"


def _each_claim(*case: object) -> Iterator[tuple[float, Verdict]]:
    for verdict in check_mistake(*case):
        yield verdict.done, verdict


read_mistake = shared_result("Running the broken model …")(run_mistake)
