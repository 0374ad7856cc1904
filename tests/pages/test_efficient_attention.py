"""Efficient attention: the tile, the sums and the output that are drawn are those of the chosen head and step."""

import re
from collections.abc import Callable

import numpy as np
import pytest

from model.analysis.flash import flash_attention
from tests.pages.figures import figure, numbers, words

pytest.importorskip("streamlit")

PAGE = "pages/efficient_attention.py"
SOURCE, TARGET = "A dog runs and a cat sat.", "Ein Hund rennt."


@pytest.mark.parametrize("kind", ["Encoder self-attention", "Decoder self-attention", "Cross-attention"])
def test_a_step_draws_its_tile_and_the_output_so_far(kind: str, open_app: Callable, translator) -> None:
    query = {"source": SOURCE, "target": "Typed", "typed": TARGET, "kind": kind, "layer": "1", "head": "2"}
    app = open_app(PAGE, **query, flash_tile="2 × 2", flash_step="4")
    assert not app.exception
    name = {"E": "encoder_self", "D": "decoder_self", "C": "cross"}[kind[0]]
    attention = translator.trace(SOURCE, TARGET).attention(name, 1)
    run = flash_attention(attention, 2, 2)
    (top, bottom), (left, right) = run.rows[3], run.columns[3]
    tile = numbers(figure(app, "flash-tile")["data"][0]["z"])
    assert np.isfinite(tile).sum() == attention.mask[2, top:bottom, left:right].sum()
    np.testing.assert_allclose(tile[top:bottom, left:right], run.scores[top:bottom, left:right], rtol=1e-5)
    np.testing.assert_allclose(numbers(figure(app, "flash-output")["data"][0]["z"]), run.o[4], rtol=1e-4, atol=1e-6)
    assert app.dataframe[0].value["ℓ after"].tolist() == run.l[4, top:bottom].tolist()
    said = words(app)
    assert f"{run.tile_bytes:,} bytes" in said
    assert f"{len(run.rows)} of {len(run.rows) + len(run.skipped)} tiles were read" in said
    assert "a change in this run" not in said
    assert ("masked as a whole and skipped" in said) == (name == "decoder_self")


def test_another_tile_size_keeps_to_the_steps_there_are(open_app: Callable) -> None:
    app = open_app(PAGE, source=SOURCE, flash_tile="2 × 2", flash_step="20")
    app.session_state["flash_tile"] = 8
    app.run()
    assert not app.exception
    step, steps = re.search(r"Tile (\d+)\D+of (\d+)", words(app)).groups()
    assert step == steps


def test_weights_changed_after_q_and_k_are_said_to_differ(open_app: Callable) -> None:
    app = open_app(PAGE, source=SOURCE, changes="uniform@encoder_self", kept="1")
    assert not app.exception
    assert "a change in this run acts on the scores or weights after q and k" in words(app)
