"""Fill in: what a masked language model puts in place of hidden words, and where it looked for them."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from urllib.parse import quote_plus

import numpy as np
import pandas as pd

from model.checkpoints.checkpoint import Checkpoint
from model.checkpoints.masked_model import FillStep, MaskedModel, fill_arrays
from model.language import language, quoted, tr
from model.needs import Need
from model.run import Run, decode
from model.trace import Array, Attention, Trace
from pages.views import QUICK_PARAMETERS, QUICK_TOKENS, OnRequest, Result, answer, view
from pages.views.chosen_token import FUNCTION_WORDS
from pages.views.controls import choice, number, player
from viz.candidates import Candidates, alternatives
from viz.drawing import Drawing
from viz.forms import Bars, Canvas, Table, Texts
from viz.special.decoding import line_of_steps
from viz.special.fill_in import GapsByStep
from viz.special.translate import rank_candidates
from viz.theme import ENCODER
from viz.tokens import as_markdown, labels


def hide_word(text: str, number: int, mask: str) -> str:
    """`text` with its word `number` replaced by the mask; punctuation around the word stays."""
    word = next(islice(re.finditer(r"\S+", text), number, None))
    hidden = re.sub(r"^(\W*).*?(\W*)$", lambda found: f"{found[1]}{mask}{found[2]}", word[0])
    return text[: word.start()] + hidden + text[word.end() :]


def _with_hidden(run: Run, which: slice) -> tuple[Run, list[str]]:
    """The run of a text in which nothing is hidden with `which` of its words that tell something hidden, and these.

    The run itself where the model has no token for a hidden word, or cannot read the other text.
    """
    words = [re.sub(r"^\W+|\W+$", "", word) for word in run.source.split()]
    told = [number for number, word in enumerate(words) if word and word.lower() not in FUNCTION_WORDS][which]
    mask, text = run.opened.tokenizer.mask_token, run.source
    if not mask or not told:
        return run, []
    for word in told:
        text = hide_word(text, word, mask)
    request = replace(run.request, source=text, target=None)
    try:
        hidden = replace(run, request=request, trace=run.compute(decode, run.opened, request))
    except ValueError:
        return run, []
    return (hidden, [words[word] for word in told]) if _positions(hidden) else (run, [])


def _hidden(run: Run) -> dict[int, str]:
    """The positions of hidden tokens, and what fills each."""
    filled = labels(run.trace.next_tokens)
    return {place: f"{place}: {as_markdown(filled[place])}" for place in _positions(run)}


def _positions(run: Run) -> list[int]:
    mask = run.opened.tokenizer.mask
    return [place for place, token in enumerate(run.trace.streams["encoder"].tokens.ids) if token == mask]


PLACE = choice("Hidden token", lambda run: _hidden(run) if len(_positions(run)) > 1 else {}, key="fill_place")


@view("Fill in", code=(MaskedModel.fill,), needs=(Need.MASKED_MODEL, Need.LOGITS))
def guesses(run: Run, place: int | None = PLACE) -> Result:
    """What the model puts in place of a hidden token, and the weights of this token over the text."""
    words: list[str] = []
    if not _positions(run):
        run, words = _with_hidden(run, slice(-1, None))
    trace, arrays = run.trace, fill_arrays(run.opened, run.trace)
    places = arrays["positions"].tolist()
    if not places:
        return Result({}, {"hidden": False, "mask": run.opened.tokenizer.mask_token}, arrays)
    place = places[0] if place is None else place
    weights = run.attention.pattern[run.head][place]
    return Result(
        {
            "texts": Texts({"As the model reads it": trace.source, "Filled in": trace.translation}, compared=True),
            "candidates": _alternatives(trace, place),
            "weights": _weights(run.attention, weights),
        },
        {"hidden": True, "word": "".join(words), "place": place, "mask": run.opened.tokenizer.mask_token},
        arrays | _candidates(run, places) | {"weights": weights},
        drawn=run,
    )


def _alternatives(trace: Trace, place: int) -> Candidates:
    """The most probable tokens in one place, the one that fills it among them."""
    filled = trace.next_tokens[place], trace.next_ids[place], float(trace.target_probabilities[place])
    return alternatives(*rank_candidates(trace.candidates[place], filled), trace.logits.shape[-1])


def _weights(attention: Attention, weights: Array) -> Bars:
    """The attention weights of one query, (key,)."""
    return Bars(
        labels(attention.key_tokens),
        {"attention weight": weights},
        ("token", "attention weight"),
        (0, 1),
        [ENCODER],
        number=".4f",
    )


def _candidates(run: Run, places: list[int]) -> dict[str, np.ndarray]:
    """The candidates of every hidden token, best first, by column."""
    rows = [
        (place, rank, candidate.token, candidate.id, candidate.probability)
        for place in places
        for rank, candidate in enumerate(run.trace.candidates[place], start=1)
    ]
    columns = ("position", "rank", "token", "id", "probability")
    by_column = zip(columns, zip(*rows, strict=True), strict=True)
    return {f"candidate_{name}": np.array(values) for name, values in by_column}


MOST_GAPS = 24
"""filled one after another: each takes a pass in each order"""
EVERY_SECOND = slice(0, 16, 2)
"""of the content words, which are hidden in a text without gaps: at most eight"""
IN_A_ROW = 8
"""gaps that become a sentence"""
ORDERS = {"surest": "Surest first", "left": "Left to right", "random": "At random"}
LARGEST_SEED = 999_999


def _with_gaps(run: Run) -> tuple[Run, list[str]]:
    """The run of a text with gaps, and the words that were hidden for it."""
    return (run, []) if _positions(run) else _with_hidden(run, EVERY_SECOND)


def _gaps(run: Run) -> list[int]:
    """Their positions, as far as they are filled one after another."""
    gaps = _positions(_with_gaps(run)[0])
    return gaps if len(gaps) <= MOST_GAPS else []


def _last_step(run: Run) -> int:
    """Its number, counted from 1; 0 where there is nothing to choose: a single step, or none."""
    count = len(_gaps(run))
    return count if count > 1 else 0


def _fill_in_orders(
    run: Run, order: str | None, seed: int | None
) -> Iterator[tuple[float, dict[str, tuple[FillStep, ...]]]]:
    """Fill the gaps in the chosen order, and then with the same tokens in each of the others."""
    trace, gaps = _with_gaps(run)[0].trace, _gaps(run)
    ids, changes = trace.streams["encoder"].tokens.ids, trace.interventions
    shuffled = np.random.default_rng(seed or 0).permutation(gaps).tolist()
    orders, tokens, found = {"surest": None, "left": gaps, "random": shuffled}, None, {}
    for name in sorted(orders, key=lambda name: name != order):
        steps: tuple[FillStep, ...] = ()
        for step in run.opened.fill_steps(ids, orders[name], tokens, changes):
            steps += (step,)
            yield (len(found) * len(gaps) + len(steps)) / (len(orders) * len(gaps)), found
        found = found | {name: steps}
        tokens = tokens or _text(steps)
    yield 1.0, found


def _text(steps: Sequence[FillStep]) -> list[int]:
    """The whole text, as the last step leaves it."""
    last = steps[-1]
    return [last.token if position == last.position else token for position, token in enumerate(last.ids)]


def _case(run: Run, order: str | None, seed: int | None) -> tuple | None:
    return (run.opened, _with_gaps(run)[0].trace, order, seed or 0) if _gaps(run) else None


def _takes_a_second(run: Run) -> bool:
    """Whether all passes together are about as much work as what `is_quick` lets start by itself."""
    passes, tokens = len(ORDERS) * len(_gaps(run)), len(run.trace.streams["encoder"].tokens)
    work = passes * tokens * sum(run.opened.parameters_by_part().values())
    return work <= len(ORDERS) * MOST_GAPS * QUICK_TOKENS * QUICK_PARAMETERS


FILLED = OnRequest("Fill the gaps", "fill_gaps", _fill_in_orders, _case, at_once=_takes_a_second)
ORDER = choice(
    "Order of the gaps",
    lambda run: {name: tr(title) for name, title in ORDERS.items()} if _last_step(run) else {},
    key="fill_order",
)
SEED = number("Seed", lambda _, order: (0, LARGEST_SEED if order == "random" else -1), 0, key="fill_seed")
STEP = player("Step", lambda run: (1, _last_step(run)), key="fill_step")


@view("Gap by gap", code=(MaskedModel.fill_steps,), needs=(Need.MASKED_MODEL, Need.LOGITS), on_request=FILLED)
def gap_by_gap(
    run: Run,
    outcome: Mapping[str, tuple[FillStep, ...]] | None,
    order: str | None = ORDER,
    seed: int | None = SEED,
    step: int | None = STEP,
) -> Result:
    """The gaps filled one after another, what each step changed, and how probable the text is in another order."""
    run, words = _with_gaps(run)
    gaps, mask = _positions(run), run.opened.tokenizer.mask_token
    facts = {
        "gaps": len(gaps),
        "most": MOST_GAPS,
        "mask": mask,
        "words": ", ".join(map(quoted, words)),
        "sentence": quote_plus(" ".join([mask] * IN_A_ROW) + "."),
        "filled": outcome is not None,
        "seed": seed or 0,
        "own": Need.OWN_LAYERS in run.opened.features,
    }
    if outcome is None:
        return Result({}, facts, {"positions": np.array(gaps)}, drawn=run)
    order, steps = order or "surest", outcome[order or "surest"]
    now = (step or 1) - 1
    trace = run.compute(MaskedModel.trace_step, run.opened, steps[now], run.trace.interventions)
    place, attention = steps[now].position, trace.attention(run.kind, run.layer)
    weights = attention.pattern[run.head][place]
    changes = [_changed(run.opened, *pair) for pair in zip(steps, [*steps[1:], None], strict=True)]
    totals = {name: sum(one.log_probability for one in each) for name, each in outcome.items()}
    return Result(
        {
            "line": Canvas(Drawing("chips", {"html": _line(trace, steps, now)}), {"pick": STEP}, saves=False),
            "guesses": _guesses(run.opened, gaps, steps, now),
            "candidates": _alternatives(trace, place),
            "weights": _weights(attention, weights),
            "steps": _table(run.opened, steps, changes, now),
            **({"orders": _in_orders(totals)} if len(gaps) > 1 else {}),
        },
        facts
        | {
            "step": now + 1,
            "place": place,
            "token": trace.next_tokens[place],
            "p": np.exp(steps[now].log_probability),
            "changed": changes[now],
            "text": run.opened.tokenizer.decode(_text(steps)),
            "total": totals[order],
            "apart": max(totals.values()) - min(totals.values()),
        },
        {
            f"{name}_{part}": np.array([getattr(one, part) for one in each])
            for name, each in outcome.items()
            for part in ("ids", "position", "token", "log_probability")
        }
        | {"positions": np.array(gaps)},
        drawn=run,
    )


def _in_orders(totals: Mapping[str, float]) -> pd.DataFrame:
    """log p of the same text in each order, and how far it is from that in the chosen one, the first."""
    chosen = next(iter(totals.values()))
    orders = {"order": [ORDERS[name] for name in totals], "log p (nats)": [*totals.values()]}
    frame = pd.DataFrame(orders | {"difference": [total - chosen for total in totals.values()]})
    frame.attrs["floats"] = "%.3f"
    return frame


def _guess(opened: Checkpoint, token: int) -> str:
    return labels(opened.tokenizer.tokens([token]))[0]


def _changed(opened: Checkpoint, before: FillStep, after: FillStep | None) -> list[str]:
    """The best guesses that a step has changed: position, old guess and probability, new ones."""
    return [
        f"{gap}: {_guess(opened, token)} {_share(p)} → {_guess(opened, new)} {_share(q)}"
        for gap, (new, q) in (after.guesses.items() if after else ())
        for token, p in [before.guesses[gap]]
        if token != new
    ]


def _share(probability: float) -> str:
    return language().number(f"{probability:.2f}")


def _line(trace: Trace, steps: Sequence[FillStep], now: int) -> str:
    """The text at one step, a best guess in each open gap."""
    at = {one.position: number for number, one in enumerate(steps, start=1)}
    numbers = [at.get(position) for position in range(len(trace.next_tokens))]
    return line_of_steps(trace.next_tokens, numbers, now + 1, tr("The text at step {step}", step=now + 1), ENCODER)


def _guesses(opened: Checkpoint, gaps: Sequence[int], steps: Sequence[FillStep], now: int) -> GapsByStep:
    """The best guess for each gap at each step."""
    filled = {one.position: one.token for one in steps}
    cells = [[one.guesses.get(gap, (filled[gap], np.nan)) for one in steps] for gap in gaps]
    names = {token: _guess(opened, token) for line in cells for token, _ in line}
    return GapsByStep(
        rows=[f"{gap} {names[filled[gap]]}" for gap in gaps],
        guesses=[[names[token] for token, _ in line] for line in cells],
        probabilities=np.array([[p for _, p in line] for line in cells]),
        chosen=now,
        sets={"step": STEP},
    )


def _table(opened: Checkpoint, steps: Sequence[FillStep], changes: Sequence[Sequence[str]], now: int) -> Table:
    """What each step filled in, and which best guesses it changed; a click on a row chooses its step."""
    frame = pd.DataFrame(
        {
            "step": range(1, len(steps) + 1),
            "position": [one.position for one in steps],
            "filled with": [_guess(opened, one.token) for one in steps],
            "probability": [np.exp(one.log_probability) for one in steps],
            "log p so far": np.cumsum([one.log_probability for one in steps]),
            "guesses changed": ["; ".join(some) for some in changes],
        }
    )
    chooses = [{"step": number} for number in frame["step"]]
    return Table(frame, floats="%.3f", ticked=now, chooses=chooses, sets={"step": STEP})


@answer
def one_line(run: Run) -> Result:
    """What stands behind the first hidden token, and how sure the model was."""
    places = _positions(run)
    filled = (
        {"filled": labels(run.trace.next_tokens)[places[0]], "p": run.trace.target_probabilities[places[0]]}
        if places
        else {}
    )
    return Result(facts={"gaps": len(places)} | filled)
