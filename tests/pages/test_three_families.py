"""Three families: the matrix and the rerun are the model's, and each family's checkpoint can be opened."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl

import numpy as np
import pytest

from model.analysis.heads.three_families import causal_encoder, family_masks, join_attention
from model.run import Run
from pages.views.attention.three_families import joined, masks
from tests.pages.figures import figure, numbers

if TYPE_CHECKING:
    from model.checkpoints.translator import Translator

PAGE = "pages/three_families.py"
SOURCE, TEXT = "a dog and a cat", "Ein Hund mit einer Katze."


def test_the_matrix_is_the_runs(open_app: Callable, translator: "Translator") -> None:
    app = open_app(PAGE, source=SOURCE, target="Typed", typed=TEXT, layer="1", head="3")
    assert not app.exception
    joined = join_attention(translator.trace(SOURCE, TEXT), 1, 3)
    drawn = numbers(figure(app, "three_families-matrix")["data"][0]["z"])
    np.testing.assert_allclose(drawn[joined["mask"]], joined["weights"][joined["mask"]], rtol=1e-5, atol=1e-7)
    assert np.isnan(drawn[~joined["mask"]]).all()


def test_the_causal_encoder_is_a_run_of_the_model(open_app: Callable, translator: "Translator") -> None:
    app = open_app(PAGE, source=SOURCE, target="Greedy", families_part="A causal encoder")
    assert not app.exception
    own = translator.trace(SOURCE, beam_size=1)
    changes = (causal_encoder(len(own.src_ids)),)
    after = translator.rerun(own, changes)
    bars = [numbers(bar["y"]) for bar in figure(app, "three_families-probabilities")["data"]]
    assert bars[0] == pytest.approx(own.target_log_probabilities, abs=1e-4)
    assert bars[1] == pytest.approx(after.target_log_probabilities, abs=1e-4)
    assert any("−" in caption.value and "nats as trained" in caption.value for caption in app.caption)


def test_each_family_has_a_map_of_its_mask_and_a_line_where_the_source_ends(translator: "Translator") -> None:
    run = Run.of(translator, translator.trace(SOURCE, TEXT), "cross", 1, 2)
    n, m = len(run.trace.src_ids), len(run.trace.tgt_tokens)
    result = masks(run)
    drawn = result.shows["masks"].draw()
    panels = [np.isfinite(numbers(one.z)) for one in drawn.data if one.hovertemplate.startswith("may attend")]
    for name, mask, panel in zip(*zip(*family_masks(n, m).items(), strict=True), panels, strict=True):
        assert np.array_equal(panel, mask), name
        assert np.array_equal(result.arrays()[name], mask)
    for view, count in ((masks, 3), (joined, 1)):
        (form,) = view(run).shows.values()
        assert {(mark.panel, mark.x, mark.y) for mark in form.marks} == {
            (panel, *place) for panel in range(1, count + 1) for place in ((n - 0.5, None), (None, n - 0.5))
        }


@pytest.mark.parametrize("source", ["a dog and a cat", "50 % <b> & [x](y) ) #1?"])
def test_a_link_opens_a_checkpoint_of_each_family_on_the_same_text(open_family: Callable, source: str) -> None:
    app = open_family(PAGE, checkpoint="unscaled", source=source, target="Greedy")
    assert not app.exception
    links = [button.proto.url.partition("?") for button in app.get("link_button")]
    pages = ("heads_and_layers", "continue_text", "fill_in")
    assert [page for page, *_ in links] == list(pages)
    assert [dict(parse_qsl(query)) for *_, query in links] == [
        {"checkpoint": name, "source": source} for name in ("unscaled", "lm", "mlm")
    ]


def test_a_family_of_which_no_checkpoint_is_there_is_named(
    translator: "Translator", monkeypatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("ATTENTION_EXPLORER_CHECKPOINTS", str(tmp_path))
    result = joined(Run.of(translator, translator.trace(SOURCE, TEXT)))
    missing = [block.text for block in result.blocks if "no checkpoint of this family" in block.text]
    assert len(missing) == 3
