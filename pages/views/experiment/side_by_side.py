"""Side by side: two heads, two sentences or two checkpoints on one colour scale, with the difference."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, compress
from typing import Any

import numpy as np
import pandas as pd

from model.analysis.distributions import entropy
from model.analysis.heads.two_heads import Joined, Side, align_tokens, join, largest_weight, piece_table, word_table
from model.analysis.runs.one_word import apart_by_part, cosine, mean_cosine, stream_steps
from model.analysis.runs.patching import Question, Restored, correspond, patch_from, restored
from model.analysis.runs.revisions import block_differences, head_differences, output_differences, ranked_heads
from model.analysis.runs.sentence_pairs import pair_shares, pool, read_text, text_vectors
from model.analysis.runs.two_runs import largest_changes
from model.analysis.sweep import sweep
from model.analysis.words import Groups, add_up, attention_words, merge, word_groups
from model.analysis.written import head_of_part
from model.checkpoints.checkpoint import Checkpoint
from model.checkpoints.snapshots import open_snapshot, snapshot_steps
from model.checkpoints.store import checkpoint_path, load_checkpoint, shown_name, study_checkpoints
from model.interventions import HeadGate, Patch, describe
from model.language import Refusal, sentence, sentence_of
from model.needs import Need
from model.run import Place, Request, Run, decode
from model.trace import KIND_TITLES, SUBLAYER_TITLES, Array, Tokens, Trace
from pages.views import OnRequest, Result, answer, is_quick, missing_of, view
from pages.views.chosen_token import FUNCTION_WORDS
from pages.views.controls import SWITCH, built, choice, menu, steps, text, toggle
from pages.views.experiment import two_texts
from pages.views.part_pictures import head_maps, part_bars, part_label, rank, signed_head_maps
from pages.views.shared import axes
from viz.forms import TALLEST, Bars, Line, Lines, Map, Maps, Outcome, Scale, Texts
from viz.heatmap import slanted_room
from viz.labels import say_label, say_options
from viz.special.heads_and_layers import group_texts, word_names, word_rows
from viz.special.patching import TowardsAnother
from viz.special.side_by_side import LONGEST_TICK, Panel, Shared, SideMaps, paired_names, short_ticks
from viz.special.what_if import HeadMaps
from viz.theme import GUIDE, OKABE_ITO
from viz.tokens import labels, word

PATCHES = "Patch"
EXAMPLE_REVISIONS = ("studies/base", "studies/no-dropout")
"""two checkpoints that are compared while nobody has chosen any"""
MOST_NAMED, MOST_PAIRS = 12, 3
"""tokens, and pairs of words, in one line"""


def _examples(run: Run) -> list[Run]:
    """Two heads of the same run: the next one of the layer, and the first one of the model's last kind."""
    kind, heads = run.trace.kinds[-1], run.attention.n_heads
    places = Place(run.kind, run.layer, (run.head + 1) % heads), Place(kind.name, kind.layers[0], 0)
    return [replace(run, place=place) for place in places]


RIGHT = built("Right side", _examples)


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
    # The axis has no room for more on a phone.
    titles, differs = ("sub-layer", "relative difference"), "relative difference of the stream after it"
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
        "streams": Bars(list(after), {differs: np.array(list(after.values()))}, titles),
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
        try:
            opened = run.compute(open_snapshot, run.opened, step)
            before = replace(run, checkpoint=opened, trace=run.compute(_on_same_tokens, opened, run.trace))
        except ValueError:  # a training has deleted it meanwhile, or it is of another model
            return None
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
        raise Refusal("the two models cut the text into different tokens")
    return other


def _by_head(run: Run, differences: Mapping[tuple[str, int], Array], what: str) -> HeadMaps:
    values = {kind.name: np.stack([differences[kind.name, layer] for layer in kind.layers]) for kind in run.trace.kinds}
    return head_maps(run, values, what, number=".3g")


def _restore(run: Run, right: Run, targets: str | None, word: str | None) -> Iterator[tuple[float, Restored]]:
    """Patch each layer and position, and each layer and head."""
    both = two_texts.both_of(run, right, targets)
    return restored(run.opened, both.trace, both.other, both.pairs, two_texts.question_of(both, word))


def _restore_case(run: Run, right: Run, targets: str | None, word: str | None) -> tuple | None:
    both = two_texts.both_of(run, right, targets)
    if both is None or word is None or not two_texts.question_of(both, word).is_open(both.trace, both.other):
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
    targets: str | None = two_texts.TARGETS,
    word: str | None = two_texts.WORD,
    outcome: Restored | None = None,
) -> Result:
    """How much of the difference each layer and position, and each head, restores; a click makes this patch."""
    facts, shows = _begin_patch(run, right, targets, word)
    if outcome is None:
        return Result(shows, facts | {"map": False})
    shows |= two_texts.share_maps(
        run,
        outcome,
        {"place": two_texts.PLACE, "layer": two_texts.PATCH_LAYER, "at": two_texts.AT, "head": two_texts.PATCH_HEAD},
    )
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
    targets: str | None = two_texts.TARGETS,
    word: str | None = two_texts.WORD,
    place: str | None = two_texts.PLACE,
    layer: int | None = two_texts.PATCH_LAYER,
    head: int | None = two_texts.PATCH_HEAD,
    at: str | None = two_texts.AT,
) -> Result:
    """What the left run makes of one activation of the right run."""
    facts, _ = _begin_patch(run, right, targets, word)
    right, shows = two_texts.second(run, right), {}
    if facts["state"] != "open" or place is None:
        return Result({}, facts if place or facts["state"] != "open" else facts | {"state": "unread"})
    both = two_texts.both_of(run, right, targets)
    question = two_texts.question_of(both, word)
    facts |= {
        "same_target": targets == "same",
        "problem": "",
        "writes": len(run.trace.streams) > 1 or bool(run.request.continuation),
    }
    try:
        positions = two_texts.positions_at(both.pairs[two_texts.stack_of(run, place)], at)
        one_head = None if head in (None, two_texts.ALL_HEADS) else head
        change = run.compute(
            patch_from, run.opened, both.other, two_texts.path_of(run, place, layer), positions, one_head
        )
        patched = run.forced(*run.trace.interventions, change).trace
        shows |= _decoded_again(run, right, change) if facts["writes"] else {}
    except ValueError as error:
        return Result(shows, facts | {"problem": sentence_of(error)})
    after = question.score(patched)
    facts |= {
        "change": describe(change, run.opened.model),
        "after": after,
        "share": (after - facts["before"]) / (facts["goal"] - facts["before"]) if facts["differs"] else None,
        "link": run.compute(two_texts.link_of, run.opened, change),
    }
    shows |= {
        "words": _word_changes(run, both, patched, question),
        "heads": head_maps(run, largest_changes(run.trace, patched), "largest change of a weight"),
    }
    numbers = {"logits_before": both.trace.logits, "logits_patched": patched.logits, "logits_right": both.other.logits}
    return Result(shows, facts, numbers)


def _begin_patch(run: Run, right: Run, targets: str | None, word: str | None) -> tuple[dict[str, Any], dict[str, Any]]:
    """Facts and pictures of both views of the tab: the two texts, and log p of the chosen word in both."""
    if reason := two_texts.why_not(run, right, targets):
        return {"state": reason if reason in ("run", "models") else "problem", "problem": reason}, {}
    facts = {"second": _chosen_text(run, right), "middle": two_texts.has_middle(run)}
    both = two_texts.both_of(run, right, targets)
    texts = {"Left: patched": both.trace.source, "Right: where the values come from": both.other.source}
    shows = {"texts": Texts(texts, compared=True)}
    if word is None:
        return facts | {"state": "row"}, shows
    question = two_texts.question_of(both, word)
    return facts | {
        "state": "open",
        "row": question.row,
        "word": run.opened.tokenizer.tokens([question.token])[0],
        "before": question.score(both.trace),
        "goal": question.goal(both.other),
        "differs": question.is_open(both.trace, both.other),
    }, shows


def _chosen_text(run: Run, right: Run) -> str:
    """The second text, where nobody has chosen it."""
    other = two_texts.second(run, right)
    return "" if other is right else other.trace.source


def _decoded_again(run: Run, right: Run, change: Patch) -> dict[str, Outcome | Texts]:
    """What the model writes without and with the patch; a typed target is not what a model wrote."""
    free = replace(run, request=replace(run.request, target=None))
    own = free.decoded(*run.trace.interventions).trace
    new = free.decoded(*run.trace.interventions, change).trace
    scores = {"log p without the patch": own.log_probability, "log p with it": new.log_probability}
    again = Outcome("Decoded again, with the patch", own.written, new.written, scores)
    return {"again": again, "right": Texts({"Right: what the model writes": right.trace.written})}


def _word_changes(run: Run, both: two_texts.TwoTexts, patched: Trace, question: Question) -> TowardsAnother:
    ids = two_texts.top_ids(both, patched, question)
    left, after = (trace.probabilities[question.row][ids] for trace in (both.trace, patched))
    return TowardsAnother(
        labels(run.opened.tokenizer.tokens(ids)),
        left,
        after,
        ("token", "probability"),
        ("left", "patched", "patched − left"),
        (-0.02, 1.02),
        ".2%",
        what="token",
        height=320,
        another=both.other.probabilities[question.other_row][ids],
        title="right",
    )


THIRD = text("A third sentence", ("", "She put her money in the bank."), key="word_third")
STACK = choice(
    "Stream of the",
    lambda run: say_options({name: name for name in run.trace.streams if len(run.trace.streams) > 1}),
    key="word_stack",
)


def _common_words(run: Run, right: Run, stack: str | None) -> dict[int, str]:
    """Positions of tokens that both texts have; words with a meaning of their own come first, the longest ahead."""
    if two_texts.why_not(run, right):
        return {}
    name = stack or next(iter(run.trace.streams))
    one, two = (trace.streams[name].tokens for trace in (run.trace, two_texts.second(run, right).trace))
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
    if state := two_texts.why_not(run, right):
        return Result(facts={"state": state})
    chosen, right = {"second": _chosen_text(run, right)}, two_texts.second(run, right)
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


@dataclass(frozen=True)
class _Text:
    """One of two texts that are compared."""

    tokens: Tokens
    vectors: Array
    """(token, d_model)"""

    @classmethod
    def of(cls, run: Run, trace: Trace, after: str) -> "_Text":
        """A text of the run's model, after one of its layers."""
        return cls(read_text(trace)[1], _vectors(run, trace)[after])

    @property
    def words(self) -> Groups:
        """Positions of the tokens of each."""
        return word_groups(self.tokens.labels, self.tokens.special, self.tokens.words)

    @property
    def texts(self) -> list[str]:
        """Of the words."""
        return group_texts(self.tokens.labels, self.words)

    def differ(self, other: "_Text") -> Array:
        """bool (word, word): True where a word is not the other text's, capitals aside."""
        return np.array([[one.lower() != two.lower() for two in other.texts] for one in self.texts])


def _vectors(run: Run, trace: Trace) -> Mapping[str, Array]:
    """As `text_vectors`; only the last ones where the residual stream could not be read in every layer."""
    return run.compute(text_vectors, trace, not missing_of((Need.STREAM,), run))


def _writes_here(run: Run) -> bool:
    """Whether the chosen head writes into the stream that is compared."""
    return run.trace.kind(run.kind).queries == read_text(run.trace)[0]


def _is_cut(run: Run, tokens: Tokens) -> bool:
    """Whether a folder's tokenizer reads more of the text than the model does here, which goes on writing after it."""
    typed = run.trace.prompt if run.opened.pooling.stated else ()
    return isinstance(typed, str) and tuple(run.opened.tokenizer.read(typed)) != tokens.ids


def _steps(run: Run) -> dict[str, str]:
    """What the vectors of a text can be read after, where that is a choice."""
    names = list(_vectors(run, run.trace))
    readable = len(names) > 1 and run.opened.pooling.makes != "others"
    return say_options({name: name for name in names}) if readable else {}


def _last(run: Run) -> str:
    return list(_vectors(run, run.trace))[-1]


AFTER = steps("Vectors after", _steps, _last, key="pairs_after")
WITHOUT = toggle(
    lambda run: sentence("Without {head}", head=run.place.in_words("head")),
    lambda run: SWITCH if _writes_here(run) and run.opened.pooling.makes == "pairs" else {},
    key="pairs_without",
)


@view("Word pairs", code=(pair_shares, pool, cosine, add_up))
def word_pairs(run: Run, right: Run = RIGHT, after: str | None = AFTER, without: bool | None = WITHOUT) -> Result:
    """What each pair of words adds to the cosine of two sentences."""
    if state := two_texts.why_not(run, right):
        return Result(facts={"state": state})
    facts, right, pooling = {"second": _chosen_text(run, right)}, two_texts.second(run, right), run.opened.pooling
    facts |= vars(pooling) | {"state": pooling.makes}
    if pooling.makes == "others":
        return Result(facts=facts)
    after = after or _last(run)
    one, other = both = [_Text.of(run, trace, after) for trace in (run.trace, right.trace)]
    facts |= {"after": say_label(after), "early": after != _last(run), "cut": _is_cut(run, one.tokens)}
    try:
        facts["cosine"] = cosine(pool(one.vectors, pooling.modes), pool(other.vectors, pooling.modes))
    except ValueError as error:
        return Result(facts={"state": sentence_of(error)})
    if pooling.makes != "pairs":
        places = [0 if mode == "cls" else -1 for mode in pooling.modes]
        return Result(facts=facts | {"ends": [labels(text.tokens.labels[place] for text in both) for place in places]})
    pairs = pair_shares(one.vectors, other.vectors, pooling.modes)
    shares = add_up(pairs, one.words, other.words)
    facts |= {
        "sum": float(shares.sum()),
        "counts": pairs.shape,
        "special": [*dict.fromkeys(compress(one.tokens.labels, one.tokens.special))],
        "most": _largest(both, shares, shares),
        "apart": [pair for pair in _largest(both, shares, np.where(one.differ(other), shares, -1), 1) if pair[-1] > 0],
        "least": [pair for pair in _largest(both, shares, -shares, 1) if pair[-1] < 0],
        "elsewhere": not _writes_here(run),
        "head": _without_head(run, right, after, shares) if without else None,
    }
    rows, columns = (word_names(text.tokens.labels, text.words) for text in both)
    what = "adds to the cosine"
    # Above the map, the colour bar takes no width from many words.
    bar = {"orientation": "h", "len": 0.7, "x": 0.5, "y": 1, "yanchor": "bottom", "ypad": 4, "title": {"side": "top"}}
    height = min(200 + 22 * len(rows), TALLEST)
    layout = {"coloraxis": {"colorbar": bar}, "margin": {"t": 24, "r": 16}, "height": height}
    cells = {"": Map(shares, None, Scale.signed(shares, title=what), what)}
    shows = {
        "pairs": Maps(rows, columns, cells, axes=("left word", "right word"), layout=layout),
        "left_words": Bars(rows, {what: shares.sum(axis=1)}, ("left word", what), what="word", height=260),
        "right_words": Bars(columns, {what: shares.sum(axis=0)}, ("right word", what), what="word", height=260),
    }
    return Result(shows, facts, {"pairs_of_tokens": pairs})


def _largest(both: Sequence[_Text], values: Array, by: Array, count: int = MOST_PAIRS) -> list[tuple[str, str, float]]:
    """Pairs of words and their values, (word, word), those that are largest in `by`."""
    places = [np.unravel_index(i, by.shape) for i in np.argsort(-by, axis=None, kind="stable")[:count]]
    return [(both[0].texts[row], both[1].texts[column], float(values[row, column])) for row, column in places]


def _without_head(run: Run, right: Run, after: str, shares: Array) -> dict[str, Any]:
    """The cosine of both texts with the chosen head switched off, and the pairs of words that this changes most."""
    off = HeadGate(0.0, **run.place.address())
    try:
        both = [_Text.of(run, side.forced(*side.trace.interventions, off).trace, after) for side in (run, right)]
    except ValueError as error:
        return {"problem": sentence_of(error)}
    one, other = both
    new = add_up(pair_shares(one.vectors, other.vectors, run.opened.pooling.modes), one.words, other.words)
    moved = new - shares
    most = [pair for pair in _largest(both, moved, np.abs(moved)) if pair[-1]]
    return {"problem": "", "name": run.place.in_words("head"), "cosine": float(new.sum()), "most": most}


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
