"""All heads of a kind at once: their maps, and the lines of the nearest."""

from collections.abc import Sequence
from typing import Any
from urllib.parse import urlencode

import numpy as np

from model.analysis import words
from model.analysis.heads.head_summary import summarise_kind
from model.analysis.heads.head_tables import HeadTables, TableOptions, head_tables, norm_weighted, overview, rollout
from model.checkpoints.store import shown_name
from model.interventions import HeadGate
from model.interventions.link import encode
from model.language import later, sentence, series, tr
from model.network.attention import MultiHeadAttention
from model.run import Run
from model.trace import KIND_TITLES, Array
from pages.views import Result, view
from pages.views.chosen_token import CLICKED_TOKEN, key_of, query_of
from pages.views.controls import CLICKED_HEAD, LAYER, SWITCH, choice, toggle
from viz.canvas.lines import MOST_HEADS, Choices, lines
from viz.canvas.mosaic import Group, mosaic
from viz.drawing import Drawing
from viz.forms import Canvas
from viz.labels import say_label
from viz.special.heads_and_layers import group_texts, head_map, numbered_spans, word_names, word_rows
from viz.tokens import decoder_names, labels

MEASURES = {"weights": later("attention weight"), "norms": "‖α v W_O‖", "rollout": later("rollout")}
VALUES = choice(
    "Numbers", {"weights": "Attention weights", "norms": "Norm-weighted", "rollout": "Rollout"}, key="heads_values"
)
KINDS = toggle("All kinds", key="heads_kinds")
WORDS = toggle(
    "Whole words",
    key="heads_words",
    help="Tokens are merged into words: weights are summed over a word's keys and averaged over its queries.",
)
HIDE = toggle("Hide special tokens", key="heads_hide")
RENORMALISE = toggle(
    "Renormalise",
    lambda _, hide: SWITCH if hide else {},
    key="heads_again",
    help="Each row is scaled back to the sum that it had before tokens were hidden.",
)


def _rolls(run: Run) -> bool:
    return not (run.attention.crosses or run.attention.causal)


def _near_heads(run: Run, values: str) -> list[int]:
    """The heads of the layer whose lines one picture holds, the chosen one among them; rollout has one table."""
    if values == "rollout" and _rolls(run):
        return [0]
    start = run.head // MOST_HEADS * MOST_HEADS
    return list(range(start, min(start + MOST_HEADS, run.attention.n_heads)))


LINES = choice(
    "Lines of",
    lambda run, values: (
        {"head": tr("This head"), "layer": tr("All heads of the layer")} if _near_heads(run, values)[1:] else {}
    ),
    key="heads_lines",
)


def _look(run: Run, values: str, words: bool, hide: bool, renormalise: bool | None) -> TableOptions:
    """What is shown: not what this attention does not have, and not what would leave nothing."""
    hide = hide and not (run.attention.causal and len(run.trace.tgt_tokens) == 1)
    return TableOptions(
        values if values != "rollout" or _rolls(run) else "weights", words, hide, bool(hide and renormalise)
    )


@view(
    "All heads",
    code=(MultiHeadAttention._explicit, norm_weighted, rollout, words.merge, words.word_groups, words.hide_keys),
)
def heads(
    run: Run,
    values: str = VALUES,
    kinds: bool = KINDS,
    words: bool = WORDS,
    hide: bool = HIDE,
    renormalise: bool | None = RENORMALISE,
    lines_of: str | None = LINES,
) -> Result:
    """Every head of every layer in one picture; one of them as a map and as lines."""
    look = _look(run, values, words, hide, renormalise)
    groups = _groups(run, look, kinds)
    tables, column = head_tables(run.trace, run.kind, look, [run.layer]), 0 if look.values == "rollout" else run.head
    opened, mask, attention = tables.values[0, column], tables.mask[0, column], run.attention
    following = attention.predicts.labels if attention.predicts else None
    rows = word_rows(attention.query_tokens, following, tables.queries)
    keys = word_names(attention.key_tokens, tables.keys)
    high = 1.0
    if look.values == "norms":
        high = max(float(np.nanmax(group.values, initial=0)) for group in groups) or 1.0
    place = (
        sentence("layers 0 to {layer}", layer=run.layer)
        if look.values == "rollout"
        else sentence("layer {layer}, head {head}", layer=run.layer, head=run.head)
    )
    title = series([sentence(MEASURES[look.values]), sentence(KIND_TITLES[run.kind].lower()), place])
    clicks = {"layer": LAYER} if look.values == "rollout" else CLICKED_HEAD
    near = _near_heads(run, look.values)
    summaries = run.compute(summarise_kind, run.trace, run.kind)
    numbers = {
        f"{group.kind}_{name}": getattr(group, name) for group in groups for name in ("values", "mask", "removed")
    }
    return Result(
        {
            "mosaic": Canvas(_mosaic(run, groups, column, high), {"choose": clicks}),
            "map": head_map(rows, keys, opened, mask, MEASURES[look.values], high, place),
            "lines": Canvas(
                _lines(run, tables, near, near if lines_of == "layer" else [column], high, title),
                {"choose": CLICKED_TOKEN},
            ),
        },
        {
            "look": look,
            "title": title,
            "place": place,
            "refused": values == "rollout" and look.values != "rollout",
            "crosses": any(kind.crosses for kind in run.trace.kinds),
            "alone": hide and not look.hide,
            "head": next(one for one in summaries if (one.layer, one.head) == (run.layer, run.head)),
            "switch_off": urlencode({"add": encode((HeadGate(0.0, **run.place.address()),))}),
            **_hidden(run, look, tables.removed[0, column], opened, rows),
        },
        numbers | {"opened": opened, "opened_mask": mask, "query_names": np.array(rows), "key_names": np.array(keys)},
    )


def _groups(run: Run, look: TableOptions, kinds: bool) -> list[HeadTables]:
    """The tables of each kind in the mosaic, pooled if the text is long."""
    names = [kind.name for kind in run.trace.kinds] if kinds and look.values != "rollout" else [run.kind]
    if look.hide and len(run.trace.tgt_tokens) == 1:
        names = [name for name in names if not run.trace.kind(name).causal or name == run.kind]
    return [run.compute(overview, run.trace, name, look) for name in names]


def _mosaic(run: Run, groups: Sequence[HeadTables], column: int, high: float) -> Drawing:
    trace, values = run.trace, groups[0].look.values
    shown = say_label(VALUES.options[values].lower())
    return mosaic(
        [_group(run, tables) for tables in groups],
        (run.kind, run.layer, column),
        high=high,
        measure=MEASURES[values],
        title=f"{shown_name(trace.checkpoint)} {trace.checkpoint_hash[:8]}, {shown}",
        opens="st-key-heads_and_layers-map",
    )


def _group(run: Run, tables: HeadTables) -> Group:
    """One kind of attention; its labels have no positions, which the picture adds itself."""
    attention = run.trace.attention(tables.kind, run.trace.kind(tables.kind).layers[0])
    queries, keys = group_texts(attention.query_tokens, tables.queries), group_texts(attention.key_tokens, tables.keys)
    if attention.predicts:
        following = group_texts(attention.predicts.labels, tables.queries)
        queries = decoder_names(queries, following)
    if tables.pool > 1:
        queries, keys = (numbered_spans(texts, tables.pool) for texts in (queries, keys))
    averaged = tables.look.values == "rollout"
    title = "Rollout, up to each layer" if averaged else KIND_TITLES[tables.kind]
    paths = _paths(run, tables, run.trace.kind(tables.kind).layers)
    return Group(tables.kind, title, tables.values, queries, keys, tables.mask, averaged, tables.pool, paths)


def _paths(run: Run, tables: HeadTables, layers: Sequence[int]) -> list[str]:
    """Of the attention in each layer; of what was computed from its weights, the same with the options."""
    made = [name for name in ("words", "hide", "renormalise") if getattr(tables.look, name)]
    made += [tables.look.values] * (tables.look.values != "weights") + [f"pool {tables.pool}"] * (tables.pool > 1)
    return [".".join([run.trace.kind(tables.kind).path(layer), *made]) for layer in layers]


def _lines(run: Run, tables: HeadTables, near: list[int], shown: list[int], high: float, title: str) -> Drawing:
    """The lines of some heads of the layer; buttons in the picture show and hide each."""
    attention = run.attention
    following = attention.predicts
    return lines(
        tables.values[0][near],
        group_texts(attention.query_tokens, tables.queries),
        group_texts(attention.key_tokens, tables.keys),
        heads=near,
        shown=shown,
        allowed=tables.mask[0][near],
        predicts=group_texts(following.labels, tables.queries) if following else None,
        high=high,
        measure=MEASURES[tables.look.values],
        title=title,
        path=_paths(run, tables, [run.layer])[0],
        choices=_choices(run, tables),
    )


def _choices(run: Run, tables: HeadTables) -> Choices:
    groups, chosen = (tables.queries, tables.keys), (query_of(run), key_of(run))
    places = (
        next((place for place, group in enumerate(side) if token in group), None)
        for side, token in zip(groups, chosen, strict=True)
    )
    return Choices(run.kind, *([group[0] for group in side] for side in groups), tuple(places))


def _hidden(run: Run, look: TableOptions, removed: Array, opened: Array, rows: list[str]) -> dict[str, Any]:
    """Facts about hidden tokens: their names, their share of a row, and how many rows have no weight left."""
    attention = run.attention
    special = [token for token, hides in zip(attention.key_tokens, attention.key_special, strict=True) if hides]
    if not look.hide or not special:
        return {"hidden": []}
    return {
        "hidden": labels(tuple(dict.fromkeys(special))),
        "removed": removed,
        "most": rows[int(removed.argmax())],
        "empty": int(np.isnan(opened).all(axis=-1).sum()),
    }
