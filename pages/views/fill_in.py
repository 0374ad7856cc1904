"""Fill in: what a masked language model puts in place of hidden words, and where it looked for them."""

import numpy as np

from model.checkpoints.masked_model import MaskedModel, fill_arrays
from model.needs import Need
from model.run import Run
from pages.views import Result, answer, view
from pages.views.controls import choice
from viz.candidates import alternatives
from viz.forms import Bars, Texts
from viz.special.translate import rank_candidates
from viz.theme import ENCODER
from viz.tokens import as_markdown, labels


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
        {"hidden": True, "place": place},
        arrays | _candidates(run, places) | {"weights": weights},
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
