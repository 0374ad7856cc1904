"""Two sentences for a BERT: each token has the segment that transformers gives it, and the run is transformers' own."""

import numpy as np
import pytest
import torch
from transformers import AutoModelForMaskedLM, AutoTokenizer

from model.checkpoints.huggingface import open_model
from model.checkpoints.huggingface.opened import HookedMaskedModel
from model.checkpoints.huggingface.vocabulary import number_segments
from model.needs import Need
from tests.model.checkpoints.huggingface.families import tiny_model

FIRST, SECOND = "The cat sat on the mat.", "It didn't run."
PAIR = f"{FIRST} [SEP] {SECOND}"


@pytest.fixture(scope="module")
def opened(saved) -> HookedMaskedModel:
    return open_model(saved("BERT"))


def test_a_pair_is_read_as_transformers_reads_it(saved, opened: HookedMaskedModel) -> None:
    trace = opened.trace(PAIR)
    inputs = AutoTokenizer.from_pretrained(saved("BERT"))(
        FIRST, SECOND, return_tensors="pt", return_token_type_ids=True
    )
    tokens = trace.streams["encoder"].tokens
    assert list(tokens.ids) == inputs["input_ids"][0].tolist()
    assert list(tokens.segments) == inputs["token_type_ids"][0].tolist()
    assert set(tokens.segments) == {0, 1}
    assert np.array_equal(opened.rerun(trace, ()).logits, trace.logits)
    eager = AutoModelForMaskedLM.from_pretrained(saved("BERT"), attn_implementation="eager").eval()
    with torch.inference_mode():
        both = eager(**inputs).logits[0].numpy()
        one = eager(input_ids=inputs["input_ids"]).logits[0].numpy()
    assert np.array_equal(trace.logits, both)
    assert not np.allclose(both, one), "the segments matter"


def test_tokens_of_a_pair_know_their_place_in_the_text(opened: HookedMaskedModel) -> None:
    tokens = opened.trace(PAIR).streams["encoder"].tokens
    special = [label for label, special in zip(tokens.labels, tokens.special, strict=True) if special]
    assert special == ["[CLS]", "[SEP]", "[SEP]"]
    covered = [tokens.text[slice(*span)] for span in tokens.spans if span]
    assert "".join(covered) == (FIRST + SECOND).replace(" ", "")
    assert max(word for word in tokens.words if word is not None) == len((FIRST + " " + SECOND).split()) - 1


def test_what_is_added_for_positions_contains_the_row_of_the_segment(opened: HookedMaskedModel) -> None:
    assert Need.ADDED_TYPES in opened.features
    trace, embeddings = opened.trace(PAIR), opened.model.model.bert.embeddings
    segments = list(trace.streams["encoder"].tokens.segments)
    rows = embeddings.position_embeddings.weight[: len(segments)] + embeddings.token_type_embeddings.weight[segments]
    np.testing.assert_allclose(trace.src_embedded.positional, rows.detach().numpy(), rtol=1e-4, atol=1e-5)


def test_one_sentence_has_one_segment_and_a_model_without_token_types_none(saved, opened: HookedMaskedModel) -> None:
    assert set(opened.trace(FIRST).streams["encoder"].tokens.segments) == {0}
    ids = torch.tensor([[2, 9, 3, 8, 7, 3, 0, 0], [2, 9, 8, 7, 6, 5, 4, 3]])
    assert number_segments(ids, 3).tolist() == [[0, 0, 0, 1, 1, 1, 0, 0], [0] * 8]
    without = open_model(saved("ModernBERT"))
    assert without.trace(PAIR).streams["encoder"].tokens.segments is None
    assert Need.ADDED_TYPES not in without.features
    assert open_model(tiny_model("BERT")).trace("5 6 7").streams["encoder"].tokens.segments is None
