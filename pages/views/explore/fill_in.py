"""Fill in: what a masked language model puts in place of hidden words, and where it looked for them."""

import re
from dataclasses import replace
from itertools import islice

import numpy as np

from model.checkpoints.masked_model import MaskedModel, fill_arrays
from model.needs import Need
from model.run import Run, decode
from pages.views import Result, answer, view
from pages.views.chosen_token import FUNCTION_WORDS
from pages.views.controls import choice
from viz.candidates import alternatives
from viz.forms import Bars, Texts
from viz.special.translate import rank_candidates
from viz.theme import ENCODER
from viz.tokens import as_markdown, labels


def hide_word(text: str, number: int, mask: str) -> str:
    """`text` with its word `number` replaced by the mask; punctuation around the word stays."""
    word = next(islice(re.finditer(r"\S+", text), number, None))
    hidden = re.sub(r"^(\W*).*?(\W*)$", lambda found: f"{found[1]}{mask}{found[2]}", word[0])
    return text[: word.start()] + hidden + text[word.end() :]


def _with_one_hidden(run: Run) -> tuple[Run, str]:
    """The run of a text in which nothing is hidden with its last word that tells something hidden, and that word.

    The run itself where the model has no token for a hidden word, or cannot read the other text.
    """
    words = [re.sub(r"^\W+|\W+$", "", word) for word in run.source.split()]
    told = [number for number, word in enumerate(words) if word and word.lower() not in FUNCTION_WORDS]
    mask = run.opened.tokenizer.mask_token
    if not mask or not told:
        return run, ""
    request = replace(run.request, source=hide_word(run.source, told[-1], mask))
    try:
        hidden = replace(run, request=request, trace=run.compute(decode, run.opened, request))
    except ValueError:
        return run, ""
    return (hidden, words[told[-1]]) if _positions(hidden) else (run, "")


def _hidden(run: Run) -> dict[int, str]:
    """The positions of hidden tokens, and what fills each."""
    filled = labels(run.trace.next_tokens)
    return {place: f"{place}: {as_markdown(filled[place])}" for place in _positions(run)}


def _positions(run: Run) -> list[int]:
    return fill_arrays(run.opened, run.trace)["positions"].tolist()


PLACE = choice("Hidden token", lambda run: _hidden(run) if len(_positions(run)) > 1 else {}, key="fill_place")


@view("Fill in", code=(MaskedModel.fill,), needs=(Need.MASKED_MODEL, Need.LOGITS))
def guesses(run: Run, place: int | None = PLACE) -> Result:
    """What the model puts in place of a hidden token, and the weights of this token over the text."""
    word = ""
    if not _positions(run):
        run, word = _with_one_hidden(run)
    trace, arrays = run.trace, fill_arrays(run.opened, run.trace)
    places = arrays["positions"].tolist()
    if not places:
        return Result({}, {"hidden": False, "mask": run.opened.tokenizer.mask_token}, arrays)
    place = places[0] if place is None else place
    filled = trace.next_tokens[place], trace.next_ids[place], float(trace.target_probabilities[place])
    weights = run.attention.pattern[run.head][place]
    return Result(
        {
            "texts": Texts({"As the model reads it": trace.source, "Filled in": trace.translation}, compared=True),
            "candidates": alternatives(*rank_candidates(trace.candidates[place], filled), trace.logits.shape[-1]),
            "weights": Bars(
                labels(run.attention.key_tokens),
                {"attention weight": weights},
                ("token", "attention weight"),
                (0, 1),
                [ENCODER],
                number=".4f",
            ),
        },
        {"hidden": True, "word": word, "place": place, "mask": run.opened.tokenizer.mask_token},
        arrays | _candidates(run, places) | {"weights": weights},
        drawn=run,
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
