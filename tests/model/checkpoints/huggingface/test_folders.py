"""Folders as people have them: other heads, adapters, shards, quantised weights, tokens that were added, settings."""

import io
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers as hf
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer, models, pre_tokenizers

from model import evaluate, translate
from model.checkpoints import load_checkpoint
from model.checkpoints.files import CheckpointError
from model.checkpoints.huggingface import open_model
from model.checkpoints.store import MODELS_VARIABLE, offer_models, offered_models, shown_name
from model.commands import export, head_scores
from model.needs import Need
from tests.model.checkpoints.huggingface.families import _BOTH, _COMMON, _GROUPED, _T5, SOURCE, randomised
from tests.model.checkpoints.huggingface.folders import change_json, refusal, save_family

TEXT = "A dog runs."
OTHER_HEADS = {
    "BertForSequenceClassification": ("BertConfig", _COMMON, "BertModel", "classifier"),
    "BertForQuestionAnswering": ("BertConfig", _COMMON, "BertModel", "qa_outputs"),
    "BertForPreTraining": ("BertConfig", _COMMON, "BertForMaskedLM", "seq_relationship"),
    "LlamaForSequenceClassification": ("LlamaConfig", _GROUPED, "LlamaModel", "score"),
    "GPT2ForSequenceClassification": (
        "GPT2Config",
        {"vocab_size": 120, "n_embd": 32, "n_layer": 2, "n_head": 4, "pad_token_id": 0},
        "GPT2Model",
        "score",
    ),
    "BartForSequenceClassification": ("BartConfig", _BOTH, "BartModel", "classification_head"),
    "T5EncoderModel": ("T5Config", _T5, "T5EncoderModel", ""),
}
"""class of the folder -> its configuration, the class it opens as, and what is said of its head"""


def save_other_head(folder: Path, name: str) -> hf.PreTrainedModel:
    config, values, _, _ = OTHER_HEADS[name]
    model = randomised(lambda: getattr(hf, name)(getattr(hf, config)(**values)))
    model.save_pretrained(folder)
    return model


@pytest.mark.parametrize("name", OTHER_HEADS)
def test_layers_open_without_a_head_that_is_not_for_text(name: str, tmp_path: Path) -> None:
    theirs = save_other_head(tmp_path, name)
    theirs.set_attn_implementation("eager")
    opened = open_model(tmp_path)
    _, _, shown, head = OTHER_HEADS[name]
    assert type(opened.model.model).__name__ == shown
    assert (Need.LOGITS in opened.features) == (shown == "BertForMaskedLM")
    assert not head or head in " ".join(opened.notes)
    trace = opened.trace(SOURCE)
    ids = torch.tensor([[int(i) for i in SOURCE.split()]])
    with torch.inference_mode():
        stack = getattr(theirs, theirs.base_model_prefix) if head else theirs
        last = stack(input_ids=ids, decoder_input_ids=ids) if name.startswith("Bart") else stack(input_ids=ids)
    if not name.startswith("Bart"):
        stream = trace.streams[list(trace.streams)[-1]]
        assert np.allclose(stream.final, last.last_hidden_state[0].numpy(), atol=1e-4)


@pytest.mark.parametrize("architectures", [None, [], [""], "BertModel", ["AnotherModel"]])
def test_weights_of_layers_alone_open_whatever_the_configuration_names(architectures, tmp_path: Path) -> None:
    randomised(lambda: hf.BertModel(hf.BertConfig(**_COMMON))).save_pretrained(tmp_path)
    change_json(tmp_path / "config.json", architectures=architectures)
    opened = open_model(tmp_path)
    assert type(opened.model.model).__name__ == "BertModel"
    assert opened.trace(SOURCE).attentions


@pytest.mark.parametrize("name", ["GPT-2", "BERT", "BART"])
def test_a_head_that_is_there_is_read_whatever_the_configuration_names(name: str, copy) -> None:
    folder = copy(name)
    named = type(open_model(folder).model.model)
    change_json(folder / "config.json", architectures=None)
    assert type(open_model(folder).model.model) is named


def test_a_token_that_was_added_to_the_tokenizer_alone_is_named(copy) -> None:
    for name in ("GPT-2", "BERT"):
        folder = copy(name)
        tokenizer = hf.AutoTokenizer.from_pretrained(folder)
        tokenizer.add_tokens([f"<free {n}>" for n in range(len(tokenizer), 320)])
        tokenizer.add_tokens(["<new>"])
        tokenizer.add_special_tokens({"pad_token": "<filling>"})
        tokenizer.save_pretrained(folder)
        opened = open_model(folder)
        with pytest.raises(ValueError, match="'<new>' as token 320"):
            opened.trace("The <new> cat sat.")
        assert opened.trace("The cat sat.").attentions
        assert opened.model.pad < 320
        if name == "BERT":
            assert opened.fill("The [MASK] sat.")
            assert opened.trace("The [MASK] sat.").attentions


def test_a_tokenizer_of_words_needs_no_decoder(tmp_path: Path) -> None:
    words = ["[UNK]", "a", "dog", "runs", "."]
    tokenizer = Tokenizer(models.WordLevel({word: i for i, word in enumerate(words)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    hf.PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="[UNK]").save_pretrained(tmp_path)
    config = hf.GPT2Config(vocab_size=5, n_embd=32, n_layer=2, n_head=4)
    randomised(lambda: hf.GPT2LMHeadModel(config)).save_pretrained(tmp_path)
    assert open_model(tmp_path).trace("a dog runs .").tgt_ids == (1, 2, 3, 4)


def test_a_tokenizer_of_bytes_needs_no_vocabulary(tmp_path: Path) -> None:
    tokenizer = hf.ByT5Tokenizer()
    tokenizer.save_pretrained(tmp_path)
    config = hf.T5Config(**_T5 | {"vocab_size": 384, "decoder_start_token_id": 0})
    randomised(lambda: hf.T5ForConditionalGeneration(config)).save_pretrained(tmp_path)
    opened = open_model(tmp_path)
    tokens = opened.trace("naïve 🤖", "ja").streams["encoder"].tokens
    assert list(tokens.ids) == tokenizer("naïve 🤖")["input_ids"]
    assert tokens.labels[0].strip("▁") == "n"
    assert opened.tokenizer.decode(tokens.ids) == "naïve 🤖"
    assert not any("\ufffd" in label for label in tokens.labels)


def test_an_encoder_without_a_tokenizer_reads_token_ids(copy) -> None:
    folder = copy("BERT")
    (folder / "tokenizer.json").unlink()
    opened = open_model(folder)
    assert opened.trace("5 17 42").src_ids == (5, 17, 42)
    assert opened.tokenizer.mask_token == ""
    with pytest.raises(ValueError, match="no token for a hidden word"):
        opened.fill("5 17 42")
    with pytest.raises(ValueError, match="type token ids from 0 to 319"):
        opened.trace("a dog")


def test_an_adapter_and_other_weights_are_noted_and_not_applied(copy) -> None:
    folder = copy("GPT-2")
    before = open_model(folder).trace(TEXT)
    adapter = {"base_model.model.transformer.h.0.attn.c_attn.lora_A.weight": torch.ones(2, 32)}
    save_file(adapter, folder / "adapter_model.safetensors")
    settings = {"peft_type": "LORA", "base_model_name_or_path": "somebody/model"}
    (folder / "adapter_config.json").write_text(json.dumps(settings))
    (folder / "2_Dense").mkdir()
    save_file({"linear.weight": torch.ones(2, 2)}, folder / "2_Dense" / "model.safetensors")
    opened = open_model(folder)
    assert np.array_equal(opened.trace(TEXT).logits, before.logits)
    notes = " ".join(opened.notes)
    assert "adapter_model.safetensors" in notes
    assert "2_Dense/model.safetensors" in notes
    for name in ("model.safetensors", "config.json"):
        (folder / name).unlink()
    assert "without its base model" in refusal(folder)


def test_an_index_may_name_any_file_in_the_folder_and_none_elsewhere(copy, tmp_path: Path) -> None:
    folder = copy("GPT-2")
    weights = open_model(folder).trace(TEXT)
    tensors = load_file(folder / "model.safetensors")
    names = sorted(tensors)
    (folder / "model.safetensors").unlink()
    parts = {"first part.safetensors": names[::2], "b.safetensors": names[1::2]}
    for file, part in parts.items():
        save_file({name: tensors[name] for name in part}, folder / file, metadata={"format": "pt"})
    index = folder / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {name: file for file, part in parts.items() for name in part}}))
    assert np.array_equal(open_model(folder).trace(TEXT).logits, weights.logits)
    shutil.copy(folder / "b.safetensors", tmp_path / "outside.safetensors")
    for elsewhere in ("../outside.safetensors", str(tmp_path / "outside.safetensors"), "pytorch_model.bin"):
        index.write_text(json.dumps({"weight_map": dict.fromkeys(names, elsewhere)}))
        assert "not a safetensors file in this folder" in refusal(folder)
    index.write_text(json.dumps({"weight_map": dict.fromkeys(names, "missing.safetensors")}))
    assert "has no missing.safetensors" in refusal(folder)


@pytest.mark.usefixtures("short_texts")
@pytest.mark.parametrize(
    "settings",
    [
        {"num_return_sequences": 3, "num_beams": 3},
        {"do_sample": True, "temperature": 0.3, "top_k": 2, "num_return_sequences": 2},
        {"max_length": 3, "min_length": 2},
        {"forced_bos_token_id": 7, "forced_eos_token_id": 2},
        {"penalty_alpha": 0.6, "top_k": 4},
        {"return_dict_in_generate": True, "output_scores": True},
        {"bad_words_ids": [[5], [6, 7], [999]], "eos_token_id": [2, 999], "pad_token_id": -1},
    ],
    ids=lambda settings: next(iter(settings)),
)
def test_settings_of_generation_change_what_a_text_may_hold_and_not_how_a_page_searches(settings, copy) -> None:
    folder = copy("BART")
    change_json(folder / "generation_config.json", **settings)
    opened = open_model(folder)
    trace = opened.trace(TEXT, beam_size=2)
    assert opened.translate([TEXT], beam_size=2) == [opened.tokenizer.decode(trace.next_ids)]
    if forced := settings.get("forced_bos_token_id"):
        assert trace.next_ids[0] == forced


def test_a_path_may_have_commas_spaces_and_quotes(saved, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv(MODELS_VARIABLE, "somebody/model, other/model")
    folders = [str(tmp_path / name) for name in ("my model, v2", 'a "good" one', "plain")]
    for folder in folders:
        shutil.copytree(saved("GPT-2"), folder)
    offer_models(folders)
    assert offered_models() == [*folders, "somebody/model", "other/model"]
    assert [load_checkpoint(folder, "cpu").name for folder in folders] == folders


def test_no_file_of_weights_reaches_transformers_and_no_request_leaves(copy, monkeypatch) -> None:
    folder, asked = copy("GPT-2"), []
    (folder / "pytorch_model.bin").write_bytes(b"\x80\x04cos\nsystem\n.")
    (folder / "custom_generate").mkdir()
    (folder / "custom_generate" / "generate.py").write_text("raise SystemExit('ran')")
    (folder / "modeling.py").write_text("raise SystemExit('ran')")
    change_json(folder / "config.json", auto_map={"AutoModelForCausalLM": "modeling.Model"})
    monkeypatch.setattr("socket.socket.connect", lambda *to: asked.append(to))
    assert open_model(folder).trace(TEXT).attentions
    assert not asked


@pytest.mark.usefixtures("short_texts")
def test_commands_take_a_folder_or_say_why_not(saved, tmp_path: Path, monkeypatch, capsys) -> None:
    bart, gpt2, data = str(saved("BART")), str(saved("GPT-2")), tmp_path / "pairs.tsv"
    data.write_text("A dog runs.\tEin Hund rennt.\n", encoding="utf-8")
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"A dog runs.\n"), encoding="utf-8"))
    translate.main(["--checkpoint", bart, "--device", "cpu"])
    (line,) = capsys.readouterr().out.splitlines()
    assert line == translate.join_lines(load_checkpoint(bart, "cpu").translate(["A dog runs."])[0])
    evaluate.main(["--checkpoint", bart, "--data", str(data), "--device", "cpu"])
    assert "BLEU = " in capsys.readouterr().out
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"A dog runs.\n"), encoding="utf-8"))
    with pytest.raises(CheckpointError, match="is not a translator"):
        translate.main(["--checkpoint", gpt2, "--device", "cpu"])
    ours_alone = "only checkpoints of this project"
    with pytest.raises(CheckpointError, match=ours_alone):
        evaluate.main(["--checkpoint", gpt2, "--data", str(data), "--device", "cpu"])
    with pytest.raises(CheckpointError, match=ours_alone):
        head_scores.main(["--checkpoint", bart, "--data", str(data), "--of", "one sentence"])
    with pytest.raises(SystemExit):
        export.main(["--checkpoint", bart, "--out", str(tmp_path / "out")])
    assert ours_alone in capsys.readouterr().err


def test_a_folder_whose_models_lie_one_below_names_them_the_last_one_last(tmp_path):
    for step in (500, 1000, 20):
        save_family(tmp_path / f"epoch-{step}", "GPT-2")
    with pytest.raises(CheckpointError) as error:
        open_model(tmp_path)
    assert "epoch-20, epoch-500 and epoch-1000 in it" in str(error.value)
    assert str(error.value).endswith(str(tmp_path / "epoch-1000"))


def test_whoever_writes_over_the_weights_of_an_open_model_changes_none_of_its_numbers(tmp_path):
    folder = save_family(tmp_path / "mine", "GPT-2")
    opened = open_model(folder)
    before = opened.trace(TEXT).logits
    with open(folder / "model.safetensors", "r+b") as file:
        file.truncate(1000)
    np.testing.assert_array_equal(opened.trace(TEXT).logits, before)


@pytest.mark.usefixtures("checkpoint_folder")
def test_folders_that_end_alike_are_told_apart_by_what_stands_above_them(tmp_path, monkeypatch):
    ends = ("runa/checkpoint-500", "runb/checkpoint-500", "runb/other", "x/en-de", "a/b/c", "z/b/c")
    for end in ends:
        (tmp_path / end).mkdir(parents=True)
    monkeypatch.setenv(MODELS_VARIABLE, ",".join(str(tmp_path / end) for end in ends))
    assert [shown_name(name) for name in offered_models()] == [*ends[:2], "other", *ends[3:]]
