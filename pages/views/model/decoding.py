"""Decoding: a text written step by step, greedily, with beam search, by sampling, and what the cache saves."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd

from model.analysis.distributions import entropy
from model.analysis.heads.aligned_head import aligning_kind
from model.checkpoints.checkpoint import Checkpoint
from model.generation.beam_tree import BeamTree, Node, search_again, tree_arrays
from model.generation.sampling import (
    Sampling,
    TokenDraw,
    draw,
    sample,
    sample_again,
    sampling_distribution,
    two_temperatures,
)
from model.generation.search import beam_steps, greedy, length_penalty
from model.generation.step_cost import cached_step, time_steps, uncached_step
from model.generation.steps import EXTRA_LENGTH, steps_of
from model.language import tr
from model.run import Run
from model.trace import Array, Trace
from pages.views import Need, OnRequest, Result, answer, view
from pages.views.controls import choice, decimals, menu, number, slider, steps
from pages.views.shared import ALIGNMENT, Alignment, align
from viz.candidates import Candidates, alternatives, candidate_names, with_rest
from viz.canvas.beam_tree import hypotheses_table, tree_picture
from viz.drawing import Drawing
from viz.forms import Bars, Canvas, Line, Lines, Texts
from viz.heatmap import row_names
from viz.special.decoding import progress_line
from viz.special.heads_and_layers import head_map
from viz.special.translate import rank_candidates
from viz.theme import DECODER, ENCODER, OKABE_ITO
from viz.tokens import decoder_rows, labels, numbered

WRITES = (Need.DECODER, Need.LOGITS)
PAPER_BEAM, PAPER_ALPHA = 4, 0.6
SAMPLES, LARGEST_SEED = 5, 999_999
LONGEST, REPETITIONS = 96, 3
"""steps that are counted and timed at most; times that each decoding is timed"""
STEP = slider(
    "Step, {0} to {1}",
    lambda run: (0, len(run.trace.next_ids) - 1 - run.trace.first_written or -1),  # a single one is no choice
    key="decoding-step",
)


def _limit(run: Run) -> tuple[int, ...]:
    """The last argument of a search from a prompt: at most as many tokens as the sidebar asks for, or 50.

    Empty for a translator: there the limit follows from the source.
    """
    if run.trace.src_tokens:
        return ()
    asked = run.request.continuation
    room = run.opened.token_limit - run.trace.first_written - 1
    return (max(1, min(asked.max_new_tokens if asked else EXTRA_LENGTH, room)),)


def _pieces(run: Run, tokens: Sequence[int]) -> list[str]:
    return run.opened.tokenizer.tokens(list(tokens))


def _text(run: Run, tokens: Sequence[int]) -> str:
    return run.opened.tokenizer.decode(list(tokens))


@view("Token by token", code=lambda run: (steps_of(run.opened.model),), needs=WRITES)
def one_step(run: Run, step: int | None = STEP, weights: str = ALIGNMENT) -> Result:
    """One step of the text: the next-token distribution, and the attention weights."""
    trace, step = run.trace, step or 0
    row, aligned = trace.first_written + step, align(run, weights)
    crosses = bool(trace.src_tokens)
    here = trace.next_tokens[row], trace.next_ids[row], trace.probabilities[row, trace.next_ids[row]]
    names, shares, chosen = rank_candidates(trace.candidates[row], here)
    written = "translation" if crosses else "continuation"
    line = progress_line(trace.next_tokens, step, trace.first_written, written)
    return Result(
        {
            "line": Canvas(Drawing("chips", {"html": line}), {"pick": STEP}, saves=False),
            "next": alternatives(names, shares, chosen, trace.logits.shape[-1]),
            "source": _key_weights(trace, aligned, row),
        },
        {
            "crosses": crosses,
            "single": len(trace.next_ids) - 1 == trace.first_written,
            "limit": next(iter(_limit(run)), None),
            "step": step,
            "row": decoder_rows(trace.tgt_tokens, trace.next_tokens)[row],
            "what": aligned.what,
            "most_probable": trace.candidates[row][0].id == here[1],
            "ended": not crosses and row == len(trace.next_ids) - 1,
            "cached": all(change.position_free for change in trace.interventions),
        },
        {
            "probabilities": trace.probabilities[row],
            "written_probabilities": trace.target_probabilities,
            f"{aligning_kind(trace)}_weights": aligned.weights,
            "logits": trace.logits,
        },
    )


def _key_weights(trace: Trace, aligned: Alignment, row: int) -> Bars:
    """The weights of one decoder row over the source, or over the tokens of its own text that it may attend to."""
    what, colour, keys = "source", ENCODER, trace.src_tokens
    if not keys:
        mask = trace.attention(aligning_kind(trace), aligned.layer).mask[:, row]
        last = int(mask.any(axis=0).nonzero()[0].max(initial=row))
        what, colour, keys = "text", DECODER, trace.tgt_tokens[: last + 1]
    return Bars(
        labels(keys),
        {"attention weight": aligned.weights[row, : len(keys)]},
        (f"{what} token (key)", "attention weight, 0 to 1"),
        (0, 1),
        (colour,),
        what=what,
        height=290,
        layout={"xaxis": {"tickangle": -60}},
    )


def _by_network(opened: Checkpoint, function: Callable, *args: Any) -> Any:
    """What a function makes of the model's network: `run.compute` knows what is opened, and no network."""
    return function(opened.model, *args)


def _searched(run: Run, beam_size: int) -> BeamTree:
    return run.compute(_by_network, run.opened, search_again, run.trace, beam_size, *_limit(run))


@view("Greedy", code=(greedy,), needs=WRITES)
def greedy_search(run: Run, step: int | None = STEP) -> Result:
    """The most probable token of each step, and the text that beam search finds."""
    trees = [_searched(run, size) for size in (1, PAPER_BEAM)]
    ends = [tree.ends[tree.ranking(PAPER_ALPHA)[0]] for tree in trees]
    ours, theirs = ([tree.nodes[i] for i in tree.path(end)] for tree, end in zip(trees, ends, strict=True))
    tokens = [[node.token for node in nodes] for nodes in (ours, theirs)]
    totals = [np.array([node.log_probability for node in nodes]) for nodes in (ours, theirs)]
    looks = {"symbol": "circle"}, {"symbol": "diamond", "dash": "dash"}
    names = "greedy", f"beam {PAPER_BEAM}"
    race = {
        name: Line(np.arange(len(y)), y, colour, **look, names=labels(_pieces(run, ids)))
        for name, ids, y, colour, look in zip(names, tokens, totals, (OKABE_ITO[0], OKABE_ITO[5]), looks, strict=True)
    }
    same = [one == other for one, other in zip(*tokens, strict=False)]
    return Result(
        {
            "texts": Texts(
                dict(zip(("Greedy", f"Beam {PAPER_BEAM}"), (_text(run, ids) for ids in tokens), strict=True)),
                compared=True,
            ),
            "race": Lines(
                race,
                ("step", "log p of the prefix (nats)"),
                ".5f",
                of="token",
                height=320,
                layout={"xaxis": {"nticks": 20, "tickformat": "d"}},
            ),
            "steps": _compare_steps(run, trees[0], ours, theirs),
        },
        {
            "same": tokens[0] == tokens[1],
            "first": same.index(False) if False in same else len(same),
            "totals": [y[-1] for y in totals],
            "step": step or 0,
        },
        {
            f"{name}_{part}": array
            for name, tree in zip(("greedy", "beam"), trees, strict=True)
            for part, array in tree_arrays(tree).items()
        },
    )


def _compare_steps(run: Run, tree: BeamTree, ours: Sequence[Node], theirs: Sequence[Node]) -> pd.DataFrame:
    """One row for each step: the greedy token, its runner-up in the tree of the greedy search, and the token of beam
    search."""
    rows = []
    for place in range(max(len(ours), len(theirs))):
        row: dict[str, Any] = {"step": place}
        if place < len(ours):
            node = ours[place]
            second = next((n for n in tree.nodes if n.step == place and n.rank != node.rank), None)
            row |= {"greedy": _name(run, node.token), "p": np.exp(node.token_log_probability)}
            if second is not None:
                row |= {"runner-up": _name(run, second.token), "p runner-up": np.exp(second.token_log_probability)}
        if place < len(theirs):
            differs = place >= len(ours) or ours[place].token != theirs[place].token
            row |= {"differs": "≠" if differs else "", f"beam {PAPER_BEAM}": _name(run, theirs[place].token)}
            row["p beam"] = np.exp(theirs[place].token_log_probability)
        rows.append(row)
    return pd.DataFrame(rows)


def _name(run: Run, token: int) -> str:
    return labels(_pieces(run, (token,)))[0]


def _hypotheses(run: Run, beam: int, alpha: float) -> dict[int, str]:
    """The finished hypotheses, best score first; the search is the one that the view draws, computed once."""
    tree = _searched(run, beam)
    texts = (_text(run, tree.hypothesis(tree.ends[place], alpha).tokens) for place in tree.ranking(alpha))
    return {rank: f"{rank + 1}. {text}" for rank, text in enumerate(texts)}


BEAM = slider(f"Beam size (paper: {PAPER_BEAM})", (1, 8), PAPER_BEAM, key="decoding-beam")
ALPHA = steps(f"Length penalty α (paper: {PAPER_ALPHA})", decimals(0.0, 2.0, 0.1), PAPER_ALPHA, key="decoding-alpha")
HYPOTHESIS = menu("Attention along the back-pointers of", _hypotheses, key="decoding-hypothesis")


@view("Beam", code=(beam_steps, BeamTree, length_penalty), needs=WRITES)
def beam_search(
    run: Run, beam: int = BEAM, alpha: float = ALPHA, hypothesis: int = HYPOTHESIS, step: int | None = STEP
) -> Result:
    """The search tree, its finished hypotheses, and the attention weights of one of them."""
    trace, tree = run.trace, _searched(run, beam)
    order = tree.ranking(alpha)
    ranked = [tree.ends[place] for place in order]
    scores = [node.log_probability / length_penalty(node.step + 1, alpha) for node in tree.nodes]
    pieces = _pieces(run, [node.token for node in tree.nodes])
    drawing = tree_picture(
        tree.nodes,
        pieces,
        scores,
        (tree.path(ranked[0]), tree.path(ranked[hypothesis])),
        ranked,
        min(step or 0, tree.nodes[-1].step),
        trace.tgt_tokens[trace.first_written],
    )
    finished = [tree.hypothesis(end, alpha) for end in ranked]
    lengths = [len(one.tokens) for one in finished]
    table = hypotheses_table(
        [_text(run, one.tokens) for one in finished],
        [one.log_probability for one in finished],
        lengths,
        [length_penalty(length, alpha) for length in lengths],
        "translation" if trace.src_tokens else "continuation",
    )
    attention, facts = _beam_attention(run, tree, order[hypothesis])
    most = max(range(len(finished)), key=lambda rank: finished[rank].log_probability)
    return Result(
        {"tree": Canvas(drawing, {"pick": HYPOTHESIS, "step": STEP}), "hypotheses": table, "beam-attention": attention},
        {
            "most_probable": finished[most].tokens == finished[0].tokens,
            "own": _is_written(run, finished[0].tokens),
            "foreign": Need.OWN_LAYERS not in run.opened.features and bool(trace.src_tokens),
            **facts,
        },
        tree_arrays(tree) | {"piece": np.array(pieces), "score": np.array(scores)},
    )


def _beam_attention(run: Run, tree: BeamTree, place: int) -> tuple[Any, dict[str, Any]]:
    """Weights of the finished hypothesis at a place in `tree.ends`, recorded during the search; facts for the text."""
    trace, kind = run.trace, run.trace.kind(aligning_kind(run.trace))
    tokens = tree.hypothesis(tree.ends[place], 0).tokens
    layer = min(run.layer, len(tree.attention[place]) - 1)
    weights, pieces, first = tree.attention[place][layer, run.head], _pieces(run, tokens), trace.first_written
    reads = [*trace.tgt_tokens[: first + 1], *pieces[:-1]]
    apart = None
    if _is_written(run, tokens):
        rows = slice(first, first + len(pieces))
        again = trace.attention(kind.name, layer).pattern[run.head, rows, : weights.shape[1]]
        apart = float(np.abs(weights - again).max())
    rows = row_names(reads[first:], pieces)
    attention = head_map(rows, numbered(trace.src_tokens or reads), weights)
    return attention, {"kind": kind.title, "layer": layer, "apart": apart}


def _is_written(run: Run, tokens: Sequence[int]) -> bool:
    """True if the run wrote these tokens; the end token may be missing where the length limit came first."""
    trace, ends = run.trace, run.opened.model.ends
    ours, theirs = ([i for i in ids if i not in ends] for ids in (tokens, trace.next_ids[trace.first_written :]))
    return ours == theirs


TEMPERATURE = steps("Output temperature T", decimals(0.1, 3.0, 0.1), 1.0, key="decoding-temperature")
TOP_K = number("Top-k (0: all)", lambda run: (0, run.trace.logits.shape[-1]), key="decoding-top-k")
TOP_P = steps("Top-p (1: all)", decimals(0.05, 1.0, 0.05), 1.0, key="decoding-top-p")
SEED = number("Seed", (0, LARGEST_SEED), key="decoding-seed")
SAMPLE = choice("Show the draw of sample", range(1, SAMPLES + 1), key="decoding-sample")


@view("Sampling", code=(sampling_distribution, draw, sample), needs=WRITES)
def samples(
    run: Run,
    temperature: float = TEMPERATURE,
    top_k: int = TOP_K,
    top_p: float = TOP_P,
    seed: int = SEED,
    which: int = SAMPLE,
    step: int | None = STEP,
) -> Result:
    """Sampled texts, and the distribution that one of their tokens was drawn from."""
    sampling, trace = Sampling(temperature, top_k, top_p), run.trace
    drawn = run.compute(_by_network, run.opened, sample_again, trace, sampling, seed, SAMPLES, *_limit(run))
    one, vocabulary, own = drawn[which - 1], trace.logits.shape[-1], Need.OWN_LAYERS in run.opened.features
    place = min(step or 0, len(one.draws) - 1)
    look = one.draws[place]
    table = pd.DataFrame(
        {
            "sample": range(1, len(drawn) + 1),
            "translation" if trace.src_tokens else "continuation": [_text(run, one.tokens) for one in drawn],
            "tokens": [len(one.tokens) for one in drawn],
            "log p(Y | X)": [one.log_probability for one in drawn],
        }
    )
    others = vocabulary - len(look.ids)
    return Result(
        {"samples": table, "draw": _draw(_pieces(run, look.ids), look, others)},
        {
            "next_seed": (seed + 1) % (LARGEST_SEED + 1),
            "place": place,
            "before": _text(run, one.tokens[:place]),
            "look": look,
            "vocabulary": vocabulary,
            "barred": [] if own else _pieces(run, tuple(run.opened.model.barred)),
            "ended": len(one.draws) if place < (step or 0) else None,
        },
        {"before": look.before, "after": look.after, "ids": np.array(look.ids)}
        | {f"sample_{count}": np.array(one.tokens) for count, one in enumerate(drawn, start=1)},
    )


def _draw(pieces: Sequence[str], look: TokenDraw, others: int) -> Candidates:
    """The model's next-token probabilities, and those from which the token was drawn; those of the others last."""
    names = candidate_names(pieces, others)
    names[look.chosen] = f"▸ {names[look.chosen]}"
    drawn = "sampled from"
    return Candidates(
        names=names,
        series={"the model's probability": look.before, drawn: look.after},
        markers=[MARKERS[0], {"color": DECODER}],
        chosen=look.chosen,
        words={drawn: [f"{share:.2%}" if share else tr("cut") for share in look.after]},
    )


MARKERS = [{"color": OKABE_ITO[color], "pattern": {"shape": shape}} for color, shape in ((7, "/"), (1, ""), (2, "x"))]
"""of a run and of two temperatures"""
EITHER = steps("Temperature, output or attention", decimals(0.2, 5.0, 0.1), 2.0, key="decoding-either")


@view("Two temperatures", code=(two_temperatures,), needs=WRITES)
def temperatures(run: Run, temperature: float = EITHER, step: int | None = STEP) -> Result:
    """One number as temperature of the output and as temperature of all attentions."""
    row = run.trace.first_written + (step or 0)
    distributions = run.compute(_by_network, run.opened, two_temperatures, run.trace, row, temperature)
    titles = "this run", f"output: logits / {temperature:g}", f"attention: scores / {temperature:g} everywhere, rerun"
    plain, _, attention = distributions.values()
    best = {int(i) for p in distributions.values() for i in np.argsort(-p)[:5]}
    listed = sorted(best, key=lambda i: -plain[i])
    names = candidate_names(_pieces(run, listed), len(plain) - len(listed))
    ways = {title: with_rest(p[listed]) for title, p in zip(titles, distributions.values(), strict=True)}
    return Result(
        {"two-temperatures": Candidates(names=names, series=ways, markers=MARKERS)},
        {"bits": [float(entropy(p)) for p in distributions.values()], "same": plain.argmax() == attention.argmax()},
        distributions,
    )


def _start(run: Run) -> tuple[int, ...]:
    """What a timed decoding starts from: the source, or a single token."""
    if run.trace.src_ids or steps_of(run.opened.model).adds_start:
        return run.trace.src_ids
    return run.trace.tgt_ids[:1]


def _longest(run: Run) -> int:
    return min(LONGEST, run.opened.config.max_len - 1)


def _timings(run: Run) -> Iterator[tuple[float, dict[str, Any]]]:
    """Milliseconds of each step with and without the cache, in the fastest repetition so far."""
    start, steps = _start(run), _longest(run)
    tokens: set[tuple[int, ...]] = set()
    seconds: dict[bool, list[tuple[float, ...]]] = {True: [], False: []}
    for done in range(2 * REPETITIONS):
        written, times = time_steps(run.opened.model, start, steps, use_cache=done % 2 == 0)
        tokens.add(written)
        seconds[done % 2 == 0].append(times)
        fastest = {name: 1000 * np.array(runs).min(axis=0) for name, runs in seconds.items() if runs}
        yield (
            (done + 1) / (2 * REPETITIONS),
            {"cached": fastest[True], "uncached": fastest.get(False), "same": len(tokens) == 1},
        )


TIMED = OnRequest(
    "Measure",
    "decoding-measure",
    _timings,
    lambda run: (run.trace.checkpoint_hash, run.opened.device, _start(run)),
    alone="timing",
)


@view("Cost", code=(cached_step, uncached_step, time_steps), needs=WRITES, on_request=TIMED)
def cost(run: Run, outcome: dict[str, Any] | None) -> Result:
    """The cost of each step with and without the cache: counted, and timed on request."""
    config, n_src, steps = run.opened.config, len(run.trace.src_ids), _longest(run)
    lengths = np.arange(1, steps + 1)
    counts = [np.array([count(config, n_src, int(t)) for t in lengths]) for count in (cached_step, uncached_step)]
    shows = {"counted": _costs(lengths, *counts, "multiply-adds per step, counted")}
    if outcome:
        shows["measured"] = _costs(lengths, outcome["cached"], outcome["uncached"], "time per step, ms, measured")
    heads = config.n_heads
    return Result(
        shows,
        {
            "steps": steps,
            "repetitions": REPETITIONS,
            "ratio": counts[1].sum() / counts[0].sum(),
            "sums": [outcome[name].sum() for name in ("cached", "uncached")] if outcome else None,
            "same": outcome and outcome["same"],
            "n_src": n_src,
            "plain": config.kv_heads == heads and config.d_k == config.d_v == config.d_model / heads,
            "window": config.window or run.attention.window,
        },
    )


def _costs(lengths: Array, cached: Array, uncached: Array, quantity: str) -> Lines:
    """The cost of each step, as the text grows."""
    lines = {
        "whole prefix again (no cache)": Line(lengths, uncached, OKABE_ITO[5], dash="dash"),
        "newest token only (cache)": Line(lengths, cached, OKABE_ITO[0]),
    }
    titles = "decoder tokens (length t)", quantity
    return Lines(lines, titles, ".4g", height=340, layout={"yaxis": {"rangemode": "tozero"}})


@answer
def one_line(run: Run) -> Result:
    """Tokens of the text, its log-probability, and the step that was the least sure."""
    sure = run.trace.target_probabilities
    least = int(sure.argmin())
    facts = {"tokens": len(sure), "log_probability": run.trace.log_probability}
    return Result(facts=facts | {"token": labels(run.trace.next_tokens)[least], "p": sure[least]})
