"""The checkpoints that come with the project: whole, nothing but data, and what the pages say of them holds."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.checkpoints.store import DEFAULT_CHECKPOINT, load_checkpoint
from model.checkpoints.tokenizer import Tokenizer
from model.checkpoints.translator import Translator
from model.interventions import AttentionTemperature
from model.proof.checks import prove

FOLDER = Path(__file__).parents[3] / "checkpoints"
NAMES = sorted(path.parent.name for path in FOLDER.glob("*/config.json"))
SENTENCE = "Two young men are cooking in a kitchen."


@pytest.fixture(scope="module", params=NAMES)
def shipped(request) -> Translator:
    return load_checkpoint(str(FOLDER / request.param), device="cpu")


@pytest.mark.parametrize("name", NAMES)
def test_a_checkpoint_is_nothing_but_data(name):
    suffixes = {path.suffix for path in (FOLDER / name).rglob("*") if path.is_file()}
    assert suffixes <= {".json", ".npz", ".model", ".safetensors", ".csv", ".tsv", ".txt", ".md"}


@pytest.mark.parametrize("interventions", [(), (AttentionTemperature(0.05),), (AttentionTemperature(20.0),)])
def test_the_proof_strip_is_green_on_trained_weights(shipped, interventions):
    trace = shipped.trace(SENTENCE, beam_size=1, interventions=interventions)
    for check in prove(shipped, trace):
        assert check.passed, (check.title, check.error)


@given(text=st.text())
@pytest.mark.parametrize("name", NAMES)
def test_every_text_comes_back_from_the_shipped_vocabulary(name, text):
    tokenizer = Tokenizer((FOLDER / name / "tokenizer.model").read_bytes())
    assert tokenizer.decode(tokenizer.encode(text)) == text


def test_the_example_sentence_becomes_german():
    translator = load_checkpoint(str(FOLDER / DEFAULT_CHECKPOINT), device="cpu")
    (translation,) = translator.translate([SENTENCE])
    assert "Männer" in translation
    assert translator.trace(SENTENCE).translation == translation
