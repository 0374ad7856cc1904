"""Published configurations are read step by step; what cannot be read is said, what differs is told by a number."""

from dataclasses import replace
from functools import lru_cache

import numpy as np
import pytest
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors
from transformers import PreTrainedTokenizerFast

from model.checkpoints.huggingface import network, open_model
from model.checkpoints.huggingface.vocabulary import Vocabulary
from model.interventions import ValueZeroing
from model.needs import Need
from model.proof.checks import prove
from model.proof.steps import verify_attention, verify_steps
from tests.model.checkpoints.huggingface.families import SOURCE, TARGET
from tests.model.checkpoints.huggingface.folders import byte_level_tokenizer
from tests.model.checkpoints.huggingface.published import HARDEST, PUBLISHED, published_model
from tests.model.checkpoints.huggingface.test_families import opened, traced


@pytest.mark.parametrize("name", HARDEST)
def test_every_step_of_a_published_configuration_is_read(name: str) -> None:
    assert not opened(name).notes
    assert all(step.read for step in verify_steps(opened(name), traced(name)))
    assert [check.passed for check in prove(opened(name), traced(name))] == [True] * 3


@pytest.mark.parametrize("name", ["OLMo 7B 0424"])
def test_queries_that_no_matrix_gives_are_not_shown_as_its_product(name: str) -> None:
    steps = {step.name: step for step in verify_attention(opened(name), traced(name), "decoder_self", 0)}
    assert traced(name).attention("decoder_self", 0).projections is None
    assert steps["q"].state == "could not be read"
    assert steps["pattern"].read
    assert Need.MATRICES not in opened(name).features
    assert any("could not be read" in note for note in opened(name).notes)
    assert prove(opened(name), traced(name))[1].passed


def test_what_holds_on_the_probe_and_not_on_the_run_differs_by_a_number() -> None:
    """A clip that the probe does not reach: found at opening, and no product on a text that reaches it."""
    model = open_model(published_model("OLMo 7B 0424", clip_qkv=1e4))
    assert not model.notes
    for layer in model.model.model.model.layers:
        layer.self_attn.config.clip_qkv = 0.5
    steps = {step.name: step for step in verify_attention(model, model.trace(SOURCE), "decoder_self", 1)}
    assert not steps["q"].read
    assert steps["q"].state.startswith("differs by ")
    assert steps["q"].difference > 0.1
    assert steps["z"].read


def test_a_change_of_the_model_is_part_of_the_steps() -> None:
    model = opened("OLMo 2 7B")
    trace = model.trace(SOURCE, interventions=(ValueZeroing((3,), "decoder_self", 1),))
    assert all(step.read for step in verify_attention(model, trace, "decoder_self", 1))


def test_a_query_scale_that_begins_after_the_probe_is_read_from_the_run() -> None:
    values = PUBLISHED["Ministral 3 3B"][1]["rope_parameters"]
    late = open_model(
        published_model("Ministral 3 3B", rope_parameters=values | {"original_max_position_embeddings": 12})
    )
    scales = late.trace(SOURCE).attention("decoder_self", 0).query_scale
    assert scales[:12] == pytest.approx(np.ones(12), rel=1e-4)
    assert scales[12] == pytest.approx(1 + 0.1 * np.log(2), rel=1e-4)
    early = traced("Ministral 3 3B").attention("decoder_self", 1).query_scale
    assert early == pytest.approx(1 + 0.1 * np.log1p(np.arange(13) // 4), rel=1e-4)
    assert traced("Llama 2 7B").attention("decoder_self", 0).query_scale is None


@pytest.mark.parametrize(
    ("name", "windows"),
    [
        ("EXAONE 4.0 32B", [4, 4, 4, None]),
        ("Gemma 2 2B", [4, None]),
        ("Qwen2 7B, windowed", [None, 4]),
        ("ModernBERT base", [None, 4, 4, None]),
        ("Mistral 7B v0.3", [None, None]),
    ],
)
def test_a_window_is_that_of_the_mask(name: str, windows: list[int | None]) -> None:
    assert [attention.window for attention in traced(name).attentions.values()] == windows


@pytest.mark.parametrize(
    ("name", "placement"),
    [
        ("OLMo 2 7B", "res-post"),
        ("EXAONE 4.0 1.2B", "res-post"),
        ("Gemma 2 2B", "sandwich"),
        ("GLM 4 0414", "sandwich"),
        ("Granite 3.1 2B", "pre"),
        ("Command R", "parallel"),
        ("StableLM 2 12B", "parallel"),
        ("BERT base", "post"),
    ],
)
def test_the_place_of_the_norms_follows_from_the_sums(name: str, placement: str) -> None:
    for sublayer in traced(name).sublayers:
        assert sublayer.placement == placement
        assert (sublayer.norm is None) == (placement == "res-post")
        assert (sublayer.result_norm is not None) == (placement in ("sandwich", "res-post"))
        assert sublayer.added == pytest.approx(sublayer.before + sublayer.out, abs=1e-5)


def test_multipliers_are_the_configurations() -> None:
    trace = traced("Granite 3.1 2B")
    assert {sublayer.multiplier for sublayer in trace.sublayers} == {0.22}
    assert opened("Granite 3.1 2B").embedding_scale == pytest.approx(12)
    last = trace.sublayers[-1]
    assert last.out == pytest.approx(last.result * 0.22, rel=1e-5)


@pytest.mark.parametrize(
    ("name", "positions"),
    [
        ("SmolLM3 3B", "rope"),
        ("CTRL", "sinusoidal"),
        ("DeepSeek V2 Lite", "rope"),
        ("LFM2 1.2B", "rope"),
        ("T5 small", "relative bias"),
        ("GPT-2", "learned"),
    ],
)
def test_positions_that_were_not_found_are_not_said_to_be_absent(name: str, positions: str) -> None:
    assert opened(name).config.positions == positions


def test_positions_of_queries_that_no_step_gives_are_called_unread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(network, "find_latents", lambda *_: None)
    model = open_model(published_model("DeepSeek V2 Lite"))
    assert model.config.positions == "unread"
    assert Need.MATRICES not in model.features


def test_a_model_whose_first_layer_does_not_rotate_rotates_and_one_without_any_does_not() -> None:
    late = open_model(published_model("SmolLM3 3B", no_rope_layers=[0, 1, 0, 1]))
    never = open_model(published_model("SmolLM3 3B", no_rope_layers=[0, 0, 0, 0]))
    assert (late.config.positions, never.config.positions) == ("rope", "none")
    rotated = [attention.rotary is not None for attention in late.trace(SOURCE).attentions.values()]
    assert rotated == [False, True, False, True]


@pytest.mark.parametrize("name", ["RoBERTa base", "XLM-RoBERTa base", "NLLB 200 600M"])
def test_a_typed_pad_gets_the_row_that_the_model_adds(name: str) -> None:
    model = opened(name)
    text = "7 30 1 5 90 1 1 8"
    trace = model.trace(text, TARGET if len(model.model.stacks) == 2 else None)
    stream = next(iter(trace.streams.values()))
    assert stream.embedded.rows == (0, 1, -1, 2, 3, -1, -1, 4)
    assert all(step.read for step in verify_steps(model, trace))


def test_a_wrong_row_is_noticed() -> None:
    trace = traced("RoBERTa base")
    stream = trace.streams["encoder"]
    lie = replace(stream, embedded=replace(stream.embedded, rows=tuple(range(1, len(stream.tokens) + 1))))
    steps = verify_steps(opened("RoBERTa base"), replace(trace, streams={"encoder": lie}))
    assert [step.name for step in steps if not step.read] == ["positions"]


@lru_cache
def metaspace_vocabulary(split: bool) -> Vocabulary:
    """As XLM-R's (`split`) or T5's: U+2581 alone is a piece, so that a word can be two."""
    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    pieces = ["▁", "▁this", "▁is", "a", "▁test", "i", "s", "t", "e", "."]
    tokenizer = Tokenizer(models.Unigram([(piece, -1.0) for piece in special + pieces], unk_id=3))
    metaspace = pre_tokenizers.Metaspace()
    tokenizer.pre_tokenizer = (
        pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), metaspace]) if split else metaspace
    )
    tokenizer.decoder = decoders.Metaspace()
    tokenizer.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 2)])
    names = ("bos_token", "pad_token", "eos_token", "unk_token", "mask_token")
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, **dict(zip(names, special, strict=True)))
    return Vocabulary(fast, len(special + pieces))


@pytest.mark.parametrize("split", [True, False])
@pytest.mark.parametrize(
    ("text", "labels", "words"),
    [
        ("this is a test", ("▁this", "▁is", "▁", "a", "▁test"), (0, 1, 2, 2, 3)),
        ("a test", ("▁", "a", "▁test"), (0, 0, 1)),
        ("this a. is", ("▁this", "▁", "a", ".", "▁is"), (0, 1, 1, 1, 2)),
    ],
)
def test_a_label_is_the_piece_and_a_word_is_counted_once(split, text, labels, words) -> None:
    vocabulary = metaspace_vocabulary(split)
    tokens = vocabulary.describe(vocabulary.read(text), text)
    assert tokens.labels == (*labels, "</s>")
    assert tokens.words == (*words, None)


def test_each_byte_of_a_text_that_ends_inside_a_character_covers_what_is_shown_of_it() -> None:
    tokenizer = byte_level_tokenizer()
    vocabulary = Vocabulary(tokenizer, len(tokenizer))
    for text in ("a dog 🦖", "naïve 東京"):
        ids = vocabulary.encode(text)
        for count in range(1, len(ids)):
            tokens = vocabulary.describe(ids[:count])
            shown = [tokens.text[slice(*span)] for span in tokens.spans]
            assert "\ufffd" not in tokens.text
            assert shown[-1] == tokens.text[len(tokens.text) - len(shown[-1]) :]
            unfinished = [one for one in shown if one.startswith("<0x")]
            assert tokens.text.endswith("".join(unfinished))
            assert tokens.text.count("<0x") == len(unfinished)


def test_a_text_is_cut_once_for_the_places_and_the_words_of_its_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    tokenizer, cut = byte_level_tokenizer(), []
    vocabulary = Vocabulary(tokenizer, len(tokenizer))
    text = "Two dogs play."
    ids = vocabulary.encode(text)
    read = Vocabulary._tokenize
    monkeypatch.setattr(
        Vocabulary, "_tokenize", lambda self, *texts, **more: cut.append(texts) or read(self, *texts, **more)
    )
    tokens = vocabulary.describe(ids, text)
    assert cut == [(text,)]
    assert [text[slice(*span)].strip() for span in tokens.spans] == [label.strip("\u2581") for label in tokens.labels]
