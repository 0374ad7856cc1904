"""Verification: what it says follows from the measurements, and none is made twice."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from model.checkpoints.store import CHECKPOINTS_VARIABLE
from model.proof.claims import Measurement
from model.run import Run
from pages.views.model.verification import MEASURABLE, claims, errors, table
from pages.views.standalone import texts_of
from tests.pages.test_views import as_once

SLOW = [claim for claim in MEASURABLE if claim.slow]


@pytest.fixture(scope="module")
def run(translator, saved_checkpoints: Path) -> Iterator[Run]:
    """Of the tests' checkpoint, whose weights file is where claim 20 looks for it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(CHECKPOINTS_VARIABLE, str(saved_checkpoints))
        yield replace(Run.of(translator, translator.trace("the dog sees a cat")), compute=as_once())


def measured(error: float) -> dict:
    """The slow claims, each with this error."""
    return {claim: Measurement(claim, error, None, 0.1) for claim in SLOW}


def test_slow_claims_wait_for_the_button_and_the_others_do_not(run: Run) -> None:
    before, after = errors(run, outcome=None).facts, errors(run, outcome=measured(0.0)).facts
    assert (before["waiting"], after["waiting"]) == (len(SLOW), 0)
    assert after["made"] == before["made"] + len(SLOW)
    assert not before["broken"] + after["broken"]


@pytest.mark.parametrize("error", [1.0, float("inf"), float("nan")])
def test_a_claim_that_fails_is_named_in_the_first_sentence_and_in_each_tab(error: float, run: Run) -> None:
    result = errors(run, outcome=measured(error))
    assert result.facts["broken"] == [f"{claim.label}, {claim.title}" for claim in SLOW]
    assert "✗" in result.blocks[0].text
    verdicts = table(run, outcome=measured(error)).shows["table"].frame.set_index("claim")["verdict"]
    assert [label for label, verdict in verdicts.items() if "✗" in verdict] == [claim.label for claim in SLOW]
    marked = [text for text in texts_of(claims(run, outcome=measured(error)).blocks) if "✗" in text]
    assert [text.partition(".")[0] for text in marked] == [f"**{claim.label}" for claim in SLOW]


def test_another_head_repeats_only_the_claims_about_a_head(run: Run) -> None:
    def computed(head: int) -> set[tuple]:
        """Place and labels of what is measured for a head."""
        calls = set()

        def compute(function, *args):
            calls.add(args[2:])
            return run.compute(function, *args)

        errors(replace(run, place=replace(run.place, head=head), compute=compute), outcome=None)
        return calls

    repeated = {label for *_, labels in computed(1) - computed(0) for label in labels}
    assert repeated == {claim.label for claim in MEASURABLE if claim.of_head}
