"""Family tree: who descends from whom since 2017, and their sizes; three ways to cut a text, trainings, three uses."""

from collections.abc import Iterator
from itertools import accumulate
from typing import Any

import numpy as np
import pandas as pd

from model.analysis.runs.fine_tuned import STEPS, FineTuning, fine_tune
from model.analysis.stream.whole_model import SIDES
from model.background.family import HALF, PARTS, Member, Relative, member, members, relatives
from model.background.pieces import bytes_read, cut_text, learn_merges
from model.background.then_and_now import BASE, TRAININGS, Training, tokens_of_log, training_of
from model.checkpoints.store import shown_name
from model.correction import held_out_pairs
from model.language import Numeral, tr
from model.run import Run
from model.trace import Tokens, Trace
from pages.text import names_in
from pages.views import Need, OnRequest, Result, answer, view
from pages.views.controls import menu, steps
from pages.views.examples import examples_of
from pages.views.model.training import curves
from pages.views.shared import card_of
from viz.cuts import blocks, cuts_html
from viz.descent import Descent, Kin
from viz.drawing import Drawing
from viz.forms import Canvas, Line, Lines, Table, Texts
from viz.latex import signed
from viz.special.family_tree import to_scale
from viz.special.model_card import amount
from viz.theme import DECODER, ENCODER, OKABE_ITO
from viz.tokens import Verbatim

LENGTHS = (100, 1_000, 10_000, 100_000, 1_000_000)
OTHER_TEXTS = 8
"""example sentences on which a fine-tuned model is measured, too"""
LANES = {"encoder": ENCODER, "encoder-decoder": OKABE_ITO[3], "decoder": DECODER, "state space": OKABE_ITO[2]}
"""family -> its colour"""
MEMBER = menu("Model", lambda _: {one.name: one.name for one in members()}, "GPT-3", key="family_member")
N = steps("Tokens n", {n: Numeral(f"{n:,}") for n in LENGTHS}, 1_000, key="family_n")
BESIDE = menu(
    "Beside it",
    lambda run: {"": shown_name(run.opened.name)} | {one.name: one.name for one in members()},
    "",
    key="family_beside",
)


@view("Years, sizes, costs", code=(Member.parameters, Member.cached, Member.multiply_adds))
def tree(run: Run, chosen: str = MEMBER, beside: str = BESIDE, n: int = N) -> Result:
    """Models over the years; one of them to scale beside another, with its parts; all of them with their costs."""
    one = member(chosen)
    models = {one.name: (one.d_model, one.columns())}
    if beside and beside != chosen:
        other = member(beside)
        models[other.name] = other.d_model, other.columns()
    elif not beside:
        models[shown_name(run.opened.name)] = run.opened.config.d_model, _own_columns(run)
    totals = {title: sum(sum(parts.values()) for _, parts in columns) for title, (_, columns) in models.items()}
    counts, active, years = one.parameters(), one.parameters(active=True), _years(chosen)
    parts = [part for part in PARTS if counts[part]]
    table = pd.DataFrame(
        {
            "part": parts,
            "parameters": [f"{counts[part]:,}" for part in parts],
            "share": [100 * counts[part] / one.total for part in parts],
            "at work for a token": [f"{active[part]:,}" for part in parts],
        }
    )
    table.attrs["floats"] = "%.1f%%"
    facts = {
        "one": one,
        "total": one.total,
        "totals": totals,
        "active": sum(active.values()),
        "cache": HALF * one.cached(n),
        "work": one.multiply_adds(n),
        "least": years.least,
        "unpublished": len(relatives()),
    }
    numbers = {"parameters": np.array([float(each.total) for each in members()])}
    shows = {"years": years, "scale": to_scale(models), "parts": table, "all": _all(chosen, n), "descent": _descent()}
    return Result(shows, facts, numbers)


def _own_columns(run: Run) -> list[tuple[str, dict[str, int]]]:
    """The opened model as `Member.columns` has others: embedding, layers, and what is not in them."""
    by_part, blocks = run.opened.parameters_by_part(), run.opened.parameters_by_block()
    first = run.opened.embedding_matrix(SIDES[next(iter(run.trace.streams))]).size
    columns = [("embedding", {"embedding": first})]
    for (stack, layer), inside in blocks.items():
        attention = sum(count for name, count in inside.items() if name.endswith("attn"))
        network = inside.get("feed_forward", 0)
        rest = sum(inside.values()) - attention - network
        parts = {"attention": attention, "feed-forward": network, "norms": rest}
        columns.append((f"{stack} layer {layer}", {part: count for part, count in parts.items() if count}))
    rest = sum(by_part.values()) - sum(sum(parts.values()) for _, parts in columns)
    return [*columns, ("output", {"other": rest} if rest else {})]


def _years(chosen: str) -> Descent:
    """Who descends from whom, over the years; a click chooses a model whose sizes are published."""
    family = [_kin(one, float(one.total)) for one in members()] + [_kin(one, None) for one in relatives()]
    return Descent(
        family,
        LANES,
        "parameters",
        chosen,
        sets={"member": MEMBER},
        chooses=[{"member": one.name} for one in members()],
        edition=chosen,
    )


def _kin(one: Member | Relative, size: float | None) -> Kin:
    told = one.descent
    about: dict[str, str] = {"parameters": amount(size) if size else "not published"}
    if told:
        about |= {
            "descends from": Verbatim(told.parent),
            "inherited": told.took,
            "dropped": told.dropped,
            "new": told.new,
        }
    about["published in"] = told.source if told else one.source
    said = {of: text for of, text in about.items() if text}
    return Kin(one.name, one.year, one.family, size, told.parent if told else "", said)


def _descent() -> pd.DataFrame:
    """The same as a table, with what each took, dropped, and has new."""
    rows = [
        {
            "model": one.name,
            "year": str(int(one.year)),
            "descends from": one.descent.parent,
            "inherited": one.descent.took,
            "dropped": one.descent.dropped,
            "new": one.descent.new,
            "from": tr(one.descent.source),
        }
        for one in sorted((*members(), *relatives()), key=lambda one: one.year)
        if one.descent
    ]
    return pd.DataFrame(rows)


def _all(chosen: str, n: int) -> Table:
    """Every member as a row; a click chooses it."""
    rows = [
        {
            "model": one.name,
            "year": str(int(one.year)),
            "kind": one.family,
            "layers": " + ".join(str(count) for count in (one.encoder_layers, one.decoder_layers) if count),
            "d_model": one.d_model,
            "heads": one.heads,
            "of keys": one.key_heads,
            "norm": f"{one.norm}, {one.placement}",
            "positions": one.positions,
            "a token sees": one.mask,
            "context": "" if one.context is None else f"{one.context:,}",
            "n in it": "" if one.context is None else "yes" if n <= one.context else "no",
            "tokens read": "" if one.tokens is None else tr(amount(one.tokens)),
            "parameters": tr(amount(one.total)),
            "published": tr(amount(one.published)),
            "at work": tr(amount(sum(one.parameters(active=True).values()))),
            "cache, bytes": signed(HALF * one.cached(n)) if one.family != "encoder" else "",
            "multiply-adds": signed(one.multiply_adds(n), ".2e"),
            "from": tr(one.source),
        }
        for one in members()
    ]
    return Table(
        pd.DataFrame(rows),
        pinned=("model",),
        ticked=[one.name for one in members()].index(chosen),
        chooses=[{"member": one.name} for one in members()],
        sets={"member": MEMBER},
    )


@view("One sentence, three ways", code=(cut_text, learn_merges))
def pieces(run: Run) -> Result:
    """The text cut by unigram, BPE and byte-level BPE of one size, and by the opened model's own vocabulary."""
    text, own = run.trace.source, next(iter(run.trace.streams.values())).tokens
    trained, read = cut_text(text), _read_by(own, text)
    cuts = {name: (cut.pieces, cut.ends) for name, cut in trained.items()}
    cuts[Verbatim(shown_name(run.opened.name))] = own.labels, read
    counts = [len(parts) for parts, _ in cuts.values()]
    table = pd.DataFrame(
        {
            "vocabulary": [*cuts],
            "size": [*(cut.size for cut in trained.values()), len(run.opened.tokenizer)],
            "pieces": counts,
            "characters for each": [len(text) / max(count, 1) for count in counts],
        }
    )
    table.attrs["floats"] = "%.2f"
    title = tr("The same text in the pieces of each vocabulary")
    texts = {name: " | ".join(parts) for name, (parts, _) in cuts.items()}
    shows = {
        "cuts": Canvas(Drawing("chips", {"html": cuts_html(cuts, title)}), saves=False),
        "counts": table,
        "texts": Texts(texts),
    }
    facts = {
        "cut": texts,
        "alike": len({cut.pieces for cut in trained.values()}) == 1,
        "bytes": len(text.encode(errors="replace")),
        "differing": sum(block.differs for block in blocks([*cuts.values()])),
    }
    return Result(shows, facts)


def _read_by(tokens: Tokens, text: str) -> list[int]:
    """Of each token, how many bytes of the text it ends after, blanks not counted.

    The bytes of one character all cover it. What is around the text, as in a chat, covers nothing of it.
    """
    read, before = bytes_read(text), max(tokens.text.find(text), 0)
    places = [*accumulate((len(one.encode(errors="replace")) for one in text), initial=0)]
    ends = [0]
    for span, after in zip(tokens.spans, [*tokens.spans[1:], None], strict=True):
        end = 0 if span is None else read[places[min(max(span[1] - before, 0), len(text))]]
        ends.append(ends[-1] + 1 if span and span == after and span[0] < span[1] else max(end, ends[-1]))
    return ends[1:]


@view("Then and now", code=(Training,))
def trainings(run: Run) -> Result:
    """What trainings took: text, devices, hours, parallelism, operations; this checkpoint's own beside them."""
    rows = [
        {
            "model": one.name,
            # Beside the names, in sight on any screen: the headline compares these.
            "operations": "" if one.operations is None else signed(one.operations, ".1e"),
            "text": tr(one.text),
            "devices": "" if one.devices is None else f"{one.devices:,} × {one.device}",
            "device-hours": "" if one.all_hours is None else f"{one.all_hours:,.0f}",
            "dropout": one.dropout,
            "label smoothing": one.smoothing,
            "weight decay": one.decay,
            "divided by": one.parallel,
            "from": tr(one.source),
        }
        for one in TRAININGS
    ]
    own = _own_training(run) if Need.OWN_LAYERS in run.opened.features else None
    if own:
        rows.append(own["row"] | {"model": shown_name(run.opened.name)})
    first, most = training_of(BASE), max((one for one in TRAININGS if one.operations), key=lambda one: one.operations)
    facts = {"first": first, "most": most, "times": most.operations / first.operations, "own": own}
    numbers = {
        "operations": np.array([one.operations for one in TRAININGS], float),
        "device_hours": np.array([one.all_hours for one in TRAININGS], float),
    }
    return Result({"trainings": Table(pd.DataFrame(rows), pinned=("model",))}, facts, numbers)


TOKENS_COUNTED = names_in("tokens_counted")
"""family -> what `tokens_per_second` counts: the tokens that are predicted"""


def _own_training(run: Run) -> dict[str, Any] | None:
    """This checkpoint's training, as its log tells it."""
    log, family = card_of(run).log, run.opened.config.family
    tokens = tokens_of_log(log)
    if tokens is None:
        return None
    reads = "tokens" in log[-1]
    # Of a translator, each parameter sees one of the two texts; of a masked model the log must know what it read.
    share = 0.5 if reads and family == "encoder_decoder" else 0 if not reads and family == "encoder" else 1
    operations = 6 * sum(run.opened.parameters_by_part().values()) * tokens * share
    return {
        "tokens": tokens,
        "row": {
            "text": tr("{count} tokens" if reads else TOKENS_COUNTED[family], count=amount(tokens)),
            "devices": tr("2 × processor core"),
            "device-hours": f"{2 * max(row['hours'] for row in log if 'hours' in row):,.0f}",
            "dropout": f"{run.opened.config.dropout:g}",
            "divided by": "",
            "operations": signed(operations, ".1e") if operations else "",
            "from": "log.csv",
        },
    }


def _others(run: Run) -> tuple[list[Trace], bool]:
    """Other sentences, and whether they are held out, with translations by people: else examples, with the model's own.

    They are cut where the model's positions end.
    """
    opened, source = run.opened, run.trace.source
    held_out = [pair for pair in held_out_pairs(opened.name) if pair[0] != source and all(map(opened.fits, pair))]
    if held_out:
        return [opened.trace(*pair) for pair in held_out[:OTHER_TEXTS]], True
    read = dict.fromkeys(map(opened.truncate, examples_of(opened.name).menu))
    sentences = [one for one in read if one and one != source]
    return [opened.trace(one, beam_size=1) for one in sentences[:OTHER_TEXTS]], False


def _tune(run: Run) -> Iterator[tuple[float, FineTuning]]:
    for number, known in enumerate(fine_tune(run.opened, run.trace, _others(run)[0])):
        yield number / STEPS, known


TUNED = OnRequest("Fine-tune a copy on this text", "family-tune", _tune, lambda run: (run.opened, run.trace))


@view(
    "Trained, fine-tuned, prompted",
    code=(fine_tune,),
    needs=(Need.CROSS_ATTENTION, Need.OWN_LAYERS, Need.LOGITS),
    on_request=TUNED,
)
def uses(run: Run, outcome: FineTuning | None) -> Result:
    """Three ways to get a model to do a task; a copy of this one, fine-tuned on the text on screen."""
    loss = curves(run).shows.get("loss")
    shows = {"trained": loss} if loss else {}
    if outcome is None:
        return Result(shows, {"done": False, "logged": bool(shows)})
    places = np.arange(len(outcome.own))
    lines = {
        "this text": Line(places, outcome.own, OKABE_ITO[4], "circle"),
        "other sentences": Line(places, outcome.others.mean(axis=-1), OKABE_ITO[5], "diamond", "dot"),
    }
    shows["tuned"] = Lines(lines, ("steps of the optimizer", "log p, nats per token"), ".4f", height=320)
    facts = {
        "own": (outcome.own[0], outcome.own[-1]),
        "others": (outcome.others.mean(axis=-1)[0], outcome.others.mean(axis=-1)[-1]),
        "texts": outcome.others.shape[1],
        "held_out": bool(held_out_pairs(run.opened.name)),
    }
    return Result(shows, {"done": True, "logged": "trained" in shows, "steps": len(places) - 1} | facts)


@answer
def one_line(run: Run) -> Result:
    """How many models there are, and how much larger the largest is than the one that is open."""
    own = sum(run.opened.parameters_by_part().values())
    largest = max(members(), key=lambda one: one.total)
    return Result(facts={"count": len(members()), "largest": largest, "times": largest.total / own})
