"""A cell's output: the trace's numbers, in a page of its own that loads nothing and runs nothing that was typed."""

import base64
import html
import re
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from model.trace import Trace
from tests.viz.payload import decode, unpack
from viz.notebook import Output, heads, lines, steps
from viz.steps.head import head_of
from viz.steps.steps import all_steps, result
from viz.tokens import decoder_names, labels

if TYPE_CHECKING:
    from model.checkpoints.translator import Translator

HOSTILE = "</script></iframe>\"'><img src=x onerror=alert(1)>"


def payloads(output: Output) -> list[bytes]:
    """As they arrive in a browser: out of the page in the <iframe>."""
    (page,) = re.findall(r'srcdoc="([^"]*)"', output._repr_html_())
    found = re.findall(r"\[\d+, Uint8Array\.from\(atob\('([^']*)'\)", html.unescape(page))
    return [base64.b64decode(code) for code in found]


def test_all_heads_are_the_runs_weights_to_sixteen_bits(trace: Trace) -> None:
    header, arrays = unpack(*payloads(heads(trace)))
    assert [group["kind"] for group in header["groups"]] == [kind.name for kind in trace.kinds]
    for kind, group in zip(trace.kinds, header["groups"], strict=True):
        assert group["paths"] == [kind.path(layer) for layer in kind.layers]
        for layer, path in zip(kind.layers, group["paths"], strict=True):
            attention = trace.attention(kind.name, layer)
            np.testing.assert_array_equal(arrays[f"{path}.mask"], attention.mask)
            np.testing.assert_allclose(arrays[f"{path}.pattern"], attention.pattern, atol=1e-5)
    (alone,) = unpack(*payloads(heads(trace, ["cross"])))[0]["groups"]
    assert alone["queries"] == decoder_names(labels(trace.tgt_tokens), labels(trace.next_tokens))


def test_lines_are_the_runs_weights_and_name_what_rows_predict(trace: Trace) -> None:
    header, arrays = unpack(*payloads(lines(trace, "cross", 1, heads=[2, 0])))
    for head in (2, 0):
        weights = arrays[f"decoder.layers.1.cross_attn.pattern[{head}]"]
        np.testing.assert_array_equal(weights, trace.attention("cross", 1).pattern[head])
    assert header["heads"] == [2, 0]
    assert header["predicts"] == labels(trace.next_tokens)
    own = unpack(*payloads(lines(trace)))[0]
    assert (own["predicts"], own["title"]) == (None, "Attention weights, encoder self-attention, layer 0")


def test_the_steps_are_the_runs_matrices(trace: Trace) -> None:
    output = steps(trace, "decoder_self", 1, head=3, cell=(2, 1))
    attention = trace.attention("decoder_self", 1)
    found = [decode(payload) for payload in payloads(output)]
    assert len(found) == len(all_steps()) == len(output.sections)
    for step, (header, matrices) in enumerate(found):
        expected, _ = result(step, head_of(attention, 3))
        assert set(matrices) == set(expected)
        for symbol, matrix in matrices.items():
            np.testing.assert_array_equal(matrix["values"], expected[symbol].astype("f4"), err_msg=symbol)
        assert (header["step"], header["chosen"]["query"]) == (step, 2)
    assert any(np.array_equal(matrix["values"], attention.pattern[3]) for matrix in found[4][1].values())
    assert "$" not in "".join(text for _, text in output.sections)


@pytest.mark.parametrize(
    ("show", "sentence"),
    [
        (lambda trace: lines(trace, "cross", 9), "no attention 'cross' in layer 9"),
        (lambda trace: lines(trace, heads=[4]), "there is no head 4; heads are 0 to 3"),
        (lambda trace: steps(trace, head=-1), "there is no head -1"),
        (lambda trace: heads(trace, ["self"]), "no kind of attention 'self'"),
        (lambda trace: steps(without_projections(trace)), "could not be read from this model"),
    ],
)
def test_what_a_run_does_not_have_is_said(show: Callable[[Trace], Any], sentence: str, trace: Trace) -> None:
    with pytest.raises(ValueError, match=re.escape(sentence)):
        show(trace)


def without_projections(trace: Trace) -> Trace:
    attentions = {place: replace(attention, projections=None) for place, attention in trace.attentions.items()}
    return replace(trace, attentions=attentions)


def test_weights_of_which_nothing_else_was_read_are_shown(trace: Trace) -> None:
    weights = {place: attention.pattern for place, attention in trace.attentions.items()}
    alone = replace(trace, attentions={}, weights=weights)
    assert len(payloads(heads(alone))) == len(payloads(lines(alone))) == 1


def test_an_output_has_the_tags_that_it_has_without_what_was_typed(translator: "Translator") -> None:
    plain, typed = (translator.trace(text, target=text) for text in ("A dog.", HOSTILE))
    for show in (heads, lines, steps):
        cells = [show(trace)._repr_html_() for trace in (plain, typed)]
        assert [re.findall("</?[a-z]+", cell) for cell in cells] == [["<iframe", "</iframe"]] * 2
        pages = [re.findall(r"<(?!\\)/?[a-z0-9]+", show(trace).html()) for trace in (plain, typed)]
        assert pages[0] == pages[1]
        assert HOSTILE not in repr(show(typed))


def test_the_footer_names_text_checkpoint_and_changes(trace: Trace) -> None:
    page = heads(trace).html()
    assert "a dog and a cat → Ein Hund mit einer Katze." in page
    assert f"checkpoint {trace.checkpoint}, SHA-256 {trace.checkpoint_hash}" in page
    assert "default-src 'none'" in page
