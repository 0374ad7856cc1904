"""The step-by-step pictures and their arithmetic are the run: each number an element of its tensors."""

from itertools import product
from typing import TYPE_CHECKING

import numpy as np
import pytest

from tests.viz.payload import KINDS, PLACES, decode, unpack
from viz import tokens
from viz.drawing import Drawing
from viz.latex import attention_formula
from viz.steps.head import Choice, head_of
from viz.steps.steps import all_steps, picture, result, shapes
from viz.steps.table import table

if TYPE_CHECKING:
    from model.checkpoints.translator import Translator
    from model.trace import Trace


def drawn(trace: "Trace", step: int, kind: str, layer: int, head: int, choice: Choice | None = None):
    """Header and matrices of what the component gets."""
    return decode(picture(step, head_of(trace.attention(kind, layer), head), choice or Choice(), "title"))


def same(matrix: dict, expected: np.ndarray) -> None:
    np.testing.assert_array_equal(matrix["values"], expected.astype(np.float32))


@pytest.mark.parametrize(("kind", "layer", "head"), PLACES)
def test_every_matrix_is_a_slice_of_the_trace(trace: "Trace", kind: str, layer: int, head: int) -> None:
    a = trace.attention(kind, layer)
    learned = a.projections
    key_input = "Y" if kind == "cross" else "X"
    _, first = drawn(trace, 0, kind, layer, head)
    same(first[key_input], a.key_input)
    for name in "qkv":
        same(first[f"W_{name.upper()}"], getattr(learned, f"w_{name}")[head])
        same(first[f"b_{name.upper()}"], getattr(learned, f"b_{name}")[head][None])
        same(first[name.upper()], getattr(a, name)[head])
    if kind == "cross":
        same(first["X"], a.query_input)
    expected = {
        1: {"Q": a.q[head], "K^T": a.k[head].T, "scores": a.scores[head]},
        2: {"scores": a.scores[head], "scaled": a.scaled[head]},
        3: {"scaled": a.scaled[head], "mask": a.mask[head], "masked": np.where(a.mask[head], a.scaled[head], -np.inf)},
        4: {"masked": np.where(a.mask[head], a.scaled[head], -np.inf), "weights": a.pattern[head]},
        5: {"weights": a.pattern[head], "V": a.v[head], f"z_{head}": a.z[head]},
    }
    for step, matrices in expected.items():
        _, found = drawn(trace, step, kind, layer, head)
        assert set(found) == set(matrices)
        for symbol, values in matrices.items():
            same(found[symbol], values)


@pytest.mark.parametrize(("kind", "layer", "head"), PLACES)
def test_the_last_step_joins_all_heads_and_frames_the_chosen_one(
    trace: "Trace", kind: str, layer: int, head: int
) -> None:
    a = trace.attention(kind, layer)
    _, found = drawn(trace, 6, kind, layer, head)
    same(found["concat(z)"], np.concatenate(list(a.z), axis=-1))
    same(found["W_O"], np.concatenate(list(a.projections.w_o), axis=0))
    same(found["b_O"], a.projections.b_o[None])
    same(found["out"], a.out)
    assert found["concat(z)"]["columns"]["heads"]
    assert found["W_O"]["rows"]["heads"]
    block = slice(head * a.d_k, (head + 1) * a.d_k)
    np.testing.assert_array_equal(found["concat(z)"]["values"][:, block], found[f"z_{head}"]["values"])
    np.testing.assert_array_equal(found["W_O"]["values"][block], found[f"W_O,{head}"]["values"])


def test_the_heads_parts_and_the_bias_add_up_to_the_output(trace: "Trace") -> None:
    for kind in KINDS:
        a = trace.attention(kind, 1)
        parts = [drawn(trace, 6, kind, 1, head)[1][f"out_{head}"]["values"] for head in range(a.n_heads)]
        np.testing.assert_allclose(sum(parts) + a.projections.b_o, a.out, atol=1e-5)


def test_rows_are_queries_and_columns_are_keys(trace: "Trace") -> None:
    for kind, symbols in product(KINDS, ({1: "scores"}, {2: "scaled"}, {3: "masked"}, {4: "weights"})):
        ((step, symbol),) = symbols.items()
        a = trace.attention(kind, 0)
        matrix = drawn(trace, step, kind, 0, 0)[1][symbol]
        assert (matrix["rows"]["name"], matrix["columns"]["name"]) == ("query", "key")
        assert matrix["rows"]["labels"] == tokens.labels(a.query_tokens)
        assert matrix["columns"]["labels"] == tokens.labels(a.key_tokens)
        assert matrix["result"]


def test_a_decoder_row_says_what_it_reads_and_predicts(trace: "Trace") -> None:
    rows = tokens.decoder_rows(trace.tgt_tokens, trace.next_tokens)
    head = head_of(trace.attention("cross", 0), 0, tuple(rows))
    _, found = decode(picture(1, head, Choice(), "title"))
    assert found["scores"]["rows"]["notes"] == rows
    assert rows[0].startswith("<s> → ")
    assert found["scores"]["columns"]["notes"] == []


def test_masked_cells_are_hatched_and_nothing_else_is(trace: "Trace") -> None:
    for step, symbol in ((3, "mask"), (3, "masked"), (4, "masked"), (4, "weights"), (5, "weights")):
        matrix = drawn(trace, step, "decoder_self", 1, 2)[1][symbol]
        np.testing.assert_array_equal(matrix["allowed"], np.tri(len(trace.tgt_tokens), dtype=bool))
        assert drawn(trace, step, "cross", 1, 2)[1][symbol]["allowed"].all()
    masked = drawn(trace, 3, "decoder_self", 1, 2)[1]["masked"]
    assert np.isneginf(masked["values"][~masked["allowed"]]).all()
    assert not drawn(trace, 4, "decoder_self", 1, 2)[1]["weights"]["values"][~masked["allowed"]].any()
    for step in (0, 1, 2):
        assert all(matrix["allowed"] is None for matrix in drawn(trace, step, "decoder_self", 1, 2)[1].values())


def test_compared_matrices_share_one_stated_range(trace: "Trace") -> None:
    def ranges(step: int, *symbols: str) -> set:
        found = drawn(trace, step, "decoder_self", 0, 1)[1]
        return {(found[symbol].get("scale"), found[symbol].get("range")) for symbol in symbols}

    assert ranges(2, "scores", "scaled") == {(None, "scores")}
    assert ranges(5, "V", "z_1") == {(None, "values")}
    assert ranges(6, "out", "out_1") == {(None, "out")}
    assert ranges(4, "weights") == ranges(5, "weights") == {("viridis", None)}
    for step in table()["steps"]:
        used = {row["range"] for equation in step["equations"] for row in equation if "range" in row}
        assert used == set(step["ranges"])


def test_the_chosen_cell_is_marked_where_its_axes_mean_something(trace: "Trace") -> None:
    choice = Choice(query=2, key=3, dimension=5, output=7)
    marks = [drawn(trace, step, "cross", 0, 0, choice)[0]["chosen"] for step in range(7)]
    assert marks[0] == marks[5] == {"query": 2, "key": 3, "dimension": 5}
    assert marks[1] == marks[2] == marks[3] == marks[4] == {"query": 2, "key": 3}
    assert marks[6] == {"query": 2, "model": 7}


def test_only_the_softmax_can_be_drawn_again(translator: "Translator") -> None:
    from model.interventions import AttentionTemperature

    trace = translator.trace("a dog", target="Ein Hund.", interventions=(AttentionTemperature(0.5, head=1),))
    headers = [drawn(trace, step, "cross", 0, 1)[0] for step in range(7)]
    assert ["temperature" in header for header in headers] == [False] * 4 + [True] + [False] * 2
    assert headers[4]["temperature"] == 0.5
    assert drawn(trace, 4, "cross", 0, 2)[0]["temperature"] == 1


def test_what_is_exported_is_what_is_drawn(trace: "Trace") -> None:
    head = head_of(trace.attention("cross", 0), 1)
    arrays, table = result(4, head)
    np.testing.assert_array_equal(arrays["weights"], trace.attention("cross", 0).pattern[1])
    np.testing.assert_array_equal(table.iloc[:, 1:].to_numpy(), arrays["weights"])
    assert list(table["weights"]) == tokens.numbered(trace.tgt_tokens)
    assert list(table.columns[1:]) == tokens.numbered(trace.src_tokens)


def test_shapes_and_numbers_are_in_words(trace: "Trace") -> None:
    head = head_of(trace.attention("cross", 0), 1)
    n, m = len(trace.tgt_tokens), len(trace.src_tokens)
    assert f"Q: {n} positions × 8 · K and V: {m} positions × 8" in shapes(head)
    assert "√8 = 2.83" in all_steps()[2].text(head)
    for step in all_steps():
        assert step.text(head).endswith(".")
    assert "none of the" in all_steps()[3].text(head)
    hidden = len(trace.tgt_tokens) * (len(trace.tgt_tokens) - 1) // 2
    assert f"{hidden} of {len(trace.tgt_tokens) ** 2}" in all_steps()[3].text(
        head_of(trace.attention("decoder_self", 0), 0)
    )


def test_each_step_lights_its_own_part_of_the_formula(trace: "Trace") -> None:
    head = head_of(trace.attention("encoder_self", 0), 1)
    formulas = ["".join(attention_formula(step, head)) for step in range(7)]
    assert len(set(formulas)) == 7
    for formula in formulas:
        assert formula.replace(r"\vphantom{\boxed", "").count(r"\boxed{") >= 1
        assert formula.count("{") == formula.count("}")
    assert r"\boxed{\textcolor{#0072B2}{Q}\textcolor{#D55E00}{K}^{\top}}" in formulas[1]
    assert "Y" in attention_formula(0, head_of(trace.attention("cross", 0), 1))[0]


def test_a_head_that_is_not_there_is_refused(trace: "Trace") -> None:
    with pytest.raises(ValueError, match="heads are 0 to 3"):
        head_of(trace.attention("cross", 0), 4)


def test_any_bytes_of_labels_survive_the_payload() -> None:
    labels = ["ü\u2028", '"\\', "</script>"]
    header, arrays = unpack(Drawing.pack("matrices", {"labels": labels}, {labels[2]: np.eye(3)}))
    assert header["labels"] == labels
    np.testing.assert_array_equal(arrays["</script>"], np.eye(3))


def test_the_first_step_shows_what_the_matrix_gives_and_what_is_multiplied_where_a_norm_and_a_rotation_lie_between(
    rotated_attention,
):
    head = head_of(rotated_attention, 1)
    assert head.then == "normalise, rotate"
    header, drawn = decode(picture(0, head, Choice(), "title"))
    assert "b_Q" not in drawn, "this model learned no biases, so none is drawn"
    for name in "QKV":
        linear = drawn[f"{name}_pre" if name != "V" else name]["values"]
        assert np.allclose(drawn["X"]["values"] @ drawn[f"W_{name}"]["values"], linear, atol=1e-5)
        assert np.array_equal(drawn[name]["values"], getattr(rotated_attention, name.lower())[1])
    assert ("V_pre" in drawn, header["facts"]["linear_q"]) == (False, "qk_norm.q")
    _, drawn = decode(picture(1, head, Choice(), "title"))
    assert np.allclose(drawn["Q"]["values"] @ drawn["K^T"]["values"], drawn["scores"]["values"], atol=1e-4)
