"""Folders of Hugging Face models: what opens, and what is refused with a sentence."""

import sys
from pathlib import Path

import pytest
import transformers as hf

from model.checkpoints.devices import available_memory
from model.checkpoints.files import CheckpointError, sha256
from model.checkpoints.huggingface import files as hf_files
from model.checkpoints.huggingface import open_model
from model.checkpoints.store import MODELS_VARIABLE, load_checkpoint, offer_models, offered_models

TEXT = "A naïve dog 🤖 didn't run."


def test_tokens_are_pieces_of_the_text_and_never_broken_characters(saved) -> None:
    for folder in (saved("GPT-2"), saved("Llama, grouped"), saved("BERT")):
        tokens = next(iter(open_model(folder).trace(TEXT).streams.values())).tokens
        assert not any("\ufffd" in label or "Ġ" in label or "##" in label for label in tokens.labels)
        covered = [tokens.text[slice(*span)] for span in tokens.spans if span]
        assert "didn" in "".join(covered)
        assert max(number for number in tokens.words if number is not None) == len(TEXT.split()) - 1
    robot = [label for label in open_model(saved("Llama, grouped")).trace("🤖").tgt_tokens if label.startswith("<0x")]
    assert "".join(robot) == "<0xF0><0x9F><0xA4><0x96>"


@pytest.mark.parametrize("text", ["def f(x):\n    return x", "Q: one\nA: two\n\nQ:", " cafe\u0301\t\u00adan \n"])
def test_a_text_is_read_as_it_was_typed_and_continued(saved, text: str) -> None:
    opened = open_model(saved("GPT-2"))
    assert opened.hash == sha256(saved("GPT-2") / "model.safetensors")
    trace = opened.trace(opened.truncate(text), max_new_tokens=4)
    tokens = trace.streams["decoder"].tokens
    assert trace.source == text
    assert list(tokens.ids[: tokens.prompt_length]) == opened.tokenizer.read(text)
    assert tokens.prompt_length < len(tokens) == tokens.prompt_length + 4
    assert trace.translation == opened.generate(text, max_new_tokens=4)
    assert opened.trace(text).next_ids[-1] == hf.AutoTokenizer.from_pretrained(saved("GPT-2")).eos_token_id


def test_masks_are_filled(saved) -> None:
    opened = open_model(saved("BERT"))
    (found,) = opened.fill("The [MASK] sat on the mat.", top=3)
    assert len(found) == 3
    with pytest.raises(ValueError, match=r"no \[MASK\]"):
        opened.fill("The cat sat.")


def test_a_model_that_does_not_fit_in_memory_is_refused_before_it_is_read(saved, monkeypatch) -> None:
    assert available_memory() > 10**8
    monkeypatch.setattr(hf_files, "available_memory", lambda: 100_000.0)
    monkeypatch.setattr(hf.AutoModelForCausalLM, "from_pretrained", None)
    with pytest.raises(CheckpointError, match="at most half may be used"):
        open_model(saved("GPT-2"))


def test_a_family_whose_attention_cannot_be_read_is_refused_with_a_sentence() -> None:
    bloom = hf.BloomForCausalLM(hf.BloomConfig(vocab_size=120, hidden_size=32, n_layer=2, n_head=4))
    with pytest.raises(ValueError, match="AttentionInterface"):
        open_model(bloom)


def test_only_models_that_the_app_was_started_with_open_and_nothing_is_downloaded(saved, monkeypatch) -> None:
    asked: list[tuple[str, dict]] = []

    def snapshot(name: str, **options) -> str:
        asked.append((name, options))
        if options.get("local_files_only"):
            raise FileNotFoundError(name)
        return str(saved("GPT-2"))

    monkeypatch.setattr(hf_files, "snapshot_download", snapshot)
    monkeypatch.setenv(MODELS_VARIABLE, f"{saved('GPT-2')}, somebody/model")
    assert offered_models() == [str(saved("GPT-2")), "somebody/model"]
    assert load_checkpoint(str(saved("GPT-2")), "cpu").name == str(saved("GPT-2"))
    with pytest.raises(CheckpointError, match="--download"):
        load_checkpoint("somebody/model")
    with pytest.raises(CheckpointError, match="no checkpoint"):
        load_checkpoint("somebody/other")
    assert asked == [("somebody/model", {"local_files_only": True})]
    offer_models(["third/model"], download=True)
    assert offered_models() == ["third/model", str(saved("GPT-2")), "somebody/model"]
    assert [name for name, _ in asked[1:]] == ["third/model", "somebody/model"]
    assert all("*.safetensors" in options["allow_patterns"] for _, options in asked[1:])
    assert not any("bin" in pattern or "py" in pattern for pattern in hf_files.FILES)


def test_without_transformers_a_sentence_says_how_to_get_it(monkeypatch) -> None:
    monkeypatch.setenv(MODELS_VARIABLE, "somebody/model")
    monkeypatch.setitem(sys.modules, "model.checkpoints.huggingface", None)
    with pytest.raises(CheckpointError, match="pip install -r model/checkpoints/huggingface-requirements"):
        load_checkpoint("somebody/model")
    assert Path("model/checkpoints/huggingface-requirements.txt").read_text() == "transformers==5.23.0\n"
