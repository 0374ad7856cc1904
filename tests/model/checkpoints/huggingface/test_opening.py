"""Folders of Hugging Face models: what opens, and what is refused with a sentence."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers as hf

from model.checkpoints.devices import available_memory
from model.checkpoints.files import CheckpointError, sha256
from model.checkpoints.huggingface import files as hf_files
from model.checkpoints.huggingface import open_model
from model.checkpoints.store import MODELS_VARIABLE, load_checkpoint, offer_models, offered_models
from model.needs import Need
from model.proof.checks import prove
from tests.model.checkpoints.huggingface.families import tiny_model
from tests.model.checkpoints.huggingface.folders import byte_level_tokenizer, save_family

TEXT = "A naïve dog 🤖 didn't run."


@pytest.fixture(scope="module")
def gpt2(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_family(tmp_path_factory.mktemp("models") / "gpt2", "GPT-2")


@pytest.fixture(scope="module")
def llama(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_family(tmp_path_factory.mktemp("models") / "llama", "Llama, grouped")


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_family(tmp_path_factory.mktemp("models") / "bert", "BERT")


def test_a_folder_gives_the_same_numbers_as_transformers(llama: Path) -> None:
    opened = open_model(llama)
    assert opened.hash == sha256(llama / "model.safetensors")
    trace = opened.trace(TEXT)
    tokenizer = hf.AutoTokenizer.from_pretrained(llama)
    model = hf.AutoModelForCausalLM.from_pretrained(llama, attn_implementation="eager")
    with torch.inference_mode():
        wanted = model(**tokenizer(TEXT, return_tensors="pt")).logits[0].numpy()
    assert np.array_equal(trace.logits, wanted)
    assert trace.tgt_tokens[0] == "<s>"
    assert trace.next_ids == (*trace.tgt_ids[1:], tokenizer.eos_token_id)


def test_tokens_are_pieces_of_the_text_and_never_broken_characters(gpt2: Path, llama: Path, bert: Path) -> None:
    for folder in (gpt2, llama, bert):
        tokens = next(iter(open_model(folder).trace(TEXT).streams.values())).tokens
        assert not any("\ufffd" in label or "Ġ" in label or "##" in label for label in tokens.labels)
        covered = [tokens.text[slice(*span)] for span in tokens.spans if span]
        assert "didn" in "".join(covered)
        assert max(number for number in tokens.words if number is not None) == len(TEXT.split()) - 1
    robot = [label for label in open_model(llama).trace("🤖").tgt_tokens if label.startswith("<0x")]
    assert "".join(robot) == "<0xF0><0x9F><0xA4><0x96>"


@pytest.mark.parametrize("text", ["def f(x):\n    return x", "Q: one\nA: two\n\nQ:", " cafe\u0301\t\u00adan \n"])
def test_a_text_is_read_as_it_was_typed(gpt2: Path, text: str) -> None:
    opened = open_model(gpt2)
    trace = opened.trace(opened.truncate(text))
    assert trace.source == text
    assert list(trace.tgt_ids) == opened.tokenizer.read(text)


def test_a_text_is_continued_and_masks_are_filled(gpt2: Path, bert: Path) -> None:
    opened = open_model(gpt2)
    trace = opened.trace("A dog", max_new_tokens=4)
    tokens = trace.streams["decoder"].tokens
    assert tokens.prompt_length < len(tokens) == tokens.prompt_length + 4
    assert trace.source == "A dog"
    assert trace.translation == opened.generate("A dog", max_new_tokens=4)
    (found,) = open_model(bert).fill("The [MASK] sat on the mat.", top=3)
    assert len(found) == 3
    with pytest.raises(ValueError, match=r"no \[MASK\]"):
        open_model(bert).fill("The cat sat.")


def test_what_cannot_be_opened_is_refused_with_a_sentence(gpt2: Path, tmp_path: Path) -> None:
    def broken(name: str, **changed) -> Path:
        folder = tmp_path / name
        folder.mkdir()
        for path in gpt2.iterdir():
            (folder / path.name).write_bytes(path.read_bytes())
        config = json.loads((folder / "config.json").read_text()) | changed
        (folder / "config.json").write_text(json.dumps(config))
        return folder

    def refusal(folder: Path) -> str:
        with pytest.raises(CheckpointError) as error:
            open_model(folder)
        return str(error.value)

    assert "there is no such folder" in refusal(tmp_path / "nothing")
    assert "no config.json" in refusal(tmp_path)
    assert "fewer than the model has layers" in refusal(broken("deep", n_layer=10**9))
    assert "the configuration requires" in refusal(broken("wide", n_embd=2**20))
    assert "lack" in refusal(broken("one layer more", n_layer=4))
    assert "cannot be used" in refusal(broken("code", model_type="made-up", auto_map={"AutoConfig": "evil.Config"}))
    pickled = broken("pickled")
    (pickled / "model.safetensors").rename(pickled / "pytorch_model.bin")
    assert ".bin files are not opened, because they can run code" in refusal(pickled)
    cut = broken("cut")
    (cut / "model.safetensors").write_bytes((gpt2 / "model.safetensors").read_bytes()[:-100])
    assert "not a valid safetensors file" in refusal(cut)
    wrong = broken("wrong tokenizer")
    byte_level_tokenizer().save_pretrained(wrong)
    tiny_model("GPT-2").save_pretrained(wrong)
    assert "they do not belong together" in refusal(wrong)
    silent = broken("no tokenizer")
    (silent / "tokenizer.json").unlink()
    assert open_model(silent).trace("5 6 7").tgt_ids == (5, 6, 7)
    with pytest.raises(ValueError, match="type token ids from 0 to 319"):
        open_model(silent).trace("a dog")


def test_a_model_that_does_not_fit_in_memory_is_refused_before_it_is_read(gpt2: Path, monkeypatch) -> None:
    assert available_memory() > 10**8
    monkeypatch.setattr(hf_files, "available_memory", lambda: 100_000.0)
    monkeypatch.setattr(hf.AutoModelForCausalLM, "from_pretrained", None)
    with pytest.raises(CheckpointError, match="at most half may be used"):
        open_model(gpt2)


def test_a_family_whose_attention_cannot_be_read_is_refused_with_a_sentence() -> None:
    bloom = hf.BloomForCausalLM(hf.BloomConfig(vocab_size=120, hidden_size=32, n_layer=2, n_head=4))
    with pytest.raises(ValueError, match="AttentionInterface"):
        open_model(bloom)


def test_a_model_without_an_output_shows_all_but_probabilities(bert: Path) -> None:
    opened = open_model(hf.AutoModel.from_pretrained(bert), hf.AutoTokenizer.from_pretrained(bert))
    trace = opened.trace("The cat sat on the mat.")
    assert trace.logits.shape == (len(trace.src_tokens), 0)
    assert Need.LOGITS not in opened.features
    watching, chain, _ = prove(opened, trace)
    assert watching.error == 0
    assert chain.error < 1e-6


def test_only_models_that_the_app_was_started_with_open_and_nothing_is_downloaded(gpt2: Path, monkeypatch) -> None:
    asked: list[tuple[str, dict]] = []

    def snapshot(name: str, **options) -> str:
        asked.append((name, options))
        if options.get("local_files_only"):
            raise FileNotFoundError(name)
        return str(gpt2)

    monkeypatch.setattr(hf_files, "snapshot_download", snapshot)
    monkeypatch.setenv(MODELS_VARIABLE, f"{gpt2}, somebody/model")
    assert offered_models() == [str(gpt2), "somebody/model"]
    assert load_checkpoint(str(gpt2), "cpu").name == str(gpt2)
    with pytest.raises(CheckpointError, match="--download"):
        load_checkpoint("somebody/model")
    with pytest.raises(CheckpointError, match="no checkpoint"):
        load_checkpoint("somebody/other")
    assert asked == [("somebody/model", {"local_files_only": True})]
    offer_models(["third/model"], download=True)
    assert offered_models() == ["third/model", str(gpt2), "somebody/model"]
    assert [name for name, _ in asked[1:]] == ["third/model", "somebody/model"]
    assert all("*.safetensors" in options["allow_patterns"] for _, options in asked[1:])
    assert not any("bin" in pattern or "py" in pattern for pattern in hf_files.FILES)


def test_without_transformers_a_sentence_says_how_to_get_it(monkeypatch) -> None:
    monkeypatch.setenv(MODELS_VARIABLE, "somebody/model")
    monkeypatch.setitem(sys.modules, "model.checkpoints.huggingface", None)
    with pytest.raises(CheckpointError, match="pip install -r model/checkpoints/huggingface-requirements"):
        load_checkpoint("somebody/model")
    assert Path("model/checkpoints/huggingface-requirements.txt").read_text() == "transformers==5.23.0\n"
