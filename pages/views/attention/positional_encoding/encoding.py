"""The encoding, on the sentence and in the scores; the line below the heading."""

import numpy as np

from model.analysis.positions import position_table
from model.analysis.positions.rotation import extend_angles, rotated_head
from model.analysis.positions.score_bias import biased_head
from model.analysis.stream import vocabulary
from model.language import Numeral, later, series
from model.network.embedding import InputEmbedding, sinusoids
from model.network.masks import alibi_bias, alibi_slopes
from model.network.rotary import rotate, rotation
from model.run import Run
from pages.views import Need, Result, answer, view
from pages.views.attention.positional_encoding import scheme
from pages.views.chosen_token import row_in
from pages.views.controls import choice
from pages.views.shared import axes, input_titles
from viz.forms import Lines, Map, Maps
from viz.labels import say_label, say_options
from viz.special import positional_encoding
from viz.theme import symmetric_range
from viz.tokens import labels

ANGLES = {"cos": "Cosine", "sin": "Sine"}
ANGLE = choice("Show", lambda run: say_options(ANGLES) if scheme.scheme_of(run) == "rope" else {}, key="pe_angle")


@view("The encoding", code=(sinusoids, InputEmbedding, rotation, rotate, alibi_slopes, alibi_bias))
def positions(
    run: Run,
    rows: int | None = scheme.POSITIONS,
    columns: int | None = scheme.DIMENSIONS,
    side: str | None = scheme.SIDE,
    angle: str | None = ANGLE,
) -> Result:
    """The added table, RoPE's angles, or the biases of all heads; else the weights of a head beside equal ones."""
    match scheme.scheme_of(run):
        case "added":
            return _added(run, rows, columns, side)
        case "rope":
            return _angles(run, rows, angle)
        case "bias":
            return _biases(run)
    return _unread(run)


def _added(run: Run, rows: int, columns: int, side: str | None) -> Result:
    """The table that the model adds to its embeddings."""
    encoding, config, sines = scheme.table_of(run, side), run.opened.config, scheme.follows_formula(run)
    table = encoding[:rows, :columns]
    length = len(run.trace.streams[scheme.STACKS[side or scheme.sides_of(run)[0]]].embedded.sum)
    waves = position_table.wavelengths(encoding.shape[1]) if sines else None
    picture = positional_encoding.PositionMap(
        values=table,
        limits=(-1.0, 1.0) if sines else symmetric_range(encoding),
        title="dimension",
        columns=[positional_encoding.dimension_name(j, not sines) for j in range(table.shape[1])],
        explained=positional_encoding.dimension_formulas(table.shape[1], waves),
        halves=("Sines: even dimensions", "Cosines: odd dimensions") if sines else None,
        marks=positional_encoding.end_of_text(length, len(table), "your sentence"),
    )
    facts = {"learned": config.positions == "learned", "sines": sines, "columns": columns}
    facts |= {"factor": run.opened.embedding_scale, "types": Need.ADDED_TYPES in run.opened.features}
    facts["wave"] = waves[columns // 2] if waves is not None and columns < encoding.shape[1] else None
    return Result({"table": picture}, {"scheme": "added"} | facts)


def _angles(run: Run, rows: int, angle: str) -> Result:
    """Cosines or sines of the angles by which RoPE rotates: the run's own, and below them their continuation."""
    attention, head = scheme.place_with(run, "rotary")
    rotary, length = attention.rotary, len(attention.key_tokens)
    waves = rotated_head(run.trace, attention.kind, attention.layer, head).wavelength
    values, used = getattr(extend_angles(rotary, np.arange(rows)), angle), min(rows, length)
    values[:used] = getattr(rotary, angle)[:used]
    limit = max(1.0, float(np.abs(values).max()))
    picture = positional_encoding.PositionMap(
        values=values,
        limits=(-limit, limit),
        title="pair i of dimensions",
        what=angle,
        columns=[f"{angle} {i}" for i in range(len(waves))],
        explained=[
            say_label(f"pair {i}, wavelength {positional_encoding.positions_text(wave)}")
            for i, wave in enumerate(waves)
        ],
        marks=positional_encoding.end_of_text(length, rows, "your text"),
    )
    facts = {"scheme": "rope", "called": ANGLES[angle].lower(), "pairs": len(waves)}
    return Result({"angles": picture}, facts | scheme.shown_instead(run, attention, head))


def _biases(run: Run) -> Result:
    """What each head adds to its scores at each offset."""
    attention, head = scheme.place_with(run, "bias")
    biased = biased_head(run.trace, attention.kind, attention.layer, head)
    picture = Lines(
        scheme.draw_heads(biased.offsets, biased.highest, head),
        ("offset, key minus query", "added to the scaled score"),
        height=420,
        layout={"yaxis": {"zeroline": False}},
    )
    slopes = biased.slopes
    facts = {
        "scheme": "bias",
        "linear": biased.misfit <= scheme.ROUNDING * max(1.0, float(np.abs(biased.lowest).max())),
        "slopes": series([Numeral(f"{slope:.3g}") for slope in slopes], later("{before}; {one}")),
        "heads": len(slopes),
        "follows": np.allclose(slopes, alibi_slopes(len(slopes)).numpy(), rtol=1e-3),
    }
    numbers = {"lowest": biased.lowest, "slope": slopes}
    return Result({"bias": picture}, facts | scheme.shown_instead(run, attention, head), numbers)


def _unread(run: Run) -> Result:
    """The weights of a head beside equal ones."""
    attention, head = run.attention, run.head
    mask, weights = attention.mask[head], attention.pattern[head]
    equal = mask / np.maximum(mask.sum(-1, keepdims=True), 1)
    maps = {"Attention weights": Map(weights, mask), "Equal weights": Map(equal, mask)}
    return Result({"weights": Maps(*axes(attention), maps)}, {"scheme": "none"})


@view("Your sentence", needs=(scheme.ADDED,))
def sentence(run: Run, side: str | None = scheme.SIDE) -> Result:
    """Embedding, positional encoding and their sum, for each token."""
    stream = run.trace.streams[scheme.STACKS[side or scheme.sides_of(run)[0]]]
    embedded, opened = stream.embedded, run.opened
    titles, terms = input_titles(opened, embedded), embedded.terms
    norms = vocabulary.lengths(embedded)
    picture = positional_encoding.VectorMaps(
        maps={titles[name]: values for name, values in terms.items()},
        tokens=stream.tokens.labels,
        waves=scheme.follows_formula(run),
    )
    facts = {
        "scale": opened.embedding_scale,
        "types": Need.ADDED_TYPES in opened.features,
        "norms": {name: (norms[name].min(), norms[name].max()) for name in ("embedding", "positional")},
        "off": np.abs(embedded.embedding + embedded.positional - embedded.sum).max(),
    }
    return Result({"sum": picture}, facts | {"limit": picture.limits[1], "beyond": picture.beyond})


@view("Rotation of q and k", code=(rotated_head,), needs=(scheme.ROTATES,))
def head_rotation(run: Run) -> Result:
    """Queries and keys of a head before RoPE rotates them, and after."""
    attention, head = scheme.place_with(run, "rotary")
    after = rotated_head(run.trace, attention.kind, attention.layer, head)
    maps = {"q before": after.q_before, "q rotated": after.q, "k before": after.k_before, "k rotated": after.k}
    picture = positional_encoding.VectorMaps(maps=maps, tokens=attention.key_tokens)
    facts = {
        "limit": picture.limits[1],
        "beyond": picture.beyond,
        "off": after.rotation_error,
        "size": max(np.abs(after.q).max(), np.abs(after.k).max()),
    }
    numbers = {"cos": after.cos, "sin": after.sin}
    return Result({"rotated": picture}, facts | scheme.shown_instead(run, attention, head), numbers)


@view("Scores", code=(biased_head,), needs=(scheme.BIASED,))
def scores(run: Run) -> Result:
    """Scores and weights of a head without its bias and with it, and the bias."""
    attention, head = scheme.place_with(run, "bias")
    biased = biased_head(run.trace, attention.kind, attention.layer, head)
    before_softmax = {"Scores without the bias": biased.without, "Scores of the run, with it": biased.pre_softmax}
    weights = {"Weights without the bias": biased.pattern_without, "Attention weights of the run": biased.pattern}
    maps, scale = scheme.compare_maps(attention, head, before_softmax, weights, biased.bias)
    bias = Maps(*axes(attention), {"": Map(biased.bias, attention.mask[head], scale, "bias")})
    facts = {"limit": scale.high} | scheme.shown_instead(run, attention, head)
    return Result({"bias-scores": maps, "bias-map": bias}, facts)


@answer
def one_line(run: Run) -> Result:
    """How long the vector is that the position adds to the chosen token; or by what else the model knows."""
    stream, attention = run.stream, run.attention
    row = row_in(run, stream.name)
    embedded = stream.embedded
    rows = embedded.rows or tuple(range(len(stream.tokens)))
    place = rows.index(row) if row in rows else 0
    added, word = (float(np.linalg.norm(part[place])) for part in (embedded.positional, embedded.embedding))
    by = "rope" if attention.rotary is not None else "bias" if attention.bias is not None else ""
    token = labels(stream.tokens.labels)[row if row in rows else rows[0]]
    return Result(facts={"token": token, "added": added, "word": word, "by": by, "tokens": len(stream.tokens)})
