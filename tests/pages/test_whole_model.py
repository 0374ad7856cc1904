"""The page "The whole model": the payload is this run's, and what the picture answers changes the run and the page."""

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from model.analysis.stream.whole_model import model_boxes
from model.checkpoints.huggingface import open_model
from model.checkpoints.store import load_checkpoint
from model.checkpoints.translator import Translator
from model.interventions import ResidualOff, SublayerOff
from model.interventions.link import decode, encode
from model.run import Run
from pages.frame import render
from pages.views.model.whole_model import figure
from tests.pages.conftest import SOURCE, TEXT, TYPED
from tests.pages.figures import words
from tests.viz.payload import unpack
from viz.latex import signed

PAGE = "pages/whole_model.py"


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[dict]:
    """Headers of the payloads that the page has drawn."""
    found: list[dict] = []

    def draw(drawing, _key, **_callbacks):
        found.append(unpack(drawing.data)[0])
        return drawing

    monkeypatch.setattr(render, "draw", draw)
    return found


def test_a_link_brings_back_box_tokens_and_switches(open_app: Callable, translator: Translator, sent) -> None:
    off = (SublayerOff("decoder", 1, "cross_attn"), ResidualOff("encoder", 0, "feed_forward"))
    app = open_app(PAGE, **TYPED, whole_at="decoder.0.feed_forward~3~2", whole_off=encode(off))
    header = sent[-1]
    assert header["chosen"] == {"box": "decoder.0.feed_forward", "positions": {"encoder": 3, "decoder": 2}}
    assert header["off"] == {"decoder.1.cross_attn": ["off"], "encoder.0.feed_forward": ["residual"]}
    assert decode(f"[{','.join(header['changes'])}]") == off
    before = translator.trace(SOURCE, TEXT)
    after = translator.rerun(before, off)
    assert (header["before"], header["after"]) == (before.log_probability, after.log_probability)
    assert header["memory"] == pytest.approx(np.linalg.norm(after.memory.astype(float), axis=-1).mean())
    assert header["rows"][1]["candidates"][2][0][1] == after.candidates[2][0].probability
    assert f"{signed(after.log_probability, '.3f')} nats" in words(app)
    assert "checked on this run, with 2 changes in the model" in words(app)
    place = {"whole_at": "decoder.0.feed_forward~3~2", "whole_off": encode(off)}
    table = open_app(PAGE, **TYPED, **place, whole_tab="All boxes in numbers").dataframe[0].value
    expected = [box.values["out"][{"encoder": 3, "decoder": 2}[box.stack]] for box in model_boxes(translator, after)]
    np.testing.assert_allclose(table["length out"].dropna(), expected[:-1])


@pytest.mark.parametrize("asked", ["", "nowhere~9~9~9", "encoder.0.self_attn~-1~x"])
def test_a_forged_place_becomes_one_that_is_there(open_app: Callable, asked: str, sent) -> None:
    open_app(PAGE, **TYPED, whole_at=asked, whole_off='[["SublayerOff",{"layer":9}]]')
    names = [box["name"] for box in sent[-1]["boxes"]]
    assert sent[-1]["chosen"]["box"] in names
    assert sent[-1]["off"] == {}


def test_each_box_off_shows_what_each_run_gives(open_app: Callable, translator: Translator, sent) -> None:
    app = open_app(PAGE, **TYPED, whole_tab="Each box off")
    table = app.dataframe[0].value
    row = table[table["box"] == "Decoder, layer 1: Cross-attention"].iloc[0]
    trace = translator.trace(SOURCE, TEXT)
    after = translator.rerun(trace, (SublayerOff("decoder", 1, "cross_attn"),))
    assert row["log p, off"] == after.log_probability
    assert row["change, off"] == pytest.approx(after.log_probability - trace.log_probability)
    open_app(PAGE, **TYPED)
    assert sent[-1]["alone"]["decoder.1.cross_attn off"] == after.log_probability, "the picture has them, too"


@pytest.mark.parametrize("name", ["unscaled", "lm", "mlm", "GPT-2", "Gemma 2"])
def test_every_box_says_in_one_sentence_what_it_is_for(name: str, families: Path, others: dict[str, str]) -> None:
    opened = open_model(others[name]) if name in others else load_checkpoint(str(families / name), "cpu")
    run = Run.of(opened, opened.trace("Two dogs run."))
    header, _ = unpack(figure(run).shows["whole_model"].drawing.data)
    purposes = {box["name"]: box["purpose"] for box in header["boxes"]}
    assert list(purposes) == [box.name for box in model_boxes(opened, run.trace)]
    assert all(re.fullmatch(r"[A-Z][^.{}]+\.", sentence) for sentence in purposes.values()), purposes
    looks_back = [box for box, sentence in purposes.items() if ".self_attn" in box and "those before it" in sentence]
    stacks = [kind.name.removesuffix("_self") for kind in run.trace.kinds if kind.causal]
    assert looks_back == [box for box in purposes if re.fullmatch(rf"({'|'.join(stacks)})\.\d+\.self_attn", box)]
