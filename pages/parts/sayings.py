"""Said, and measured: each statement with a button, what this run gives, and whether it is so here."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import streamlit as st

from model.analysis.many_sentences import read_heads
from model.analysis.sayings import (
    evenness_of,
    mean_evenness,
    remove_heads,
    remove_sublayers,
    shift_positions,
    untrained_evenness,
)
from model.background.sizes import self_attention_layer
from model.background.table_1 import lstm_work, recurrent, self_attention
from model.checkpoints.store import CheckpointError, study_checkpoints
from model.needs import Need
from model.trace import KIND_TITLES, Tokens
from pages.compute.on_request import compute_on_request
from pages.compute.runs import open_translator
from pages.compute.view import View
from pages.widgets.page_links import link_with
from viz.latex import signed
from viz.tokens import as_markdown

CLOSE = 0.1
"""nats a token: less than this counts as no loss"""
ARTICLES = {"a", "an", "the", "der", "die", "das", "den", "dem", "des", "ein", "eine", "einen", "einem", "einer"}
SHIFTS = (1, 5, 20, 50, 100, 200, 500)
WIDTHS = ("studies/heads-1", "studies/base", "studies/heads-8", "studies/heads-16")
"""small translators that differ in the number of heads alone, the widest heads first"""

VERDICTS = {True: ":green[**✓ True here.**]", False: ":orange[**✗ Not true here.**]", None: "**Cannot be told here.**"}


@dataclass(frozen=True)
class Found:
    """What this run gives."""

    text: str
    """Markdown; tokens in it are escaped"""
    true: bool | None
    """whether the statement is so here; None: this run cannot tell"""


Steps = Iterator[tuple[float, Found | None]]


@dataclass(frozen=True)
class Saying:
    """A sentence that explanations repeat."""

    slug: str
    said: str
    source: str
    how: str
    """what the button does"""
    measure: Callable[[View], "Steps | Found"]
    page: str
    """where more of it is to be seen"""
    label: str
    tab: tuple[tuple[str, str], ...] = ()
    needs: tuple[str, ...] = ()
    """what the opened model must have, in the words of `Translator.features`"""
    adds_sines: bool = False
    """whether the model must add sinusoids"""


def show_sayings(view: View) -> None:
    """A card for each statement; nothing is measured before its button is pressed."""
    st.caption(
        "Decide first whether you believe a statement, then measure it on this run. A result on one sentence, and one "
        f"model, is an example and no proof. “Loses nothing” means here: log p falls by less than {CLOSE} nats a token."
    )
    for saying in SAYINGS:
        with st.container(border=True, gap="small"):
            st.markdown(f"**{saying.said}**")
            st.caption(saying.source)
            _show_measured(view, saying)
            link_with(saying.label, saying.page, **dict(saying.tab))


def _show_measured(view: View, saying: Saying) -> None:
    missing = [need for need in saying.needs if need not in view.translator.features]
    if missing:
        st.markdown(f"Not measurable here: it needs {' and '.join(missing)}.")
        return
    if saying.adds_sines and view.translator.config.positions != "sinusoidal":
        st.markdown("Not measurable here: this model does not add sines and cosines.")
        return
    found: Found | None = compute_on_request(
        saying.how, f"saying-{saying.slug}", (view.translator, view.trace), lambda: _steps(saying.measure(view))
    )
    if found:
        st.markdown(f"{VERDICTS[found.true]} {found.text}")


def _steps(found: Steps | Found) -> Steps:
    """What is measured at once, as one step."""
    return iter([(1.0, found)]) if isinstance(found, Found) else found


def _heads(view: View) -> Steps:
    for share, removal in remove_heads(view.translator, view.trace):  # noqa: B007 - the last one is whole
        yield share, None
    heads, count = len(removal.alone), removal.removable(CLOSE)
    harmless = int((removal.alone > -CLOSE).sum())
    yield (
        1.0,
        Found(
            f"Off alone, {harmless} of {heads} heads lose nothing. Off together, the least important first, "
            f"**{count} of {heads} ({count / heads:.0%})** lose nothing; with all off, log p falls by "
            f"{-removal.together[-1]:.2f} nats a token.",
            bool(count >= 0.2 * heads),
        ),
    )


def _sublayers(view: View) -> Steps:
    for share, found in remove_sublayers(view.translator, view.trace):  # noqa: B007 - the last one is whole
        yield share, None
    worst, best = min(found, key=found.get), max(found, key=found.get)
    hurt = sum(change < -CLOSE for change in found.values())
    yield (
        1.0,
        Found(
            f"**{hurt} of {len(found)}** sub-layers are missed when they are off alone. The worst is {_place(*worst)}: "
            f"{signed(found[worst], '+.2f')} nats a token. The least is {_place(*best)}: "
            f"{signed(found[best], '+.2f')}.",
            hurt == len(found),
        ),
    )


def _articles(view: View) -> Found:
    for name, stream in view.trace.streams.items():
        rows = _articles_in(stream.tokens)
        others = [i for i, special in enumerate(stream.tokens.special) if not special and i not in rows]
        if rows and others:
            own, _ = evenness_of(view.trace, name, rows)
            rest, _ = evenness_of(view.trace, name, others)
            named = ", ".join(f"“{as_markdown(stream.tokens.labels[i].strip('▁'))}”" for i in rows[:4])
            return Found(
                f"The rows of {named} have **{own:.0%}** of the entropy that equal weights would have, in the mean "
                f"over all heads of the {name}'s self-attention; those of the other words {rest:.0%}.",
                own > rest if np.isfinite(own + rest) else None,
            )
    return Found("This text has no article. Type one that has, such as “The cat saw a dog.”", None)


def _articles_in(tokens: Tokens) -> list[int]:
    return [i for i, label in enumerate(tokens.labels) if label.startswith("▁") and label[1:].lower() in ARTICLES]


def _untrained(view: View) -> Found:
    fresh, trained = untrained_evenness(view.translator, view.trace), mean_evenness(view.trace)
    return Found(
        f"Models of this shape with random weights: {', '.join(f'{each:.1%}' for each in fresh)} of the entropy of "
        f"equal weights, averaged over all rows of all heads. This model {view.model_in_words}: **{trained:.1%}**.",
        bool(fresh.min() > 0.95),
    )


def _shifted(view: View) -> Found:
    found = shift_positions(view.translator, view.trace, SHIFTS)
    listed = "; ".join(f"{shift}: {signed(change, '+.2f')}" for shift, change in found.items())
    far = min(found.values())
    return Found(
        f"All tokens moved to later positions, log p in nats a token by shift: {listed}. The encoding itself "
        f"goes on without end; a model has learned to read the positions of its training text. The most it loses "
        f"here: **{max(-far, 0):.2f}** nats a token.",
        far > -CLOSE,
    )


def _alignment(view: View) -> Found:
    try:
        measured = read_heads(view.translator)
    except ValueError as error:
        return Found(str(error), None)
    heads = [head for head in measured.heads if head.kind == "cross" and head.mean.get("errors") is not None]
    if not heads:
        return Found("This checkpoint's heads.json has no alignment error rates.", None)
    ranked = sorted(heads, key=lambda head: head.mean["errors"])
    good = sum(head.mean["errors"] < 0.5 for head in ranked)
    best, worst = ranked[0], ranked[-1]
    return Found(
        f"Over {measured.sentences:,} sentences ({measured.of}), {good} of {len(ranked)} cross-attention heads "
        f"have an alignment error rate below 0.5. The best is head {best.head} of layer {best.layer}: "
        f"**{best.mean['errors']:.2f}**; the worst head {worst.head} of layer {worst.layer}: "
        f"**{worst.mean['errors']:.2f}**. Some heads align words, others do something else.",
        good == len(ranked),
    )


def _sharpness(view: View) -> Steps:
    names = [name for name in WIDTHS if name in study_checkpoints()]
    found = {}
    for number, name in enumerate(names):
        try:
            model = open_translator(name, view.translator.device)
            found[model.config.d_k] = mean_evenness(model.trace(view.source, beam_size=1))
        except (CheckpointError, ValueError) as error:
            yield 1.0, Found(str(error), None)
            return
        yield (number + 1) / (len(names) + 1), None
    if len(found) < 2:
        yield 1.0, Found("The small translators of checkpoints/studies are not here.", None)
        return
    listed = "; ".join(f"d_k = {width}: **{value:.0%}**" for width, value in found.items())
    falls = all(np.diff([found[width] for width in sorted(found, reverse=True)]) < 0)
    yield (
        1.0,
        Found(
            f"Small translators that differ in the number of heads alone, on this sentence; entropy of a row as a "
            f"share of that of equal weights, averaged over all heads: {listed}. One seed each.",
            bool(falls),
        ),
    )


def _costs(view: View) -> Found:
    config = view.translator.config
    d, n = config.d_model, len(next(iter(view.trace.streams.values())).tokens)
    attention, recurrence = self_attention(n, d).operations, recurrent(n, d).operations
    whole, lstm = self_attention_layer(config, n).total, lstm_work(n, d)
    return Found(
        f"By the terms of Table 1, with n = {n} tokens and d = {d}: n² d = **{attention:,}** operations a layer for "
        f"self-attention, n d² = **{recurrence:,}** for one recurrent matrix; the first is larger where n > d. Table 1 "
        f"leaves the projections out: with them this model's layer takes {whole:,}, {whole / recurrence:.2g} times the "
        f"recurrent matrix, and {whole / lstm:.2g} times an LSTM of four gates ({lstm:,}).",
        attention > recurrence,
    )


def _place(stack: str, layer: int, name: str) -> str:
    kinds = {"self_attn": f"{stack}_self", "cross_attn": "cross"}
    title = KIND_TITLES[kinds[name]].lower() if name in kinds else f"{stack} feed-forward"
    return f"{title} of layer {layer}"


SAYINGS: Sequence[Saying] = (
    Saying(
        "heads",
        "A fifth to two fifths of the heads can be removed without a loss.",
        "Michel et al. (2019): 20% of the heads of a translation model of 6 layers, 40% of those of BERT; Voita et al. "
        "(2019) removed 38 of 48 encoder heads while they trained on",
        "Switch off each head, then more and more together",
        _heads,
        "what_if",
        "What if: which heads matter",
        (("part", "Which heads matter"),),
    ),
    Saying(
        "sublayers",
        "Every sub-layer matters: remove any one and the model breaks.",
        "Many introductions; Fan et al. (2020) leave out layers at random in training, and can then remove half of "
        "them",
        "Switch off each sub-layer in turn",
        _sublayers,
        "whole_model",
        "The whole model: each box off",
        (("whole_tab", "Each box off"),),
        needs=(Need.STREAM, Need.LOGITS),
    ),
    Saying(
        "articles",
        "Function words such as articles attend broadly, content words sharply.",
        "Blog posts on attention maps",
        "Compare the rows of the articles with the others",
        _articles,
        "heads_and_layers",
        "Heads and layers: all heads in numbers",
        (("heads_part", "All heads in numbers"),),
    ),
    Saying(
        "untrained",
        "Before training, attention is uniform.",
        "Lectures, about a softmax of small scores",
        "Run models with random weights on this text",
        _untrained,
        "training",
        "Training: attention through training",
        (("training", "Attention through training"),),
        needs=(Need.FULL_ROWS,),
    ),
    Saying(
        "shifted",
        "Sinusoids let the model extrapolate to longer sequences.",
        "Vaswani et al. (2017), section 3.5: it “may allow” this",
        "Move every token to later positions",
        _shifted,
        "positional_encoding",
        "Positional encoding",
        needs=(Need.OWN_LAYERS,),
        adds_sines=True,
    ),
    Saying(
        "alignment",
        "Cross-attention is word alignment.",
        "Said since Bahdanau et al. (2015); Koehn and Knowles (2017) found it off by a word and worse",
        "Read the alignment error rates of this checkpoint",
        _alignment,
        "heads_and_layers",
        "Heads and layers: over many sentences",
        (("heads_part", "Over many sentences"),),
        needs=(Need.CROSS_ATTENTION,),
    ),
    Saying(
        "sharpness",
        "The fewer dimensions a head has, the sharper it attends.",
        "Blog posts on multi-head attention",
        "Run four small translators on this text",
        _sharpness,
        "training",
        "Training: our own Table 3",
        (("training", "Ablations"),),
        needs=(Need.CROSS_ATTENTION,),
    ),
    Saying(
        "costs",
        "Self-attention costs more than recurrence.",
        "Said of its n²; Table 1 of the paper compares n² d with n d²",
        "Count the operations for this text",
        _costs,
        "why_attention",
        "Why attention: path length",
        (("why", "Path length"),),
        needs=(Need.OWN_LAYERS,),
    ),
)
