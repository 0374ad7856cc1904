"""Side by side: two heads, two sentences or two checkpoints on one colour scale, with the difference."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from model.analysis.distributions import entropy
from model.analysis.heads.two_heads import Joined, Side, align_tokens, join, largest_weight, piece_table, word_table
from model.analysis.runs.one_word import apart_by_part, cosine, mean_cosine, stream_steps
from model.analysis.runs.patching import Question, Restored, correspond, patch_from, restored
from model.analysis.runs.revisions import (
    block_differences,
    head_differences,
    output_differences,
    ranked_heads,
)
from model.analysis.runs.two_runs import largest_changes
from model.analysis.sweep import sweep
from model.analysis.words import attention_words, merge
from model.analysis.written import head_of_part
from model.checkpoints.checkpoint import Checkpoint
from model.checkpoints.snapshots import open_snapshot, snapshot_steps
from model.checkpoints.store import checkpoint_path, load_checkpoint, shown_name, study_checkpoints
from model.interventions import Patch, describe
from model.language import sentence, sentence_of
from model.needs import Need
from model.run import Place, Request, Run, decode
from model.trace import KIND_TITLES, SUBLAYER_TITLES, Array, Trace
from pages.views import OnRequest, Result, answer, is_quick, view
from pages.views.chosen_token import FUNCTION_WORDS
from pages.views.controls import another_run, choice, menu, text
from pages.views.experiment.two_texts import (
    ALL_HEADS,
    AT,
    PATCH_HEAD,
    PATCH_LAYER,
    PLACE,
    TARGETS,
    WORD,
    TwoTexts,
    has_middle,
    link_of,
    path_of,
    positions_at,
    question_of,
    second,
    share_maps,
    stack_of,
    top_ids,
    two_texts,
    why_not,
)
from pages.views.part_pictures import head_maps, part_bars, part_label, rank, signed_head_maps
from pages.views.shared import axes
from viz.forms import Bars, Line, Lines, Outcome, Texts
from viz.heatmap import slanted_room
from viz.labels import say_label, say_options
from viz.special.heads_and_layers import word_names, word_rows
from viz.special.side_by_side import LONGEST_TICK, Panel, Shared, SideMaps, paired_names, short_ticks
from viz.special.what_if import HeadMaps
from viz.theme import GUIDE, OKABE_ITO
from viz.tokens import labels, word

PATCHES = "Patch"
EXAMPLE_REVISIONS = ("studies/base", "studies/no-dropout")
"""two checkpoints that are compared while nobody has chosen any"""
MOST_NAMED = 12
"""tokens in one line"""


def _examples(run: Run) -> list[Run]:
    """Two heads of the same run: the next one of the layer, and the first one of the model's last kind."""
    kind, heads = run.trace.kinds[-1], run.attention.n_heads
    places = Place(run.kind, run.layer, (run.head + 1) % heads), Place(kind.name, kind.layers[0], 0)
    return [replace(run, place=place) for place in places]


RIGHT = another_run("Right side", _examples)


@dataclass(frozen=True)
class _Sides:
    """Left and right, and which of their cells correspond."""

    tables: tuple[Side, Side]
    panels: tuple[Panel, Panel]
    joined: Joined | None
    """None: `obstacle` says why"""
    obstacle: str
    """kinds, source or output: what differs, so that no cells can be subtracted"""

    @property
    def queries(self) -> list[str]:
        """Names of the queries of both sides."""
        left, right = self.panels
        return paired_names(self.joined.rows, left.rows, right.rows)

    @property
    def keys(self) -> list[str]:
        """Names of the keys of both sides."""
        left, right = self.panels
        return paired_names(self.joined.keys, left.keys, right.keys)

    @property
    def comparable(self) -> bool:
        """True if the two sides share a query."""
        return self.joined is not None and not np.isnan(self.joined.distances).all()


def _by_words(run: Run, right: Run) -> bool:
    """Two checkpoints are compared by whole words, because their tokenizers split them differently."""
    one, other = run.trace, right.trace
    return (one.checkpoint, one.checkpoint_hash) != (other.checkpoint, other.checkpoint_hash)


def _pair(run: Run, right: Run) -> _Sides:
    by_words = _by_words(run, right)
    cut = word_table if by_words else piece_table
    tables = cut(run.attention, run.head), cut(right.attention, right.head)
    panels = _panel(run, tables[0], by_words), _panel(right, tables[1], by_words)
    obstacle = _obstacle(run, right, tables)
    return _Sides(tables, panels, None if obstacle else join(*tables), obstacle)


def _obstacle(run: Run, right: Run, tables: tuple[Side, Side]) -> str:
    left, other = tables
    if run.kind != right.kind:
        return "kinds"
    if not _by_words(run, right) or (left.queries, left.keys) == (other.queries, other.keys):
        return ""
    return "source" if left.keys != other.keys and run.trace.kind(run.kind).keys == "encoder" else "output"


def _panel(run: Run, side: Side, by_words: bool) -> Panel:
    attention = run.attention
    if not by_words:
        rows, keys = axes(attention)
    else:
        queries, columns = attention_words(attention)
        keys = word_names(attention.key_tokens, columns)
        rows = word_rows(attention.query_tokens, attention.predicts.labels if attention.predicts else None, queries)
    return Panel(rows, keys, side.weights, side.mask)


@view("Compare", code=(align_tokens, join, word_table, merge))
def maps(run: Run, right: Run = RIGHT) -> Result:
    """The weights of both heads, and the difference in the cells that they have in common."""
    sides, one_run = _pair(run, right), right.trace is run.trace
    titles = (f"Left: {_title(run, right)}", f"Right: {_title(right, run)}")
    shared = Shared(**vars(sides.joined)) if sides.joined else None
    (left, other), shows = sides.panels, {}
    if not one_run:
        inputs = {"Left: input": run.trace.source, "Right: input": right.trace.source}
        outputs = {"Left: output": run.trace.translation, "Right: output": right.trace.translation}
        shows = {"inputs": Texts(inputs, compared=True), "outputs": Texts(outputs, compared=True)}
    shows["maps"] = SideMaps(left=left, right=other, shared=shared, titles=titles)
    facts = {
        "one_run": one_run,
        "one_head": one_run and right.place == run.place,
        "same_output": run.trace.translation == right.trace.translation,
        "decodes": any(side.attention.predicts for side in (run, right)),
        "by_words": _by_words(run, right),
        **_why_not(run, right, sides),
        "queries": _named(sides.joined.rows, sides.queries) if sides.joined else "",
        "keys": _named(sides.joined.keys, sides.keys) if sides.joined else "",
    }
    return Result(shows, facts)


def _why_not(run: Run, right: Run, sides: _Sides) -> dict[str, Any]:
    """Facts about what makes the two sides incomparable."""
    return {"obstacle": sides.obstacle, "kinds": [KIND_TITLES[side.kind].lower() for side in (run, right)]}


def _title(run: Run, other: Run) -> str:
    checkpoint = f"{shown_name(run.trace.checkpoint)}\n" if _by_words(run, other) else ""
    kind = f"{KIND_TITLES[run.kind].lower()}\n" if run.kind != other.kind else ""
    return f"{checkpoint}{kind}layer {run.layer}, head {run.head}"


def _named(pairs: Sequence[tuple[int | None, int | None]], names: list[str]) -> str:
    """Those that only one side has, in one line."""
    alone = [name for pair, name in zip(pairs, names, strict=True) if None in pair]
    more = [f"and {len(alone) - MOST_NAMED} more"] if len(alone) > MOST_NAMED else []
    return ", ".join(alone[:MOST_NAMED] + more)


@view("Query by query", code=(join,))
def queries(run: Run, right: Run = RIGHT) -> Result:
    """How far the weights of the two sides are apart, for each query."""
    sides = _pair(run, right)
    if not sides.comparable:
        return Result(facts={"comparable": False} | _why_not(run, right, sides))
    distances, names = sides.joined.distances, sides.queries
    ticks = paired_names(sides.joined.rows, *(panel.rows for panel in sides.panels))
    axis = short_ticks(ticks) | {"title": "query", "tickangle": -60}
    room = {"b": 54 + slanted_room([tick[:LONGEST_TICK] for tick in ticks], 72)}
    titles = "query", "total variation distance"
    bars = Bars(names, {titles[1]: distances}, titles, (0, 1.02), what="query", layout={"xaxis": axis, "margin": room})
    row = int(np.nanargmax(distances))
    return Result({"rows": bars}, {"obstacle": "", "comparable": True, "largest": distances[row], "row": names[row]})


@view("In numbers", code=(entropy, largest_weight))
def numbers(run: Run, right: Run = RIGHT) -> Result:
    """How spread out the weights of each side are, and how far the sides are apart."""
    sides = _pair(run, right)
    spread = [float(entropy(side.weights).mean()) for side in sides.tables]
    places = [largest_weight(side) for side in sides.tables]
    weights = [float(side.weights[place]) for side, place in zip(sides.tables, places, strict=True)]
    named = list(zip(sides.panels, places, strict=True))
    table = pd.DataFrame(
        {
            "": ["left", "right", "right − left"],
            "mean entropy of a row, bits": [*spread, spread[1] - spread[0]],
            "largest weight": [*weights, weights[1] - weights[0]],
            "of query": [*(panel.rows[row] for panel, (row, _) in named), ""],
            "on key": [*(panel.keys[key] for panel, (_, key) in named), ""],
            "queries × keys": [*(" × ".join(map(str, side.weights.shape)) for side in sides.tables), ""],
        }
    )
    facts = {"comparable": sides.comparable}
    if sides.comparable:
        facts |= {"distance": np.nanmean(sides.joined.distances), "furthest": _furthest(sides.joined.difference)}
    return Result({"measures": table}, facts)


def _furthest(difference: Array) -> float | None:
    """The largest difference of a cell, with its sign; None where the sides share no cell."""
    if np.isnan(difference).all():
        return None
    return float(difference.ravel()[np.nanargmax(np.abs(difference))])


@view("Revisions", code=(block_differences, head_differences, output_differences))
def revisions(run: Run, right: Run = RIGHT) -> Result:
    """How far weights and outputs of two revisions of one model are apart, layer by layer and head by head."""
    names = shown_name(run.trace.checkpoint), shown_name(right.trace.checkpoint)
    example = run.opened.hash == right.opened.hash
    if example:
        found = _example_of_revisions(run)
        if found is None:
            return Result(facts={"state": "same", "names": names})
        run, right, names = found
    try:
        blocks = run.compute(block_differences, run.opened, right.opened)
        pair = run.trace, run.compute(_on_same_tokens, right.opened, run.trace)
        outputs = run.compute(output_differences, (pair,))
    except ValueError:
        return Result(facts={"state": "other", "names": names})
    moved = head_differences(*pair)
    ranking = ranked_heads(moved)
    by_layer = pd.DataFrame(
        [(block.name, block.relative, block.largest) for block in blocks],
        columns=["layer or matrix", "relative difference", "largest difference"],
    )
    after = {f"{stack} {layer} {name}": apart for (stack, layer, name), apart in outputs.streams.items()}
    titles = "sub-layer", "relative difference of the stream after it"
    facts = {
        "state": "compared",
        "example": example,
        "names": names,
        "most": [(KIND_TITLES[kind], *rest) for kind, *rest in ranking[:1]],
        "first": next((block.name for block in blocks if block.relative), ""),
        "guesses": outputs.guesses,
        "log_probability": outputs.log_probability,
    }
    shows = {
        "weights": _by_head(run, moved, "relative difference of its weights"),
        "attention": _by_head(run, outputs.patterns, "total variation of its attention"),
        "streams": Bars(list(after), {titles[1]: np.array(list(after.values()))}, titles),
        "blocks": by_layer,
    }
    return Result(shows, facts, drawn=run if example else None)


def _example_of_revisions(run: Run) -> tuple[Run, Run, tuple[str, str]] | None:
    """Two revisions and their names, where nobody has chosen any; None: there are none for a model of this kind.

    The model halfway through its training and now; or two small translators, trained alike but for dropout.
    """
    steps, name = snapshot_steps(checkpoint_path(run.opened.name)), shown_name(run.trace.checkpoint)
    if steps:
        step = steps[len(steps) // 2]
        opened = run.compute(open_snapshot, run.opened, step)
        before = replace(run, checkpoint=opened, trace=run.compute(_on_same_tokens, opened, run.trace))
        return before, run, (sentence("{name} at step {step:,}", name=name, step=step), name)
    if not {*EXAMPLE_REVISIONS} <= {*study_checkpoints()} or Need.CROSS_ATTENTION not in run.opened.features:
        return None
    try:
        opened = [run.compute(load_checkpoint, name, run.opened.device) for name in EXAMPLE_REVISIONS]
        trace = run.compute(decode, opened[0], Request(run.trace.source, beam_size=1))
    except ValueError:
        return None
    place = Place(run.kind, 0, 0)
    one, other = (Run(each, Request(trace.source), trace, place, compute=run.compute) for each in opened)
    return one, other, EXAMPLE_REVISIONS


def _on_same_tokens(opened: Checkpoint, trace: Trace) -> Trace:
    """The run of another revision on the tokens of `trace`.

    Raises:
        ValueError: it cuts the text into other tokens.
    """
    other = opened.trace_ids(trace.prompt, trace.next_ids)
    if (other.src_ids, other.src_tokens) != (trace.src_ids, trace.src_tokens):
        raise ValueError(sentence("the two models cut the text into different tokens"))
    return other


def _by_head(run: Run, differences: Mapping[tuple[str, int], Array], what: str) -> HeadMaps:
    values = {kind.name: np.stack([differences[kind.name, layer] for layer in kind.layers]) for kind in run.trace.kinds}
    return head_maps(run, values, what, number=".3g")


def _restore(run: Run, right: Run, targets: str | None, word: str | None) -> Iterator[tuple[float, Restored]]:
    """Patch each layer and position, and each layer and head."""
    both = two_texts(run, right, targets)
    return restored(run.opened, both.trace, both.other, both.pairs, question_of(both, word))


def _restore_case(run: Run, right: Run, targets: str | None, word: str | None) -> tuple | None:
    both = two_texts(run, right, targets)
    if both is None or word is None or not question_of(both, word).is_open(both.trace, both.other):
        return None
    return both.trace, both.other, word


EVERY_PATCH = OnRequest(
    "Patch each layer and position, and each head",
    "patch_map",
    _restore,
    _restore_case,
    icon=":material/play_arrow:",
    at_once=is_quick,
)


@view("Every patch", code=(restored, sweep), tab=PATCHES, needs=(Need.LOGITS,), on_request=EVERY_PATCH)
def patches(
    run: Run,
    right: Run = RIGHT,
    targets: str | None = TARGETS,
    word: str | None = WORD,
    outcome: Restored | None = None,
) -> Result:
    """How much of the difference each layer and position, and each head, restores; a click makes this patch."""
    facts, shows = _begin_patch(run, right, targets, word)
    if outcome is None:
        return Result(shows, facts | {"map": False})
    shows |= share_maps(run, outcome, {"place": PLACE, "layer": PATCH_LAYER, "at": AT, "head": PATCH_HEAD})
    return Result(shows, facts | {"map": True, "best": _best(run, outcome), "stacks": [*outcome.streams]})


def _best(run: Run, outcome: Restored) -> tuple[str, float] | None:
    """The head that restores most, and its share."""
    heads = {name: values for name, values in outcome.heads.items() if np.isfinite(values).any()}
    if not heads:
        return None
    kind = max(heads, key=lambda name: np.nanmax(heads[name]))
    row, head = np.unravel_index(np.nanargmax(heads[kind]), heads[kind].shape)
    return Place(kind, run.trace.kind(kind).layers[row], int(head)).title, float(heads[kind][row, head])


@view("One patch", code=(Patch, patch_from), tab=PATCHES, needs=(Need.LOGITS,))
def patch(
    run: Run,
    right: Run = RIGHT,
    targets: str | None = TARGETS,
    word: str | None = WORD,
    place: str | None = PLACE,
    layer: int | None = PATCH_LAYER,
    head: int | None = PATCH_HEAD,
    at: str | None = AT,
) -> Result:
    """What the left run makes of one activation of the right run."""
    facts, _ = _begin_patch(run, right, targets, word)
    right, shows = second(run, right), {}
    if facts["state"] != "open" or place is None:
        return Result({}, facts if place or facts["state"] != "open" else facts | {"state": "unread"})
    both = two_texts(run, right, targets)
    question = question_of(both, word)
    facts |= {"same_target": targets == "same", "problem": "", "writes": _writes(run)}
    try:
        positions = positions_at(both.pairs[stack_of(run, place)], at)
        one_head = None if head in (None, ALL_HEADS) else head
        change = run.compute(patch_from, run.opened, both.other, path_of(run, place, layer), positions, one_head)
        patched = run.forced(*run.trace.interventions, change).trace
        shows |= _decoded_again(run, right, change) if facts["writes"] else {}
    except ValueError as error:
        return Result(shows, facts | {"problem": sentence_of(error)})
    after = question.score(patched.logits)
    facts |= {
        "change": describe(change, run.opened.model),
        "after": after,
        "share": (after - facts["before"]) / (facts["goal"] - facts["before"]) if facts["differs"] else None,
        "link": run.compute(link_of, run.opened, change),
    }
    shows |= {
        "words": _word_bars(run, both, patched, question),
        "heads": head_maps(run, largest_changes(run.trace, patched), "largest change of a weight"),
    }
    numbers = {"logits_before": both.trace.logits, "logits_patched": patched.logits, "logits_right": both.other.logits}
    return Result(shows, facts, numbers)


def _begin_patch(run: Run, right: Run, targets: str | None, word: str | None) -> tuple[dict[str, Any], dict[str, Any]]:
    """Facts and pictures of both views of the tab: the two texts, and log p of the chosen word in both."""
    if reason := why_not(run, right, targets):
        return {"state": reason if reason in ("run", "models") else "problem", "problem": reason}, {}
    facts = {"second": _chosen_text(run, right), "middle": has_middle(run)}
    both = two_texts(run, right, targets)
    texts = {"Left: patched": both.trace.source, "Right: where the values come from": both.other.source}
    shows = {"texts": Texts(texts, compared=True)}
    if word is None:
        return facts | {"state": "row"}, shows
    question = question_of(both, word)
    return facts | {
        "state": "open",
        "row": question.row,
        "word": run.opened.tokenizer.tokens([question.token])[0],
        "before": question.score(both.trace.logits),
        "goal": question.goal(both.other),
        "differs": question.is_open(both.trace, both.other),
    }, shows


def _chosen_text(run: Run, right: Run) -> str:
    """The second text, where nobody has chosen it."""
    other = second(run, right)
    return "" if other is right else other.trace.source


def _writes(run: Run) -> bool:
    """Whether the model writes something of its own."""
    return len(run.trace.streams) > 1 or bool(run.request.continuation)


def _decoded_again(run: Run, right: Run, change: Patch) -> dict[str, Outcome | Texts]:
    """What the model writes without and with the patch; a typed target is not what a model wrote."""
    free = replace(run, request=replace(run.request, target=None))
    own = free.decoded(*run.trace.interventions).trace
    new = free.decoded(*run.trace.interventions, change).trace
    scores = {"log p without the patch": own.log_probability, "log p with it": new.log_probability}
    again = Outcome("Decoded again, with the patch", own.written, new.written, scores)
    return {"again": again, "right": Texts({"Right: what the model writes": right.trace.written})}


def _word_bars(run: Run, both: TwoTexts, patched: Trace, question: Question) -> Bars:
    ids = top_ids(both, patched, question)
    rows = {"left": both.trace, "patched": patched, "right": both.other}
    values = {
        name: trace.probabilities[question.other_row if name == "right" else question.row][ids]
        for name, trace in rows.items()
    }
    names = labels(run.opened.tokenizer.tokens(ids))
    return Bars(names, values, ("token", "probability"), (0, 1.05), number=".2%", what="token", height=320)


THIRD = text("A third sentence", ("", "She put her money in the bank."), key="word_third")
STACK = choice(
    "Stream of the",
    lambda run: say_options({name: name for name in run.trace.streams if len(run.trace.streams) > 1}),
    key="word_stack",
)


def _common_words(run: Run, right: Run, stack: str | None) -> dict[int, str]:
    """Positions of tokens that both texts have; words with a meaning of their own come first, the longest ahead."""
    if why_not(run, right):
        return {}
    name = stack or next(iter(run.trace.streams))
    one, two = (trace.streams[name].tokens for trace in (run.trace, second(run, right).trace))
    pairs = correspond(one.labels, two.labels, replaced=False)
    names = labels(one.labels)
    found = {here: word(one.labels[here]) for here, _ in pairs if not (one.special and one.special[here])}
    ranked = sorted(found, key=lambda here: (found[here].lower() in FUNCTION_WORDS, -len(found[here]), here))
    return {here: f"{here} {names[here]}" for here in ranked}


COMMON = menu("The word", _common_words, key="word_at", follows=True)


@view("One word in two sentences", code=(cosine, apart_by_part), needs=(Need.STREAM,))
def one_word(
    run: Run, right: Run = RIGHT, stack: str | None = STACK, at: int | None = COMMON, third: str = THIRD
) -> Result:
    """How alike the vectors of one word are in two or three sentences, layer by layer, and which head moves them."""
    if state := why_not(run, right):
        return Result(facts={"state": state})
    chosen, right = {"second": _chosen_text(run, right)}, second(run, right)
    if at is None:
        return Result(facts=chosen | {"state": "none"})
    stack = stack or next(iter(run.trace.streams))
    token = run.trace.streams[stack].tokens.labels[at]
    runs = {"left": (run.trace, at), "right": (right.trace, _position_of(run.trace, right.trace, stack, at))}
    problem = ""
    if third.strip():
        try:
            other = run.compute(decode, run.opened, replace(run.request, source=third, target=None))
            runs["third"] = (other, _position_of(run.trace, other, stack, at))
        except ValueError as error:
            problem = sentence_of(error)
    if missing := [name for name, (_, place) in runs.items() if place is None]:
        runs.pop(missing[0])
        problem = "third"
    lines, ticks = _cosine_lines(runs, stack)
    try:
        parts = run.compute(apart_by_part, *(runs[name][0] for name in ("left", "right")), stack, at, runs["right"][1])
    except ValueError as error:
        return Result(
            {"cosines": lines},
            chosen | {"state": "read", "parts": 0, "problem": sentence_of(error)} | _word_facts(lines, token),
        )
    ranked = rank(parts)
    heads = {name: value for name, value in parts.items() if head_of_part(name)}
    first = max(heads, key=lambda name: heads[name]) if heads else None
    shows = {"cosines": lines, "parts": part_bars(run, ranked, "adds to 1 − cosine")}
    if heads:
        kinds = [kind.name for kind in run.trace.kinds if kind.queries == stack]
        shows["heads"] = signed_head_maps(run, heads, "adds to 1 − cosine", "+.3f", kinds)
    facts = chosen | {
        "state": "read",
        "problem": problem,
        "parts": len(parts),
        "apart": sum(parts.values()),
        "others": (ranked.others, float(ranked.values[-1])),
        "first": first and (part_label(first), heads[first]),
        "of_heads": sum(heads.values()),
    }
    texts = {f"{name.capitalize()}: position {place}": trace.source for name, (trace, place) in runs.items()}
    shows["texts"] = Texts(texts)
    numbers = {"step": np.array(ticks), "part": np.array(list(parts)), "adds": np.array(list(parts.values()))}
    return Result(shows, facts | _word_facts(lines, token), numbers)


def _position_of(trace: Trace, other: Trace, stack: str, at: int) -> int | None:
    """Where another run has the token: where it corresponds, or where it first stands; None: nowhere."""
    one, two = (each.streams[stack].tokens.labels for each in (trace, other))
    places = [place for place, label in enumerate(two) if label == one[at]]
    return dict(correspond(one, two, replaced=False)).get(at, places[0] if places else None)


def _cosine_lines(runs: Mapping[str, tuple[Trace, int]], stack: str) -> tuple[Lines, list[str]]:
    """The cosine of each two sentences after each sub-layer, and of any two tokens of the left one."""
    steps = {name: stream_steps(trace, stack) for name, (trace, _) in runs.items()}
    first = steps["left"]
    titles = SUBLAYER_TITLES
    ticks = [step.name if step.layer is None else f"L{step.layer} {say_label(titles[step.name])}" for step in first]
    x = np.arange(len(first))
    lines = {}
    for number, (one, other) in enumerate(combinations(runs, 2)):
        y = [
            cosine(a.vectors[runs[one][1]], b.vectors[runs[other][1]])
            for a, b in zip(steps[one], steps[other], strict=True)
        ]
        lines[f"{one} – {other}"] = Line(x, np.array(y), OKABE_ITO[number], "circle", "")
    others = np.array([mean_cosine(step.vectors) for step in first])
    lines["two tokens of the left text, in the mean"] = Line(x, others, GUIDE, dash="dot", width=1.5)
    return Lines(lines, ("after", "cosine"), ".4f", ticks=ticks, height=420), ticks


def _word_facts(lines: Lines, token: str) -> dict[str, Any]:
    pair, *_, rest = (line.y for line in lines.lines.values())
    lowest = int(pair.argmin())
    return {"token": token, "top": pair[-1], "lowest": (lines.ticks[lowest], pair[lowest]), "rest": rest[-1]}


@answer
def one_line(run: Run, right: Run = RIGHT) -> Result:
    """How far the weights of the two sides are apart on average."""
    sides = _pair(run, right)
    distances = sides.joined.distances if sides.comparable else None
    return Result(
        facts={
            "distance": None if distances is None else float(np.nanmean(distances)),
            "cells": run.attention.pattern[0].size,
            "other": right.attention.pattern[0].size,
        }
    )
