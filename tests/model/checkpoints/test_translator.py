"""The public Python face: text in, text or a Trace out, and a sentence that says what to do where that cannot be."""

import dataclasses
import time

import pytest

from model.checkpoints.translator import SENTENCE_TOKENS, Translator
from model.interventions import AttentionTemperature, HeadGate
from model.network.config import EOS
from tests.model.strategies import shared_tokenizer
from tests.model.tiny import SENTENCES, random_model

HUGE = "A dog runs. " * 8334  # 100,008 characters


def test_translations_come_in_the_order_of_the_texts_and_blank_text_stays_blank(translator):
    texts = ["The cat sat on the mat.", "", "Two dogs.", " \n\t", "A man rides a red bicycle down the street."]
    found = translator.translate(texts, beam_size=2)
    assert found[1] == found[3] == ""
    assert found == [translator.translate([text], beam_size=2)[0] for text in texts]


@pytest.mark.parametrize("texts", [[], [""], ["  ", "\n", "\u00ad\0"]])
def test_nothing_to_translate_gives_nothing(translator, texts):
    assert translator.translate(texts) == [""] * len(texts)


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


def test_text_that_is_too_long_is_answered_with_limit_and_length(translator, tokenizer):
    text = "Two dogs." + " Two dogs." * 39
    length, limit = len(tokenizer.encode(text)) + 1, 128
    with pytest.raises(ValueError, match=f"The source has {length} tokens; at most {limit} fit. Shorten it."):
        translator.trace(text)
    with pytest.raises(ValueError, match=f"The target has {length} tokens; at most {limit} fit. Shorten it."):
        translator.trace("Two dogs", target=text)


def test_a_sentence_as_long_as_the_model_has_positions_still_fits(tiny_config):
    config = dataclasses.replace(tiny_config, max_len=20)
    translator = Translator("short", "", random_model(config), shared_tokenizer())
    text = "".join("x" for _ in range(18))
    while len(translator.tokenizer.encode(text)) + 1 < 20:
        text += "x"
    assert len(translator.tokenizer.encode(text)) + 1 == 20
    assert len(translator.trace(text, target=text).tgt_tokens) == 20
    assert translator.translate([text], 1)
    with pytest.raises(ValueError, match="at most 20 fit"):
        translator.trace(text + "x")


def test_a_trace_has_its_own_limit_below_a_models_positions(tiny_config):
    config = dataclasses.replace(tiny_config, max_len=1000)
    translator = Translator("long", "", random_model(config), shared_tokenizer())
    text = "x" * 400
    with pytest.raises(ValueError, match=f"at most {SENTENCE_TOKENS} fit"):
        translator.trace(text)
    assert translator.translate([text], beam_size=1)


def test_a_hundred_thousand_characters_are_refused_at_once(translator):
    started = time.perf_counter()
    with pytest.raises(ValueError, match=r"The source has 100,008 characters; at most 128 tokens fit\. Shorten it\."):
        translator.trace(HUGE)
    with pytest.raises(ValueError, match="The target has 100,008 characters"):
        translator.trace("Two dogs", target=HUGE)
    assert time.perf_counter() - started < 0.5


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


@pytest.mark.parametrize("text", ["Cafe\u0301 \u200bdogs", "\ufeffCaf\u00e9\tdogs", "Caf\u00e9\u00ad dogs\n"])
def test_texts_that_look_alike_are_read_alike_however_they_come(translator, text):
    seen = "Caf\u00e9 dogs"
    traced = translator.trace(text, text)
    assert (traced.source, traced.src_ids) == (seen, translator.trace(seen, seen).src_ids)
    assert traced.tgt_ids == translator.trace(seen, seen).tgt_ids
    assert translator.rerun(traced, ()).src_ids == traced.src_ids
    assert translator.truncate(text) == seen
    assert translator.translate([text], 1) == translator.translate([seen], 1)
    assert translator.continue_from(text, (), 1) == translator.continue_from(seen, (), 1)


def test_line_breaks_tabs_and_runs_of_blanks_never_reach_the_model(translator):
    ids = translator.trace("Two dogs run.", "Zwei Hunde").src_ids
    for text in ("Two dogs run.\n", "\tTwo\r\ndogs   run. ", "Two\u00a0dogs\u2028run."):
        assert translator.trace(translator.truncate(text), "Zwei Hunde").src_ids == ids
        assert translator.trace(text, "Zwei\nHunde").src_ids == ids
        assert translator.translate([text], 1) == translator.translate(["Two dogs run."], 1)
    assert translator.truncate(" \n\t") == ""


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


def test_interventions_reach_decoding_and_capture(translator):
    hot = (AttentionTemperature(20.0),)
    plain, changed = (translator.trace("The cat sat on the mat.", interventions=i) for i in ((), hot))
    assert changed.interventions == hot
    assert changed.translation == translator.translate(["The cat sat on the mat."], interventions=hot)[0]
    assert changed.translation != plain.translation
    assert (changed.attention("cross", 0).temperature == 20).all()


@pytest.mark.parametrize("text", ["语 \U0001f469\u200d\U0001f4bb \ud800", "<s></s><pad>", "\u2581\ufdd0"])
def test_any_text_can_be_traced(translator, text):
    trace = translator.trace(text, target=text)
    assert trace.source == text
    assert trace.src_ids[-1] == EOS
    assert "<unk>" not in trace.src_tokens


def test_a_translator_is_frozen(translator):
    with pytest.raises(dataclasses.FrozenInstanceError):
        translator.model = None


def test_an_intervention_must_fit_the_model(translator):
    translator.check_intervention(HeadGate(0.0, "cross", 1, 3))
    with pytest.raises(ValueError, match="the model has no attention"):
        translator.check_intervention(HeadGate(0.0, "cross", 9))
