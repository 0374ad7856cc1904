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


@pytest.mark.parametrize("text", TEXTS)
def test_every_part_is_read(text: str, opened: HookedTranslator, eager: MarianMTModel) -> None:
    assert not opened.notes
    assert opened.config.activation == "silu"
    assert opened.config.positions == "sinusoidal"
    assert opened.model.head.bias is not None, "final_logits_bias"
    assert float(opened.model.head.bias.abs().max()) > 0.1
    trace = opened.trace(text)
    with torch.inference_mode():
        found = eager(
            input_ids=torch.tensor([trace.src_ids]),
            decoder_input_ids=torch.tensor([trace.tgt_ids]),
            output_attentions=True,
        )
    assert np.array_equal(trace.logits, found.logits[0].numpy())
    for kind, theirs in zip(
        ("encoder_self", "decoder_self", "cross"),
        (found.encoder_attentions, found.decoder_attentions, found.cross_attentions),
        strict=True,
    ):
        for layer, weights in enumerate(theirs):
            assert np.array_equal(trace.attention(kind, layer).pattern, weights[0].numpy())
    watching, chain, rows = prove(opened, trace)
    assert watching.error == 0
    assert chain.error < 1e-5
    assert rows.error < 1e-5


def test_positions_are_sines_in_the_first_half_and_cosines_in_the_second(opened: HookedTranslator) -> None:
    positional = opened.trace(TEXTS[0]).src_embedded.positional
    d, position = positional.shape[1], np.arange(len(positional))[:, None]
    angles = position / 10000 ** (2 * np.arange(d // 2) / d)
    np.testing.assert_allclose(positional, np.concatenate([np.sin(angles), np.cos(angles)], axis=1), atol=1e-5)


@pytest.mark.parametrize("beam_size", [1, 4])
def test_it_translates_as_in_transformers(
    beam_size: int, folder: Path, opened: HookedTranslator, eager: MarianMTModel
) -> None:
    tokenizer = MarianTokenizer.from_pretrained(folder)
    for text in TEXTS:
        ids = tokenizer(text, return_tensors="pt").input_ids
        penalty = {"length_penalty": 0.6} if beam_size > 1 else {}
        (wrote,) = eager.generate(ids, num_beams=beam_size, max_new_tokens=ids.shape[1] + 50, **penalty).tolist()
        trace = opened.trace(text, beam_size=beam_size)
        assert len(set(wrote)) > 3, "no token over and over"
        assert wrote == [trace.tgt_ids[0], *trace.next_ids]
        assert trace.tgt_tokens[0] == "<pad>", "the decoder starts with it"
        assert trace.streams["decoder"].tokens.special[0]
        assert opened.translate([text], beam_size) == [tokenizer.decode(wrote, skip_special_tokens=True)]
    changed = opened.trace(TEXTS[0], beam_size=beam_size, interventions=(AttentionTemperature(3.0),))
    assert changed.next_ids != opened.trace(TEXTS[0], beam_size=beam_size).next_ids


def test_a_target_is_cut_by_the_vocabulary_of_its_own_language(folder: Path, opened: HookedTranslator) -> None:
    source, target = SENTENCES[2]
    trace = opened.trace(source, target)
    assert list(trace.next_ids) == MarianTokenizer.from_pretrained(folder)(text_target=target).input_ids
    assert list(trace.next_ids) != MarianTokenizer.from_pretrained(folder)(target).input_ids
    assert trace.translation == target
    assert trace.source == source
