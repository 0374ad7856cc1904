"""Three families: the matrix and the rerun are the model's, and each family's checkpoint can be opened."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import pytest

from model.analysis.three_families import causal_encoder, join_attention
from tests.pages.figures import figure, numbers

if TYPE_CHECKING:
    from model.checkpoints.translator import Translator

PAGE = "pages/three_families.py"
SOURCE, TEXT = "a dog and a cat", "Ein Hund mit einer Katze."


def test_the_matrix_is_the_runs(open_app: Callable, translator: "Translator") -> None:
    app = open_app(PAGE, source=SOURCE, target="Typed", typed=TEXT, layer="1", head="3")
    assert not app.exception
    joined = join_attention(translator.trace(SOURCE, TEXT), 1, 3)
    drawn = numbers(figure(app, "families-joined")["data"][0]["z"])
    np.testing.assert_allclose(drawn[joined["mask"]], joined["weights"][joined["mask"]], rtol=1e-5, atol=1e-7)
    assert np.isnan(drawn[~joined["mask"]]).all()


def test_the_causal_encoder_is_a_run_of_the_model(open_app: Callable, translator: "Translator") -> None:
    app = open_app(PAGE, source=SOURCE, target="Greedy", families_part="A causal encoder")
    assert not app.exception
    own = translator.trace(SOURCE, beam_size=1)
    changes = (causal_encoder(len(own.src_ids)),)
    after = translator.rerun(own, changes)
    bars = [numbers(bar["y"]) for bar in figure(app, "families-one-way")["data"]]
    assert bars[0] == pytest.approx(own.target_log_probabilities, abs=1e-4)
    assert bars[1] == pytest.approx(after.target_log_probabilities, abs=1e-4)
    assert any("−" in caption.value and "nats as trained" in caption.value for caption in app.caption)


@pytest.mark.parametrize("source", ["A", "A dog runs. " * 12])
@pytest.mark.parametrize("tab", ["Masks of the families", "A causal encoder"])
def test_one_word_and_a_hundred_tokens(open_app: Callable, source: str, tab: str) -> None:
    app = open_app(PAGE, source=source, target="Greedy", families_part=tab)
    assert not app.exception
