"""Two texts on Side by side: the run of the other text, which positions correspond, and the address of a patch."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np

from model.analysis.runs.patching import Pairs, Question, Restored, correspond, resolve_patch, stream_path
from model.checkpoints.checkpoint import Checkpoint
from model.hooks import hook_points
from model.interventions import Patch
from model.interventions.link import decode, encode
from model.language import Numeral, Refusal, later, sentence_of, tr
from model.needs import Need
from model.run import Run
from model.run import decode as decode_run
from model.trace import KIND_TITLES, SUBLAYER_TITLES, StackName, Trace, log_probabilities
from pages.views.chosen_token import FUNCTION_WORDS
from pages.views.controls import Control, choice, menu, text
from viz.forms import Form, Map, Scale
from viz.labels import say_label, say_options
from viz.special.patching import HeadShares, StreamShares
from viz.tokens import labels, numbered

ALL_HEADS = -1
ALL = "all"
STREAM, OUT = "stream", "out"
OF_HEADS = {"z": "z", "q": "q", "k": "k", "v": "v", "pattern": "weights"}
MIDDLE = ("cross_attn", "feed_forward")
"""sub-layers that are not the first of their layer"""
CANDIDATES = 4
"""most probable tokens of each run in a picture"""
FIRST_LAYER = 2
MOST_LISTED = 12
"""changed positions that are patched at first"""
OTHER_WORDS = {
    **{"tired": "wide", "bank": "side", "dog": "cat", "cat": "dog", "man": "woman", "woman": "man", "girl": "boy"},
    **{"boy": "girl", "book": "letter", "light": "radio", "train": "bus", "not": "often", "hat": "coat", "ball": "bus"},
}
"""by which a word of a text is replaced, where nobody has chosen a second text; the first of these that it has"""


@dataclass(frozen=True)
class TwoTexts:
    """The run that is patched, the one that the values come from, and the positions that correspond."""

    trace: Trace
    other: Trace
    pairs: Mapping[StackName, Pairs]

    @property
    def last(self) -> StackName:
        """The stack whose rows have logits."""
        return list(self.trace.streams)[-1]

    def other_row(self, row: int) -> int | None:
        """The row of the other run that corresponds; None: none does."""
        return dict(self.pairs[self.last]).get(row)


def second(run: Run, right: Run) -> Run:
    """The right side, or where it is no other text in the same model, the left's text with one word changed.

    The right side too where no other word makes a text that the model reads: what was typed is a chat, or one word.
    """
    source = _with_another_word(run.trace.source) if _obstacle(run, right) and isinstance(run.trace.prompt, str) else ""
    try:
        return _run_of(run, source) if source else right
    except ValueError:
        return right


def _run_of(run: Run, source: str) -> Run:
    """The run of another text, with what the model writes for it.

    Raises:
        ValueError: the model cannot read it.
    """
    request = replace(run.request, source=source, target=None, interventions=run.trace.interventions)
    return replace(run, request=request, trace=run.compute(decode_run, run.opened, request))


def _with_another_word(source: str) -> str:
    """The text with one of OTHER_WORDS, or else with its last word that tells something also for its first."""
    for old, new in OTHER_WORDS.items():
        changed, count = re.subn(rf"\b{old}\b", new, source, count=1)
        if count:
            return changed
    words = [found for found in re.finditer(r"\w+", source) if found[0].lower() not in FUNCTION_WORDS]
    last = next((found[0] for found in reversed(words) if found[0] != words[0][0]), None)
    return f"{source[: words[0].start()]}{last}{source[words[0].end() :]}" if last else ""


def both_of(run: Run, right: Run, targets: str | None) -> TwoTexts | None:
    """Both runs; None where `why_not` says why."""
    if why_not(run, right, targets):
        return None
    other = _other(run, second(run, right), targets)
    stacks = {
        name: (stream.tokens.labels, other.streams[name].tokens.labels) for name, stream in run.trace.streams.items()
    }
    return TwoTexts(run.trace, other, {name: correspond(*both) for name, both in stacks.items()})


def why_not(run: Run, right: Run, targets: str | None = None) -> str:
    """What keeps two texts from being compared: "run", "models", or an error's sentence; empty: nothing."""
    right = second(run, right)
    if obstacle := _obstacle(run, right):
        return obstacle
    try:
        _other(run, right, targets)
    except ValueError as error:
        return sentence_of(error)
    return ""


def _obstacle(run: Run, right: Run) -> str:
    """Whether both sides are the same run, or two models; empty: neither."""
    one, other = run.trace, right.trace
    if (one.checkpoint, one.checkpoint_hash) != (other.checkpoint, other.checkpoint_hash):
        return "models"
    return "run" if one is other or (one.source == other.source and one.next_ids == other.next_ids) else ""


def _other(run: Run, right: Run, targets: str | None) -> Trace:
    return run.compute(_with_target_of, run.opened, run.trace, right.trace) if targets == "same" else right.trace


def _with_target_of(opened: Checkpoint, trace: Trace, other: Trace) -> Trace:
    """The other text, followed by what was written after the first one.

    Raises:
        ValueError: both together are too long.
    """
    ids = (*other.next_ids[: other.first_written], *trace.next_ids[trace.first_written :])
    return opened.trace_ids(other.prompt, ids[: opened.token_limit], other.interventions)


def _targets(run: Run, right: Run) -> dict[str, str]:
    writes = len(run.trace.streams) > 1 or (Need.LANGUAGE_MODEL in run.opened.features and run.trace.written)
    return (
        {} if why_not(run, right) or not writes else say_options({"same": "the left's target", "own": "its own target"})
    )


TARGETS = choice("The right text is read with", _targets, key="patch_targets")


def _words(run: Run, right: Run, targets: str | None) -> dict[str, str]:
    """Row and id of a token -> its probability on both sides; words first of which log p differs most."""
    both = both_of(run, right, targets)
    return run.compute(_candidates, run.opened, both.trace, both.other, both.pairs[both.last]) if both else {}


def _candidates(opened: Checkpoint, trace: Trace, other: Trace, pairs: Pairs) -> dict[str, str]:
    """The most probable tokens of both runs after each row that corresponds."""
    found: dict[str, tuple[bool, float, str]] = {}
    for here, there in pairs:
        if here >= len(trace.logits):
            continue
        one, two = (log_probabilities(run.logits[row]) for run, row in ((trace, here), (other, there)))
        # The runner-up too: the most probable token may be a piece without a letter.
        for i in dict.fromkeys([*map(int, np.argsort(-two, kind="stable")[:2]), int(one.argmax())]):
            (token,) = labels(opened.tokenizer.tokens([i]))
            before, after = (tr(Numeral(f"{np.exp(run[i]):.1%}")) for run in (one, two))
            name = f"{here} {token} {before} → {after}"
            # A word that the right text makes probable comes first: far below, log p differs without consequence.
            apart = float(abs(two[i] - one[i]) * np.exp(two[i]))
            found[f"{here}-{i}"] = (not re.search(r"\w", token), -apart, name)
    return {key: name for key, (*_, name) in sorted(found.items(), key=lambda item: item[1])}


WORD = menu("After row …, the word …", _words, key="patch_word", follows=True)


def _addresses(opened: Checkpoint) -> dict[str, str]:
    model = opened.model
    offered = {f"{STREAM} {name}": (stream_path(name, 0), f"{name}: residual stream") for name in model.stacks}
    for name in model.stacks:
        for part, title in SUBLAYER_TITLES.items():
            if part in MIDDLE:
                path = middle_path(name, 0, part)
                offered[f"{STREAM} {name} {part}"] = (path, f"{name}: residual stream before {title}")
            offered[f"{OUT} {name} {part}"] = (f"{name}.layers.0.{part}.out", f"{name}: output of {title}")
    attentions = model.attentions()
    for kind in opened.kinds:
        for what, title in OF_HEADS.items():
            path = f"{attentions[kind.name, kind.layers[0]][0]}.{what}"
            offered[f"{what} {kind.name}"] = (path, f"{kind.title.lower()}: {title}")
    points = hook_points(model)
    return {key: title for key, (path, title) in offered.items() if path in points and model.edits_reach(path)}


PLACE = menu(
    "What is patched",
    lambda run, right: {} if why_not(run, right) else say_options(run.compute(_addresses, run.opened)),
    key="patch_place",
)


def _layers(run: Run, place: str | None) -> dict[int, str]:
    if place is None:
        return {}
    what, where = place.split()[:2]
    kinds = {kind.name: kind.layers for kind in run.opened.kinds}
    layers = kinds[where] if what in OF_HEADS else range(len(run.opened.model.stacks[where].layers))
    return {layer: str(layer) for layer in layers}


# One from which on patches differ: before layer 0 the word's own embedding restores all there is to restore.
PATCH_LAYER = menu(
    "Layer", _layers, lambda run, place: min(FIRST_LAYER, max(_layers(run, place), default=0)), key="patch_layer"
)


def _heads(run: Run, place: str | None) -> dict[int, str]:
    if place is None or place.split()[0] not in OF_HEADS:
        return {}
    heads = next(kind.heads for kind in run.opened.kinds if kind.name == place.split()[1])
    return {ALL_HEADS: "all"} | {head: str(head) for head in range(heads)}


PATCH_HEAD = menu("Head", _heads, key="patch_head")


def stack_of(run: Run, place: str) -> StackName:
    """The stack whose positions are patched."""
    what, where = place.split()[:2]
    if what not in OF_HEADS:
        return where
    kind = run.trace.kind(where)
    return kind.keys if what in "kv" else kind.queries


def _changed(run: Run, right: Run, targets: str | None, place: str | None) -> tuple[str, ...]:
    """The positions at which the two texts have other tokens; all if there are none."""
    both = both_of(run, right, targets)
    if both is None or place is None:
        return ()
    stack = stack_of(run, place)
    one, two = (trace.streams[stack].tokens.labels for trace in (both.trace, both.other))
    pairs = [(here, there) for here, there in both.pairs[stack] if one[here] != two[there]]
    changed = [str(here) if here == there else f"{here}-{there}" for here, there in pairs]
    return ", ".join(changed[:MOST_LISTED]) or ALL, "2-3, 5"


AT = text(later("Positions: all, or left-right"), _changed, key="patch_at", follows=True)


def path_of(run: Run, place: str, layer: int) -> str:
    """Of the hook point."""
    what, where, *part = place.split()
    if what == STREAM:
        return middle_path(where, layer, part[0]) if part else stream_path(where, layer)
    if what == OUT:
        return f"{where}.layers.{layer}.{part[0]}.out"
    return f"{run.opened.model.attentions()[where, layer][0]}.{what}"


def middle_path(stack: StackName, layer: int, part: str) -> str:
    """The residual stream in the middle of a layer, before one of MIDDLE."""
    return f"{stack}.layers.{layer}.{part}_residual.before"


def has_middle(run: Run) -> bool:
    """Whether the residual stream can be patched before the feed-forward of every stack."""
    return all(f"{STREAM} {name} feed_forward" in run.compute(_addresses, run.opened) for name in run.trace.streams)


def positions_at(pairs: Pairs, typed: str) -> Pairs:
    """The positions that are patched: all that correspond, or those that were typed.

    A number alone is a position of the left text, and means what corresponds to it; where nothing does, the same one.

    Raises:
        ValueError: what was typed names no positions.
    """
    if typed.strip().lower() in ("", ALL, tr("all")):
        return pairs
    parts = [part for part in re.split(r"[\s,;，；、]+", typed) if part]
    if not all(re.fullmatch(r"\d{1,5}(-\d{1,5})?", part, re.ASCII) for part in parts):
        raise Refusal("Type “all”, or positions as numbers, or as pairs left-right: 2-3, 5.")
    numbers = [[int(number) for number in part.split("-")] for part in parts]
    return tuple((each[0], each[1] if len(each) > 1 else dict(pairs).get(each[0], each[0])) for each in numbers)


def with_word(run: Run, old: str, new: str) -> TwoTexts | None:
    """The run beside that of its text with another word, on the same target; None: the text does not have the word."""
    source, count = re.subn(rf"\b{old}\b", new, run.trace.source, count=1)
    if not count or not isinstance(run.trace.prompt, str):
        return None
    try:
        return both_of(run, _run_of(run, source), "same")
    except ValueError:
        return None


def first_question(run: Run, both: TwoTexts) -> Question | None:
    """The word that tells the two runs apart most; None: none does."""
    words = _candidates(run.opened, both.trace, both.other, both.pairs[both.last])
    question = question_of(both, next(iter(words))) if words else None
    return question if question and question.is_open(both.trace, both.other) else None


def share_maps(run: Run, outcome: Restored, sets: Mapping[str, Control] = MappingProxyType({})) -> dict[str, Form]:
    """What each layer and position, and each head, restores; a click sets the controls, if there are any."""
    shares = [*outcome.streams.values(), *outcome.heads.values()]
    scale = Scale.signed(*(values[np.isfinite(values)] for values in shares), title="share<br>restored")
    maps: dict[str, Form] = {}
    for name, values in outcome.streams.items():
        one = Map(values.astype(np.float32), np.isfinite(values), scale, "share restored")
        maps[f"{name}_map"] = StreamShares(
            rows=[say_label(f"layer {layer}") for layer in range(len(values))],
            columns=numbered(run.trace.streams[name].tokens.labels),
            maps={"": one},
            axes=("residual stream before", f"{name} position"),
            stack=name,
            sets={event: control for event, control in sets.items() if event != "head"},
        )
    maps["head_map"] = HeadShares(
        values=dict(outcome.heads),
        layers={kind.name: kind.layers for kind in run.trace.kinds},
        names=KIND_TITLES,
        chosen=("", 0, 0),
        what="share restored",
        scale=scale,
        number="+.2f",
        sets=sets,
    )
    return maps


def link_of(opened: Checkpoint, patch: Patch) -> str:
    """The patch in a link; empty if the text in it would not give the same values, or is too long."""
    try:
        text = encode((patch,))
        return text if resolve_patch(opened, decode(text)[0]) == patch else ""
    except ValueError:
        return ""


def question_of(both: TwoTexts, word: str) -> Question:
    """What is to be restored."""
    row, token = map(int, word.split("-"))
    return Question(row, both.other_row(row), token)


def top_ids(both: TwoTexts, patched: Trace, question: Question) -> list[int]:
    """The most probable tokens of the three runs, and the chosen word, the most probable first."""
    rows = [trace.probabilities[question.row] for trace in (both.trace, patched)]
    rows.append(both.other.probabilities[question.other_row])
    best = {int(i) for values in rows for i in np.argsort(-values, kind="stable")[:CANDIDATES]} | {question.token}
    return sorted(best, key=lambda i: -max(values[i] for values in rows))
