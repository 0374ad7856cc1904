"""The arithmetic of one cell leads, number by number, to the run's own."""

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from tests.viz.payload import PLACES, decode
from viz.latex import latex_number, number
from viz.steps.arithmetic import explain_step, result_chain
from viz.steps.head import Choice, Head, head_of
from viz.steps.steps import all_steps, picture
from viz.steps.strips import arithmetic_picture, number_texts

if TYPE_CHECKING:
    from model.checkpoints.translator import Translator
    from model.trace import Trace


def test_a_model_that_does_not_scale_its_scores_divides_by_one(translator: "Translator") -> None:
    from tests.model.tiny import random_model

    model = random_model(replace(translator.model.config, scale_scores=False))
    a = replace(translator, model=model).trace("Two dogs", "Zwei Hunde").attention("cross", 1)
    shown, choice = head_of(a, 2), Choice()
    np.testing.assert_array_equal(shown.scaled, shown.scores)
    assert result_chain(shown, choice)[2] == ("÷ 1", number(a.scores[2, 0, 0]))
    assert "sqrt" not in explain_step(2, shown, choice).latex
    assert "leaves the division out" in all_steps()[2].text(shown)


@pytest.mark.parametrize(("kind", "layer", "head"), PLACES)
def test_the_arithmetic_ends_at_the_run_s_numbers(trace: "Trace", kind: str, layer: int, head: int) -> None:
    a = trace.attention(kind, layer)
    shown = head_of(a, head)
    i, j, c, o = len(a.query_tokens) - 1, 1, 3, 20
    choice = Choice(query=i, key=j, dimension=c, output=o)
    scores, scaling, softmax, weighted, output = (explain_step(step, shown, choice) for step in (1, 2, 4, 5, 6))
    q, k, products = (row.values for row in scores.strips[0].rows)
    np.testing.assert_array_equal(q, a.q[head, i])
    np.testing.assert_array_equal(k, a.k[head, j])
    np.testing.assert_allclose(products, q.astype(float) * k)
    assert products.sum() == pytest.approx(a.scores[head, i, j], abs=1e-4)
    assert number(a.scores[head, i, j], 5) in scores.strips[0].result
    assert latex_number(a.scores[head, i, j]) in scores.latex
    assert latex_number(a.scaled[head, i, j]) in scaling.latex
    assert softmax.latex.endswith(f"= {latex_number(a.pattern[head, i, j])}")
    assert weighted.latex.endswith(f"= {latex_number(a.z[head, i, c])}")
    np.testing.assert_array_equal(weighted.strips[0].rows[0].values, a.v[head, j])
    np.testing.assert_array_equal(weighted.strips[0].rows[2].values, a.z[head, i])
    assert weighted.strips[1].rows[2].values.sum() == pytest.approx(a.z[head, i, c], abs=1e-5)
    assert output.latex.endswith(f"= {latex_number(a.out[i, o])}")
    own, everyone = output.strips
    assert own.rows[2].values.sum() == pytest.approx(everyone.rows[0].values[head])
    assert everyone.rows[0].values.sum() == pytest.approx(a.out[i, o], abs=1e-5)


@pytest.mark.parametrize(("softcap", "bias"), [(0.5, False), (None, True), (0.5, True)])
def test_mask_and_softmax_read_the_capped_score_with_its_bias_where_a_model_has_them(
    trace: "Trace", softcap: float | None, bias: bool
) -> None:
    kind, layer, index = PLACES[0]
    plain = trace.attention(kind, layer)
    added = np.random.default_rng(0).normal(size=plain.scores.shape).astype(np.float32) if bias else None
    a = replace(plain, softcap=softcap, bias=added)
    shown, choice = head_of(a, index), Choice(query=len(a.query_tokens) - 1, key=1)
    i, seen = choice.query, a.mask[index, choice.query]
    masking, softmax = (explain_step(step, shown, choice).strips[0].rows for step in (3, 4))
    read = a.pre_softmax[index, i]
    assert np.abs(read - a.scaled[index, i])[seen].max() > 0.01
    np.testing.assert_array_equal(masking[-1].values[seen], read[seen])
    np.testing.assert_array_equal(softmax[0].values[seen], read[seen])
    np.testing.assert_allclose(softmax[1].values[seen], read[seen] / shown.temperature, rtol=1e-6)
    assert latex_number(a.pre_softmax[index, i, 1]) in explain_step(3, shown, choice).latex


def test_the_softmax_is_shown_term_by_term_with_its_temperature(translator: "Translator") -> None:
    from model.interventions import AttentionTemperature

    trace = translator.trace("a dog and a cat", target="Ein Hund.", interventions=(AttentionTemperature(0.25),))
    a = trace.attention("decoder_self", 1)
    head = head_of(a, 3)
    for query in range(len(a.query_tokens)):
        strip = explain_step(4, head, Choice(query=query, key=0)).strips[0]
        masked, cooled, shifted, powers, weights = strip.rows
        seen = a.mask[3, query]
        np.testing.assert_array_equal(masked.values[seen], a.scaled[3, query][seen])
        np.testing.assert_allclose(cooled.values[seen], a.scaled[3, query][seen] * 4.0, rtol=1e-6)
        assert shifted.values[seen].max() == 0
        np.testing.assert_allclose(powers.values / powers.values.sum(), a.pattern[3, query], atol=1e-6)
        np.testing.assert_array_equal(weights.values, a.pattern[3, query])
        np.testing.assert_array_equal(weights.allowed, seen)


@pytest.mark.parametrize("name", ["Q", "K", "V"])
def test_an_element_of_a_projection_is_worked_out(trace: "Trace", name: str) -> None:
    a = trace.attention("cross", 1)
    choice = Choice(query=2, key=4, dimension=6, projection=name)
    shown = explain_step(0, head_of(a, 1), choice)
    row = choice.query if name == "Q" else choice.key
    expected = getattr(a, name.lower())[1, row, 6]
    x, w, products = (line.values for line in shown.strips[0].rows)
    np.testing.assert_array_equal(x, (a.query_input if name == "Q" else a.key_input)[row])
    np.testing.assert_array_equal(w, getattr(a.projections, f"w_{name.lower()}")[1][:, 6])
    bias = getattr(a.projections, f"b_{name.lower()}")[1, 6]
    assert products.sum() + bias == pytest.approx(expected, abs=1e-5)
    assert shown.latex.endswith(f"= {latex_number(expected)}")


def test_a_masked_cell_goes_to_minus_infinity_and_weighs_nothing(trace: "Trace") -> None:
    head = head_of(trace.attention("decoder_self", 0), 0)
    choice = Choice(query=0, key=2)
    masking, softmax = explain_step(3, head, choice), explain_step(4, head, choice)
    assert "key 2 is masked for query 0" in masking.latex
    assert masking.latex.endswith(r"-\infty")
    assert softmax.latex.endswith("= 0")
    assert result_chain(head, choice)[3:5] == [("mask", "masked: −∞"), ("weight", "0")]
    cells = arithmetic_picture(softmax, result_chain(head, choice), 4).data["strips"][0]["rows"]
    assert cells[0]["values"][2] is None
    assert cells[0]["texts"][2] == "−∞"
    assert cells[4]["masked"][2]


def test_a_query_that_sees_nothing_has_no_softmax(trace: "Trace") -> None:
    a = trace.attention("decoder_self", 0)
    blind = replace(a, mask=np.zeros_like(a.mask), pattern=np.zeros_like(a.pattern), z=np.zeros_like(a.z))
    head = head_of(blind, 0)
    for step in range(7):
        assert decode(picture(step, head, Choice(), "title"))
        assert json.loads(
            json.dumps(arithmetic_picture(explain_step(step, head, Choice()), result_chain(head, Choice()), step).data)
        )
    assert "no key" in explain_step(4, head, Choice()).latex


def test_the_numbers_of_a_cell_pass_through_all_steps(trace: "Trace") -> None:
    a = trace.attention("encoder_self", 1)
    links = result_chain(head_of(a, 2), Choice(query=1, key=3, dimension=4, output=9))
    assert len(links) == len(all_steps()) == 7
    assert links[1][1] == number(a.scores[2, 1, 3])
    assert links[2][1] == number(a.scaled[2, 1, 3])
    assert links[4][1] == number(a.pattern[2, 1, 3])
    assert links[6][1] == number(a.out[1, 9])


def test_every_payload_is_valid_json_for_a_browser(trace: "Trace") -> None:
    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is no JSON")

    head = head_of(trace.attention("decoder_self", 0), 1)
    for step in range(7):
        drawing = arithmetic_picture(explain_step(step, head, Choice(0, 3)), result_chain(head, Choice(0, 3)), step)
        text = json.dumps(drawing.data)
        json.loads(text, parse_constant=refuse)


def test_numbers_are_written_as_they_are_read() -> None:
    assert [number(x) for x in (0.0, 1.0, -12.3456, 1e-7, -np.inf)] == ["0", "1.000", "−12.35", "1.000 · 10⁻⁷", "−∞"]
    assert latex_number(-1.5e-7, 3) == r"-1.50 \cdot 10^{-7}"
    assert latex_number(-np.inf) == r"-\infty"
    assert number_texts(np.array([0.0, -0.25, 4e-5, 12.0, -np.inf])) == ["0.000", "−0.250", "4 · 10⁻⁵", "12.000", "−∞"]


def test_a_head_is_cut_out_at_its_own_index(trace: "Trace") -> None:
    a = trace.attention("encoder_self", 0)
    cut: list[Head] = [head_of(a, index) for index in range(a.n_heads)]
    for index, head in enumerate(cut):
        np.testing.assert_allclose(head.contributions()[index], a.z[index].astype(float) @ a.projections.w_o[index])
        np.testing.assert_allclose(head.contributions(2)[:, 0], head.contributions()[:, 2])
