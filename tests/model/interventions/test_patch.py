"""Activations of another run: put anywhere they are what PyTorch's own hooks put there, alone and while decoding."""

import copy
from collections.abc import Callable
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from model.analysis.runs.patching import patch_from, read_activations, resolve_patch
from model.analysis.sweep import sweep
from model.checkpoints.checkpoint import Checkpoint
from model.hooks import hook_points
from model.interventions import HeadGate, Intervention, LiftCausalMask, Patch, PatchFrom, describe
from model.interventions.link import decode, encode
from model.proof.checks import prove
from model.trace import Trace
from tests.model.strategies import shaped

TARGET = "Zwei Hunde rennen"
MODERN = "pre, RMSNorm, RoPE, wide shared keys"
models = pytest.mark.parametrize(
    ("shape", "family"), [*product(("post", MODERN), ("translator", "language model")), ("post", "masked")]
)
SOURCE, OTHER = "a dog and a cat", "a cat and a dog"


def traced(opened: Checkpoint, source: str, *changes: Intervention) -> Trace:
    target = TARGET if len(opened.model.stacks) == 2 else None
    return opened.trace(source, target, interventions=changes)


def plainly(opened: Checkpoint, trace: Trace, hooks: dict[nn.Module, Callable]) -> np.ndarray:
    """The logits of a run with PyTorch's own hooks: module -> (what it reads) -> what it reads instead."""

    def lead(change: Callable) -> Callable:
        def hook(_: nn.Module, args: tuple) -> tuple:
            return (change(args[0]), *args[1:])

        return hook

    handles = [module.register_forward_pre_hook(lead(change)) for module, change in hooks.items()]
    try:
        return opened.unrecorded_logits(trace)
    finally:
        for handle in handles:
            handle.remove()


@models
def test_a_run_patched_into_itself_is_the_run_bit_for_bit_at_every_hook_point(shape, family):
    opened = shaped(shape, family)
    trace = traced(opened, SOURCE)
    paths = [path for path in hook_points(opened.model) if not path.endswith(".temperature")]
    for path, values in read_activations(opened, trace, paths).items():
        again = opened.rerun(trace, (Patch(path, values),))
        assert np.array_equal(again.logits, trace.logits), path


@models
def test_the_whole_stream_of_a_layer_gives_the_other_run_from_there_on(shape, family):
    opened = shaped(shape, family)
    trace, other = traced(opened, SOURCE), traced(opened, OTHER)
    assert not np.array_equal(trace.logits, other.logits)
    for stack, stream in trace.streams.items():
        path = f"{stack}.layers.1.self_attn_residual.before"
        patched = opened.rerun(trace, (patch_from(opened, other, path),))
        if len(trace.streams) == 1 or stack == "encoder":  # a decoder still reads the memory of its own source
            assert np.array_equal(patched.logits, other.logits)
        there = next(n for n, one in enumerate(stream.sublayers) if (one.layer, one.name) == (1, "self_attn"))
        assert np.array_equal(
            patched.streams[stack].sublayers[there].after, other.streams[stack].sublayers[there].after
        )
        first = patched.streams[stack].sublayers[0]
        assert np.array_equal(first.after, stream.sublayers[0].after), "what lies before is the run's own"


@models
def test_a_patched_stream_and_a_patched_head_are_what_pytorchs_own_hooks_make(shape, family):
    opened = shaped(shape, family)
    trace, other = traced(opened, SOURCE), traced(opened, OTHER)
    stack = next(iter(trace.streams))
    path, layer = f"{stack}.layers.1", opened.model.stacks[stack].layers[1]
    stream = torch.tensor(other.streams[stack].sublayers[len(other.streams[stack].sublayers) // 2].before)
    z = torch.tensor(other.attention(f"{stack}_self", 1).z)

    def put_stream(x: Tensor) -> Tensor:
        x = x.clone()
        x[:, [1, 3]] = stream[[2, 3]]
        return x

    def put_head(joined: Tensor) -> Tensor:
        joined, width = joined.clone(), z.shape[-1]
        joined[:, [0, 2], 3 * width :] = z[3, [0, 1]]
        return joined

    changes = {
        patch_from(opened, other, f"{path}.self_attn_residual.before", ((1, 2), (3, 3))): {layer: put_stream},
        patch_from(opened, other, f"{path}.self_attn.z", ((0, 0), (2, 1)), head=3): {layer.self_attn.w_o: put_head},
    }
    for patch, hooks in changes.items():
        found = traced(opened, SOURCE, patch)
        np.testing.assert_array_equal(found.logits, plainly(opened, trace, hooks))
        assert not np.array_equal(found.logits, trace.logits)
        assert all(check.passed for check in prove(opened, found))


def test_while_decoding_each_position_is_patched_as_soon_as_it_is_reached():
    for shape in ("post", MODERN):
        opened = shaped(shape, "language model")
        other = opened.trace("Three women sit on a bench")
        patch = patch_from(opened, other, "decoder.layers.0.self_attn_residual.before", ((3, 1), (6, 2), (8, 4)))
        assert not patch.position_free
        written = opened.trace("Two", max_new_tokens=8, interventions=(patch,))
        ids = list(written.tgt_ids[: written.first_written + 1])
        for _ in range(len(written.next_ids) - len(ids)):
            run = opened.trace_ids("Two", (*ids[1:], 3), (patch,))
            ids.append(int(np.where(np.arange(len(run.logits[-1])) < 3, -np.inf, run.logits[-1]).argmax()))
        assert tuple(ids) == written.tgt_ids
        assert written.tgt_ids != opened.trace("Two", max_new_tokens=8).tgt_ids


def test_a_translation_decoded_with_a_patched_encoder_is_that_of_the_other_sentence():
    opened = shaped("post")
    other = opened.trace(OTHER, beam_size=2)
    patch = patch_from(opened, other, "encoder.layers.1.self_attn_residual.before")
    assert opened.trace(SOURCE, beam_size=2, interventions=(patch,)).next_ids == other.next_ids
    assert opened.translate([SOURCE], 2, interventions=(patch,)) == [other.translation]
    assert opened.trace(SOURCE, beam_size=2).next_ids != other.next_ids


@models
def test_a_sweep_gives_the_logits_of_each_patch_alone(shape, family):
    opened = shaped(shape, family)
    trace, other = traced(opened, SOURCE, HeadGate(0.5, layer=0, head=1)), traced(opened, OTHER)
    paths = [f"{stack}.layers.{n}.self_attn{point}" for stack in trace.streams for n in (0, 1) for point in POINTS]
    paths += ["decoder.layers.1.cross_attn.k", "decoder.layers.0.cross_attn.v"] * (len(trace.streams) == 2)
    changes = [(patch_from(opened, other, path, (1, 2)),) for path in paths]
    for change, logits in zip(changes, sweep(opened, trace, changes), strict=True):
        alone = opened.rerun(trace, (*trace.interventions, *change)).logits
        np.testing.assert_allclose(logits, alone, rtol=0, atol=1e-4)


POINTS = ("_residual.before", ".z", ".q", ".pattern", ".out")


def test_rows_take_the_weights_of_keys_that_they_can_see():
    opened = shaped("post", "language model")
    trace, other = traced(opened, SOURCE), traced(opened, "a dog and a man and a cat")
    path = "decoder.layers.0.self_attn.pattern"
    found = opened.rerun(trace, (patch_from(opened, other, path, ((3, 2), (2, 2))),)).attention("decoder_self", 0)
    there = other.attention("decoder_self", 0).pattern[:, 2, : len(trace.tgt_ids)]
    assert np.array_equal(found.pattern[:, 2], there)
    assert np.array_equal(found.pattern[:, 3], there)
    with pytest.raises(ValueError, match=r"row 1 of .* cannot take the weights of row 4, which reads later keys"):
        opened.rerun(trace, (patch_from(opened, other, path, ((1, 4),)),))
    lifted = opened.rerun(trace, (LiftCausalMask(),))
    weights = lifted.attention("decoder_self", 0).pattern
    assert np.array_equal(opened.rerun(trace, (LiftCausalMask(), Patch(path, weights))).logits, lifted.logits)


def test_what_does_not_fit_is_a_sentence():
    opened = shaped("post")
    trace, longer = traced(opened, SOURCE), traced(opened, "a dog and a man and a cat")
    stream, z = "encoder.layers.0.self_attn_residual.before", "encoder.layers.1.self_attn.z"
    for make, sentence in (
        (lambda: Patch(stream, np.zeros(3)), "must be numbers"),
        (lambda: Patch(stream, np.array([["a"]])), "must be numbers"),
        (lambda: Patch(stream, np.full((2, 3), np.nan)), "must be finite"),
        (lambda: Patch(stream, np.zeros((2, 3)), positions=(2,)), "positions 0 to 1"),
        (lambda: Patch(stream, np.zeros((2, 3)), positions=((1, 0), (1, 1))), "only once"),
        (lambda: Patch(stream, np.zeros((2, 3)), positions=(-1,)), "whole number from 0"),
        (lambda: Patch(stream, np.zeros((2, 3)), positions=3), "a list of numbers or of pairs"),
        (lambda: Patch(stream, np.zeros((2, 3)), positions=((1, 2, 3),)), "a number, or a pair"),
        (lambda: Patch(stream, np.zeros((2, 3)), head=0), "no heads"),
        (lambda: Patch(z, np.zeros((2, 3, 4)), head=2), "heads 0 to 1"),
        (lambda: Patch("../etc", np.zeros((2, 3))), "must name a hook point"),
        (lambda: patch_from(opened, longer, "encoder.layers.7.self_attn.z"), "no hook point"),
        (lambda: opened.rerun(trace, (Patch("encoder.layers.0.z", np.zeros((2, 3))),)), "the nearest are encoder"),
        (lambda: opened.rerun(trace, (Patch(stream, np.zeros((2, 3))),)), r"shape \(2, 3\), but"),
        (lambda: opened.rerun(trace, (patch_from(opened, longer, stream),)), "has .* in this run"),
        (lambda: opened.rerun(trace, (patch_from(opened, longer, f"{z[:-1]}pattern", (0,)),)), "has .* in this run"),
        (lambda: opened.rerun(trace, (PatchFrom(stream, OTHER),)), "are not known yet"),
    ):
        with pytest.raises(ValueError, match=sentence):
            make()
    # Of the positions that are named, those that the run does not have change nothing.
    last = len(longer.src_ids) - 1
    beyond = opened.rerun(trace, (patch_from(opened, longer, stream, (last,)),))
    assert np.array_equal(beyond.logits, trace.logits)


def test_patches_are_equal_if_their_bytes_are():
    values = np.arange(12, dtype=np.float32).reshape(3, 4)
    patch = Patch("final", values, (1,))
    values[0] = 9
    assert patch.values[0, 0] == 0, "the patch has a copy"
    same = Patch("final", np.arange(12, dtype=np.float32).reshape(3, 4), ((1, 1),))
    assert patch == same == copy.deepcopy(patch)
    assert len({patch, same, replace(patch, positions=(2,)), replace(patch, path="memory")}) == 3
    minus = Patch("final", -np.zeros((3, 4), np.float32))
    assert minus != Patch("final", np.zeros((3, 4), np.float32)), "0 and -0 are other bytes"
    assert "SHA-256" in repr(patch)
    assert len(repr(patch)) < 150


def test_a_link_carries_the_other_text_and_is_resolved_on_opening():
    opened = shaped("post")
    other = opened.trace(f'{OTHER}, e+e "and" 1e+5 \\ [', TARGET)
    patch = patch_from(opened, other, "decoder.layers.1.cross_attn.z", ((1, 2), (2, 2)), head=1)
    text = encode((HeadGate(0.5), patch))
    assert "+" not in text
    gate, unresolved = decode(text)
    assert gate == HeadGate(0.5)
    assert isinstance(unresolved, PatchFrom)
    assert unresolved.source == other.source
    assert encode((gate, unresolved)) == text
    resolved = resolve_patch(opened, unresolved)
    assert resolved == patch
    assert encode((gate, resolved)) == text
    assert describe(unresolved) == describe(patch)
    with pytest.raises(ValueError, match="does not fit into a link"):
        encode((replace(patch, origin=None),))
    with pytest.raises(ValueError, match="so none can come from position 90"):
        resolve_patch(opened, replace(unresolved, positions=((1, 90),)))
    for wrong in ('{"path":1,"source":"a"}', '{"path":"final","source":[1]}', '{"path":"final"}', '{"source":"a"}'):
        with pytest.raises(ValueError, match="Patch"):
            decode(f'[["Patch",{wrong}]]')


def test_a_file_brings_a_patch_back(tmp_path):
    opened = shaped("post")
    trace = traced(opened, SOURCE)
    patch = patch_from(opened, traced(opened, OTHER), "memory", ((1, 1),))
    opened.rerun(trace, (patch,)).save(tmp_path / "run.npz")
    (loaded,) = Trace.load(tmp_path / "run.npz").interventions
    assert loaded == patch
    assert loaded.origin == patch.origin
