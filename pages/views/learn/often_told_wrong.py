"""Often told wrong: statements that explanations repeat, each with a button where this run can tell, and mistakes."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import wraps
from typing import Any

import numpy as np

from model.analysis.heads.evenness import SEEDS, evenness, mean_evenness, row_evenness, untrained_evenness
from model.analysis.heads.many_sentences import ManySentences, read_heads
from model.analysis.heads.removal import Removal, remove_heads, remove_sublayers
from model.analysis.positions.shift import shift_positions
from model.background.paper_results import TABLE_2
from model.checkpoints.store import CheckpointError, load_checkpoint, study_checkpoints
from model.language import Sentence, joined, later, sentence, sentence_of
from pages.views import Need, OnRequest, Part, Result, Run, View, answer, is_quick, is_short, missing_of, view, views_of
from pages.views.part_pictures import part_label
from pages.views.shared import COUNTED
from viz.forms import Bars, Line, Lines, Mark
from viz.labels import say_label
from viz.theme import OKABE_ITO

TAB = "Often told wrong"
HALF = 65_504
"""the largest number of half precision"""
CHANGE, EVEN = "change in log p, nats per token", "share of the entropy of equal weights"
HEIGHT, LABELLED = 300, 440
"""pixels of a picture, of which several stand below each other, and of one with a long name below each bar"""
CLOSE = 0.1
"""nats per token: less than this counts as no loss"""
ARTICLES = {"a", "an", "the", "der", "die", "das", "den", "dem", "des", "ein", "eine", "einen", "einem", "einer"}
SHIFTS = (1, 5, 20, 50, 100, 200, 500)
WIDTHS = ("studies/heads-1", "studies/base", "studies/heads-8", "studies/heads-16")
"""small translators that differ in the number of heads alone, the widest heads first"""
SINUSOIDS = Part(
    later("sines and cosines that are added to the embeddings"), lambda run: run.opened.config.positions == "sinusoidal"
)

Steps = Iterator[tuple[float, Any]]


def claim(
    statement: str,
    button: str,
    work: Callable[[Run], Steps],
    *needs: Need | Part,
    code: Sequence[Callable],
    at_once: Callable[[Run], bool] | None = None,
) -> Callable[[Callable[[Run, Any], Result]], View]:
    """Decorator: the view of a statement in our own words, which is tested when its button is pressed, or `at_once`.

    The function gets the outcome of the work, as of `OnRequest`; one of its facts is `holds`, whether the statement is
    so on this run, or None where this run cannot tell. Without the `needs` the text says that the statement cannot be
    tested, and there is no button.
    """

    def missing(run: Run) -> Sentence | str:
        lacking = missing_of(needs, run)
        return joined(sentence(str(one)) for one in lacking) if lacking else ""

    def decorate(function: Callable[[Run, Any], Result]) -> View:
        @wraps(function)
        def test(run: Run, outcome: Any = None) -> Result:
            if outcome is None:
                return Result(facts={"tested": False, "missing": missing(run)})
            result = function(run, outcome)
            return replace(result, facts={"tested": True, "missing": ""} | dict(result.facts))

        def case(run: Run) -> tuple | None:
            return None if missing(run) else (run.opened, run.trace)

        request = OnRequest(
            button, f"claim-{function.__name__}", work, case, icon=":material/play_arrow:", at_once=at_once
        )
        return view(statement, code=code, tab=TAB, on_request=request)(test)

    return decorate


@claim(
    "A fifth to two fifths of the heads can be removed without a loss.",
    "Switch off each head, then more and more together",
    lambda run: remove_heads(run.opened, run.trace),
    code=(remove_heads,),
)
def heads(_: Run, outcome: Removal) -> Result:
    """How many heads are off, alone and together, before log p of the text falls."""
    count, together = len(outcome.alone), outcome.removable(CLOSE)
    facts = {
        "holds": bool(together >= 0.2 * count),
        "close": CLOSE,
        "count": count,
        "alone": int((outcome.alone > -CLOSE).sum()),
        "together": together,
        "all_off": -outcome.together[-1],
    }
    line = {"all together": Line(outcome.counts, outcome.together, OKABE_ITO[0], "circle")}
    titles = ("heads that are off, the least important first", CHANGE)
    return Result(
        {"off": Lines(line, titles, "+.3f", height=HEIGHT, marks=[Mark(y=-CLOSE)])}, facts, {"alone": outcome.alone}
    )


@claim(
    "Every sub-layer matters: remove any one and the model breaks.",
    "Switch off each sub-layer in turn",
    lambda run: remove_sublayers(run.opened, run.trace),
    Need.STREAM,
    Need.LOGITS,
    code=(remove_sublayers,),
    at_once=is_quick,
)
def sublayers(_: Run, outcome: Mapping[tuple[str, int, str], float]) -> Result:
    """The change of log p of the text without each sub-layer."""
    hurt = sum(change < -CLOSE for change in outcome.values())
    ends = {name: end(outcome, key=outcome.get) for name, end in (("worst", min), ("least", max))}
    facts = {
        "holds": hurt == len(outcome),
        "close": CLOSE,
        "count": len(outcome),
        "hurt": hurt,
        "ends": {name: {"place": _sublayer(*place), "change": outcome[place]} for name, place in ends.items()},
    }
    names = [part_label(" ".join(map(str, place))) for place in outcome]
    changes = {CHANGE: np.array([*outcome.values()])}
    bars = Bars(names, changes, ("sub-layer that is off", CHANGE), number="+.3f", what="sub-layer", height=LABELLED)
    return Result({"each": replace(bars, marks=[Mark(y=-CLOSE)])}, facts)


def _sublayer(stack: str, layer: int, name: str) -> Sentence:
    part = "cross" if name == "cross_attn" else f"{stack}_{name.removesuffix('_attn')}"
    return sentence("{sublayer} of layer {layer}", sublayer=sentence(COUNTED[part]), layer=layer)


def _read_articles(run: Run) -> Steps:
    """Stream, labels of the articles, and the evenness of their rows and of the others', where a row has a choice."""
    for name, stream in run.trace.streams.items():
        even = row_evenness(run.trace, name)
        rows = [i for i, special in enumerate(stream.tokens.special) if not special and np.isfinite(even[i])]
        texts = stream.tokens.labels
        articles = [i for i in rows if texts[i].startswith("▁") and texts[i][1:].lower() in ARTICLES]
        if 0 < len(articles) < len(rows):
            labels = [texts[i].strip("▁") for i in articles]
            yield 1.0, (name, labels, even[articles], even[np.setdiff1d(rows, articles)])
            return
    yield 1.0, ()


@claim(
    "Function words such as articles attend broadly, content words sharply.",
    "Compare the rows of the articles with the others",
    _read_articles,
    code=(row_evenness, evenness),
    at_once=is_short,
)
def articles(_: Run, outcome: tuple) -> Result:
    """The evenness of the articles' rows, and of the other words'."""
    if not outcome:
        return Result({}, {"holds": None, "words": []})
    stack, words, own, others = outcome
    facts = {"stack": stack, "words": words[:4], "own": own.mean(), "others": others.mean()}
    bars = _even_bars({"articles": facts["own"], "other words": facts["others"]}, "rows of")
    return Result(
        {"rows": bars}, facts | {"holds": bool(own.mean() > others.mean())}, {"articles": own, "others": others}
    )


def _even_bars(values: Mapping[str, float], title: str) -> Bars:
    """Shares of the entropy of equal weights."""
    shares = {EVEN: np.array([*values.values()], float)}
    return Bars([*map(say_label, values)], shares, (title, EVEN), (0, 1), number=".1%", what="", height=HEIGHT)


@claim(
    "Before training, attention is uniform.",
    "Run models with random weights on this text",
    lambda run: iter([(1.0, untrained_evenness(run.opened, run.trace))]),
    Need.FULL_ROWS,
    code=(untrained_evenness, mean_evenness),
)
def untrained(run: Run, outcome: np.ndarray) -> Result:
    """The evenness of the rows of models with random weights, and of this model."""
    trained = mean_evenness(run.trace)
    facts = {"holds": bool(outcome.min() > 0.95), "untrained": outcome.tolist(), "trained": trained}
    models = {f"random weights, seed {seed}": share for seed, share in zip(SEEDS, outcome, strict=True)}
    models["this model"] = trained
    return Result({"models": _even_bars(models, "model")}, facts)


@claim(
    "Sinusoids let the model extrapolate to longer sequences.",
    "Move every token to later positions",
    lambda run: iter([(1.0, shift_positions(run.opened, run.trace, SHIFTS))]),
    Need.OWN_LAYERS,
    SINUSOIDS,
    code=(shift_positions,),
    at_once=is_quick,
)
def shifted(_: Run, outcome: Mapping[int, float]) -> Result:
    """The change of log p of the text with all tokens at later positions."""
    changes = np.array(list(outcome.values()))
    facts = {"holds": bool(changes.min() > -CLOSE), "changes": outcome, "most": max(-changes.min(), 0)}
    line = {CHANGE: Line(np.array([*outcome]), changes, OKABE_ITO[0], "circle")}
    titles = ("positions by which every token moves", CHANGE)
    return Result({"moved": Lines(line, titles, "+.3f", "x", height=HEIGHT, marks=[Mark(y=-CLOSE)])}, facts)


def _read_alignment(run: Run) -> Steps:
    """The heads over many sentences, or why there are none."""
    try:
        yield 1.0, read_heads(run.opened)
    except ValueError as error:
        yield 1.0, sentence_of(error)


@claim(
    "Cross-attention is word alignment.",
    "Show this checkpoint's alignment error rates",
    _read_alignment,
    Need.CROSS_ATTENTION,
    code=(read_heads,),
    at_once=is_short,
)
def alignment(_: Run, outcome: ManySentences | str) -> Result:
    """The alignment error rates of the cross-attention heads over many sentences."""
    if isinstance(outcome, str):
        return Result({}, {"holds": None, "problem": outcome, "heads": []})
    cross = [head for head in outcome.heads if head.kind == "cross" and head.mean.get("errors") is not None]
    ranked = sorted(cross, key=lambda head: head.mean["errors"])
    rows = [{"layer": head.layer, "head": head.head, "errors": head.mean["errors"]} for head in ranked]
    good = sum(row["errors"] < 0.5 for row in rows)
    facts = {"problem": "", "heads": rows, "good": good, "sentences": outcome.sentences, "of": outcome.of}
    names, errors = [f"L{row['layer']}H{row['head']}" for row in rows], np.array([row["errors"] for row in rows])
    series, titles = {"alignment error rate": errors}, ("head of cross-attention", "alignment error rate")
    bars = Bars(names, series, titles, (0, 1), number=".3f", what="head", height=HEIGHT, marks=[Mark(y=0.5)])
    return Result({"errors": bars} if rows else {}, facts | {"holds": good == len(rows) if rows else None})


def _run_widths(run: Run) -> Steps:
    """Evenness by d_k of the small translators that are there, or why they do not run."""
    names = [name for name in WIDTHS if name in study_checkpoints()]
    widths: dict[int, float] = {}
    for number, name in enumerate(names):
        try:
            opened = run.compute(load_checkpoint, name, run.opened.device)
            widths[opened.config.d_k] = mean_evenness(opened.trace(run.trace.source, beam_size=1))
        except (CheckpointError, ValueError) as error:
            yield 1.0, sentence_of(error)
            return
        yield (number + 1) / (len(names) + 1), None
    yield 1.0, widths


@claim(
    "The fewer dimensions a head has, the sharper it attends.",
    "Run four small translators on this text",
    _run_widths,
    Need.CROSS_ATTENTION,
    code=(mean_evenness, evenness),
)
def sharpness(_: Run, outcome: Mapping[int, float] | str) -> Result:
    """The evenness of the rows of small translators that differ in the number of heads."""
    if isinstance(outcome, str) or len(outcome) < 2:
        return Result({}, {"holds": None, "problem": outcome if isinstance(outcome, str) else "", "widths": {}})
    falls = np.diff([outcome[width] for width in sorted(outcome, reverse=True)]) < 0
    bars = _even_bars({f"dₖ = {width}": share for width, share in outcome.items()}, "width of a head")
    return Result({"widths": bars}, {"holds": bool(falls.all()), "problem": "", "widths": outcome})


@view(TAB)
def mistakes(run: Run) -> Result:
    """What much-read explanations get wrong, what is right, and where to see it."""
    systems = {row.system: row for row in TABLE_2}
    base = systems["Transformer, base"].en_de_operations
    largest = max(float(np.abs(one.scores).max()) for one in run.trace.attentions.values())
    facts = {
        "n": len(next(iter(run.trace.streams.values())).tokens),
        "d": run.opened.config.d_model,
        "gnmt": systems["GNMT + RL"].en_de_operations / base,
        "convs2s": systems["ConvS2S"].en_de_operations / base,
        "largest": largest,
        "half": HALF,
        "sublayers": len(run.trace.sublayers) if run.trace.streams else None,
        "norm_after": next((s for s in run.trace.streams.values() if s.last_norm), None) is not None,
    }
    return Result(facts=facts)


@answer
def one_line(run: Run) -> Result:
    """How many statements there are, and on how much of a run they are tested."""
    statements = [one for one in views_of(__name__) if one.on_request]
    return Result(
        facts={
            "statements": len(statements),
            "tokens": sum(len(stream.tokens) for stream in run.trace.streams.values()),
        }
    )
