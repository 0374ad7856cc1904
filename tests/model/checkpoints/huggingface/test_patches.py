"""A patched Hugging Face model is transformers' own, patched by PyTorch's hooks: bit for bit, and while it writes."""

import numpy as np
import pytest

from model.analysis.runs.patching import patch_from, read_activations, stream_path
from model.hooks import hook_points
from model.interventions import Patch
from model.proof.checks import prove
from tests.model.checkpoints.huggingface.families import FAMILIES, SOURCE
from tests.model.checkpoints.huggingface.test_families import opened, traced

OTHER = "7 30 88 5 91 44 23 8 62 17 52 99 13"


@pytest.mark.parametrize("name", ["GPT-2", "Gemma 3", "gpt-oss", "BERT", "T5", "Marian", "Cohere, parallel"])
def test_some_rows_of_one_head_are_the_other_runs_and_all_that_follows_is_computed_from_them(name: str) -> None:
    trace, other = traced(name), traced(name, source=OTHER)
    stack = next(iter(trace.streams))
    path = f"{stack}.layers.1.self_attn.z"
    found = traced(name, patch_from(opened(name), other, path, ((2, 4), (6, 6)), head=2))
    before, there, after = (run.attention(f"{stack}_self", 1).z for run in (trace, other, found))
    expected = before.copy()
    expected[2, [2, 6]] = there[2, [4, 6]]
    assert np.array_equal(after, expected)
    assert not np.array_equal(found.logits, trace.logits)
    assert all(check.passed for check in prove(opened(name), found))


@pytest.mark.parametrize("name", [*FAMILIES][1::2])
def test_a_run_patched_into_itself_is_the_run_and_its_stream_gives_the_other_run(name: str) -> None:
    model, trace, other = opened(name).model, traced(name), traced(name, source=OTHER)
    points = [path for path in hook_points(model) if model.edits_reach(path) and not path.endswith("temperature")]
    recorded = opened(name).record(trace, ())
    asked = [path for path in points if path in recorded]
    patches = tuple(Patch(path, values) for path, values in read_activations(opened(name), trace, asked).items())
    assert len(patches) > 20
    assert np.array_equal(opened(name).rerun(trace, patches).logits, trace.logits)
    stack = next(iter(trace.streams))
    for path in (stream_path(stack, 1), f"{stack}.layers.1.end"):
        there = opened(name).rerun(trace, (patch_from(opened(name), other, path),))
        assert np.array_equal(there.logits, other.logits), path
    if model.edits_reach(path := f"{stack}.layers.1.feed_forward_residual.before"):
        there = opened(name).rerun(trace, (patch_from(opened(name), other, path),))
        np.testing.assert_allclose(there.logits, other.logits, atol=3e-4 * np.abs(other.logits).max())
        assert all(check.passed for check in prove(opened(name), there))


@pytest.mark.parametrize(
    ("name", "path"),
    [
        *((name, "decoder.layers.1.feed_forward_residual.before") for name in ("OLMo 2", "GPT-NeoX", "Phi")),
        *(("GPT-2", path) for path in ("final", "decoder.layers.0.feed_forward.hidden")),
    ],
)
def test_points_that_are_only_read_or_not_even_that_are_refused_in_a_sentence(name: str, path: str) -> None:
    trace = traced(name)
    with pytest.raises(ValueError, match="cannot be patched"):
        opened(name).rerun(trace, (Patch(path, trace.streams["decoder"].final),))
    if name != "GPT-2":
        with pytest.raises(ValueError, match="gives nothing at"):
            patch_from(opened(name), trace, path)


@pytest.mark.usefixtures("short_texts")
@pytest.mark.parametrize("name", ["GPT-2", "Gemma 3", "T5", "BART"])
def test_what_is_written_under_a_patch_is_what_each_step_of_its_run_finds_most_probable(name: str) -> None:
    other = traced(name, source=OTHER)
    patch = patch_from(opened(name), other, "decoder.layers.1.self_attn_residual.before", ((1, 2), (4, 3), (15, 5)))
    both = len(other.streams) == 2
    more = {"beam_size": 1} if both else {"max_new_tokens": 5}
    found = opened(name).trace(SOURCE, interventions=(patch,), **more)
    written = found.next_ids[found.first_written :][:5]
    for step, token in enumerate(written):
        if token not in opened(name).model.ends:
            assert token == found.logits[found.first_written + step].argmax()
    if name != "GPT-2":  # which repeats one token whatever is changed
        assert written != opened(name).trace(SOURCE, **more).next_ids[found.first_written :][:5]
