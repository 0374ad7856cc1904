"""Who chose this word: the logit of a written token, by part, by head, and by head and the token that it read."""

from collections.abc import Iterator, Mapping

import numpy as np
import pandas as pd

from model.analysis.runs.swapped_weights import rank_correlation
from model.analysis.sweep import sweep
from model.analysis.written import head_of_part, logit_parts, logit_parts_by_key
from model.interventions import HeadGate
from model.interventions.link import encode
from model.language import sentence_of, tr
from model.needs import Need
from model.run import Run
from model.trace import Array
from pages.views import OnRequest, Result, answer, view
from pages.views.chosen_token import row_in
from pages.views.controls import CLICKED_HEAD, choice, menu, number, text
from pages.views.part_pictures import MOST, head_choices, part_label, rank, signed_head_maps
from viz.forms import Line, Lines, Map, Maps, Mark, Scale, Table
from viz.labels import say_label
from viz.theme import OKABE_ITO
from viz.tokens import decoder_rows, labels, numbered
from viz.waterfall import Waterfall

SHOWN = 10
"""parts with a bar of their own"""
NOTHING = -1
"""in place of the id of a token: the logit alone"""


def _stack(run: Run) -> str:
    """The stack whose output the logits read."""
    return list(run.trace.streams)[-1]


ROW = number(
    "Row of the word, {0} to {1}",
    lambda run: (0, len(run.trace.next_ids) - 1),
    lambda run: row_in(run, _stack(run)),
    key="wrote_at",
    follows=True,
)


def _others(run: Run, row: int) -> dict[int, str]:
    """The runners-up, the most probable first, and nothing."""
    others = [one for one in run.trace.candidates[row] if one.id != run.trace.next_ids[row]]
    names = zip(others, labels([one.token for one in others]), strict=True)
    return {one.id: tr("{name} {share:.1%}", name=name, share=one.probability) for one, name in names} | {
        NOTHING: tr("nothing: just its logit")
    }


AGAINST = menu("Rather than", _others, key="wrote_against")
TYPED = text("… or a word that you type", ("", "dog"), key="wrote_typed")


def _contrast(run: Run, against: int, typed: str) -> tuple[int | None, str]:
    """Id of the other token, and what is wrong with a typed word, if something is."""
    if typed.strip():
        try:
            ids = run.opened.tokenizer.encode_next(run.opened.prepare(typed).strip())
        except ValueError as error:
            return (None if against == NOTHING else against), sentence_of(error)
        if ids:
            return ids[0], ""
    return (None if against == NOTHING else against), ""


def _kinds(run: Run) -> dict[str, str]:
    """The kinds of attention that write into the stack that the logits read, cross-attention first."""
    kinds = [kind for kind in run.trace.kinds if kind.queries == _stack(run)]
    return {kind.name: tr(kind.title) for kind in sorted(kinds, key=lambda kind: not kind.crosses)}


WRITER = choice("Heads of", _kinds, key="wrote_kind")


def _switch_off(run: Run, row: int, against: int, typed: str) -> Iterator[tuple[float, Mapping[str, float]]]:
    """By head, how far the logit, or the difference, falls when it is off."""
    trace, token, (other, _) = run.trace, run.trace.next_ids[row], _contrast(run, against, typed)
    heads = [name for name in logit_parts(run.opened, trace, row, token, other) if head_of_part(name)]
    gates = [(HeadGate(0.0, *head_of_part(name)),) for name in heads]
    effects: dict[str, float] = {}
    before = _difference(trace.logits, row, token, other)
    for done, (name, logits) in enumerate(zip(heads, sweep(run.opened, trace, gates), strict=True), start=1):
        effects[name] = before - _difference(logits, row, token, other)
        yield done / len(heads), dict(effects)


def _difference(logits: Array, row: int, token: int, other: int | None) -> float:
    values = logits[row].astype(np.float64)
    return float(values[token] - (0.0 if other is None else values[other]))


OFF = OnRequest(
    "Switch off each head",
    "wrote_off",
    _switch_off,
    lambda run, row, against, typed: (run.trace, row, _contrast(run, against, typed)[0]),
    icon=":material/play_arrow:",
)


@view(
    "Which head wrote this word",
    code=(logit_parts, logit_parts_by_key, sweep),
    needs=(Need.LOGITS, Need.STREAM, Need.MATRICES),
    on_request=OFF,
)
def which_head(
    run: Run,
    row: int = ROW,
    against: int = AGAINST,
    typed: str = TYPED,
    kind: str = WRITER,
    outcome: Mapping[str, float] | None = None,
) -> Result:
    """What each part adds directly to the logit of the written token, and what happens when a head is off."""
    trace, token = run.trace, run.trace.next_ids[row]
    other, problem = _contrast(run, against, typed)
    parts, heads, first = _largest(run, row, other)
    by_key = run.compute(logit_parts_by_key, run.opened, trace, row, token, other)
    ranked = rank(parts, SHOWN)
    off = {name: outcome[name] for name in heads if name in outcome} if outcome else {}
    shows = {"parts": _waterfall(run, parts, by_key, other is None)}
    shows |= {"heads": signed_head_maps(run, heads, "adds", "+.2f", [kind]), "sources": _source_map(run, by_key, kind)}
    shows |= {"off": _off_lines(heads, off), "table": _off_table(run, heads, off)} if off else {}
    probability = trace.probabilities[row]
    difference = _difference(trace.logits, row, token, other)
    return Result(
        shows,
        {
            "word": trace.next_tokens[row],
            "reads": decoder_rows(trace.row_tokens, trace.next_tokens)[row],
            "probability": float(probability[token]),
            "against": None if other is None else run.opened.tokenizer.tokens([other])[0],
            "against_probability": None if other is None else float(probability[other]),
            "same": other == token,
            "problem": problem,
            "difference": difference,
            "error": abs(sum(parts.values()) - difference),
            "parts": len(parts),
            "others": (ranked.others, float(ranked.values[-1])),
            "first": first and (part_label(first), heads[first], _best_source(run, by_key, first)),
            "of_heads": sum(heads.values()),
            "see": "{kind}.{layer}.{head}".format(**head_choices(run, [first or ""])[0]),
            "switch_off": encode((HeadGate(0.0, *head_of_part(first)),)) if first else "",
            "kind": _kinds(run)[kind],
            "correlation": rank_correlation(*(np.array([x[name] for name in off]) for x in (heads, off)))
            if len(off) > 1
            else None,
            "measured": len(off),
        },
        {"part": np.array(list(parts)), "adds": np.array(list(parts.values()))},
    )


def _largest(run: Run, row: int, other: int | None) -> tuple[dict[str, float], dict[str, float], str | None]:
    """The parts of the written token's logit, or of its lead over another token; those of heads, and the largest."""
    parts = run.compute(logit_parts, run.opened, run.trace, row, run.trace.next_ids[row], other)
    heads = {name: value for name, value in parts.items() if head_of_part(name)}
    return parts, heads, max(heads, key=lambda name: heads[name]) if heads else None


def _best_source(run: Run, by_key: Mapping[str, Array], part: str) -> tuple[str, float] | None:
    """The token through which a head adds most; None where an intervention changed what the head wrote."""
    kind, layer, _ = head_of_part(part)
    values = by_key[part]
    if np.isnan(values).any():
        return None
    key = int(values.argmax())
    return run.trace.attention(kind, layer).key_tokens[key], float(values[key])


def _waterfall(run: Run, parts: Mapping[str, float], by_key: Mapping[str, Array], alone: bool) -> Waterfall:
    """The largest parts from 0 to the logit or the lead, in the order of the layers; heads with what they read most."""
    ranked = rank(parts, SHOWN)
    order = [name for name in parts if name in ranked.parts]
    values = [parts[name] for name in order] + ([float(ranked.values[-1])] if ranked.others else [])
    names = [_with_source(run, by_key, name) for name in order] + ranked.labels[len(order) :]
    return Waterfall(
        [*names, say_label("the logit" if alone else "the lead")],
        np.array(values),
        "adds to the logit" if alone else "adds to the lead",
        chooses=head_choices(run, [*order, *([""] if ranked.others else []), ""]),
        sets=CLICKED_HEAD,
    )


def _with_source(run: Run, by_key: Mapping[str, Array], part: str) -> str:
    """The part's name; of a head also the token through which it adds most, or takes most away."""
    name = part_label(part)
    if not head_of_part(part) or np.isnan(values := by_key[part]).any():
        return name
    kind, layer, _ = head_of_part(part)
    key = int(values.argmax() if values.sum() >= 0 else values.argmin())
    return f"{name} ← {labels(run.trace.attention(kind, layer).key_tokens)[key]}"


def _source_map(run: Run, by_key: Mapping[str, Array], kind: str) -> Maps:
    """The heads of a kind that add most, and the tokens through which they do."""
    own = {name: values for name, values in by_key.items() if head_of_part(name)[0] == kind}
    names = sorted(own, key=lambda name: -float(np.abs(own[name]).sum()))[:MOST]
    values = np.stack([own[name] for name in names]).astype(np.float32)
    _, layer, _ = head_of_part(names[0])
    one = Map(values, ~np.isnan(values), Scale.signed(np.nan_to_num(values), title="adds"), "adds")
    keys = numbered(run.trace.attention(kind, layer).key_tokens)
    return Maps([*map(part_label, names)], keys, {"": one}, axes=("head", "token that it read"))


def _off_lines(heads: Mapping[str, float], off: Mapping[str, float]) -> Lines:
    """Each head's direct contribution, and what its removal takes away."""
    names = list(off)
    x, y = (np.array([values[name] for name in names]) for values in (heads, off))
    ends = [float(min(x.min(), y.min())), float(max(x.max(), y.max()))]
    return Lines(
        {
            "heads": Line(x, y, symbol="circle", dash="", names=[*map(part_label, names)]),
            "as much as it adds directly": Line(ends, ends, OKABE_ITO[3], dash="dot", width=1.5),
        },
        ("adds directly", "lost when it is off"),
        ".4f",
        of="head",
        marks=[Mark(x=0), Mark(y=0)],
    )


def _off_table(run: Run, heads: Mapping[str, float], off: Mapping[str, float]) -> Table:
    """Direct contribution and loss of every head, the largest loss first; a click on a row opens its head."""
    names = sorted(off, key=lambda name: -abs(off[name]))
    frame = pd.DataFrame(
        {
            "head": [*map(part_label, names)],
            "adds directly": [heads[name] for name in names],
            "lost when it is off": [off[name] for name in names],
        }
    )
    return Table(frame, floats="%+.3f", most_rows=10, chooses=head_choices(run, names), sets=CLICKED_HEAD)


@answer
def one_line(run: Run, row: int = ROW, against: int = AGAINST, typed: str = TYPED) -> Result:
    """The head that adds most to what the page's first picture splits."""
    token, (other, _) = run.trace.next_ids[row], _contrast(run, against, typed)
    _, heads, first = _largest(run, row, other)
    return Result(
        facts={
            "word": run.trace.next_tokens[row],
            "against": None if other is None else run.opened.tokenizer.tokens([other])[0],
            "same": other == token,
            "difference": _difference(run.trace.logits, row, token, other),
            "head": first and (part_label(first), heads[first]),
        }
    )
