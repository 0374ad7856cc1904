"""The public Python face: text in, text or a Trace out, and a sentence that says what to do where that cannot be."""

import dataclasses
import time

import pytest

from model.checkpoints.translator import SENTENCE_TOKENS
from tests.model.strategies import shared_tokenizer
from tests.model.tiny import SENTENCES, random_checkpoint

HUGE = "A dog runs. " * 8334  # 100,008 characters


@pytest.mark.parametrize(
    "texts",
    [["The cat sat on the mat.", "", "Two dogs.", " \n\t", "A man rides a red bicycle."], [], ["  ", "\n", "\u00ad\0"]],
    ids=["some blank", "none", "all blank"],
)
def test_translations_come_in_the_order_of_the_texts_and_blank_text_stays_blank(translator, texts):
    found = translator.translate(texts, beam_size=2)
    assert found == [translator.translate([text], beam_size=2)[0] for text in texts]
    assert [not each for each in found] == [not translator.prepare(text) for text in texts]


def test_many_sentences_are_decoded_in_several_batches_to_the_same_effect(translator, monkeypatch):
    texts = [source for source, _ in SENTENCES]
    together = translator.translate(texts, 1)
    monkeypatch.setattr("model.checkpoints.translator.TOKENS_PER_BATCH", 40)
    assert translator.translate(texts, 1) == together


@pytest.mark.parametrize("text", ["", " ", "\n\t ", "\ufeff\u200b \0"])
def test_blank_text_has_nothing_to_trace(translator, text):
    with pytest.raises(ValueError, match=r"The source is empty.* Type at least one word\."):
        translator.trace(text)
    with pytest.raises(ValueError, match=r"The target is empty.* Type at least one word\."):
        translator.trace("Two dogs", target=text)
    assert translator.truncate(text) == ""


@pytest.mark.parametrize("text", ["Two dogs." + " Two dogs." * 39, HUGE], ids=["some sentences", "a book"])
def test_text_that_is_too_long_is_answered_at_once_with_limit_and_length(translator, text):
    length = f"{len(translator.tokenizer.encode(text)) + 1} tokens; at most 128"
    length = f"{len(text):,} characters; at most 128 tokens" if text is HUGE else length
    started = time.process_time()
    with pytest.raises(ValueError, match=rf"The source has {length} fit\. Shorten it\."):
        translator.trace(text)
    with pytest.raises(ValueError, match=rf"The target has {length} fit\. Shorten it\."):
        translator.trace("Two dogs", target=text)
    assert time.process_time() - started < 0.5


@pytest.mark.parametrize(("positions", "limit"), [(20, 20), (1000, SENTENCE_TOKENS)])
def test_a_sentence_fits_up_to_the_models_positions_and_a_trace_up_to_its_own_limit(tiny_config, positions, limit):
    translator = random_checkpoint(dataclasses.replace(tiny_config, max_len=positions), shared_tokenizer())
    text = "x"
    while len(translator.tokenizer.encode(text)) + 1 < limit:
        text += "x"
    assert len(translator.trace(text, target=text).tgt_tokens) == limit
    with pytest.raises(ValueError, match=f"at most {limit} fit"):
        translator.trace(text + "x")
    assert translator.translate([text if positions == limit else text + "x"], beam_size=1)


def test_text_that_is_too_long_is_translated_sentence_by_sentence(translator):
    text = "  Two dogs run. " * 30 + "\nA man rides a bicycle."
    parts = translator.parts(text)
    assert len(parts) == 31
    expected = "".join(
        found + part[len(part.rstrip()) :]
        for found, part in zip(translator.translate([part.strip() for part in parts], 1), parts, strict=True)
    )
    assert translator.translate(["Two dogs.", text], beam_size=1) == [*translator.translate(["Two dogs."], 1), expected]


def test_a_trace_can_hold_the_leading_sentences_of_any_text(translator):
    for text in (
        HUGE,
        "x" * 100_000,
        "Two dogs. " * 40,
        "Two dogs\n" * 90,
        "\U0001f600" * 1000,
        " " * 9000 + "Two dogs.",
    ):
        shown = translator.truncate(text)
        assert shown
        assert " ".join(text.split()).startswith(shown)
        assert translator.trace(shown, target="Zwei").source == shown


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("Cafe\u0301 \u200bdogs", "Caf\u00e9 dogs"),
        ("\ufeffCaf\u00e9\tdogs\u00ad \n", "Caf\u00e9 dogs"),
        ("\tTwo\r\ndogs   run. ", "Two dogs run."),
        ("Two\u00a0dogs\u2028run.", "Two dogs run."),
    ],
)
def test_texts_that_look_alike_are_read_alike_however_they_come(translator, text, seen):
    traced = translator.trace(text, text)
    assert (traced.source, traced.src_ids) == (seen, translator.trace(seen, seen).src_ids)
    assert traced.tgt_ids == translator.trace(seen, seen).tgt_ids
    assert translator.rerun(traced, ()).src_ids == traced.src_ids
    assert translator.truncate(text) == seen
    assert translator.translate([text], 1) == translator.translate([seen], 1)
    assert translator.continue_from(text, (), 1) == translator.continue_from(seen, (), 1)


@pytest.mark.parametrize(("beam_size", "written"), [(0, "0"), (-1, "−1")])
def test_a_beam_needs_at_least_one_hypothesis(translator, beam_size, written):
    with pytest.raises(ValueError, match=f"beam_size must be at least 1, got {written}"):
        translator.translate(["Two dogs."], beam_size)
    with pytest.raises(ValueError, match=f"beam_size must be at least 1, got {written}"):
        translator.trace("Two dogs.", beam_size=beam_size)


def test_a_single_string_is_no_list_of_sentences(translator):
    with pytest.raises(ValueError, match=r"write translate\(\[sentence\]\)"):
        translator.translate("Two dogs.")


def test_tracing_keeps_the_translation_that_translate_gives(translator):
    for beam_size in (1, 3):
        trace = translator.trace("The cat sat on the mat.", beam_size=beam_size)
        assert trace.translation == translator.translate(["The cat sat on the mat."], beam_size)[0]
        assert trace.translation == translator.tokenizer.decode(list(trace.next_ids))
