"""The Trace: frozen arrays with their tokens, and sentences where they do not fit."""

import base64
import dataclasses
import html
import io
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from model.hooks import recording
from model.network.config import BOS, EOS
from tests.model.strategies import arrays, with_stream


def test_it_holds_what_the_model_computed_element_by_element(trace, translator):
    with recording(translator.model) as activations:
        translator.model(torch.tensor([trace.src_ids]), torch.tensor([trace.tgt_ids]))
    assert np.array_equal(trace.logits, activations["logits"][0])
    assert np.array_equal(trace.memory, activations["memory"][0])
    for (kind, layer), attention in trace.attentions.items():
        path = translator.model.attentions()[kind, layer][0]
        assert (attention.kind, attention.layer) == (kind, layer)
        for name in ("q", "k", "v", "scores", "scaled", "mask", "pattern", "z", "out"):
            assert np.array_equal(getattr(attention, name), activations[f"{path}.{name}"][0]), (path, name)
    for sublayer in trace.sublayers:
        path = f"{sublayer.stack}.layers.{sublayer.layer}.{sublayer.name}"
        assert np.array_equal(sublayer.out, activations[f"{path}.out"][0])
        assert np.array_equal(sublayer.before, activations[f"{path}_residual.before"][0])
        assert (sublayer.hidden is not None) == (sublayer.name == "feed_forward")


def test_a_decoder_row_reads_one_token_and_predicts_the_next(trace, tokenizer):
    """Claim 12: the start token is there, and the last token is only predicted."""
    assert trace.tgt_tokens[0] == "<s>"
    assert trace.tgt_tokens[1:] == trace.next_tokens[:-1]
    assert trace.next_tokens[-1] == trace.src_tokens[-1] == "</s>"
    assert trace.tgt_ids == (BOS, *tokenizer.encode("Ein Hund mit einer Katze."))
    assert trace.next_ids == (*tokenizer.encode("Ein Hund mit einer Katze."), EOS)
    assert trace.src_ids == (*tokenizer.encode("a dog and a cat"), EOS)
    assert trace.translation == "Ein Hund mit einer Katze."


def test_sublayers_stand_in_the_order_in_which_they_run(trace):
    encoder = [("encoder", i, name) for i in range(2) for name in ("self_attn", "feed_forward")]
    decoder = [("decoder", i, name) for i in range(2) for name in ("self_attn", "cross_attn", "feed_forward")]
    assert [(s.stack, s.layer, s.name) for s in trace.sublayers] == encoder + decoder


def test_probabilities_are_of_the_whole_vocabulary(trace):
    assert trace.probabilities.shape == trace.logits.shape == (len(trace.tgt_tokens), 360)
    np.testing.assert_allclose(trace.probabilities.sum(-1), 1, rtol=1e-12)
    expected = torch.tensor(trace.logits).double().softmax(-1)
    np.testing.assert_allclose(trace.probabilities, expected, rtol=1e-12)


def test_the_targets_probabilities_are_those_of_the_tokens_that_follow_each_row(trace):
    chosen = [row[token] for row, token in zip(trace.probabilities, trace.next_ids, strict=True)]
    np.testing.assert_array_equal(trace.target_probabilities, chosen)
    assert trace.target_log_probabilities.sum() == pytest.approx(np.log(np.prod(chosen)), rel=1e-9)


def test_a_probability_too_small_for_a_double_still_has_a_logarithm(trace):
    logits = np.zeros_like(trace.logits)
    logits[:, trace.next_ids] = -2000.0
    changed = dataclasses.replace(trace, logits=logits)
    assert np.isfinite(changed.target_log_probabilities).all()


def test_candidates_are_the_most_probable_tokens_best_first(trace, tokenizer):
    for row, candidates in zip(trace.probabilities, trace.candidates, strict=True):
        probabilities = [candidate.probability for candidate in candidates]
        np.testing.assert_allclose(probabilities, np.sort(row)[::-1][: len(candidates)], rtol=1e-12)
        for candidate in candidates:
            assert row[candidate.id] == pytest.approx(candidate.probability, rel=1e-12)
            assert [candidate.token] == tokenizer.tokens([candidate.id])


def test_projections_are_the_weights_cut_into_heads(trace, translator):
    attention = trace.attention("cross", 1)
    module = translator.model.attentions()["cross", 1][1]
    for head in range(4):
        columns = slice(8 * head, 8 * head + 8)
        assert np.array_equal(attention.projections.w_q[head], module.w_q.weight.T[:, columns])
        assert np.array_equal(attention.projections.b_v[head], module.w_v.bias[columns])
        assert np.array_equal(attention.projections.w_o[head], module.w_o.weight.T[columns])
        q = attention.query_input @ attention.projections.w_q[head] + attention.projections.b_q[head]
        np.testing.assert_allclose(q, attention.q[head], rtol=0, atol=1e-5)
    assert np.array_equal(attention.concat[:, 8:16], attention.z[1])
    assert np.array_equal(trace.attention("cross", 0).key_input, trace.memory)


@pytest.mark.parametrize(
    ("field", "value", "expected"),
    [
        ("pattern", np.zeros((4, 3, 2)), "Attention.pattern has shape (4, 3, 2), expected (4, "),
        ("k", np.zeros((4, 1, 8)), "Attention.k has shape (4, 1, 8), expected (4, "),
        ("temperature", np.ones(3), "Attention.temperature has shape (3,), expected (4,)"),
        ("query_input", np.ones((1, 1)), "Attention.query_input has shape (1, 1), expected ("),
        ("key_tokens", ("a",), "expected (4, 1, 8) for"),
    ],
)
def test_an_attention_that_does_not_fit_its_tokens_prints_both(trace, field, value, expected):
    with pytest.raises(ValueError, match=r"has shape .*, expected .* for .* query tokens") as error:
        dataclasses.replace(trace.attention("cross", 0), **{field: value})
    assert expected in str(error.value)
    assert repr(trace.attention("cross", 0).query_tokens) in str(error.value)


def test_a_trace_that_does_not_fit_its_tokens_prints_both(trace):
    with pytest.raises(ValueError, match=r"Trace\.logits has shape \(2, 360\), expected") as error:
        dataclasses.replace(trace, logits=trace.logits[:2])
    assert repr(trace.tgt_tokens) in str(error.value)
    with pytest.raises(ValueError, match=r"Stream\.final has shape"):
        with_stream(trace, "encoder", final=trace.memory[1:])
    predicts = dataclasses.replace(trace.streams["decoder"].predicts, labels=("x",))
    with pytest.raises(ValueError, match=r"1 next tokens \('x',\) for"):
        with_stream(trace, "decoder", predicts=predicts)


def test_an_attention_that_is_not_there_lists_those_that_are(trace):
    assert trace.attention("cross", layer=1).layer == 1
    for wrong in (("cross", 2), ("self", 0), ("cross", "0"), ("cross", -1)):
        with pytest.raises(ValueError, match="no attention") as error:
            trace.attention(*wrong)
        assert "encoder_self 0, encoder_self 1, decoder_self 0, decoder_self 1, cross 0, cross 1" in str(error.value)


def test_nothing_in_a_trace_can_be_changed_and_so_no_weight_of_the_shared_model(trace):
    with pytest.raises(dataclasses.FrozenInstanceError):
        trace.device = "other"
    with pytest.raises(dataclasses.FrozenInstanceError):
        trace.attention("cross", 0).layer = 1
    for path, array in arrays(trace):
        assert not array.flags.writeable, path
    with pytest.raises(ValueError, match="read-only"):
        trace.attention("cross", 0).projections.b_o[0] = 1


def test_the_module_needs_numpy_and_nothing_else_also_to_load_a_run(trace, tmp_path):
    trace.save(tmp_path / "run.npz")
    program = (
        "import sys; begun = set(sys.modules)\n"
        "from model.trace import Trace\n"
        "print(len(Trace.load(sys.argv[1]).attentions), *{name.split('.')[0] for name in set(sys.modules) - begun})"
    )
    command = [sys.executable, "-c", program, str(tmp_path / "run.npz")]
    done = subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, text=True, check=True)
    count, *loaded = done.stdout.split()
    assert int(count) == len(trace.attentions)
    assert {*loaded} - sys.stdlib_module_names == {"numpy", "model"}


def test_what_a_notebook_prints_of_a_run_is_one_line(translator) -> None:
    trace = translator.trace("a dog\u202e and a cat")
    for value in (translator, trace, trace.attention("cross", 0)):
        assert len(repr(value)) < 300
        assert repr(value).isprintable()
    assert translator.hash[:8] in repr(translator)


def test_what_a_notebook_shows_of_a_run_is_a_picture_of_every_head(translator) -> None:
    """Decoded again, its pixels are the weights, to the 255 steps of grey; a long text is a line alone."""
    image = pytest.importorskip("PIL.Image")
    trace = translator.trace("a dog <b>")
    shown = trace._repr_html_()
    assert html.escape(repr(trace)) in shown
    pictures = re.findall(r"base64,([^\"]+)", shown)
    assert len(pictures) == len(trace.kinds)
    for kind, picture in zip(trace.kinds, pictures, strict=True):
        pixels = np.asarray(image.open(io.BytesIO(base64.b64decode(picture))))
        weights = trace.attention(kind.name, kind.layers[-1]).pattern[-1]
        rows, columns = weights.shape
        last = pixels[-rows - 1 : -1, -columns - 1 : -1]
        np.testing.assert_allclose(1 - last / 255, weights, atol=0.5 / 255 + 1e-6)
        assert pixels.shape == ((rows + 1) * len(kind.layers), (columns + 1) * kind.heads)
