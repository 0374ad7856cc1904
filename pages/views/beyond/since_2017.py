"""Since 2017: the parts that replaced the paper's, on the numbers of this run, and what each of them buys."""

from collections.abc import Mapping

import numpy as np
import pandas as pd

from model.analysis.mechanisms import modern_parts as since
from model.analysis.positions.rotation import rotate_pairs, rotation_base
from model.analysis.stream.residual_stream import measure_stream, residual_stream, step_name
from model.background import digits as digits_8x8
from model.background.layer_size import layer_sizes
from model.background.studies import read_study, study_arrays
from model.checkpoints.store import shown_name
from model.language import Sentence, sentence, tr
from model.needs import parts_of
from model.network.attention import MultiHeadAttention
from model.network.feed_forward import FeedForward
from model.network.residual import Residual
from model.network.rotary import Rotary
from model.network.vision import VisionTransformer, cut_patches
from model.run import Run
from model.trace import SUBLAYER_TITLES, Attention
from pages.text import names_in
from pages.views import Need, Result, answer, view
from pages.views.chosen_token import query_of
from pages.views.controls import choice, menu, slider
from pages.views.model.layer_by_layer import rows_of
from pages.views.shared import axes, score_by_offset
from viz.activations import activation
from viz.forms import Bars, Line, Lines, Map, Maps, Mark, Scale, Strips
from viz.labels import say_label
from viz.latex import signed
from viz.special import since_2017 as charts
from viz.special.vision import read_patches
from viz.theme import GUIDE, OKABE_ITO, WEIGHTS

OWN, OTHER = OKABE_ITO[0], OKABE_ITO[5]
"""the model's own part, and the one beside it"""
STUDY = names_in("parts_since_2017")
"""by the names in since_2017.csv; the first is what the others are compared with"""
TWINS = {"everyday-lm-2017": "parts of 2017", "everyday-lm": "parts since"}
"""by the names in twins.csv; the first is what the other is compared with"""
SCHEMES = names_in("positions")
"""of positions"""
PLACES = names_in("placements")
"""of norms"""
ACTIVATIONS = names_in("activations")
"""functions of the feed-forward; another one is called what its folder calls it"""
SYMBOLS = ("circle", "square", "diamond", "cross", "triangle-up", "x", "star")
"""of the runs of a study"""


@view("The five parts")
def overview(run: Run) -> Result:
    """The five parts of 2017, what most models have in their place, and what this model has."""
    config, rotary = run.opened.config, _self_attention(run).rotary
    norms = [norm for sub in run.trace.sublayers for norm in (sub.norm, sub.result_norm) if norm is not None]
    rotated = None if rotary is None else (2 * rotary.cos.shape[-1], rotary.q.shape[-1])
    measured = not read_study("since_2017").empty
    return Result(
        {"buys": _gains()} if measured else {},
        {
            "measured": measured,
            "has": sorted(part.name for part in parts_of(config)),
            "scheme": sentence(SCHEMES[config.positions if rotary is None else "rope"]),
            "partly": rotated if rotated and rotated[0] < rotated[1] else None,
            "norms": list(dict.fromkeys(norm.kind for norm in norms)),
            "place": sentence(PLACES[run.trace.sublayers[-1].placement]),
            "activation": _activation(config.activation) if config.d_ff and config.activation else None,
        },
    )


def _gains() -> Bars:
    """How many bits per byte each part saved one of our small language models at the end of its training."""
    first, *others = _read_runs("since_2017", STUDY).items()
    names = [name for name, _ in others]
    bits = [run["dev_bits_per_byte"].iloc[-1] for _, run in (first, *others)]
    titles = "part in place of that of 2017", "bits per byte saved"
    return Bars(names, {titles[1]: bits[0] - np.array(bits[1:])}, titles, number="+.4f", what="part", height=300)


def _activation(name: str) -> Sentence:
    """What a feed-forward applies."""
    return sentence(ACTIVATIONS.get(name, name))


def _self_attention(run: Run) -> Attention:
    """Of the chosen layer, or of the stack that cross-attention's queries come from."""
    if not run.attention.crosses:
        return run.attention
    return run.trace.attention(f"{run.trace.kind(run.kind).queries}_self", run.layer)


TOKEN = menu("Token", lambda run: rows_of(run, run.stream.name), query_of, key="since_token", follows=True)


def _keys(run: Run, token: int) -> dict[int, str]:
    """Those that the token may attend to, in a head that rotates."""
    if run.attention.rotary is None:
        return {}
    _, keys = axes(run.attention)
    visible = run.attention.mask[run.head, token]
    return {int(n): keys[n] for n in (np.flatnonzero(visible) if visible.any() else range(len(keys)))}


def _heaviest(run: Run, token: int) -> int | None:
    """Not the token itself, nor the first one, which is not rotated."""
    weights = run.attention.pattern[run.head, token]
    return max(_keys(run, token), key=lambda n: (n not in (0, token), weights[n]), default=None)


def _pairs(run: Run) -> tuple[int, int]:
    rotary = run.attention.rotary
    return 0, -1 if rotary is None or rotary.cos.shape[-1] < 2 else rotary.cos.shape[-1] - 1


KEY = menu("Key", _keys, _heaviest, key="since_key")
PAIR = slider("Pair of dimensions", _pairs, 2, key="since_pair")


@view("RoPE", code=(Rotary, rotate_pairs))
def rope(run: Run, token: int = TOKEN, key: int | None = KEY, pair: int | None = PAIR) -> Result:
    """One query and one key before and after their rotation, pair by pair, and their score over the distance."""
    attention = run.attention
    if attention.rotary is None:
        return _added(run, token)
    rotation, rotary, pair = rotate_pairs(attention, run.head, token, key), attention.rotary, pair or 0
    half = len(rotation.frequency)
    dimensions = (2 * pair, 2 * pair + 1) if rotary.interleaved else (pair, pair + half)
    rows, keys = axes(attention)
    score, theta = float(attention.scores[run.head, token, key]), rotation.frequency[pair]
    products = {
        f"{when} the rotation: {signed(p.sum(), '.4g')} in all": p
        for when, p in zip(("before", "after"), rotation.products, strict=True)
    }
    hatched = {"color": GUIDE, "pattern": {"shape": "/"}}
    chosen = Mark(x=pair - 0.5, to=pair + 0.5)
    places = ("pair i, fastest rotation first", "its part of q · k")
    return Result(
        {
            "plane": charts.rotation_plane(
                rotation.q[:, pair], rotation.k[:, pair], rotation.angle[:, pair], (rows[token], keys[key]), dimensions
            ),
            "pairs": Bars(
                np.arange(half), products, places, None, (hatched, OWN), what="pair", height=430, marks=[chosen]
            ),
            "offsets": score_by_offset(rotation.offsets, rotation.scores, rotation.unrotated_score, key - token),
        },
        {
            "rotates": True,
            "base": rotation_base(rotation.frequency, 2 * half),
            "half": half,
            "pair": pair,
            "dimensions": dimensions,
            "turns": [(what, at, theta, at * theta) for what, at in (("the query", token), ("the key", key))],
            "lengthened": None if np.isclose(rotation.factor, 1, rtol=1e-4) else rotation.factor,
            "rest": rotary.q.shape[-1] - 2 * half,
            "score": score,
            "off": abs(rotation.score - score),
        },
        {name: getattr(rotation, name) for name in ("frequency", "angle", "q", "k", "products")},
    )


def _added(run: Run, token: int) -> Result:
    """What a model that does not rotate has instead: a vector that is added to the embedding."""
    positions = run.opened.config.positions
    facts = {"rotates": False, "positions": positions, "token": token}
    if positions == "rope":
        return Result(facts=facts)
    if positions in ("alibi", "relative bias", "none", "unread"):
        return Result(facts=facts, lacks=Need.ROPE)
    terms = since.embedded_token(run.trace, run.stream.name, token)
    names = {"embedding": "embedding", "positional": "PE(pos)", "sum": "their sum"}
    added = Strips({title: terms[name] for name, title in names.items()}, height=250)
    return Result({"added": added}, facts | {"width": len(terms["sum"])}, lacks=Need.ROPE)


def _norms(run: Run) -> dict[int, str]:
    sublayers = [step.sublayer for step in since.norm_steps(run.trace, run.stream.name)]
    return {i: say_label(SUBLAYER_TITLES[s.name]) for i, s in enumerate(sublayers) if s.layer == run.layer}


NORM = choice(lambda run: sentence("Norm of layer {layer}, at the", layer=run.layer), _norms, key="since_norm")


@view("RMSNorm", code=(Residual, since.compare_norms))
def norms(run: Run, token: int = TOKEN, norm: int | None = NORM) -> Result:
    """LayerNorm and RMSNorm of one vector of this run; one of them is the model's own."""
    steps = since.norm_steps(run.trace, run.stream.name)
    if norm is None or steps[norm].norm.kind == "BatchNorm":
        return Result(facts={"own": None})
    own, names = steps[norm].norm, [step_name(step.sublayer) for step in steps]
    compared = since.compare_norms(run.trace, run.stream.name, norm, token)
    other = {"LayerNorm": "RMSNorm", "RMSNorm": "LayerNorm"}[own.kind]
    results, numbers = {"LayerNorm": compared.layer_norm, "RMSNorm": compared.rms_norm}, np.arange(len(compared.x))
    points = {
        f"{other} of the same vector": Line(
            compared.x, results[other], OTHER, "diamond-open", "", size=11, names=numbers
        ),
        f"{own.kind}, this model": Line(compared.x, results[own.kind], OWN, "circle", "", size=6, names=numbers),
    }
    x, low = np.arange(len(names)), float(compared.cosine.min())
    room = 0.1 * (1 - low) + 1e-6
    cosines = {
        "all tokens": Line(
            x, compared.cosine[:, token], between=(compared.cosine.min(axis=1), compared.cosine.max(axis=1))
        ),
        "this token": Line(x, compared.cosine[:, token], OWN, "circle", names=names),
    }
    zero = {"xaxis": {"zeroline": True}, "yaxis": {"zeroline": True}}
    table = pd.DataFrame(
        {
            "": ["subtracts", "divides by", "result’s length"],
            "LayerNorm": [compared.mean, compared.std, np.linalg.norm(compared.layer_norm)],
            "RMSNorm": [0.0, compared.rms, np.linalg.norm(compared.rms_norm)],
        }
    )
    return Result(
        {
            "norms": Lines(
                points,
                ("component of x, as the norm reads it", "after the norm, before γ"),
                of="dimension",
                height=430,
                marks=[Mark(x=compared.mean, text="mean μ")],
                layout=zero,
            ),
            "norm-cosines": Lines(
                cosines,
                ("norm of layer and sub-layer", "cosine of both results"),
                ticks=names,
                of="norm of",
                height=430,
                marks=[Mark(x=norm)],
                layout={"xaxis": {"tickangle": -45}, "yaxis": {"range": [low - room, 1 + room]}},
            ),
            "table": table,
        },
        {
            "own": own.kind,
            "other": other,
            "learns_beta": own.beta is not None,
            "cosine": compared.cosine[norm, token],
            "share": abs(compared.mean) / compared.rms,
            "off": np.abs(own(compared.x) - compared.normed).max(),
        },
        lacks=Need.RMS_NORM if steps[0].norm.kind == "LayerNorm" else None,
    )


@view("Pre-norm", code=(measure_stream,))
def placement(run: Run, token: int = TOKEN) -> Result:
    """Where the norm stands, and the length of the residual stream after every sub-layer."""
    stack, last = run.stream.name, run.stream.sublayers[-1]
    stream, post = measure_stream(run.trace, stack), last.placement == "post"
    return Result(
        {"stream": charts.stream_chart(stream.norm, stream.added, stream.share, stream.steps, token, post)},
        {
            "placement": last.placement,
            "multiplier": last.multiplier,
            "ends": (stream.norm[token, 0], stream.norm[token, -1]),
            "last_norm": run.stream.last_norm is not None,
        },
        {"stream": residual_stream(run.trace, stack)}
        | {name: getattr(stream, name) for name in ("norm", "added", "share")},
        lacks=Need.PRE_NORM if post else None,
    )


@view("SwiGLU", code=(FeedForward, since.activations))
def gate(run: Run, token: int = TOKEN) -> Result:
    """The neurons of one feed-forward at one token: activation, gate times up, and the largest products."""
    config = run.opened.config
    try:
        neurons = since.activations(run.opened, run.trace, run.stream.name, run.layer, token)
    except LookupError:
        return Result(facts={"size": 0})
    z, activated, up, top = neurons.z, neurons.activated, neurons.up, neurons.top
    function = activation(config.activation)
    names = (function.curve, f"the largest {'activations' if up is None else 'products'}")
    shows = {"activation": charts.activation_chart(neurons.curve, z, activated, top, names)}
    columns = {"neuron": top, "z": z[top], "act(z)": activated[top]}
    if up is not None:
        shows["gate"] = charts.gate_chart(activated, up, top)
        columns |= {"up": up[top], "act(z) × up": neurons.hidden[top]}
    return Result(
        shows | {"largest": pd.DataFrame(columns)},
        {
            "activation": _activation(config.activation),
            "smooth": function.smooth,
            "multiplies": up is not None,
            "size": len(neurons.hidden),
            "zeros": int((neurons.hidden == 0).sum()),
            "rings": len(top),
            "computed": Need.OWN_LAYERS in run.opened.features,
            "error": neurons.error,
        },
        {name: array for name, array in vars(neurons).items() if array is not None},
        lacks=None if config.gated else Need.SWIGLU,
    )


@view("Shared keys and values", code=(since.key_distances, since.cache_bytes))
def sharing(run: Run) -> Result:
    """Which query heads read the same keys and values, and the bytes that this saves."""
    attention, config = run.attention, run.opened.config
    distances = since.key_distances(attention)
    end = float(distances.max()) or 1.0
    scale = Scale(0, end, WEIGHTS, f"largest<br>difference<br>0 to {signed(end)}")
    heads, axis = [str(head) for head in range(attention.n_heads)], {"title": "query head", "constrain": "domain"}
    square = {"xaxis": axis | {"tickangle": 0}, "yaxis": axis | {"scaleanchor": "x"}}
    kind = run.kind if not attention.crosses else f"{run.trace.kind(run.kind).queries}_self"
    cache, sizes = since.cache_bytes(run.trace, kind, config.max_len), layer_sizes(run.trace, kind)
    tokens, count = cache["run"].tolist()
    return Result(
        {
            "sharing": charts.sharing_chart(attention.kv_head, run.head),
            "keys": Maps(
                heads,
                heads,
                {"": Map(distances, scale=scale, what="largest difference of the keys")},
                axes=("query head", "query head"),
                layout=square | {"height": 380, "margin": {"r": 90}},
            ),
            "cache": _cache_lines(cache, run.trace.kind(kind).kv_heads, config.n_heads),
        },
        {
            "kv_heads": len(set(attention.kv_head)),
            "group": min(map(attention.kv_head.count, attention.kv_head)),
            "caches": kind != "encoder_self",
            "translates": config.family == "encoder_decoder",
            "layers": len(sizes),
            "size": sizes[0] if len(set(sizes)) == 1 else None,
            "tokens": tokens,
            "bytes": count,
        },
        {"kv_head": attention.kv_head},
        lacks=Need.SHARED_KEYS if config.kv_heads == config.n_heads else None,
    )


def _cache_lines(cache: Mapping[str, np.ndarray], own: int, heads: int) -> Lines:
    """Bytes over the number of tokens for several numbers of heads; the model's own is drawn broad."""
    looks = iter(((OKABE_ITO[5], "dash"), (OKABE_ITO[2], "dot"), (OKABE_ITO[1], "dashdot")))
    lines, (tokens, count) = {}, cache["run"].tolist()
    for kv_heads, values in zip(cache["kv_heads"].tolist(), cache["bytes"], strict=True):
        scheme = {heads: "multi-head", 1: "multi-query"}.get(kv_heads, "grouped-query")
        name = f"{scheme}: {kv_heads} of keys and values"
        if kv_heads == own:
            lines[f"{name} (this model)"] = Line(cache["n"], values, OWN, width=4)
        else:
            colour, dash = next(looks)
            lines[name] = Line(cache["n"], values, colour, dash=dash)
    here = f"this run: n = {tokens}, {count:,} bytes"
    lines[here] = Line([tokens], [count], OKABE_ITO[3], "circle-open", "", size=13)
    zero = {"rangemode": "tozero"}
    return Lines(
        lines,
        ("n, tokens read so far", "bytes"),
        number=",",
        height=420,
        layout={"margin": {"t": 90}, "xaxis": zero | {"showgrid": True}, "yaxis": zero | {"exponentformat": "SI"}},
    )


def _images(_: Run) -> dict[int, str]:
    """The images that ship, by number: the digit, and which of its images."""
    digits, _ = digits_8x8.read_images()
    return {n: f"{digit}: {n % len(digits[digits == digit]) + 1}" for n, digit in enumerate(digits.tolist())}


VIT = digits_8x8.new_digits_model().config
IMAGE = menu("Image", _images, 15, key="vit_image")
VIT_LAYER = choice("Layer", {n: str(n) for n in range(VIT.n_encoder_layers)}, VIT.n_encoder_layers - 1, key="vit_layer")
VIT_HEAD = choice("Head", {n: str(n) for n in range(VIT.n_heads)}, 0, key="vit_head")
PATCH = slider("Patch", (0, digits_8x8.ACROSS**2 - 1), 5, key="vit_patch")


@view("Images as tokens", code=(VisionTransformer, cut_patches, MultiHeadAttention))
def images(run: Run, image: int = IMAGE, layer: int = VIT_LAYER, head: int = VIT_HEAD, patch: int = PATCH) -> Result:
    """A tiny Vision Transformer reads a digit: what [CLS] attends to, and which positions it has learned to be near."""
    seen, digits = run.compute(digits_8x8.read_digit, image), digits_8x8.read_images()[0]
    weights, similarity, across = seen.read_by_cls(layer, head), seen.similarity(), digits_8x8.ACROSS
    places, heads = [str(n) for n in range(across)], range(VIT.n_heads)
    of_heads = {tr("head {head}", head=n): Map(seen.read_by_cls(layer, n)) for n in heads}
    of_patch = similarity[patch].reshape(across, across)
    # Block (i, j) of the map of maps holds the cosines of patch (i, j) with every patch, where that one lies.
    blocks = similarity.reshape((across,) * 4).swapaxes(1, 2).reshape(across**2, across**2)
    scale, block = Scale(-1, 1, title="cosine<br>−1 to 1"), [f"{i}.{j}" for i in places for j in places]
    borders = [Mark(**{axis: n * across - 0.5}, dash="solid") for n in range(1, across) for axis in "xy"]
    results = digits_8x8.read_digits_results().groupby("positions")["accuracy"]
    axes_of_patches = "row of patches", "column of patches"
    return Result(
        {
            "image": read_patches(seen.image, weights, patch),
            "heads": Maps(places, places, of_heads, axes=axes_of_patches),
            "digits": Bars(
                [str(n) for n in range(digits_8x8.CLASSES)],
                {"probability": seen.probability},
                ("digit", "probability"),
                (0, 1),
            ),
            "patch": Maps(places, places, {"": Map(of_patch, scale=scale, what="cosine")}, axes=axes_of_patches),
            "positions": Maps(
                block, block, {"": Map(blocks, scale=scale, what="cosine")}, axes=axes_of_patches, marks=borders
            ),
        },
        {
            "digit": int(digits[image]),
            "reads": int(seen.probability.argmax()),
            "sure": float(seen.probability.max()),
            "itself": float(seen.pattern[layer, head, 0, 0]),
            "near": digits_8x8.mean_similarity_by_distance(similarity),
            "tokens": seen.pattern.shape[-1],
            "d_model": VIT.d_model,
            "parameters": run.compute(digits_8x8.count_digits_parameters),
            "with_positions": tuple(results.get_group(True)),
            "without": tuple(results.get_group(False)),
        },
        {"pixels": seen.image, "read_by_cls": weights, "pattern": seen.pattern, "position_vectors": seen.positions},
    )


@view("What each part buys", code=(read_study,))
def study(_: Run) -> Result:
    """What each part that came after 2017 buys a small language model, one replaced at a time, and all at once."""
    if read_study("since_2017").empty or read_study("twins").empty:
        return Result(facts={"base": None})
    parts, twins = _read_runs("since_2017", STUDY), _read_runs("twins", TWINS)
    ends = [run.iloc[-1] for run in parts.values()]
    bits = [end["dev_bits_per_byte"] for end in ends]
    table = pd.DataFrame(
        {
            "changed": list(parts),
            "bits/byte": bits,
            "vs. 2017": [tr(signed(one / bits[0] - 1, "+.2%")) for one in bits],
            "parameters": [int(end["parameters"]) for end in ends],
        }
    )
    table.attrs["floats"] = "%.4f"
    old, new = twins.values()
    rates = (old.set_index("step")["learning_rate"] / new.set_index("step")["learning_rate"]).dropna()
    return Result(
        {"parts": _curves(parts), "table": table, "twins": _curves(twins)},
        {
            "base": dict(ends[0]),
            "old": dict(old.iloc[-1]),
            "new": dict(new.iloc[-1]),
            "rates": rates[rates > 0].median(),
        },
        {f"{name}_{column}": array for name in ("since_2017", "twins") for column, array in study_arrays(name).items()},
    )


def _read_runs(table: str, names: Mapping[str, str]) -> dict[str, pd.DataFrame]:
    """The lines of each run of a study, by its name on screen."""
    lines = read_study(table)
    return {label: lines[lines["run"] == name] for name, label in names.items()}


def _curves(runs: Mapping[str, pd.DataFrame]) -> Lines:
    """Bits per byte over the tokens read; the first run is drawn broad and grey, and the steep beginning is cut off."""
    colours, widths = (GUIDE, *OKABE_ITO), (4, *[2] * len(SYMBOLS))
    lines = {
        name: Line(run["tokens"].to_numpy() / 1e6, run["dev_bits_per_byte"].to_numpy(), colour, symbol, width=width)
        for (name, run), colour, symbol, width in zip(runs.items(), colours, SYMBOLS, widths, strict=False)
    }
    later = np.concatenate([line.y[len(line.y) // 4 :] for line in lines.values()])
    margin = 0.05 * np.ptp(later)
    return Lines(
        lines,
        ("millions of tokens read", "bits per byte"),
        number=".4f",
        height=520,
        layout={"xaxis": {"showgrid": True}, "yaxis": {"range": [later.min() - margin, later.max() + margin]}},
    )


@answer
def one_line(run: Run) -> Result:
    """How many of the newer parts the opened model has."""
    has = sorted(part.name for part in parts_of(run.opened.config))
    return Result(facts={"count": len(has), "name": shown_name(run.trace.checkpoint)})
