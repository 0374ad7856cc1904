"""Patching between two runs: which positions correspond, and shares that are those of single patches."""

import numpy as np
import pytest

from model.analysis.runs.patching import Question, correspond, patch_from, restored, stream_path
from model.interventions import LiftCausalMask
from model.trace import log_probabilities

LEFT, RIGHT, TARGET = "a dog and a cat", "a dog and a sat", "Ein Hund mit einer Katze."


@pytest.mark.parametrize(
    ("left", "right", "pairs"),
    [
        ("a b c", "a b c", ((0, 0), (1, 1), (2, 2))),
        ("a b c", "a x c", ((0, 0), (1, 1), (2, 2))),
        ("a b c", "a x y c", ((0, 0), (2, 3))),
        ("a b", "c", ()),
        ("b a", "a", ((1, 0),)),
    ],
)
def test_equal_tokens_correspond_and_those_in_one_anothers_place(left: str, right: str, pairs: tuple) -> None:
    assert correspond(left.split(), right.split()) == pairs
    equal = tuple((i, j) for i, j in pairs if left.split()[i] == right.split()[j])
    assert correspond(left.split(), right.split(), replaced=False) == equal


def test_every_share_is_that_of_its_patch_alone(translator) -> None:
    trace, other = translator.trace(LEFT, TARGET), translator.trace(RIGHT, TARGET)
    pairs = {name: correspond(*(run.streams[name].tokens.labels for run in (trace, other))) for name in trace.streams}
    row = 2
    wanted = Question(
        row, row, int(np.abs(log_probabilities(trace.logits[row]) - log_probabilities(other.logits[row])).argmax())
    )
    shares = [share for share, _ in restored(translator, trace, other, pairs, wanted)]
    *_, (_, found) = restored(translator, trace, other, pairs, wanted)
    assert shares == sorted(shares)
    assert shares[-1] == 1
    changed = next(i for i, (one, two) in enumerate(zip(trace.src_tokens, other.src_tokens, strict=True)) if one != two)
    assert found.streams["encoder"][0, changed] == pytest.approx(1, abs=1e-3), "its embedding is all that differs"
    assert np.isnan(found.streams["decoder"][:, row + 1 :]).all(), "rows after the word are not read"
    assert np.abs(found.streams["decoder"][0, : row + 1]).max() < 1e-3, "the target is the same"
    for layer, here in ((1, changed), (1, 0)):
        run = translator.rerun(trace, (patch_from(translator, other, stream_path("encoder", layer), (here,)),))
        alone = (wanted.score(run) - found.before) / (found.goal - found.before)
        assert found.streams["encoder"][layer, here] == pytest.approx(alone, abs=1e-3)
    for kind, layer, head in (("cross", 1, 3), ("encoder_self", 0, 0)):
        path = translator.model.attentions()[kind, layer][0]
        run = translator.rerun(trace, (patch_from(translator, other, f"{path}.z", None, head),))
        alone = (wanted.score(run) - found.before) / (found.goal - found.before)
        assert found.heads[kind][layer, head] == pytest.approx(alone, abs=1e-3)


def test_where_the_mask_is_lifted_later_tokens_count(translator) -> None:
    """And what they restore is what they restore when all rows of the run are computed."""
    lifted = (LiftCausalMask(),)
    trace, other = (translator.rerun(translator.trace(text, TARGET), lifted) for text in (LEFT, RIGHT))
    pairs = {name: correspond(*(run.streams[name].tokens.labels for run in (trace, other))) for name in trace.streams}
    row, later = 2, 4
    wanted = Question(row, row, int(trace.next_ids[row]))
    *_, (_, found) = restored(translator, trace, other, pairs, wanted)
    patch = patch_from(translator, other, stream_path("decoder", 1), ((later, later),))
    alone = (wanted.score(translator.rerun(trace, (*lifted, patch))) - found.before) / (found.goal - found.before)
    assert abs(alone) > 1e-3
    assert found.streams["decoder"][1, later] == pytest.approx(alone, abs=1e-4)


def test_runs_that_do_not_differ_have_nothing_to_restore(translator) -> None:
    trace = translator.trace(LEFT, TARGET)
    pairs = {"encoder": ((0, 0),), "decoder": ()}
    with pytest.raises(ValueError, match="there is nothing to restore"):
        next(restored(translator, trace, translator.trace(LEFT, TARGET), pairs, Question(1, 1, 5)))
