"""Revision reports: what differs between two models of one architecture, by weights, outputs and translations."""

import copy
import re
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
import torch

from model.analysis.runs.revisions import block_differences, head_differences, ranked_heads, round_weights
from model.checkpoints.checkpoint import Checkpoint
from model.checkpoints.huggingface.opening import open_model
from model.checkpoints.store import DEFAULT_CHECKPOINT, load_checkpoint
from model.commands import compare
from model.evaluate import Measured
from tests.model.checkpoints.huggingface.families import tiny_model
from tests.model.strategies import shaped
from tests.model.tiny import SENTENCES

TEXTS = [source for source, _ in SENTENCES[:2]]

pytestmark = pytest.mark.usefixtures("checkpoint_folder")


@pytest.fixture(scope="module")
def language_model() -> Checkpoint:
    return shaped("post", "language model")


def changed(opened: Checkpoint, kind: str, layer: int, head: int, matrix: str) -> Checkpoint:
    """The same model on its own, with one head's part of one matrix moved by a tenth."""
    model = copy.deepcopy(opened.model)
    _, attention = model.attentions()[kind, layer]
    weight = getattr(attention, matrix).weight
    width = opened.config.d_k
    of_head = slice(head * width, (head + 1) * width)
    part = weight[:, of_head] if matrix == "w_o" else weight[of_head]
    part *= 1.1
    return replace(opened, model=model)


def cases(opened: Checkpoint, matrices: tuple[str, ...]) -> Iterator[tuple[str, int, int, str]]:
    """Each head with one of the matrices, in turn, and from layer to layer with another."""
    for kind in opened.kinds:
        for layer in kind.layers:
            for head in range(kind.heads):
                yield kind.name, layer, head, matrices[(head + layer) % len(matrices)]


def test_one_changed_head_is_first_of_its_ranking_and_its_layer_the_only_one_that_differs(translator, language_model):
    planted = 0
    for opened, matrices in ((translator, ("w_q", "w_o")), (language_model, ("w_k", "w_v"))):
        before = opened.trace(TEXTS[0])
        for kind, layer, head, matrix in cases(opened, matrices):
            after = changed(opened, kind, layer, head, matrix)
            ranking = ranked_heads(head_differences(before, after.rerun(before, ())))
            assert ranking[0][:3] == (kind, layer, head)
            assert ranking[0][3] > 0
            assert {moved for *_, moved in ranking[1:]} == {0.0}
            stack = before.kind(kind).queries
            assert [block.name for block in block_differences(opened, after) if block.relative] == [
                f"{stack}.layers.{layer}"
            ]
            planted += 1
    assert planted == 32


def test_a_model_and_itself_differ_in_nothing(translator):
    found = compare.report(translator, translator, TEXTS, [target for _, target in SENTENCES[:2]])
    assert {block.relative for block in found.blocks} == {0.0}
    assert {moved for *_, moved in ranked_heads(found.heads)} == {0.0}
    assert set(found.outputs.streams.values()) == {0.0}
    assert (found.outputs.first, found.outputs.guesses, found.outputs.log_probability) == (None, 0.0, 0.0)
    assert found.changed == []
    assert found.p_values == {"BLEU": 1.0, "chrF2": 1.0}
    assert set(found.measured().values()) == {0.0}


def test_the_outputs_differ_from_the_changed_head_on(translator):
    after = changed(translator, "decoder_self", 1, 2, "w_v")
    found = compare.report(translator, after, TEXTS)
    assert found.outputs.first == ("decoder", 1, "self_attn")
    streams = found.outputs.streams
    assert {streams[place] for place in streams if place[:2] != ("decoder", 1)} == {0.0}
    assert not found.outputs.patterns["decoder_self", 0].any()
    assert found.outputs.log_probability > 0


@pytest.mark.parametrize(("precision", "most"), [("bf16", 2**-8), ("int8", 0.02)])
def test_a_rounded_twin_is_as_far_as_its_rounding_allows(precision, most, translator):
    twin = compare.open_revision(f"{DEFAULT_CHECKPOINT}:{precision}", "cpu")
    assert twin.hash != translator.hash
    assert all(0 < block.relative < most for block in block_differences(translator, twin) if "norm" not in block.name)
    again = compare.open_revision(f"{DEFAULT_CHECKPOINT}:{precision}", "cpu")
    round_weights(again, precision)  # what is rounded stays as it is
    assert max(block.largest for block in block_differences(twin, again)) < 1e-6
    for weights in twin.model.parameters() if precision == "int8" else ():
        if weights.dim() > 1:
            row = (weights[0] / weights[0].abs().max() * 127).numpy()
            np.testing.assert_allclose(row, row.round(), atol=1e-3)


def test_models_of_other_sizes_are_refused_in_a_sentence(translator, language_model):
    with pytest.raises(ValueError, match=r"not revisions of one model: .* parameters do not exist in both"):
        compare.report(translator, language_model, TEXTS)


def test_two_hugging_face_models_of_one_family_are_compared():
    before, after = (open_model(tiny_model("OPT"), None, name) for name in ("before", "after"))
    run = before.trace("5 17 42 7")
    kind, width = before.kinds[0].name, before.config.d_k
    weight = after.model.get_parameter(
        next(n for n, _ in after.model.named_parameters() if "1.self_attn.v_proj.w" in n)
    )
    with torch.no_grad():
        weight[width : 2 * width] *= 1.5
    ranking = ranked_heads(head_differences(run, after.rerun(run, ())))
    assert ranking[0][:3] == (kind, 1, 1)
    assert {moved for *_, moved in ranking[1:]} == {0.0}
    (block,) = (block for block in block_differences(before, after) if block.relative)
    assert block.name.endswith("layers.1")
    found = compare.report(before, after, ["5 17 42 7"])
    assert found.outputs.first[1:] == (1, "self_attn")
    assert found.translated == 0


def test_the_command_fails_where_a_limit_is_exceeded_and_says_which(data, tmp_path, capsys):
    page = tmp_path / "report.html"
    arguments = [DEFAULT_CHECKPOINT, f"{DEFAULT_CHECKPOINT}:int8", f"--data={data}", "--device=cpu", f"--html={page}"]
    assert compare.main([*arguments, "--fail-on=weights=0.5,bleu=100,translations=100%"]) == 0
    assert compare.main([*arguments, "--fail-on=weights=1e-9,translations=100%"]) == 1
    assert "weights = " in capsys.readouterr().out.splitlines()[-1]
    text = page.read_text(encoding="utf-8")
    assert "default-src 'none'" in text
    assert not re.search(r"(src|href)=|https?://", text)
    assert all(f"<h2>{title}</h2>" in text for title in ("Scores", "Residual stream", "Weights by layer"))


@pytest.mark.parametrize("limits", ["weight=1", "weights", "weights=-1", "bleu=much", "translations=%", ""])
def test_a_limit_that_cannot_be_read_is_refused_with_those_that_can(limits, data, capsys):
    with pytest.raises(SystemExit) as stopped:
        compare.main(["a", "b", f"--data={data}", f"--fail-on={limits}"])
    assert stopped.value.code == 2
    assert "argument --fail-on: must be" in capsys.readouterr().err


def test_names_and_texts_with_markup_are_text_in_the_page(translator):
    found = compare.report(translator, translator, ["<script>alert(1)</script>"], names=("<b>a</b>", "b"))
    found = replace(found, changed=[("<img src=x>", "a", "b")], translated=1)
    assert not re.search(r"<(script|img|b)\b", compare.html_report(found))


def test_a_score_has_its_interval_beside_it_where_one_was_measured(translator):
    scores = {"BLEU": (Measured(30.0, "", 1.5), Measured(31.0, ""))}
    table = replace(compare.report(translator, translator, TEXTS), scores=scores).tables()["Scores"]
    assert table.iloc[0].tolist() == ["BLEU", "30.00 ± 1.50", "31.00", "+1.00", ""]


def test_a_score_cannot_be_limited_without_references(tmp_path):
    path = tmp_path / "texts.txt"
    path.write_text("A dog runs.\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"--fail-on bleu needs translators and lines of source<TAB>reference"):
        compare.main([DEFAULT_CHECKPOINT, DEFAULT_CHECKPOINT, f"--data={path}", "--device=cpu", "--fail-on=bleu=1"])


def test_a_snapshot_is_a_revision():
    with pytest.raises(ValueError, match="has no snapshot of step 7"):
        compare.open_revision(f"{DEFAULT_CHECKPOINT}@7", "cpu")
    assert load_checkpoint(DEFAULT_CHECKPOINT, "cpu").hash == compare.open_revision(DEFAULT_CHECKPOINT, "cpu").hash
