"""The arithmetic of one chosen cell in each of the seven steps of an attention head."""

import numpy as np

from model.language import Sentence, sentence, tr
from viz.latex import bracketed, coloured, dot_product, entry, latex_number, number, root_of_width, sum_of_products
from viz.steps.head import COLOURS, Array, Choice, Head
from viz.steps.strips import Arithmetic, Strip, StripRow
from viz.theme import KEY, QUERY, VALUE, WEIGHTS
from viz.tokens import Verbatim


def explain_step(step: int, head: Head, choice: Choice) -> Arithmetic:
    """The computation of the chosen cell in `step` (0 to 6)."""
    return (_projection, _score, _scaling, _masking, _softmax, _weighted_sum, _output)[step](head, choice)


def result_chain(head: Head, choice: Choice) -> list[tuple[str, str]]:
    """Name and value of the chosen cell after each of the seven steps; labels, to be said where they are drawn."""
    i, j, c, o = choice.query, choice.key, choice.dimension, choice.output
    # Where queries are narrower than values, the chosen column of v may lie beyond them.
    rows = {"q": head.projected["Q"][i], "k": head.projected["K"][j], "v": head.projected["V"][j]}
    entries = {f"{name}[{c}]": number(row[c], 3) for name, row in rows.items() if c < len(row)}
    return [
        (", ".join(entries), ", ".join(entries.values())),
        ("q · k", number(head.scores[i, j])),
        (f"÷ {head.divisor_name}", number(head.scaled[i, j])),
        ("mask", "not masked" if head.mask[i, j] else "masked: −∞"),
        ("weight", number(head.pattern[i, j])),
        (f"weight × v[{c}]", number(float(head.pattern[i, j]) * float(head.projected["V"][j, c]))),
        (f"out[{o}]", number(head.out[i, o])),
    ]


def _projection(head: Head, choice: Choice) -> Arithmetic:
    name, c = choice.projection, choice.dimension
    position, axis = (choice.query, head.queries) if name == "Q" else (choice.key, head.keys)
    x, w, b = head.inputs[name][position], head.weights[name][:, c], head.biases[name][c]
    products = _double(x) * w
    value, colour = head.linear[name][position, c], COLOURS[name]
    turned = head.changes(name)
    symbol = name.lower() + (r"^{\mathrm{pre}}" if turned else "")
    source = "Y" if head.crosses and name != "Q" else "X"
    result = sentence("sum {sum} = {value}", sum=number(products.sum()), value=number(value))
    if head.learns_biases:
        facts = {"sum": number(products.sum()), "bias": number(b), "value": number(value)}
        result = sentence("sum {sum}, plus bias {bias} = {value}", **facts)
    if turned:
        result = sentence(
            "{before}; then {change}: {value}",
            before=result,
            change=turned,
            value=number(head.projected[name][position, c]),
        )
    latex = (
        rf"{entry(symbol, position, c, colour)} = \sum_{{m=0}}^{{{head.d_model - 1}}} {source}_{{{position},m}}\,"
        rf"({coloured(colour, f'W_{name}')})_{{m,{c}}}"
        + (
            rf" + ({coloured(colour, f'b_{name}')})_{{{c}}} = {latex_number(products.sum())} + {bracketed(b)}"
            if head.learns_biases
            else ""
        )
        + f" = {latex_number(value)}"
    )
    strip = Strip(
        sentence(
            "{count} products: row {row} of {source} ({token}) times column {column} of {matrix}",
            count=head.d_model,
            row=position,
            source=source,
            token=axis.labels[position],
            column=c,
            matrix=f"W_{name}",
        ),
        _count(head.d_model),
        (
            StripRow(f"{source}, row {position}", x),
            StripRow(f"W_{name}, column {c}", w, colour),
            StripRow("product", products, bars=True),
        ),
        result,
    )
    return Arithmetic(latex, (strip,))


def _score(head: Head, choice: Choice) -> Arithmetic:
    i, j = choice.query, choice.key
    q, k = head.projected["Q"][i], head.projected["K"][j]
    products = _double(q) * k
    limit = max(abs(q).max(), abs(k).max())
    latex = (
        rf"{dot_product(i, j)} = \sum_{{c=0}}^{{{head.d_k - 1}}} {entry('q', i, 'c', QUERY)}\,{entry('k', j, 'c', KEY)}"
        rf" = {sum_of_products(q, k)} = {latex_number(head.scores[i, j])}"
    )
    strip = Strip(
        sentence(
            "{count} products: query {query} ({query_token}) times key {key} ({key_token})",
            count=head.d_k,
            query=i,
            query_token=head.queries.labels[i],
            key=j,
            key_token=head.keys.labels[j],
        ),
        _count(head.d_k),
        (
            StripRow(f"q, row {i}", q, QUERY, limit=limit),
            StripRow(f"k, row {j}", k, KEY, limit=limit),
            StripRow("product", products, bars=True),
        ),
        sentence("sum = score = {value}", value=number(head.scores[i, j], 5)),
    )
    return Arithmetic(latex, (strip,))


def _scaling(head: Head, choice: Choice) -> Arithmetic:
    i, j = choice.query, choice.key
    symbol = root_of_width(head.scale, head.d_k) or "1"
    score, divisor = latex_number(head.scores[i, j]), latex_number(head.divisor)
    root = rf" = \frac{{{score}}}{{\sqrt{{{head.d_k}}}}}" if "sqrt" in symbol else ""
    latex = (
        rf"\frac{{{dot_product(i, j)}}}{{{symbol}}}{root} = "
        rf"\frac{{{score}}}{{{divisor}}} = {latex_number(head.scaled[i, j])}"
    )
    limit = abs(head.scores[i]).max()
    rows = (
        StripRow("score", head.scores[i], limit=limit),
        StripRow(f"÷ {head.divisor:.3f}", head.scaled[i], limit=limit),
    )
    result = sentence("scaled = {value}", value=number(head.scaled[i, j], 5))
    return Arithmetic(latex, (_key_strip(head, choice, rows, result),))


def _masking(head: Head, choice: Choice) -> Arithmetic:
    i, j = choice.query, choice.key
    masked = np.where(head.mask[i], head.pre_softmax[i], -np.inf)
    said = tr("key {key} is masked for query {query}:", key=j, query=i)
    if head.mask[i, j]:
        said = tr("key {key} is not masked for query {query}:", key=j, query=i)
    latex = (
        rf"{_before_mask(head, i, j)}\text{{{said}}}\quad "
        rf"{latex_number(head.pre_softmax[i, j])} \;\longrightarrow\; {latex_number(masked[j])}"
    )
    limit = max(abs(head.pre_softmax[i]).max(), abs(head.scaled[i]).max())
    then = (StripRow(head.before_mask, head.pre_softmax[i], limit=limit),) if head.before_mask else ()
    rows = (StripRow("scaled", head.scaled[i], limit=limit), *then, StripRow("masked", masked, limit=limit))
    result = sentence(
        "{seen} of {count} keys are not masked for query {query}",
        seen=int(head.mask[i].sum()),
        count=head.keys.size,
        query=i,
    )
    return Arithmetic(latex, (_key_strip(head, choice, rows, result),))


def _before_mask(head: Head, i: int, j: int) -> str:
    """LaTeX of the soft cap and the bias of one score, if the model has them."""
    if not head.before_mask:
        return ""
    scaled = latex_number(head.scaled[i, j])
    capped = head.scaled[i, j]
    if head.softcap is not None:
        scaled = rf"{head.softcap:g}\tanh\!\left({scaled} / {head.softcap:g}\right)"
        capped = head.softcap * np.tanh(capped / head.softcap)
    if head.adds_bias:
        scaled += f" + {bracketed(head.pre_softmax[i, j] - capped)}"
    return rf"{scaled} = {latex_number(head.pre_softmax[i, j])} \qquad "


def _softmax(head: Head, choice: Choice) -> Arithmetic:
    i, j, tau = choice.query, choice.key, head.temperature
    allowed = head.mask[i]
    if not allowed.any():
        said = tr("query {query} may attend to no key: all its weights are 0", query=i)
        return Arithmetic(rf"\text{{{said}}}")
    tempered = np.where(allowed, _double(head.pre_softmax[i]) / tau, -np.inf)
    largest = tempered.max()
    powers = np.exp(tempered - largest)
    rows = (
        StripRow("masked", np.where(allowed, head.pre_softmax[i], -np.inf)),
        StripRow(f"÷ τ = {tau:g}", tempered),
        StripRow(f"− largest, {number(largest)}", tempered - largest),
        StripRow("exp of that", powers, bars=True, scale=WEIGHTS, allowed=allowed),
        StripRow("weight", head.pattern[i], scale=WEIGHTS, allowed=allowed),
    )
    total = latex_number(powers.sum())
    exponent = (
        rf"{latex_number(head.pre_softmax[i, j])}/{tau:g} - {bracketed(largest, 5)}" if head.mask[i, j] else r"-\infty"
    )
    latex = (
        rf"\alpha_{{{i},{j}}} = \frac{{e^{{x_{{{i},{j}}}/\tau - \max}}}}{{\sum_{{j'}} e^{{x_{{{i},j'}}/\tau - \max}}}}"
        rf" = \frac{{e^{{{exponent}}}}}{{{total}}} = \frac{{{latex_number(powers[j])}}}{{{total}}}"
        rf" = {latex_number(head.pattern[i, j])}"
    )
    result = sentence(
        "sum of the row's exponentials: {sum}; weight = {weight}",
        sum=number(powers.sum(), 5),
        weight=number(head.pattern[i, j], 5),
    )
    title = sentence(
        "query {query} ({token}) over all keys; subtracting the largest value first avoids overflow and leaves the "
        "ratio unchanged",
        query=i,
        token=head.queries.labels[i],
    )
    return Arithmetic(latex, (_key_strip(head, choice, rows, result, title),))


def _weighted_sum(head: Head, choice: Choice) -> Arithmetic:
    i, j, c = choice.query, choice.key, choice.dimension
    v, weights = head.projected["V"], head.pattern[i]
    limit = max(abs(v).max(), abs(head.z).max())
    latex = (
        rf"z_{{{i},{c}}} = \sum_{{j=0}}^{{{head.keys.size - 1}}} \alpha_{{{i},j}}\,{entry('v', 'j', c, VALUE)} = "
        rf"{sum_of_products(weights, v[:, c])} = {latex_number(head.z[i, c])}"
    )
    vectors = Strip(
        sentence(
            "value of key {key} ({token}) times its weight {weight}, and z of query {query}",
            key=j,
            token=head.keys.labels[j],
            weight=number(weights[j]),
            query=i,
        ),
        _count(head.d_v),
        (
            StripRow(f"v, row {j}", v[j], VALUE, limit=limit),
            StripRow("weight × v", _double(v[j]) * weights[j], limit=limit),
            StripRow(f"z, row {i}", head.z[i], limit=limit),
        ),
        sentence(
            "in dimension {dimension}: {part} of {value}",
            dimension=c,
            part=number(float(weights[j]) * float(v[j, c])),
            value=number(head.z[i, c]),
        ),
        c,
    )
    products = _double(weights) * v[:, c]
    sums = (
        StripRow("weight", weights, scale=WEIGHTS),
        StripRow(f"v, column {c}", v[:, c], VALUE, limit=limit),
        StripRow("product", products, bars=True),
    )
    result = sentence("sum = z = {value}", value=number(head.z[i, c], 5))
    return Arithmetic(latex, (vectors, _key_strip(head, choice, sums, result)))


def _output(head: Head, choice: Choice) -> Arithmetic:
    i, o, h = choice.query, choice.output, head.index
    parts = head.contributions(i)[:, 0, o]
    z, w = head.z[i], head.w_o[h][:, o]
    latex = (
        rf"\mathrm{{out}}_{{{i},{o}}} = \sum_{{h=0}}^{{{head.n_heads - 1}}} z^{{(h)}}_{{{i}}}\, W_O^{{(h)}} + b_O"
        rf" = {' + '.join(bracketed(part) for part in parts)} + {bracketed(head.b_o[o])} = "
        rf"{latex_number(head.out[i, o])}"
    )
    own = Strip(
        sentence(
            "{count} products: z of head {head}, row {row} ({token}), times column {column} of its rows of the "
            "output projection",
            count=head.d_v,
            head=h,
            row=i,
            token=head.queries.labels[i],
            column=o,
        ),
        _count(head.d_v),
        (StripRow(f"z, row {i}", z), StripRow(f"W_O, column {o}", w), StripRow("product", _double(z) * w, bars=True)),
        sentence("sum = contribution of head {head} = {value}", head=h, value=number(parts[h], 5)),
    )
    all_heads = Strip(
        sentence("contributions of all heads to output dimension {dimension}, and the bias", dimension=o),
        (*(f"head {n}" for n in range(head.n_heads)), "b_O"),
        (StripRow("contribution", np.append(parts, head.b_o[o]), bars=True),),
        sentence("sum = out = {value}", value=number(head.out[i, o], 5)),
        h,
    )
    return Arithmetic(latex, (own, all_heads))


def _key_strip(
    head: Head, choice: Choice, rows: tuple[StripRow, ...], result: Sentence, title: Sentence | None = None
) -> Strip:
    """A strip with a column for each key, for the chosen query."""
    i = choice.query
    columns = tuple(Verbatim(f"{position} {label}") for position, label in enumerate(head.keys.labels))
    plain = sentence("query {query} ({token}) over all keys", query=i, token=head.queries.labels[i])
    return Strip(title or plain, columns, rows, result, choice.key)


def _count(size: int) -> tuple[str, ...]:
    return tuple(str(position) for position in range(size))


def _double(values: Array) -> Array:
    return values.astype(np.float64)
