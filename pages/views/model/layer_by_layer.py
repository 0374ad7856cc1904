"""Layer by layer: one token's residual stream, what each sub-layer adds to it, and what it predicts."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from model.analysis.stream import residual_stream
from model.analysis.stream.logit_lens import LogitLens, logit_lens
from model.analysis.stream.residual_stream import NormSteps, StreamMeasures, measure_stream
from model.analysis.written import shares_of_last
from model.language import Sentence, sentence, tr
from model.network.feed_forward import FeedForward
from model.network.residual import Residual
from model.run import Run
from model.trace import SUBLAYER_TITLES, Array, SubLayer
from pages.views import Need, Result, answer, view
from pages.views.chosen_token import row_in
from pages.views.controls import SWITCH, choice, menu, number, slider, toggle
from viz.activations import activation
from viz.forms import Bars, Line, Lines, Map, Maps, Scale, Strips, Table
from viz.heatmap import row_names
from viz.labels import say_label
from viz.latex import block_equation, latex_number, multiplied, signed
from viz.river import River
from viz.special.layer_by_layer import MEASURES, StreamPath
from viz.special.logit_lens import lens_grid, lens_map
from viz.theme import OKABE_ITO, SIGNED
from viz.tokens import labels, numbered

PIECES = 5
"""tokens listed for each neuron"""
COSINE = Scale(-1, 1, SIGNED, "cosine<br>−1 to 1")


def rows_of(run: Run, stack: str) -> dict[int, str]:
    """The tokens of a stack by position; in a decoder with what each row predicts."""
    stream = run.trace.streams[stack]
    return dict(enumerate(row_names(stream.tokens.labels, stream.following.labels if stream.following else None)))


def _measured(run: Run, stack: str) -> StreamMeasures:
    return run.compute(measure_stream, run.trace, stack)


def _last_stack(run: Run) -> str:
    """The one that the output matrix reads."""
    return list(run.trace.streams)[-1]


STACK = choice(
    "Stack",
    lambda run: {name: say_label(name.title()) for name in run.trace.streams},
    # That of the token that a person chose, or else the last one.
    lambda run: _last_stack(run) if run.query is None else run.stream.name,
    key="layers_stack",
    follows=True,
)
TOKEN = menu("Token", rows_of, lambda run, stack: row_in(run, stack), key="layers_token", follows=True)
STEP = menu(
    "Step",
    lambda run, stack: dict(enumerate(map(say_label, _measured(run, stack).steps))),
    lambda run, stack: len(_measured(run, stack).steps) - 1,
    key="layers_step",
)
MEASURE = menu(
    "The map of all tokens shows",
    {name: measure.title for name, measure in MEASURES.items()},
    "to_start",
    key="layers_measure",
)


@view("Path of a token", code=(Residual, FeedForward, residual_stream.residual_stream, measure_stream, shares_of_last))
def path(run: Run, stack: str = STACK, token: int = TOKEN, step: int = STEP, measure: str = MEASURE) -> Result:
    """Lengths, shares and cosines of one token after every sub-layer, and one of these measures for all tokens."""
    measured, sublayers = _measured(run, stack), run.trace.sublayers
    picture = StreamPath(
        measures={name: getattr(measured, name) for name in (*MEASURES, "added")},
        steps=measured.steps,
        rows=list(rows_of(run, stack).values()),
        tokens=run.trace.streams[stack].tokens.labels,
        chosen=(token, step),
        shown=measure,
        sets={"token": TOKEN, "step": STEP},
    )
    first = next((sublayer for sublayer in sublayers if sublayer.norm), sublayers[0])
    norm = first.norm or first.result_norm
    river = _river(run, stack, token, step)
    return Result(
        {"path": picture} | ({"river": river} if river else {}),
        {
            "river": bool(river),
            "token": run.trace.streams[stack].tokens.labels[token],
            "most": river and (river.names[int(river.shares.argmax())], float(river.shares.max())),
            "placement": first.placement,
            "norm": norm.kind if norm else "Norm",
            "multiplier": sublayers[-1].multiplier,
        },
        {"stream": residual_stream.residual_stream(run.trace, stack)},
    )


def _river(run: Run, stack: str, token: int, step: int) -> River | None:
    """What each sub-layer wrote of the token's last vector; None where the stream could not be read to its end."""
    try:
        shares = run.compute(shares_of_last, run.trace, stack, token)
    except ValueError:
        return None
    sublayers, steps = run.trace.streams[stack].sublayers, [*map(say_label, _measured(run, stack).steps)]
    after = [say_label("last norm")] if shares[-1] else []
    return River(
        names=steps + after,
        shares=shares[: len(steps) + len(after)],
        above=[False, *(one.name != "feed_forward" for one in sublayers), *(True for _ in after)],
        chosen=step,
        chooses=[*({"step": number} for number in range(len(steps))), *({} for _ in after)],
        sets={"step": STEP},
    )


DIMENSION = number(
    "Dimension, {0} to {1}",
    lambda run, stack: (0, run.trace.streams[stack].final.shape[-1] - 1),
    0,
    key="layers_dimension",
)


@view("Inside one sub-layer", code=(residual_stream.layer_norm,))
def inside(run: Run, stack: str = STACK, token: int = TOKEN, step: int = STEP, dimension: int = DIMENSION) -> Result:
    """The vectors of one sub-layer at the chosen token, and the arithmetic of one dimension.

    The sub-layer is the one that produces the chosen step; for the input, the one that reads it.
    """
    sublayer = run.trace.streams[stack].sublayers[max(step - 1, 0)]
    norm = residual_stream.layer_norm(sublayer, token)
    vectors = _vectors(sublayer, token)
    learned = {"γ (learned)": norm.gamma, "β (learned)": norm.beta} if norm else {}
    strips = vectors | {name: row for name, row in learned.items() if row is not None}
    doubles = [vector.astype(np.float64) for vector in vectors.values()]
    table = pd.DataFrame(
        {
            "vector": [say_label(name) for name in vectors],
            "mean": [x.mean() for x in doubles],
            "standard deviation": [x.std() for x in doubles],
            "length": [np.linalg.norm(x) for x in doubles],
        }
    )
    normed = (sublayer.normed if sublayer.norm else sublayer.out)[token]
    return Result(
        {"strips": Strips(strips, dimension=dimension, height=130 + 34 * len(strips)), "table": table},
        {
            "of_input": step == 0,
            "layer": sublayer.layer,
            "name": sublayer.name,
            "count": len(strips),
            "width": len(vectors["x, input"]),
            "norm": norm.kind if norm else "",
            "equation": _equation(sublayer, norm, token, dimension) if norm and sublayer.adds else "",
            "apart": np.abs(norm.normed - normed).max() if norm else None,
        },
    )


def _vectors(sublayer: SubLayer, position: int) -> dict[str, Array]:
    """(d_model,) each, by name, in the order of computation."""
    norm = sublayer.norm.kind if sublayer.norm else "Norm"
    x, out, added, normed = (getattr(sublayer, name)[position] for name in ("before", "out", "added", "normed"))
    if sublayer.placement == "res-post":
        kind = sublayer.result_norm.kind if sublayer.result_norm else "Norm"
        first = {"x, input": x, "sub-layer": sublayer.result[position]}
        return {**first, f"{kind}(sub-layer)": out, f"x + {kind}(…)": added}
    if sublayer.result is not None and sublayer.result_norm is None:
        first = {"x, input": x} | ({f"{norm}(x)": normed} if sublayer.norm else {})
        product = f"{sublayer.multiplier:.4g} · sub-layer"
        return {**first, "sub-layer": sublayer.result[position], product: out, f"x + {product}": added}
    if not sublayer.adds:
        after = sublayer.norm and not sublayer.norm_first
        return {"x, input": x, "sub-layer": out} | ({f"{norm}(sub-layer)": normed} if after else {})
    if sublayer.norm is None:
        return {"x, input": x, "sub-layer": out, "x + sub-layer": added}
    if sublayer.layer_input is not None:
        first = {"u, layer's input": sublayer.layer_input[position], f"{norm}(u)": normed}
        return {**first, "sub-layer": out, "x, input": x, "x + sub-layer": added}
    if sublayer.result is not None:
        first = {"x, input": x, f"{norm}(x)": normed, "sub-layer": sublayer.result[position]}
        return {**first, f"{norm}(sub-layer)": out, f"x + {norm}(…)": added}
    if sublayer.norm_first:
        return {"x, input": x, f"{norm}(x)": normed, "sub-layer": out, "x + sub-layer": added}
    return {"x, input": x, f"{sublayer.name}(x)": out, "their sum s": added, f"{norm}(s)": normed}


def _equation(sublayer: SubLayer, norm: NormSteps, position: int, dimension: int) -> str:
    """LaTeX of the sum and of the norm, in one dimension."""
    rows = {name: getattr(sublayer, name) for name in ("before", "out", "added")}
    rows |= {
        "normed": sublayer.normed if sublayer.norm else None,
        "layer_input": sublayer.layer_input,
        "result": sublayer.result if sublayer.result_norm else None,
    }
    numbers = {name: values[position, dimension] for name, values in rows.items() if values is not None}
    numbers |= {name: getattr(norm, name)[dimension] for name in ("mean", "std", "gamma")}
    numbers |= {} if norm.beta is None else {"beta": norm.beta[dimension]}
    return multiplied(block_equation(numbers, dimension, sublayer.norm_first, norm.kind), sublayer.multiplier)


EVERY = toggle(
    "After every sub-layer", lambda run, stack: SWITCH if stack == _last_stack(run) else {}, key="layers_every"
)


@view("Logit lens", code=lambda run: (type(run.opened).read_logits, logit_lens), needs=(Need.LOGITS,))
def lens(run: Run, stack: str = STACK, token: int = TOKEN, every: bool | None = EVERY) -> Result:
    """The last stack's residual stream read by the output matrix: one row as tokens, then all rows as a map."""
    if every is None:
        return Result(facts={"is_read": False})
    read, tokenizer, rows = run.compute(logit_lens, run.opened, run.trace), run.opened.tokenizer, rows_of(run, stack)
    at = np.arange(len(read.steps)) if every else np.flatnonzero(read.ends)
    each = (read.steps[i] for i in at)
    steps = [say_label(one if every or one == residual_stream.INPUT else f"layer {one.split()[0]}") for one in each]
    final = tokenizer.tokens(read.predicted.tolist())
    tops = [tokenizer.tokens(read.top[i, token].tolist()) for i in at]
    names = list(rows.values()), final
    norm = run.trace.streams[stack].last_norm
    return Result(
        {
            "lens": lens_grid(tops, read.probabilities[at, token], steps, final[token]),
            **_curves(read, at, token, steps, run.trace.logits.shape[-1]),
            "lens-map": lens_map(read.probability[at].T, read.rank[at].T, steps, names, token),
        },
        {
            "is_read": True,
            "row": rows[token],
            "final": labels([final[token]])[0],
            "count": len(tops[0]),
            "shares": read.probabilities[at, token].sum(axis=-1),
            "apart": read.difference,
            "post": run.opened.config.norm == "post",
            "norm": norm.kind if norm else "",
            **_head(run),
        },
        vars(read),
    )


def _head(run: Run) -> dict[str, object]:
    """Facts about what turns the last vectors into logits."""
    head = run.opened.logits_head
    return {"head": head, "scale": latex_number(head.scale, 4)}


def _curves(read: LogitLens, at: Array, position: int, steps: Sequence[str], vocabulary: int) -> dict[str, Lines]:
    """Probability and rank of the token finally predicted after every step, the best rank at the top."""
    powers = [10**n for n in range(len(str(vocabulary))) if 10**n <= vocabulary]
    ranks = {
        "type": "log",
        "range": [np.log10(vocabulary * 1.3), -0.12],
        "tickvals": powers,
        "ticktext": [f"{n:,}" for n in powers],
    }
    axes = {"probability": (OKABE_ITO[0], {"range": [-0.03, 1.03]}), "rank": (OKABE_ITO[5], ranks)}
    return {
        name: Lines(
            {name: Line(np.arange(len(at)), getattr(read, name)[at, position], colour, "circle", names=steps)},
            ("", ""),
            ticks=steps,
            of="after",
            height=300,
            layout={"xaxis": {"tickangle": -45}, "yaxis": axis},
        )
        for name, (colour, axis) in axes.items()
    }


def _feed_forward(run: Run, stack: str, step: int) -> SubLayer | None:
    """That of the chosen step's layer; None where what it writes could not be read neuron by neuron."""
    sublayers = run.trace.streams[stack].sublayers
    layer = sublayers[max(step - 1, 0)].layer
    one = next((one for one in sublayers if (one.layer, one.name) == (layer, "feed_forward")), None)
    fits = one is not None and one.hidden is not None and one.out.shape[-1] == run.opened.output_matrix().shape[-1]
    return one if fits else None


MOST = slider(
    "Neurons to show",
    lambda run, stack, step: (3, 30) if _feed_forward(run, stack, step) else (1, 0),
    10,
    key="layers_neurons",
)


@view("Neurons", code=(residual_stream.neurons,), needs=(Need.LOGITS,))
def neurons(run: Run, stack: str = STACK, token: int = TOKEN, step: int = STEP, most: int | None = MOST) -> Result:
    """The feed-forward of the chosen step's layer as a sum over its neurons, and the tokens the largest promote."""
    if most is None:
        return Result(facts={"layer": run.trace.streams[stack].sublayers[max(step - 1, 0)].layer, "read": False})
    sublayer, config = _feed_forward(run, stack, step), run.opened.config
    terms = residual_stream.neurons(run.opened, sublayer, token, most)
    hidden, top, last = terms.hidden, terms.top, stack == _last_stack(run)
    promoted = np.argsort(-terms.logits, axis=-1, kind="stable")[:, :PIECES]
    gains = np.take_along_axis(terms.logits, promoted, axis=-1)
    pieces = [labels(run.opened.tokenizer.tokens(ids)) for ids in promoted.tolist()]
    table = pd.DataFrame(
        {
            "neuron": top,
            "activation h": hidden[top],
            "writes ‖h w‖": terms.written[top],
            "raises the logits of": [
                "   ".join(f"{piece} {tr(signed(gain, '+.2f'))}" for piece, gain in zip(*row, strict=True))
                for row in zip(pieces, gains, strict=True)
            ],
        }
    )
    if last:
        table["for what is predicted"] = terms.logits[:, run.trace.logits[token].argmax()]
    return Result(
        {"neurons": _activations(hidden, top), "table": Table(table, floats="%.3f")},
        {
            "read": True,
            "layer": sublayer.layer,
            "row": rows_of(run, stack)[token],
            "active": int((hidden > 0).sum()),
            "size": len(hidden),
            "count": len(top),
            "share": terms.written[top].sum() / terms.written.sum() if len(top) else 0.0,
            "apart": terms.error,
            "last": last,
            "biased": bool(run.opened.second_matrix(stack, sublayer.layer)[1].any()),
            "relu": config.activation == "relu",
            "function": activation(config.activation).latex,
            **_head(run),
        },
        vars(terms),
    )


def _activations(hidden: Array, top: Array) -> Bars:
    """The hidden activations of a feed-forward at one token, those that write most marked."""
    marked = np.full(len(hidden), np.nan)
    marked[top] = hidden[top]
    return Bars(
        np.arange(len(hidden)),
        {"all neurons": hidden},
        ("neuron", "activation h"),
        # The outline keeps a bar visible that is less than a pixel wide.
        colours=({"color": OKABE_ITO[0], "line": {"color": OKABE_ITO[0], "width": 1}},),
        what="neuron",
        dots={"those that write most, listed in the table": marked},
        height=260,
    )


@view("Similarity", code=(residual_stream.cosines,))
def similarity(run: Run, stack: str = STACK, step: int = STEP) -> Result:
    """Cosine similarity of every pair of tokens at the chosen step, and its mean at every step."""
    tokens, steps = numbered(run.trace.streams[stack].tokens.labels), _measured(run, stack).steps
    means = run.compute(residual_stream.mean_cosines, run.trace, stack)
    values = residual_stream.cosines(residual_stream.residual_stream(run.trace, stack)[step])
    square = {
        "xaxis": {"constrain": "domain"},
        "yaxis": {"scaleanchor": "x", "constrain": "domain"},
        "margin": {"r": 92},
    }
    facts = {"many": len(tokens) > 1, "step": steps[step], "here": means[step], "means": means}
    if len(tokens) > 1:
        facts |= {"highest": steps[int(means.argmax())], "lowest": steps[int(means.argmin())]}
    cosines = {"": Map(values, None, COSINE, "cosine")}
    return Result(
        {"similarity": Maps(tokens, tokens, cosines, axes=("token", "token"), layout=square)},
        facts,
        {"mean_cosine": means},
    )


BLOCKS = (*SUBLAYER_TITLES.values(), "norms", "together")
"""columns of the table of parameters"""


@view("Parameters", code=lambda run: (type(run.opened).parameters_by_part, type(run.opened).parameters_by_block))
def parameters(run: Run) -> Result:
    """Number of parameters of each block, and its share of the total."""
    parts, blocks = run.opened.parameters_by_part(), run.opened.parameters_by_block()
    total = sum(parts.values())
    lines = [{"block": part, "together": parts[part]} for part in ("embeddings", "positions", "output") if parts[part]]
    lines += [
        {"block": f"{stack} layer {layer}", "together": sum(block.values())}
        | {SUBLAYER_TITLES.get(part, part): count for part, count in block.items()}
        for (stack, layer), block in blocks.items()
    ]
    if rest := total - sum(line["together"] for line in lines):
        lines.append({"block": "last norms of the stacks", "together": rest})
    whole = {"block": "whole model"} | {name: sum(line.get(name, 0) for line in lines) for name in BLOCKS}
    table = pd.DataFrame([*lines, whole], columns=["block", *BLOCKS]).astype(dict.fromkeys(BLOCKS, float))
    table["of the model"] = table["together"] / total
    formats = dict.fromkeys(BLOCKS, ",") | {"of the model": "percent"}
    return Result({"parameters": Table(table, formats=formats)})


def _in_words(run: Run, stack: str, step: int) -> Sentence:
    """The sub-layer of a step."""
    sublayer = run.trace.streams[stack].sublayers[step - 1]
    said = {
        "self_attn": sentence("the self-attention of layer {layer}", layer=sublayer.layer),
        "cross_attn": sentence("the cross-attention of layer {layer}", layer=sublayer.layer),
        "feed_forward": sentence("the feed-forward of layer {layer}", layer=sublayer.layer),
    }
    return said[sublayer.name]


@answer
def one_line(run: Run) -> Result:
    """How far the chosen token's vector turns away from its input, and which sub-layer adds the most."""
    stack = _last_stack(run)
    measured, row = _measured(run, stack), row_in(run, stack)
    share = measured.share[row]
    most = int(np.nanargmax(share)) if np.isfinite(share).any() else None
    step = {"step": _in_words(run, stack, most), "share": share[most]} if most is not None else {"step": None}
    return Result(
        facts={"token": labels(run.trace.streams[stack].tokens.labels)[row], "cosine": measured.to_start[row, -1]}
        | step
    )
