"""Decoding, tabs "Greedy" and "Beam"."""

import numpy as np
import pandas as pd
import streamlit as st

from model.analysis.view_arrays import aligning_kind
from model.generation.beam_tree import BeamTree, search_again, tree_arrays
from model.generation.search import length_penalty
from model.needs import Need
from pages.compute.view import View
from pages.parts.decoding import STEP, new_token_limit, pieces_of, run_beam_search, text_of, wording
from pages.widgets.canvas import draw
from pages.widgets.chart import chart
from pages.widgets.controls import replace_missing, select, set_controls, slider
from pages.widgets.explain import explain
from pages.widgets.export import Picture, export_tab
from pages.widgets.snippet import Call
from viz.canvas.beam_tree import hypotheses_table, tree_picture
from viz.charts.decoding import prefix_chart
from viz.charts.translate import alignment_map
from viz.tokens import decoder_rows, labels

PAPER_BEAM, PAPER_ALPHA = 4, 0.6
HYPOTHESIS, TREE = "decoding-hypothesis", "decoding-tree"


def show_greedy(view: View, step: int) -> None:
    """The most probable token of each step, and where beam search differs."""
    words, limit = wording(view.trace), new_token_limit(view)
    greedy, beam = (run_beam_search(view.translator, view.trace, size, *limit) for size in (1, PAPER_BEAM))
    ends = greedy.ends[0], beam.ends[beam.ranking(PAPER_ALPHA)[0]]
    paths = greedy.path(ends[0]), beam.path(ends[1])
    ours, theirs = ([tree.nodes[i] for i in path] for tree, path in zip((greedy, beam), paths, strict=True))
    pieces = [pieces_of(view, tuple(node.token for node in nodes)) for nodes in (ours, theirs)]
    texts = [text_of(view, tuple(node.token for node in nodes)) for nodes in (ours, theirs)]
    st.text(f"Greedy: {texts[0]}")
    st.text(f"Beam {PAPER_BEAM}: {texts[1]}")
    totals = [np.array([node.log_probability for node in nodes]) for nodes in (ours, theirs)]
    same = [one.token == other.token for one, other in zip(ours, theirs, strict=False)]
    if all(same) and len(ours) == len(theirs):
        st.markdown(
            f"Both are the same: here the most probable token of each step leads to the best {words.hypothesis} that "
            "beam search found."
        )
    else:
        first = same.index(False) if False in same else len(same)
        more = "more" if totals[1][-1] > totals[0][-1] else "less"
        st.markdown(
            f"They diverge at **step {first}**. Beam search's {words.hypothesis} is the {more} probable one: log p "
            f"**{totals[1][-1]:.4f}** versus **{totals[0][-1]:.4f}**."
        )
    figure = prefix_chart({"greedy": (pieces[0], totals[0]), f"beam {PAPER_BEAM}": (pieces[1], totals[1])})
    chart(figure, key="decoding-race", alt="Log-probability of the prefix at each step, greedy and beam search")
    st.caption(
        "The higher line has the more probable prefix. Greedy decoding takes the smallest loss at each step, and "
        "cannot foresee what that costs later."
    )
    st.dataframe(_steps_table(view, greedy, paths[0], theirs), hide_index=True, height=min(36 * len(ours) + 75, 420))
    st.caption(
        f"p is the token's probability given its own prefix. ≠ marks steps where the two differ. Step {step} is "
        "selected above."
    )
    searches = {
        name: Call(
            tree_arrays, Call(search_again, view.translator.model, view.trace, tree.beam_size, *limit, result=tree)
        )
        for name, tree in (("greedy", greedy), ("beam", beam))
    }
    export_tab(view, "greedy-and-beam", searches)


def _steps_table(view: View, greedy: BeamTree, path: tuple[int, ...], beam: list) -> pd.DataFrame:
    """One row per step: greedy's token, its runner-up, and beam search's token."""
    rows = []
    for place in range(max(len(path), len(beam))):
        row: dict[str, object] = {"step": place}
        if place < len(path):
            node = greedy.nodes[path[place]]
            second = next((n for n in greedy.nodes if n.step == place and n.rank != node.rank), None)
            row |= {"greedy": _name(view, node.token), "p": np.exp(node.token_log_probability)}
            if second is not None:
                row |= {"runner-up": _name(view, second.token), "p runner-up": np.exp(second.token_log_probability)}
        if place < len(beam):
            differs = place >= len(path) or greedy.nodes[path[place]].token != beam[place].token
            row |= {"": "≠" if differs else "", f"beam {PAPER_BEAM}": _name(view, beam[place].token)}
            row["p beam"] = np.exp(beam[place].token_log_probability)
        rows.append(row)
    return pd.DataFrame(rows)


def _name(view: View, token: int) -> str:
    return labels(pieces_of(view, (token,)))[0]


def show_beam(view: View, step: int) -> None:
    """The search tree, its finished hypotheses, and the attention weights of one of them."""
    words, limit, kind = wording(view.trace), new_token_limit(view), view.trace.kind(aligning_kind(view.trace)).title
    left, right = st.columns(2)
    beam_size = slider("Beam size (paper: 4)", (1, 8), PAPER_BEAM, "decoding-beam", place=left)
    alpha = slider("Length penalty α (paper: 0.6)", (0.0, 2.0), PAPER_ALPHA, "decoding-alpha", step=0.1, place=right)
    tree = run_beam_search(view.translator, view.trace, beam_size, *limit)
    order = tree.ranking(alpha)
    replace_missing(HYPOTHESIS, range(len(order)), 0)
    chosen = st.session_state.get(HYPOTHESIS) or 0
    scores = [node.log_probability / length_penalty(node.step + 1, alpha) for node in tree.nodes]
    pieces = pieces_of(view, tuple(node.token for node in tree.nodes))
    paths = tree.path(tree.ends[order[0]]), tree.path(tree.ends[order[chosen]])
    st.session_state["decoding-ranked-ends"] = [tree.ends[place] for place in order]
    start = view.trace.tgt_tokens[view.trace.first_written]
    drawing = tree_picture(tree.nodes, pieces, scores, paths, min(step, tree.nodes[-1].step), start)
    draw(drawing, TREE, on_pick_change=_take_pick, on_step_change=_take_step)
    st.caption(
        f"Steps run from left to right. Each column holds the {2 * beam_size} most probable prefixes, the best at the "
        f"top, of which at most {beam_size} are expanded. Numbers: log p of a prefix, or the score of a finished "
        f"{words.hypothesis} (■); ★ marks the best. Click a step, or a finished {words.hypothesis} to see its "
        f"{kind.lower()}; the arrow keys move through the tree."
    )
    found = [tree.hypothesis(tree.ends[place], alpha) for place in order]
    texts = [text_of(view, hypothesis.tokens) for hypothesis in found]
    lengths = [len(hypothesis.tokens) for hypothesis in found]
    penalties = [length_penalty(length, alpha) for length in lengths]
    totals = [hypothesis.log_probability for hypothesis in found]
    st.dataframe(hypotheses_table(texts, totals, lengths, penalties, words.written), hide_index=True)
    st.caption(_verdict(view, tree, found[0].tokens, alpha))
    explain(
        f"Every further token lowers a sum of log-probabilities, so without a penalty short {words.hypothesis}s have "
        "an advantage. Dividing by lp(Y) compensates longer ones; α = 0 ranks by probability alone. Prefixes that "
        f"compete at one step have equal length, so α only reorders **finished** {words.hypothesis}s and never "
        "changes the tree.",
        r"\begin{aligned} s(Y, X) &= \frac{\log p(Y \mid X)}{lp(Y)} \\ lp(Y) &= "
        r"\left(\frac{5 + |Y|}{6}\right)^{\alpha} \end{aligned}",
        "6.1 (beam 4, α = 0.6; the penalty is equation 14 of Wu et al. 2016, here without their coverage term)",
    )
    _attention(view, tree, order, texts)
    shown = (Picture(f"Beam search, beam {beam_size}", TREE, drawing),)
    search = Call(search_again, view.translator.model, view.trace, beam_size, *limit, result=tree)
    export_tab(view, "beam-tree", Call(tree_arrays, search), *shown, table=_tree_table(tree, pieces, scores))


def _verdict(view: View, tree: BeamTree, best: tuple[int, ...], alpha: float) -> str:
    most = max(range(len(tree.ends)), key=lambda place: tree.nodes[tree.ends[place]].log_probability)
    by_probability = tree.hypothesis(tree.ends[most], alpha).tokens == best
    words = wording(view.trace)
    text = f"The {words.hypothesis} with the best score is " + (
        "also the most probable one found"
        if by_probability
        else "**not** the most probable one found: the length penalty decided"
    )
    own = "is" if _is_written(view, best) else "is not"
    foreign = Need.OWN_LAYERS not in view.translator.features and bool(view.trace.src_tokens)
    other = (
        " That one was found by transformers' own search, with a length penalty of |Y| to the power of α and whatever "
        "else the model's generation settings ask for, such as a penalty for repetition."
    )
    return f"{text}. It {own} the {words.written} at the top of the page.{other if foreign else ''}"


def _is_written(view: View, tokens: tuple[int, ...]) -> bool:
    """Whether the run wrote these tokens; the end token may be missing where the length limit came first."""
    trace, ends = view.trace, view.translator.model.ends
    ours, theirs = ([i for i in ids if i not in ends] for ids in (tokens, trace.next_ids[trace.first_written :]))
    return ours == theirs


def _attention(view: View, tree: BeamTree, order: list[int], texts: list[str]) -> None:
    """Attention weights of one finished hypothesis, recorded during the search."""
    trace, words, kind = view.trace, wording(view.trace), view.trace.kind(aligning_kind(view.trace))
    rank = select(
        "Attention of the beam, along the back-pointers of",
        {rank: f"{rank + 1}. {text}" for rank, text in enumerate(texts)},
        HYPOTHESIS,
        in_link=False,
    )
    place = order[rank]
    tokens = tree.hypothesis(tree.ends[place], 0).tokens
    layer = min(view.layer, len(tree.attention[place]) - 1)
    weights = tree.attention[place][layer, view.head]
    pieces = pieces_of(view, tokens)
    first, n = trace.first_written, len(pieces)
    reads = [*trace.tgt_tokens[: first + 1], *pieces[:-1]]
    st.caption(
        f"{kind.title} weights of layer {layer}, head {view.head} (chosen in the sidebar), recorded during the "
        f"search: row t is the attention, at step t, of the beam that led to this {words.hypothesis}."
    )
    rows = decoder_rows(reads[first:], pieces)
    figure = alignment_map(weights, trace.src_tokens or reads, rows, crosses=kind.crosses)
    chart(figure, key="decoding-beam-attention", alt="The beam's attention")
    if _is_written(view, tokens):
        again = trace.attention(kind.name, layer).pattern[view.head, first : first + n, : weights.shape[1]]
        st.caption(
            f"This {words.hypothesis} is the {words.written} above, whose weights come from one teacher-forced run: "
            f"they differ from those of the search by at most {np.abs(weights - again).max():.1e}."
        )


def _tree_table(tree: BeamTree, pieces: list[str], scores: list[float]) -> pd.DataFrame:
    columns = ("step", "rank", "parent", "token", "token_log_probability", "log_probability", "fate")
    table = pd.DataFrame({name: [getattr(node, name) for node in tree.nodes] for name in columns})
    return table.assign(piece=pieces, score=scores)


def _take_pick() -> None:
    ends = st.session_state.get("decoding-ranked-ends", [])
    if (picked := st.session_state[TREE].get("pick")) in ends:
        set_controls({HYPOTHESIS: ends.index(picked)})


def _take_step() -> None:
    if (step := st.session_state[TREE].get("step")) is not None:
        set_controls({STEP: int(step)})
