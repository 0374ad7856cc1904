"""Marian's folders, as opus-mt has them: every part of theirs is read, and they translate as in transformers."""

from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import MarianMTModel, MarianTokenizer

from model.checkpoints.huggingface import open_model
from model.checkpoints.huggingface.opened import HookedTranslator
from model.interventions import AttentionTemperature
from model.proof.checks import prove
from tests.model.checkpoints.huggingface.folders import save_marian
from tests.model.tiny import SENTENCES

TEXTS = ["The cat sat on the mat.", "Unseen words, 42 %."]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_marian(tmp_path_factory.mktemp("marian") / "opus-mt-en-de")


@pytest.fixture(scope="module")
def opened(folder: Path) -> HookedTranslator:
    return open_model(folder)


@pytest.fixture(scope="module")
def eager(folder: Path) -> MarianMTModel:
    return MarianMTModel.from_pretrained(folder, attn_implementation="eager").eval()


def test_every_part_is_read(opened: HookedTranslator, eager: MarianMTModel) -> None:
    assert not opened.notes
    assert (opened.config.activation, opened.config.positions) == ("silu", "sinusoidal")
    assert float(opened.model.head.bias.abs().max()) > 0.1, "final_logits_bias"
    trace = opened.trace(TEXTS[0])
    with torch.inference_mode():
        found = eager(torch.tensor([trace.src_ids]), decoder_input_ids=torch.tensor([trace.tgt_ids]))
    assert np.array_equal(trace.logits, found.logits[0].numpy())
    assert all(check.passed for check in prove(opened, trace))


@pytest.mark.parametrize(("beam_size", "texts"), [(1, TEXTS[:1]), (4, TEXTS[1:])])
def test_it_translates_as_in_transformers(
    beam_size: int, texts: list[str], folder: Path, opened: HookedTranslator, eager: MarianMTModel
) -> None:
    tokenizer = MarianTokenizer.from_pretrained(folder)
    for text in texts:
        ids = tokenizer(text, return_tensors="pt").input_ids
        penalty = {"length_penalty": 0.6} if beam_size > 1 else {}
        (wrote,) = eager.generate(ids, num_beams=beam_size, max_new_tokens=ids.shape[1] + 50, **penalty).tolist()
        trace = opened.trace(text, beam_size=beam_size)
        assert len(set(wrote)) > 3, "no token over and over"
        assert wrote == [trace.tgt_ids[0], *trace.next_ids]
        assert trace.tgt_tokens[0] == "<pad>", "the decoder starts with it"
        assert trace.streams["decoder"].tokens.special[0]
        assert opened.translate([text], beam_size) == [tokenizer.decode(wrote, skip_special_tokens=True)]
    changed = opened.trace(text, beam_size=beam_size, interventions=(AttentionTemperature(3.0),))
    assert changed.next_ids != trace.next_ids


def test_a_target_is_cut_by_the_vocabulary_of_its_own_language(folder: Path, opened: HookedTranslator) -> None:
    source, target = SENTENCES[2]
    trace = opened.trace(source, target)
    assert list(trace.next_ids) == MarianTokenizer.from_pretrained(folder)(text_target=target).input_ids
    assert list(trace.next_ids) != MarianTokenizer.from_pretrained(folder)(target).input_ids
    assert trace.translation == target
    assert trace.source == source
