"""Models as people bring them: settings of other machines, few layers, tables and norms that others lay out."""

import copy
import io
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers as hf
from torch import nn
from transformers.convert_slow_tokenizer import bytes_to_unicode

from model import translate
from model.analysis.stream.vocabulary import spell, typed_as
from model.checkpoints.huggingface import open_model
from model.checkpoints.huggingface.vocabulary import _BYTES
from model.generation.search import greedy
from model.interventions import HeadGate
from model.needs import Need
from model.proof.steps import verify_steps
from model.run import Place, Request, Run
from model.trace import Trace
from tests.model.checkpoints.huggingface.families import _COMMON, _WIDE, SOURCE, randomised
from tests.model.checkpoints.huggingface.folders import change_json, save_family, save_many_languages
from tests.model.checkpoints.huggingface.pictures import picture_model
from tests.model.checkpoints.huggingface.test_families import logits
from viz.html import piece_boxes

_EXPERTS = {"num_local_experts": 2, "num_experts_per_tok": 1, "intermediate_size_mlp": 48}


def save(folder: Path, build: Callable[[], nn.Module]) -> nn.Module:
    """Write a random model as `save_pretrained` does, and give it with transformers' own eager attention."""
    model = randomised(build)
    model.save_pretrained(folder)
    model.set_attn_implementation("eager")
    return model


def largest_difference(model: nn.Module, trace: Trace) -> float:
    """Of the trace's logits from those of transformers' own eager attention."""
    return float(np.abs(logits(model, trace) - trace.logits).max())


@pytest.mark.parametrize(
    ("file", "settings"),
    [
        ("config.json", {"output_attentions": True, "_attn_implementation": "flash_attention_2"}),
        ("config.json", {"output_hidden_states": True, "return_dict": False}),
        ("config.json", {"use_return_dict": False, "torchscript": True}),
        ("config.json", {"dtype": "of another machine"}),
        ("generation_config.json", {"output_attentions": True, "return_dict_in_generate": True}),
        ("generation_config.json", {"num_return_sequences": 5, "watermarking_config": {"of": "later"}}),
    ],
)
def test_how_another_program_called_the_model_does_not_matter(file: str, settings: dict, tmp_path: Path) -> None:
    model = save(tmp_path, lambda: hf.GPT2LMHeadModel(hf.GPT2Config(vocab_size=120, n_embd=32, n_layer=2, n_head=4)))
    change_json(tmp_path / file, **settings)
    opened = open_model(tmp_path)
    assert largest_difference(model, opened.trace(SOURCE)) == 0
    assert opened.generate(SOURCE, max_new_tokens=2)


def test_numbers_that_count_no_tensors_are_not_compared_with_the_file(tmp_path: Path) -> None:
    few = _WIDE | {"num_hidden_layers": 2, "max_window_layers": 1000}
    model = save(tmp_path / "qwen3", lambda: hf.Qwen3ForCausalLM(hf.Qwen3Config(**few)))
    assert largest_difference(model, open_model(tmp_path / "qwen3").trace(SOURCE)) == 0
    shared = _COMMON | {"num_hidden_layers": 40, "embedding_size": 16}
    save(tmp_path / "albert", lambda: hf.AlbertForMaskedLM(hf.AlbertConfig(**shared)))
    assert len(open_model(tmp_path / "albert").kinds[0].layers) == 40


def test_one_norm_of_queries_and_then_of_keys_is_read_twice(tmp_path: Path) -> None:
    settings = _WIDE | _EXPERTS | {"num_hidden_layers": 4, "use_qk_norm": True, "no_rope_layers": [1, 1, 1, 0]}
    model = save(tmp_path, lambda: hf.Llama4ForCausalLM(hf.Llama4TextConfig(**settings)))
    opened = open_model(tmp_path)
    trace = opened.trace(SOURCE)
    assert largest_difference(model, trace) == 0
    assert not opened.notes
    assert all(step.read for step in verify_steps(opened, trace))
    normed = [trace.attention("decoder_self", layer).qk_norm is not None for layer in range(4)]
    assert normed == [True, True, True, False]
    copied = copy.deepcopy(opened.model)
    assert torch.equal(copied(torch.tensor([trace.tgt_ids])), opened.model(torch.tensor([trace.tgt_ids])))


@pytest.mark.parametrize("name", ["llava", "qwen2_5_vl", "qwen3_vl", "qwen3_5", "gemma3", "llama4"])
def test_a_model_of_pictures_and_text_opens_as_its_text_with_its_head(name: str, tmp_path: Path) -> None:
    model = save(tmp_path, lambda: picture_model(name))
    opened = open_model(tmp_path)
    assert {Need.LOGITS, Need.LANGUAGE_MODEL} <= opened.features
    assert largest_difference(model, opened.trace(SOURCE)) == 0
    ids = torch.tensor([[int(word) for word in SOURCE.split()]])
    written = model.generate(ids, do_sample=False, max_new_tokens=4)[0].tolist()
    assert opened.generate(SOURCE, max_new_tokens=4) == " ".join(map(str, written))
    assert any("pictures or sounds" in note for note in opened.notes)
    assert not any("has no place" in note for note in opened.notes)


@pytest.mark.parametrize("pad", [0, 1, 10, 40])
def test_a_table_of_positions_that_begins_behind_the_padding_token_is_shorter_by_it(pad: int) -> None:
    opened = open_model(randomised(lambda: hf.RobertaForMaskedLM(hf.RobertaConfig(**_COMMON | {"pad_token_id": pad}))))
    assert opened.config.max_len == 64 - pad - 1
    longest = " ".join(["55"] * (opened.token_limit - 1))
    trace = opened.trace(longest)
    assert trace.streams["encoder"].embedded.rows == tuple(range(len(trace.src_ids)))
    with pytest.raises(ValueError, match=rf"has {opened.token_limit + 1} tokens; at most {opened.token_limit} fit"):
        opened.trace(f"{longest} 5")


@pytest.mark.parametrize("name", ["GPT-2", "BERT"])
def test_half_a_character_is_named_and_not_left_to_the_tokenizer(name: str, tmp_path: Path) -> None:
    opened = open_model(save_family(tmp_path, name))
    for text in ("A \ud83d dog", "\udc16", "a\n\ud800\ud800"):
        for read in (opened.trace, opened.tokenizer.read, opened.tokenizer.encode, opened.fits):
            with pytest.raises(ValueError, match=r"U\+D[8C]"):
                read(text)


def test_a_token_is_shown_as_the_piece_that_is_read(tmp_path: Path) -> None:
    opened = open_model(save_family(tmp_path, "BERT"))
    tokens = opened.trace("The CAT sat, Émile [MASK].").streams["encoder"].tokens
    assert tokens.labels[1:4] == ("▁the", "▁cat", "▁sat")
    assert [tokens.text[slice(*span)] for span in tokens.spans[1:4]] == ["The", "CAT", "sat"]
    typed = typed_as(tokens, spell(opened.tokenizer, tokens.ids))
    assert typed[:5] == ("", "The", "CAT", "", ",")
    assert 'title="typed: CAT"' in piece_boxes("Text", spell(opened.tokenizer, tokens.ids), "#0072B2", 0, (), typed)
    lower = opened.trace("the cat sat, emile [MASK].").streams["encoder"].tokens
    assert (lower.ids, lower.labels, lower.words) == (tokens.ids, tokens.labels, tokens.words)


MANY = ("M2M100", "NLLB", "mBART", "mBART 50")


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("many")
    return {name: save_many_languages(root / name, name) for name in MANY}


@pytest.mark.usefixtures("short_texts")
@pytest.mark.parametrize("name", MANY)
def test_a_translator_of_many_languages_reads_one_and_writes_another(name: str, many) -> None:
    opened, text = open_model(many[name]), "A dog runs."
    source, target = opened.languages[5], opened.languages[9]
    chosen = {"source_language": source, "target_language": target}
    tokenizer = hf.AutoTokenizer.from_pretrained(many[name], src_lang=source, tgt_lang=target)
    model = hf.AutoModelForSeq2SeqLM.from_pretrained(many[name], attn_implementation="eager").eval()
    token = getattr(tokenizer, "lang_code_to_id", {}).get(target) or tokenizer.convert_tokens_to_ids(target)
    first = {"decoder_start_token_id": token} if name == "mBART" else {"forced_bos_token_id": token}
    written, typed = opened.trace(text, beam_size=1, **chosen), opened.trace(text, "Ein Hund.", **chosen)
    assert list(written.src_ids) == list(typed.src_ids) == tokenizer(text)["input_ids"]
    ids = torch.tensor([tokenizer(text)["input_ids"]])
    theirs = model.generate(ids, do_sample=False, num_beams=1, max_new_tokens=12, **first)[0].tolist()
    n = min(len(theirs) - 1, len(written.tgt_ids))  # the last one may be forced
    assert list(written.tgt_ids[:n]) == theirs[:n]
    begins = 1 if name == "mBART" else 2
    assert written.tgt_ids[:begins] == typed.tgt_ids[:begins]
    assert token in typed.tgt_ids[:begins]
    assert typed.next_ids[-1] == tokenizer.eos_token_id
    assert typed.translation == "Ein Hund."
    assert max(largest_difference(model, trace) for trace in (written, typed)) == 0
    assert written.languages == (source, target)
    assert opened.rerun(written, (HeadGate(1.0),)).src_ids == written.src_ids
    # M2M100's tokenizer does not call its languages special; ours are no text.
    languages = getattr(tokenizer, "lang_code_to_id", {}).values()
    text_ids = [i for i in theirs if i not in languages]
    assert opened.generate(text, max_new_tokens=12, **chosen) == tokenizer.decode(text_ids, skip_special_tokens=True)
    steps = greedy(opened.in_languages(**chosen).model, [list(written.src_ids)])[0].tokens
    assert steps[:8] == written.next_ids[:8]


@pytest.mark.usefixtures("short_texts")
@pytest.mark.parametrize("name", MANY)
def test_the_languages_are_the_tokenizers_own_until_others_are_chosen(name: str, many) -> None:
    opened = open_model(many[name])
    tokenizer = hf.AutoTokenizer.from_pretrained(many[name])
    assert opened.chosen_languages[0] == tokenizer.src_lang
    written, typed = opened.trace("A dog."), opened.trace("A dog.", "Ein Hund.")
    begins = 1 if name == "mBART" else 2
    assert written.tgt_ids[:begins] == typed.tgt_ids[:begins]
    other = opened.in_languages(target_language=opened.languages[7])
    assert other.trace("A dog.").tgt_ids[:begins] != written.tgt_ids[:begins]
    assert opened.trace("A dog.").next_ids == written.next_ids
    with pytest.raises(ValueError, match=f"no language 'tlh'.*{opened.languages[-1]}"):
        opened.trace("A dog.", source_language="tlh")


@pytest.mark.usefixtures("short_texts")
def test_the_command_translates_between_the_languages_that_it_names(many, monkeypatch, capsys) -> None:
    opened = open_model(many["M2M100"])
    source, target = opened.languages[5], opened.languages[9]
    options = ["--checkpoint", str(many["M2M100"]), "--beam-size", "1", "--device", "cpu"]
    named = ["--source-language", source, "--target-language", target]
    for more, chosen in ((named, (source, target)), ([], ())):
        monkeypatch.setattr("sys.stdin", io.StringIO("A dog runs.\n"))
        translate.main([*options, *more])
        (written,) = opened.in_languages(*chosen).translate(["A dog runs."], 1)
        assert capsys.readouterr().out == f"{translate.join_lines(written)}\n"
    monkeypatch.setattr("sys.stdin", io.StringIO("A dog runs.\n"))
    with pytest.raises(ValueError, match=f"no language 'tlh'.*{opened.languages[-1]}"):
        translate.main([*options, "--target-language", "tlh"])


def test_a_model_without_languages_says_so(tmp_path: Path) -> None:
    opened = open_model(save_family(tmp_path, "BART"))
    assert opened.languages == ()
    with pytest.raises(ValueError, match="no choice of languages"):
        opened.translate(["A dog."], target_language="de")


def test_threads_that_read_different_languages_do_not_disturb_each_other(many) -> None:
    opened = open_model(many["NLLB"])
    codes = opened.languages[:8]
    alone = [opened.trace("A dog.", "Ein Hund.", source_language=a, target_language=a) for a in codes]
    with ThreadPoolExecutor(8) as pool:
        together = list(
            pool.map(lambda a: opened.trace("A dog.", "Ein Hund.", source_language=a, target_language=a), codes)
        )
    assert all(np.array_equal(a.logits, b.logits) for a, b in zip(alone, together, strict=True))


def test_a_request_in_a_language_gives_the_run_in_it(many) -> None:
    opened = open_model(many["M2M100"])
    request = Request("A dog.", "Ein Hund.", source_language="fr", target_language="de")
    run = Run.start(opened, request, Place("cross", 0, 0))
    assert run.trace.languages == run.opened.chosen_languages == ("fr", "de")
    assert run.opened.rerun(run.trace, ()).src_ids == run.trace.src_ids


def test_a_byte_is_spelled_as_transformers_spells_it() -> None:
    assert {letter: byte for byte, letter in bytes_to_unicode().items()} == _BYTES
