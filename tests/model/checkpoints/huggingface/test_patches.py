"""A patched Hugging Face model is transformers' own, patched by PyTorch's hooks: bit for bit, and while it writes."""

from collections.abc import Callable

import numpy as np
import pytest
from torch import Tensor, nn

from model.analysis.runs.patching import Question as Wanted
from model.analysis.runs.patching import correspond, patch_from, read_activations, restored, stream_path
from model.hooks import hook_points
from model.interventions import Patch
from model.proof.checks import prove
from tests.model.checkpoints.huggingface.families import FAMILIES, SOURCE, TARGET
from tests.model.checkpoints.huggingface.test_families import eager, logits, opened

OTHER = "7 30 88 5 91 44 23 8 62 17 52 99 13"
LAYERS = {
    "GPT-2": ("transformer.h.1", "attn.c_proj"),
    "Llama, grouped": ("model.layers.1", "self_attn.o_proj"),
    "Gemma 3": ("model.layers.1", "self_attn.o_proj"),
    "gpt-oss": ("model.layers.1", "self_attn.o_proj"),
    "BERT": ("bert.encoder.layer.1", "attention.output.dense"),
    "T5": ("encoder.block.1", "layer.0.SelfAttention.o"),
    "Marian": ("model.encoder.layers.1", "self_attn.out_proj"),
    "Cohere, parallel": ("model.layers.1", "self_attn.o_proj"),
    "Starcoder2": ("model.layers.1", "self_attn.o_proj"),
}
"""a layer of transformers' own, and in it the matrix that reads the heads' z side by side"""
MIDDLES = {
    "GPT-2": ("transformer.h.1", "attn", "ln_2"),
    "Llama, grouped": ("model.layers.1", "self_attn", "post_attention_layernorm"),
    "Gemma 3": ("model.layers.1", "post_attention_layernorm", "pre_feedforward_layernorm"),
    "gpt-oss": ("model.layers.1", "self_attn", "post_attention_layernorm"),
    "T5": ("encoder.block.1", "layer.0.SelfAttention.o", "layer.1.layer_norm"),
    "M2M100": ("model.encoder.layers.1", "self_attn", "final_layer_norm"),
}
"""a layer, and in it the module whose output is added to its stream, and the norm that reads the sum"""


def traced(name: str, source: str, *changes: Patch):
    return opened(name).trace(source, TARGET if len(opened(name).model.stacks) == 2 else None, interventions=changes)


def lead(module: nn.Module, change: Callable[[Tensor], Tensor | None]) -> None:
    """What `module` reads goes through `change` first."""

    def hook(_: nn.Module, args: tuple, keywords: dict) -> tuple | None:
        x = args[0] if args else keywords["hidden_states"]
        if (edited := change(x)) is None:
            return None
        return ((edited, *args[1:]), keywords) if args else (args, keywords | {"hidden_states": edited})

    module.register_forward_pre_hook(hook, with_kwargs=True)


def read(name: str, path: str) -> Tensor:
    """What a module of transformers' own reads of the other text."""
    model, seen = eager(name), []
    lead(model.get_submodule(path), lambda x: seen.append(x.clone()))
    logits(model, traced(name, OTHER))
    return seen[0]


def put(x: Tensor, rows: list[int], values: Tensor, there: list[int], columns: slice = slice(None)) -> Tensor:
    x = x.clone()
    flat, from_ = x.reshape(-1, x.shape[-1]), values.reshape(-1, values.shape[-1])
    flat[rows, columns] = from_[there][:, columns]
    return flat.reshape(x.shape)


@pytest.mark.parametrize("name", LAYERS)
def test_streams_and_heads_are_patched_as_pytorchs_own_hooks_patch_them(name: str) -> None:
    layer, output = LAYERS[name]
    trace, other = traced(name, SOURCE), traced(name, OTHER)
    stack = next(iter(trace.streams))
    width = other.attention(f"{stack}_self", 1).z.shape[-1]
    cases = {
        patch_from(opened(name), other, stream_path(stack, 1), ((2, 4), (6, 6))): (layer, slice(None)),
        patch_from(opened(name), other, f"{stack}.layers.1.self_attn.z", ((2, 4), (6, 6)), head=2): (
            f"{layer}.{output}",
            slice(2 * width, 3 * width),
        ),
    }
    for patch, (path, columns) in cases.items():
        model, values = eager(name), read(name, path)
        lead(model.get_submodule(path), lambda x, v=values, c=columns: put(x, [2, 6], v, [4, 6], c))
        found = traced(name, SOURCE, patch)
        assert np.array_equal(found.logits, logits(model, trace)), patch.path
        assert not np.array_equal(found.logits, trace.logits)
        assert all(check.passed for check in prove(opened(name), found))


@pytest.mark.parametrize("name", FAMILIES)
def test_a_run_patched_into_itself_is_the_run_and_its_stream_gives_the_other_run(name: str) -> None:
    model, trace, other = opened(name).model, traced(name, SOURCE), traced(name, OTHER)
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


@pytest.mark.parametrize("name", MIDDLES)
def test_a_stream_in_the_middle_of_a_layer_is_patched_as_if_the_attention_had_written_the_difference(name: str) -> None:
    layer, attention, norm = MIDDLES[name]
    trace, other = traced(name, SOURCE), traced(name, OTHER)
    stack = next(iter(trace.streams))
    model, values, entering = eager(name), read(name, f"{layer}.{norm}"), []
    lead(model.get_submodule(layer), lambda x: entering.append(x))

    def write(_module: nn.Module, _args: tuple, out: Tensor | tuple) -> Tensor | tuple:
        first = out[0] if isinstance(out, tuple) else out
        changed = first.clone()
        changed[0, [2, 6]] = values.reshape(entering[0].shape)[0, [4, 6]] - entering[0][0, [2, 6]]
        return (changed, *out[1:]) if isinstance(out, tuple) else changed

    model.get_submodule(f"{layer}.{attention}").register_forward_hook(write)
    path = f"{stack}.layers.1.feed_forward_residual.before"
    found = traced(name, SOURCE, patch_from(opened(name), other, path, ((2, 4), (6, 6))))
    np.testing.assert_allclose(found.logits, logits(model, trace), atol=3e-5 * np.abs(trace.logits).max())
    assert np.abs(found.logits - trace.logits).max() > 0.01
    assert all(check.passed for check in prove(opened(name), found))


@pytest.mark.parametrize("name", ["OLMo 2", "GPT-NeoX", "Phi"])
def test_a_stream_in_the_middle_of_a_layer_that_cannot_be_read_is_refused_in_a_sentence(name: str) -> None:
    trace, other = traced(name, SOURCE), traced(name, OTHER)
    with pytest.raises(ValueError, match="gives nothing at"):
        patch_from(opened(name), other, "decoder.layers.1.feed_forward_residual.before")
    values = other.streams["decoder"].sublayers[2].before
    with pytest.raises(ValueError, match="cannot be patched"):
        opened(name).rerun(trace, (Patch("decoder.layers.1.feed_forward_residual.before", values),))


@pytest.mark.parametrize("name", ["GPT-2", "T5", "BERT"])
def test_points_that_are_only_read_are_refused_in_a_sentence(name: str) -> None:
    trace = traced(name, SOURCE)
    values = opened(name).record(trace, ())
    for path in ("final", f"{next(iter(trace.streams))}.layers.0.feed_forward.hidden"):
        with pytest.raises(ValueError, match="cannot be patched"):
            opened(name).rerun(trace, (Patch(path, values[path]),))


@pytest.mark.parametrize("name", ["GPT-2", "Gemma 3", "T5", "BART"])
def test_what_is_written_under_a_patch_is_what_each_step_of_its_run_finds_most_probable(name: str) -> None:
    other = traced(name, OTHER)
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


@pytest.mark.parametrize("name", ["GPT-2", "BERT", "T5", "ALBERT"])
def test_the_map_of_a_hugging_face_model_is_that_of_single_patches(name: str) -> None:
    trace, other = traced(name, SOURCE), traced(name, OTHER)
    labels = [[stream.tokens.labels for stream in run.streams.values()] for run in (trace, other)]
    pairs = dict(zip(trace.streams, map(correspond, *labels), strict=True))
    row = len(trace.logits) - 1
    wanted = Wanted(row, row, int(other.logits[row].argmax()))
    *_, (share, found) = restored(opened(name), trace, other, pairs, wanted)
    assert share == 1
    stack = next(iter(trace.streams))
    patch = patch_from(opened(name), other, stream_path(stack, 1), ((2, 2),))
    alone = wanted.score(opened(name).rerun(trace, (patch,)).logits)
    expected = (alone - found.before) / (found.goal - found.before)
    assert found.streams[stack][1, 2] == pytest.approx(expected, abs=1e-4)
