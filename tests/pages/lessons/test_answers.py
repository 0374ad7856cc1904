"""What a lesson's answer says is computed anew from the run."""

import numpy as np
import pytest

from model.analysis.double_precision import in_double_precision
from model.analysis.heads.softmax import softmax_at
from model.checkpoints.translator import Translator
from model.network.embedding import sinusoids
from model.run import Run
from pages.lessons import decoder_block, encoder_block, heads
from pages.lessons.guesses import slopes
from pages.lessons.reading import text_cells


@pytest.fixture(scope="module")
def run(translator: Translator) -> Run:
    return Run.of(translator, translator.trace("Two dogs run."), "encoder_self", 1, 2)


def test_what_a_sub_layer_adds_is_told_as_a_share_of_what_it_is_added_to(run: Run) -> None:
    attention, feed_forward = (s for s in run.trace.streams["encoder"].sublayers if s.layer == run.layer)
    for share, one in zip(encoder_block.stream(run)["shares"], (attention, feed_forward), strict=True):
        ratios = [np.sqrt(np.sum(out**2) / np.sum(x**2)) for out, x in zip(one.out, one.before, strict=True)]
        assert share == pytest.approx(np.median(ratios), rel=1e-5)


def test_heads_feed_forwards_and_all_else_add_up_to_the_lead(run: Run) -> None:
    facts = decoder_block.rest(run)
    assert facts["heads"] + facts["forward"] + facts["else_"] == pytest.approx(facts["lead"], abs=2 * facts["error"])


def test_how_a_weight_answers_to_its_score_is_its_slope(run: Run) -> None:
    mask, scaled = run.attention.mask[run.head], run.attention.scaled[run.head].astype(float)
    step, rows = 1e-4, [row for row in range(len(mask)) if mask[row].sum() > 1]
    told = slopes(run)["rows"]
    assert len(told) <= len(rows)
    for one in told:
        means = []
        for row in rows:
            moved = [
                [
                    softmax_at(scaled[row] + sign * step * (np.arange(len(scaled[row])) == key), mask[row], 1)[key]
                    for sign in (1, -1)
                ]
                for key in np.flatnonzero(mask[row])
            ]
            means.append([(up - down) / (2 * step) for up, down in moved])
        assert any(len(one["slopes"]) == len(each) and np.allclose(one["slopes"], each, atol=1e-5) for each in means)


def test_a_model_in_double_precision_has_the_sines_in_double_precision_too(run: Run) -> None:
    model = in_double_precision(run.opened).model
    table = next(iter(model.embeddings.values())).positions
    np.testing.assert_array_equal(table.numpy(), sinusoids(*table.shape, table.dtype).numpy())
    assert str(table.dtype) == "torch.float64"


def test_an_attention_is_as_large_as_its_four_matrices(run: Run) -> None:
    _, attention = run.opened.model.attentions()[run.kind, run.layer]
    matrices = [getattr(attention, name).weight for name in ("w_q", "w_k", "w_v", "w_o")]
    assert heads.size(run)["matrices"] == sum(each.numel() for each in matrices)


@pytest.mark.parametrize("kind", ["encoder_self", "decoder_self", "cross"])
def test_special_keys_are_no_text_nor_is_the_token_itself_where_a_text_attends_to_itself(run: Run, kind: str) -> None:
    attention = run.trace.attention(kind, 1)
    own = np.eye(*attention.pattern[2].shape, dtype=bool) & (kind != "cross")
    left = np.where(own | np.array(attention.key_special), 0, attention.pattern[2])
    np.testing.assert_array_equal(text_cells(attention, 2), left)
