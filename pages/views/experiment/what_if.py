"""What if: a run before and after changes of the model, heads switched off one by one, forced words, broken code."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from model.analysis.distributions import total_variation
from model.analysis.heads.head_importance import (
    WHOLE,
    HeadScores,
    PruningCurve,
    ScoredText,
    find_token,
    head_scores,
    prune,
    pruning_curve,
)
from model.analysis.runs.two_runs import are_identical, largest_changes, top_tokens
from model.checkpoints.checkpoint import Checkpoint
from model.checkpoints.translator import Translator
from model.generation.search import beam_search
from model.generation.steps import Steps
from model.interventions import HeadGate, Intervention, MaskEdit, applied
from model.language import Refusal, sentence, sentence_of, tr
from model.network.config import BOS, EOS, PAD, UNK
from model.proof.mistakes import (
    MISTAKES,
    BrokenRun,
    Verdict,
    check_mistake,
    code_around,
    lines_of,
    run_mistake,
    why_not,
)
from model.proof.mistakes import Lines as WrongLines
from model.run import Place, Request, Run, decode
from model.trace import KIND_TITLES, Trace, log_probabilities
from model.tracer import build_trace
from pages.views import Need, OnRequest, Result, answer, is_quick, view
from pages.views.controls import CLICKED_HEAD, built, choice, menu, number, slider
from pages.views.part_pictures import head_maps
from pages.views.shared import axes, log_p_changes
from viz.candidates import Candidates, alternatives
from viz.drawing import Drawing
from viz.forms import Canvas, Document, Line, Lines, Mark, Outcome, Scale, Table
from viz.html import chips
from viz.latex import signed
from viz.special.mistakes import mistake_maps
from viz.special.translate import certainty_bars, rank_candidates
from viz.special.what_if import OWN, ChangeMaps, HeadMaps, candidate_change_bars
from viz.theme import CHOSEN, DECODER, GUIDE, OKABE_ITO, VALUE
from viz.tokens import decoder_rows, labels, numbered

CHANGED = built("The run with your changes", lambda run: [run])
"""the same tokens under the changes of the page's list"""
CLICKS = {"head": "this head", "layer": "this layer", "kind": "every layer"}
ACTS = choice("A click on a cell acts on", CLICKS, key="what_if_click")
SHOWN = choice(
    "The maps show",
    lambda run, changed: (
        {} if changed.trace is run.trace else {"most": tr("The head that changed most"), OWN: tr("Your own head")}
    ),
    key="what_if_shown",
)
CELL = built(
    "Cell", lambda _: [[]], key="what_if_cell", unlinked="the list of changes takes it up, which is in the link"
)
"""the cell that was clicked last, which the list of changes takes up"""


def edited_cells(changes: Sequence[Intervention], place: Place, acts: str) -> list[tuple[int, int]]:
    """The cells of the mask that the list changes at this place; `acts` is one of `CLICKS`."""
    here = MaskEdit(**place.address(acts))
    edits = [one for one in changes if isinstance(one, MaskEdit) and replace(one, forbid=(), allow=()) == here]
    return [cell for edit in edits for cell in (*edit.forbid, *edit.allow)]


def _added(run: Run, changed: Run) -> list[Intervention]:
    return [change for change in changed.trace.interventions if change not in run.trace.interventions]


def _free(run: Run) -> Run:
    """The run whose model writes its own text: a typed target is not what a model wrote."""
    return replace(run, request=replace(run.request, target=None))


def _changes_code(run: Run, changed: Run | None = None) -> Sequence[Callable]:
    changes = _added(run, changed) if changed else []
    return *map(type, changes or (MaskEdit(),)), applied, build_trace, log_probabilities, largest_changes


def moved_most(run: Run, changed: Run) -> tuple[Place, float]:
    """The head in which a weight changed most, by how much; the chosen head where none did."""
    changes = run.compute(largest_changes, run.trace, changed.trace)
    kind = max(changes, key=lambda name: np.nanmax(changes[name]))
    most = float(np.nanmax(changes[kind]))
    row, head = np.unravel_index(np.nanargmax(changes[kind]), changes[kind].shape)
    return (Place(kind, run.trace.kind(kind).layers[row], int(head)) if most > 0 else run.place), most


@view("Outcome", code=_changes_code, needs=(Need.LOGITS,))
def outcome(run: Run, changed: Run = CHANGED, shown: str | None = SHOWN, acts: str = ACTS) -> Result:
    """How probable the old text still is, what the changed model writes, and one head's weights before and after."""
    most, by = moved_most(run, changed)
    place = most if shown == "most" else run.place
    before, after, plain = run.trace, changed.trace, run.trace.interventions
    own = _free(run).decoded(*plain).trace
    new = _free(run).decoded(*after.interventions)
    unchanged = new.forced(*plain).trace.log_probability
    old, now = (trace.attention(place.kind, place.layer) for trace in (before, after))
    weights = old.pattern[place.head], now.pattern[place.head]
    edited = edited_cells(_added(run, changed), place, acts)
    rows, keys = axes(old)
    scores = before.log_probability, after.log_probability
    return Result(
        {
            "same": Outcome(
                "Same target: the old text, teacher-forced",
                before.translation,
                before.translation,
                {"log p before": scores[0], "log p after": scores[1]},
            ),
            "again": Outcome(
                "Decode again: what the changed model writes",
                own.translation,
                new.trace.translation,
                {"log p without the changes": unchanged, "log p with them": new.trace.log_probability},
            ),
            "maps": ChangeMaps(
                rows=rows,
                keys=keys,
                weights=weights,
                masks=(old.mask[place.head], now.mask[place.head]),
                edited=edited,
                place=(place.kind, place.layer, place.head),
                sets={"cell": CELL, "shown": SHOWN, **CLICKED_HEAD},
                edition=str(len(edited)),
            ),
        },
        {
            "identical": are_identical(before, after),
            "difference": scores[1] - scores[0],
            "factor": float(np.exp(min(abs(scores[1] - scores[0]), 700))),
            "tokens": len(before.next_ids),
            "same_text": new.trace.next_ids == own.next_ids,
            "unmoved": bool(_added(run, changed)) and np.array_equal(*weights),
            "place": place.title,
            "see": f"{place.kind}.{place.layer}.{place.head}",
            "most": most.title if by > 0 else None,
            "by": by,
        },
        {
            "new_text": np.array(new.trace.translation),
            "log_probability_new": new.trace.target_log_probabilities,
            "log_probability_before": before.target_log_probabilities,
            "log_probability_after": after.target_log_probabilities,
            "logits_before": before.logits,
            "logits_after": after.logits,
        },
    )


@view("Each token", code=(log_probabilities,), needs=(Need.LOGITS,))
def tokens(run: Run, changed: Run = CHANGED) -> Result:
    """Log-probability of each token of the same target."""
    traces = {"before": run.trace, "after": changed.trace}
    before, after = (trace.target_log_probabilities for trace in traces.values())
    lost = int((after - before).argmin())
    return Result(
        {"tokens": log_p_changes(run.trace.next_tokens, before, after)},
        {"sums": (before.sum(), after.sum()), "lost": lost, "loss": (after - before)[lost]},
        {f"probability_{name}": trace.target_probabilities for name, trace in traces.items()}
        | {f"log_probability_{name}": trace.target_log_probabilities for name, trace in traces.items()}
        | {"total_variation": total_variation(run.trace.probabilities, changed.trace.probabilities)},
    )


POSITION = number("Position, {0} to {1}", lambda run: (0, len(run.trace.next_ids) - 1), key="what_if_position")


@view("Next word", code=(top_tokens, total_variation), needs=(Need.LOGITS,))
def candidates(run: Run, changed: Run = CHANGED, position: int = POSITION) -> Result:
    """The most probable next tokens at one position of the same target."""
    before, after = (trace.probabilities[position] for trace in (run.trace, changed.trace))
    written = run.trace.next_ids[position]
    top = top_tokens(before, after, with_ids=(written,))
    names = [*run.opened.tokenizer.tokens(top.ids), tr("all {others:,} others", others=len(before) - len(top.ids))]
    shares = [np.append(values, rest) for values, rest in zip((top.before, top.after), top.rest, strict=True)]
    return Result(
        {"candidates": candidate_change_bars(names, *shares, written=top.ids.index(written))},
        {
            "row": decoder_rows(run.trace.row_tokens, run.trace.next_tokens)[position],
            "moved": float(total_variation(before, after)),
        },
        {"ids": np.array(top.ids), "before": top.before, "after": top.after, "rest": np.array(top.rest)},
    )


@view("Where it moved", code=(largest_changes,))
def heads(run: Run, changed: Run = CHANGED) -> Result:
    """The largest change of an attention weight in every head of every layer."""
    changes = largest_changes(run.trace, changed.trace)
    maps = head_maps(run, changes, "largest change of a weight")
    counts = [int((values > 0).sum()) for values in changes.values()], [values.size for values in changes.values()]
    return Result({"heads": maps}, {"changed": sum(counts[0]), "total": sum(counts[1])})


PREFIX = built("Forced so far", lambda run: ["", join_ids(run.trace.next_ids[:1])], key="prefix")
"""token ids that the text begins with, as "12-34"; empty: the model is free"""
AT = built("Position", lambda run: [0, len(run.trace.next_ids) - 1], key="prefix_at")
FORBIDDEN = frozenset({PAD, UNK, BOS})
"""tokens that are never written"""


def join_ids(ids: Sequence[int]) -> str:
    """Token ids as a link has them: "12-34"."""
    return "-".join(map(str, ids))


def read_ids(prefix: str) -> tuple[int, ...]:
    """The same back; older links have commas or spaces between them.

    Raises:
        ValueError: these are no ids.
    """
    if not re.fullmatch(r"([0-9]{1,8}([\s,-]+|$))*", prefix, re.ASCII):
        raise Refusal("The prefix in the link cannot be read; nothing is forced.")
    return tuple(map(int, re.findall("[0-9]+", prefix)))


def force_prefix(
    opened: Translator, source: str, prefix: tuple[int, ...], beam_size: int, interventions: tuple[Intervention, ...]
) -> Trace:
    """The finished translation that begins with `prefix`; nothing is decoded if that ends with </s>.

    Raises:
        ValueError: the prefix is too long, or has a token that cannot be forced.
    """
    ended = prefix[-1] == EOS
    written = opened.continue_from(source, prefix[:-1] if ended else prefix, beam_size, interventions)
    ids = prefix if ended else written.tokens
    return opened.trace_ids(source, ids[: opened.token_limit], interventions)


def with_prefix(run: Run, prefix: str) -> Trace:
    """The run in which the text begins with `prefix`; raises as `read_ids` and `force_prefix`."""
    if not (ids := read_ids(prefix)):
        return run.trace
    return run.compute(force_prefix, run.opened, run.trace.source, ids, run.beam_size, run.trace.interventions)


@view("Force a prefix", code=(beam_search, Steps), needs=(Need.CROSS_ATTENTION, Need.OWN_LAYERS))
def forced(run: Run, prefix: str = PREFIX, position: int = AT) -> Result:
    """The translation after other words were put in, the probability of each token, and what else it might be."""
    trace, before = with_prefix(run, prefix), run.trace
    position = min(position, len(trace.next_ids) - 1)
    written, kept = trace.target_probabilities, len(read_ids(prefix))
    parts = {sentence("Forced"): (slice(kept), VALUE), sentence("Decoded"): (slice(kept, None), DECODER)}
    boxes = [
        chips(title, trace.next_tokens[part], trace.next_ids[part], hue, written[part], position, part.start or 0)
        for title, (part, hue) in parts.items()
        if trace.next_ids[part]
    ]
    scores = {"log p, nothing forced": before.log_probability, "log p, now": trace.log_probability}
    return Result(
        {
            "result": Outcome("The translation", before.translation, trace.translation, scores),
            "tokens": Canvas(Drawing("chips", {"html": "".join(boxes)}), {"pick": AT}, saves=False),
            "certainty": certainty_bars(trace.next_tokens, written, position, sets={"place": AT}),
            "alternatives": _alternatives(trace, prefix, position),
        },
        {"forced": kept > 0},
        {
            "token": np.array(trace.next_tokens),
            "id": np.array(trace.next_ids),
            "probability": written,
            "log_probability": trace.target_log_probabilities,
            "candidates": np.array([[one.id for one in row] for row in trace.candidates]),
            "candidate_probabilities": np.array([[one.probability for one in row] for row in trace.candidates]),
        },
    )


def _alternatives(trace: Trace, prefix: str, position: int) -> Candidates:
    """The most probable tokens at a position; a click on one forces it, and goes on to the next position."""
    written = trace.next_ids[position]
    here = trace.next_tokens[position], written, float(trace.target_probabilities[position])
    names, shares, chosen = rank_candidates(trace.candidates[position], here)
    ids = [candidate.id for candidate in trace.candidates[position]]
    clicks = [
        {"prefix": join_ids((*trace.next_ids[:position], token)), "position": position + 1}
        if token not in FORBIDDEN
        else {"prefix": prefix, "position": position}
        for token in (ids if written in ids else [*ids, written])
    ]
    return alternatives(
        names,
        shares,
        chosen,
        trace.logits.shape[-1],
        chooses=[*clicks, {"prefix": prefix, "position": position}],
        sets={"prefix": PREFIX, "position": AT},
        edition=f"{position}-{len(prefix)}",
    )


def _questions(run: Run) -> list[ScoredText]:
    """Of the whole text, and of its first written token against the most probable other one."""
    first = run.trace.first_written
    others = (one.id for one in run.trace.candidates[first] if one.id != run.trace.next_ids[first])
    return [WHOLE, ScoredText(first, next(others, None))]


QUESTION = built("What is scored", _questions, key="which_question")
NONE_YET = ("",)
TEXTS = built("Other texts", lambda _: [(), ("Two cats.", "A dog runs.")], key="which_texts")
"""that are scored instead of the page's own; one that is empty: there is none yet"""
OF = choice("Heads of", {"kind": "this kind", "all": "all kinds"}, key="which_of")
MODE = choice(
    "Replaced",
    {"zero": "by nothing (zero)", "mean": "by its mean"},
    key="which_mode",
    help="The mean over all positions; in the decoder over those up to the query.",
)


def _count(run: Run, of: str) -> int:
    """How many heads are switched off."""
    attentions = run.opened.model.attentions()
    return sum(attentions[name, layer][1].n_heads for name, layers in _kinds(run, of).items() for layer in layers)


def _kinds(run: Run, of: str) -> dict[str, Sequence[int]]:
    return {kind.name: kind.layers for kind in run.opened.kinds if of == "all" or kind.name == run.kind}


PRUNED = slider(
    "Off together: k, of {1} heads",
    lambda run, of: (0, _count(run, of)),
    lambda run, of: _count(run, of) // 4,
    key="which_k",
)


@dataclass(frozen=True)
class Importance:
    """What switching heads off did, and to which texts."""

    texts: tuple[tuple[str, str], ...]
    """(source, what the model wrote) of each text that was scored; none: no text has the chosen token"""
    left_out: int
    """texts that have neither the token nor the word against it, or no token that the model knows"""
    scores: tuple[HeadScores, ...] = ()
    """of each kind"""
    curve: PruningCurve | None = None


def _importance_case(run: Run, question: ScoredText, texts: tuple[str, ...] | None, of: str, mode: str) -> tuple | None:
    if texts is None:
        return None
    return run.trace, run.kind if of == "kind" else "", mode, texts, question, run.beam_size, run.request.continuation


def _asked(run: Run, texts: Sequence[str], question: ScoredText) -> Iterator[tuple[Trace, ScoredText] | None]:
    """The run of each text and the question about it; None where it cannot be read, or the question not be asked."""
    if not texts:
        yield run.trace, question
    for source in texts:
        try:
            trace = decode(run.opened, _request(run, source=source, chat=None))
        except ValueError:  # it has no token that the model knows
            yield None
            continue
        own: ScoredText | None = question
        if question.position is not None:
            own = find_token(trace.next_ids, run.trace.next_ids[question.position], question.against)
        yield (trace, own) if own is not None else None


def _request(run: Run, **changes: Any) -> Request:
    """The page's request, for a text of the model's own, with what is at work in its run."""
    return replace(run.request, target=None, interventions=run.trace.interventions, **changes)


def _switch_off(
    run: Run, question: ScoredText, texts: tuple[str, ...], of: str, mode: str
) -> Iterator[tuple[float, Importance]]:
    """Switch off every head alone in each text, and then more and more of them together in the page's."""
    runs, result = [], Importance((), 0)
    for one in _asked(run, texts, question):
        runs.append(one)
        yield 0.0, result
    asked = [one for one in runs if one is not None]
    result = Importance(tuple((trace.source, trace.translation) for trace, _ in asked), len(runs) - len(asked))
    yield 0.0, result
    if not asked:
        return
    traces, questions = zip(*asked, strict=True)
    kinds = _kinds(run, of)
    scores: dict[str, HeadScores] = {}
    work = len(kinds) * len(traces) + 1
    for done, kind in enumerate(kinds):
        for share, of_kind in head_scores(run.opened, traces, kind, mode, questions):
            scores[kind] = of_kind
            yield (done + share) * len(traces) / work, result
    of_kinds = tuple(scores.values())
    gates = prune(of_kinds, _count(run, of))
    for share, curve in pruning_curve(run.opened, run.trace, _greedy(run), gates):
        yield (work - 1 + share) / work, replace(result, scores=of_kinds, curve=curve)


def _greedy(run: Run) -> Trace:
    """What the model writes greedily; an encoder alone writes nothing, and so it is the same run."""
    if Need.DECODER not in run.opened.features:
        return run.trace
    continuation = run.request.continuation and replace(run.request.continuation, sampling=None)
    return decode(run.opened, _request(run, beam_size=1, continuation=continuation))


MEASURED = OnRequest("Switch off each head", "which_go", _switch_off, _importance_case, icon=":material/play_arrow:")


@view("Which heads matter", code=(head_scores, prune, pruning_curve), needs=(Need.LOGITS,), on_request=MEASURED)
def importance(
    run: Run,
    outcome: Importance | None,
    question: ScoredText = QUESTION,
    texts: tuple[str, ...] = TEXTS,
    of: str = OF,
    mode: str = MODE,
    k: int = PRUNED,
) -> Result:
    """What switching off each head alone does to log p of the text, and what switching off many together does."""
    count, tokens = _count(run, of), run.opened.tokenizer.tokens
    if outcome is None and texts == () and is_quick(run):
        outcome = run.compute(_score_alone, run.opened, run.trace, tuple(_kinds(run, of)), question, mode)
    facts = {
        "count": count,
        "nothing": texts == NONE_YET,
        "texts": None if outcome is None else len(outcome.texts),
        "left_out": outcome and outcome.left_out,
        "own": texts == (),
        "pruned": outcome is not None and outcome.curve is not None,
        "replaced": mode == "mean",
        "writes": Need.DECODER in run.opened.features,
        "translates": bool(run.trace.src_tokens),
        "at": question.position,
        "token": None if question.position is None else labels([run.trace.next_tokens[question.position]])[0],
        "word": None if question.against is None else labels(tokens([question.against]))[0],
    }
    if outcome is None or not outcome.scores:
        return Result({}, facts)
    with_all, formats = outcome.scores[0].log_probabilities, {"share of all changes": "percent"}
    formats |= {"standard deviation": "%.5f"}
    heads = Table(head_table(outcome.scores), "%+.5f", formats, most_rows=7)
    shows = {"maps-of-heads": _score_maps(run, outcome.scores), "heads": heads}
    numbers = {f"changes_{one.kind}": one.changes for one in outcome.scores} | {"scores_with_all": with_all}
    facts["plain"] = with_all.mean()
    if outcome.curve is None:
        return Result(shows, facts, numbers)
    gates, curve, plain = prune(outcome.scores, k), outcome.curve, run.trace.interventions
    whole, pruned = (_free(run).decoded(*plain, *off).trace for off in ((), gates))
    changed = np.flatnonzero(curve.same == 0)
    if texts:
        sources, written = zip(*outcome.texts, strict=True)
        columns = {"sentence": sources, "what the model wrote": written, "score with all heads, nats": with_all}
        shows["sentences"] = Table(pd.DataFrame(columns), "%.3f", most_rows=5)
    without = run.forced(*plain, *gates).trace.log_probability
    scores = {"log p of the page's text": run.trace.log_probability, "without these": without}
    shows |= {
        "pruned": Outcome(f"Decoded again without {k} heads", whole.translation, pruned.translation, scores),
        "curve": _curve(curve, k, prune(outcome.scores, count)),
        "off": Table(pd.DataFrame({"off, the least important first": list(map(_name, gates))}), most_rows=5),
    }
    facts |= {
        "same": whole.next_ids == pruned.next_ids,
        "first_changed": int(curve.counts[changed[0]]) if len(changed) else None,
        "every": len(curve.counts) == count + 1,
    }
    return Result(shows, facts, numbers)


def _score_alone(opened: Checkpoint, trace: Trace, kinds: Sequence[str], question: ScoredText, mode: str) -> Importance:
    """What switching off each head alone does to the page's own text: the part of the work that needs no button."""
    scores = []
    for kind in kinds:
        *_, (_, of_kind) = head_scores(opened, (trace,), kind, mode, (question,))
        scores.append(of_kind)
    return Importance(((trace.source, trace.translation),), 0, tuple(scores))


def _name(gate: HeadGate) -> str:
    return Place(gate.kind, gate.layer, gate.head).title


def _score_maps(run: Run, scores: Sequence[HeadScores]) -> HeadMaps:
    changes = {one.kind: one.change for one in scores}
    scale = Scale.signed(*(values[np.isfinite(values)] for values in changes.values()))
    number = "+.2f" if scale.high >= 0.1 else "+.4f"
    return head_maps(run, changes, "change in log p without it", scale, number, unit=" nats")


def head_table(scores: Sequence[HeadScores]) -> pd.DataFrame:
    """A row for each head, the one whose removal costs most first.

    Returns:
        the mean change of the score; its share of the sum of all heads' absolute changes; with several texts also the
        standard deviation, the lowest and the highest change, and the number of texts where the score fell.
    """
    rows = []
    for of_kind in scores:
        for (row, head), change in np.ndenumerate(of_kind.change):
            changes = of_kind.changes[:, row, head]
            columns = {"attention": KIND_TITLES[of_kind.kind], "layer": of_kind.layers[row], "head": head}
            columns |= {"change, nats": change, "share of all changes": abs(change)}
            if len(changes) > 1:
                columns |= {"standard deviation": changes.std(ddof=1), "lowest": changes.min()}
                columns |= {"highest": changes.max(), "falls in": int((changes < 0).sum())}
            if np.isfinite(change):
                rows.append(columns)
    table = pd.DataFrame(rows)
    table["share of all changes"] /= table["share of all changes"].sum() or 1.0
    return table.sort_values("change, nats", kind="stable", ignore_index=True)


def _curve(curve: PruningCurve, k: int, gates: Sequence[HeadGate]) -> Lines:
    """log p of the text against the number of heads that are off, and whether greedy decoding still writes its text."""
    names = np.array(["none", *map(_name, gates)])[curve.counts]
    same, y = curve.same == 1, curve.log_probabilities
    lines = {"log p": Line(curve.counts, y, GUIDE, width=1.5)}
    looks = {"unchanged": (same, OKABE_ITO[2], "circle"), "changed": (~same, OKABE_ITO[5], "x-thin-open")}
    for name, (there, colour, symbol) in looks.items():
        if there.any():
            lines[f"greedy text {name}"] = Line(curve.counts[there], y[there], colour, symbol, "", names=names[there])
    titles = "k, number of heads off", "log p of the text (nats)"
    return Lines(lines, titles, ".6f", of="the last one", marks=[Mark(x=k, colour=CHOSEN, text=f"k = {k}", width=2)])


MISTAKE = menu(
    "Mistake", {name: f"{i}. {one.title}" for i, (name, one) in enumerate(MISTAKES.items(), 1)}, key="mistake"
)


def _break(opened: Checkpoint, trace: Trace, mistake: str, kind: str, layer: int) -> BrokenRun | str:
    """The run with the mistake, or why the model cannot run with it."""
    try:
        return run_mistake(opened, trace, mistake, kind, layer)
    except (ValueError, RuntimeError) as error:
        return sentence_of(error)


def _case(run: Run, mistake: str) -> tuple:
    return run.opened, run.trace, mistake, run.kind, run.layer, run.head


CLAIMS = OnRequest(
    "Check all claims on this run",
    "mistake_check",
    lambda run, mistake: ((verdict.done, verdict) for verdict in check_mistake(*_case(run, mistake))),
    lambda run, mistake: None if why_not(run.opened.model, mistake) else _case(run, mistake),
    icon=":material/fact_check:",
)


@view("Broken on purpose", code=(run_mistake, check_mistake), needs=(Need.OWN_LAYERS, Need.LOGITS), on_request=CLAIMS)
def broken(run: Run, outcome: Verdict | None, mistake: str = MISTAKE) -> Result:
    """A classic mistake in the running code: its lines, what is written, one head, and which claims fail."""
    facts = {"what": MISTAKES[mistake].what, "why_not": why_not(run.opened.model, mistake), "error": ""}
    if facts["why_not"]:
        return Result({}, facts)
    lines = {"lines": Document("\n\n".join(map(_changed_lines, lines_of(run.opened.model, mistake))))}
    found = run.compute(_break, run.opened, run.trace, mistake, run.kind, run.layer)
    if isinstance(found, str):
        return Result(lines, facts | {"error": found})
    attention, pattern = run.attention, found.pattern[run.head]
    right, wrong = (run.opened.tokenizer.decode(list(ids)) for ids in (found.right, found.written))
    weights, masks = (attention.pattern[run.head], pattern), (attention.mask[run.head], found.mask[run.head])
    rows, keys = axes(attention)
    scores = {"log p, right": run.trace.log_probability, "log p, wrong": found.log_p}
    verdict = _in_words(outcome) if outcome else None
    return Result(
        lines
        | {
            "text": Outcome("What is written", right, wrong, scores),
            "weights": mistake_maps(rows, (keys, numbered(_keys_with(run, found, mistake))), weights, masks),
        },
        facts
        | {
            "silent": not (right or wrong),
            "greedy": bool(run.trace.tgt_ids),
            "not_a_number": bool(np.isnan(pattern).any()),
            "unaffected": np.array_equal(pattern, attention.pattern[run.head]),
            "verdict": verdict,
        },
        {"pattern_right": weights[0], "pattern_wrong": pattern, "mask_wrong": masks[1]}
        | ({"errors": np.array([one.error for one in verdict["measured"]], float)} if verdict else {}),
    )


def _changed_lines(lines: WrongLines) -> str:
    """Where a mistake is made, and the lines with it and without it."""
    path = f"{lines.owner.__module__.replace('.', '/')}.py"
    pairs = zip(*(code.splitlines() for code in code_around(lines)), strict=True)
    diff = [f"  {right}" if right == wrong else f"- {wrong}\n+ {right}" for right, wrong in pairs]
    return f"`{path}`, {lines.owner.__name__}.{lines.method}:\n\n{Document.of_code(chr(10).join(diff), 'diff').text}"


def _keys_with(run: Run, found: BrokenRun, mistake: str) -> list[str]:
    """The tokens that are keys with the mistake: the padding follows the sentence's own, and a cross-attention may read
    the decoder."""
    own, width = list(run.attention.key_tokens), found.pattern.shape[-1]
    if run.attention.crosses and mistake == "cross-reads-x":
        return list(run.trace.tgt_tokens)
    return own + ["<pad>"] * (width - len(own))


def _in_words(verdict: Verdict) -> dict[str, Any]:
    measured = [one for one in verdict.measurements if one.error is not None]
    failing = [one for one in measured if one in verdict.broken]
    return {
        "refusal": verdict.refusal,
        "measured": measured,
        "broken": [(one.claim.label, one.claim.title, _error(one.error)) for one in failing],
        "holding": [(one.claim.label, one.claim.title) for one in measured if one not in failing],
    }


def _error(error: float) -> str:
    return "NaN" if np.isnan(error) else "∞" if np.isinf(error) else signed(error)


@answer
def one_line(run: Run, changed: Run = CHANGED) -> Result:
    """How much less probable the old text is with the changes."""
    before, after = run.trace.log_probability, changed.trace.log_probability
    return Result(facts={"changes": len(_added(run, changed)), "before": before, "after": after})
