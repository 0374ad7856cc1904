"""This head with a learned table, RoPE or ALiBi instead."""

import numpy as np

from model.analysis.heads.softmax import mask_orders
from model.analysis.positions.rotation import rotate_pairs, shifted_scores, with_rope
from model.language import later, tr
from model.network.embedding import sinusoids
from model.network.masks import alibi_bias, alibi_slopes
from model.run import Run
from model.trace import Array, Attention
from pages.views import Need, Result, view
from pages.views.attention.positional_encoding.offsets import SHIFTS
from pages.views.attention.positional_encoding.scheme import (
    FIRST_POSITIONS,
    NOTHING,
    SIDE,
    compare_maps,
    draw_heads,
    most_positions,
    table_of,
)
from pages.views.chosen_token import query_of
from pages.views.controls import choice, menu, slider
from pages.views.shared import axes, score_by_offset
from viz.forms import Lines, Map, Maps
from viz.labels import say_options
from viz.special.positional_encoding import VectorMaps

SCHEMES = {"learned": later("Learned table"), "rope": "RoPE", "alibi": "ALiBi"}


def _other_schemes(run: Run) -> dict[str, str]:
    """Those that the chosen attention does not have itself."""
    own = {"rope": run.attention.rotary, "alibi": run.attention.bias}
    return say_options({name: title for name, title in SCHEMES.items() if own.get(name) is None})


def _rotatable(run: Run, scheme: str) -> bool:
    return scheme == "rope" and not run.attention.crosses and run.attention.d_k % 2 == 0


SCHEME = choice(
    "Compare the sinusoids with",
    _other_schemes,
    lambda run: "rope" if "rope" in _other_schemes(run) else "learned",
    key="pe_scheme",
)


def _has_learned_table(run: Run, scheme: str) -> bool:
    return scheme == "learned" == run.opened.config.positions


OF_TABLE = choice(
    "Sentence", lambda run, scheme: SIDE.options(run) if _has_learned_table(run, scheme) else {}, key="side"
)
ROWS_OF_TABLE = slider(
    "Positions",
    lambda run, scheme: most_positions(run) if _has_learned_table(run, scheme) else NOTHING,
    FIRST_POSITIONS,
    key="positions",
)
ROTATED_QUERY = menu(
    "Query",
    lambda run, scheme: dict(enumerate(axes(run.attention)[0])) if _rotatable(run, scheme) else {},
    query_of,
    key="pe_query",
    follows=True,
)
ROTATED_KEY = menu(
    "Key",
    lambda run, scheme: dict(enumerate(axes(run.attention)[1])) if _rotatable(run, scheme) else {},
    lambda run: min(1, len(run.attention.key_tokens) - 1),
    key="pe_key",
)
WHOLE_SHIFT = slider(
    "Shift every position by s", lambda run, scheme: SHIFTS if _rotatable(run, scheme) else NOTHING, 100, key="pe_shift"
)


@view("Learned, RoPE, ALiBi", code=(with_rope,), needs=(Need.ADDED_POSITIONS,))
def schemes(
    run: Run,
    scheme: str = SCHEME,
    side: str | None = OF_TABLE,
    rows: int | None = ROWS_OF_TABLE,
    query: int | None = ROTATED_QUERY,
    key: int | None = ROTATED_KEY,
    shift: int | None = WHOLE_SHIFT,
) -> Result:
    """The added table compared with three other schemes, on this head's own numbers."""
    config, attention = run.opened.config, run.attention
    learned = config.positions == "learned"
    facts = {"learned": learned, "called": tr(SCHEMES[scheme]), "odd": bool(attention.d_k % 2)}
    if scheme == "learned":
        if not learned:
            return Result(facts=facts, lacks=Need.LEARNED_POSITIONS)
        table = table_of(run, side)[:rows]
        paper = sinusoids(*table.shape).numpy()
        maps = {"learned by this model": table, "sinusoids of the paper": paper}
        return Result({"beside": VectorMaps(maps=maps)}, facts)
    if attention.crosses or (scheme == "rope" and not _rotatable(run, scheme)):
        return Result(facts=facts)
    shows, more, numbers = _with_rope(run, query, key, shift) if scheme == "rope" else _with_alibi(run)
    return Result(shows, facts | more, numbers)


def _weights_of(attention: Attention, head: int, pre_softmax: Array) -> Array:
    """(query, key): attention weights of a head, if its softmax read these scores."""
    return mask_orders(pre_softmax, attention.mask[head], float(attention.temperature[head])).before


def _with_rope(run: Run, query: int, key: int, shift: int) -> tuple[dict, dict, dict]:
    """The head's own q and k, rotated by their positions: pictures, facts and arrays."""
    attention, head = run.attention, run.head
    plain, rotated = attention.scores[head], with_rope(attention)
    after, moved = (shifted_scores(rotated, head, by) for by in (0, shift))
    weights = _weights_of(attention, head, after * attention.scale)
    maps, scale = compare_maps(
        attention,
        head,
        {"Scores q · k": plain, "Scores after RoPE": after},
        {"Attention weights": attention.pattern[head], "Weights after RoPE": weights},
    )
    pairs = rotate_pairs(rotated, head, query, key)
    facts = {
        "limit": scale.high,
        "shift": shift,
        "count": plain.size,
        "off": np.abs(moved - after).max(),
        "size": np.abs(after).max(),
    }
    curve = score_by_offset(pairs.offsets, pairs.scores, pairs.unrotated_score, key - query)
    return {"rope": maps, "rope-offsets": curve}, facts, {}


def _with_alibi(run: Run) -> tuple[dict, dict, dict]:
    """A penalty that grows with distance, on the head's own scaled scores: pictures, facts and arrays."""
    attention, head = run.attention, run.head
    scaled, mask = attention.pre_softmax[head], attention.mask[head]
    slopes = alibi_slopes(attention.n_heads).numpy()
    bias = alibi_bias(attention.n_heads, *scaled.shape)[0, head].numpy()
    weights = _weights_of(attention, head, scaled + bias)
    maps, scale = compare_maps(
        attention,
        head,
        {"Scaled scores": scaled, "Scores − m |i − j|": scaled + bias},
        {"Attention weights": attention.pattern[head], "Weights with ALiBi": weights},
        bias,
    )
    steps = np.arange(max(bias.shape))
    lines = Lines(
        draw_heads(steps, -slopes[:, None] * steps, head),
        ("distance |i − j|", "added to the scaled score"),
        height=340,
        layout={"yaxis": {"zeroline": False}},
    )
    bias_map = Maps(*axes(attention), {"": Map(bias, mask, scale, "bias")})
    shows = {"alibi": maps, "alibi-bias": bias_map, "alibi-heads": lines}
    return shows, {"limit": scale.high, "slope": slopes[head], "heads": attention.n_heads}, {"slope": slopes}
