"""A chat in a chat template: the tokens that transformers gives, each with its role."""

from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from model.checkpoints.huggingface import open_model
from model.checkpoints.huggingface.opened import HookedLanguageModel
from model.interventions import AttentionTemperature
from model.proof.checks import prove
from model.proof.claims import CLAIMS
from model.proof.measures import Case
from model.trace import Trace, Turn
from tests.model.checkpoints.huggingface.folders import byte_level_tokenizer, save_chat_model, save_family

MESSAGE = "  Does the dog 🤖 run?\nOr sit? "
CHAT = (
    Turn("system", "Go."),
    Turn("user", "Hi<|end|>"),
    Turn("assistant", "Ja."),
    Turn("user", MESSAGE),
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_chat_model(tmp_path_factory.mktemp("chats") / "llama")


@pytest.fixture(scope="module")
def opened(folder: Path) -> HookedLanguageModel:
    return open_model(folder)


@pytest.fixture(scope="module")
def trace(opened: HookedLanguageModel) -> Trace:
    return opened.trace(CHAT, max_new_tokens=6)


def test_the_model_reads_and_writes_what_it_does_in_transformers(folder: Path, trace: Trace) -> None:
    chat, tokens = [{"role": turn.role, "content": turn.text} for turn in CHAT], trace.streams["decoder"].tokens
    prompt = AutoTokenizer.from_pretrained(folder).apply_chat_template(chat, add_generation_prompt=True)["input_ids"]
    assert list(tokens.ids[: tokens.prompt_length]) == prompt, "the start token is there once"
    eager = AutoModelForCausalLM.from_pretrained(folder, attn_implementation="eager").eval()
    (wrote,) = eager.generate(torch.tensor([prompt]), do_sample=False, max_new_tokens=6).tolist()
    assert list(tokens.ids) == wrote
    with torch.inference_mode():
        assert np.array_equal(trace.logits, eager(torch.tensor([wrote])).logits[0].numpy())


def test_each_token_has_its_role(opened: HookedLanguageModel, trace: Trace) -> None:
    tokens = trace.streams["decoder"].tokens
    said: list[tuple[str, str]] = []
    for span, role in dict.fromkeys(
        zip(tokens.spans, tokens.roles, strict=True)
    ):  # bytes of one character share a span
        if not said or said[-1][0] != role:
            said.append((role, ""))
        said[-1] = (role, said[-1][1] + tokens.text[slice(*span)])
    assert said == [
        ("template", "<s><|system|>You help.<|end|><|system|>\n"),
        ("system", "Go."),
        ("template", "<|end|><|user|>\n"),
        ("user", "Hi<|end|>"),
        ("template", "<|end|><|assistant|>\n"),
        ("assistant", "Ja."),
        ("template", "<|end|><|user|>\n"),
        ("user", MESSAGE.strip()),
        ("template", "<|end|>"),
        ("generation prompt", "<|assistant|>\n"),
        ("assistant", trace.written),
    ]
    assert trace.source == opened.tokenizer.apply_chat_template(CHAT)
    assert trace.translation == trace.source + trace.written
    assert trace.prompt == CHAT
    special = {label for label, mark in zip(tokens.labels, tokens.special, strict=True) if mark}
    assert special == {"<s>", "<|system|>", "<|user|>", "<|end|>", "<|assistant|>"}
    assert not any("\ufffd" in label for label in tokens.labels)


def test_a_chat_is_run_again_with_a_change_and_its_roles(opened: HookedLanguageModel, trace: Trace) -> None:
    assert all(check.passed for check in prove(opened, trace))
    changed = opened.rerun(trace, (AttentionTemperature(0.3),))
    assert changed.streams["decoder"].tokens == trace.streams["decoder"].tokens
    assert changed.next_ids == trace.next_ids
    assert not np.allclose(changed.logits, trace.logits)


def test_an_answer_ends_where_the_models_settings_end_a_turn(folder: Path, tmp_path: Path, trace: Trace) -> None:
    given = trace.first_written
    end = trace.next_ids[given + 3]
    eager = AutoModelForCausalLM.from_pretrained(folder)
    eager.generation_config.eos_token_id = [eager.config.eos_token_id, end]
    eager.save_pretrained(tmp_path)
    AutoTokenizer.from_pretrained(folder).save_pretrained(tmp_path)
    ended = open_model(tmp_path).trace(CHAT, max_new_tokens=6)
    assert ended.next_ids == trace.next_ids[: trace.next_ids.index(end, given) + 1]


def test_a_target_of_the_persons_own_is_the_assistants(opened: HookedLanguageModel) -> None:
    trace = opened.trace((Turn("user", "Hello"),), " A dog runs.")
    tokens = trace.streams["decoder"].tokens
    answer = [i for i, role in zip(tokens.ids, tokens.roles, strict=True) if role == "assistant"]
    assert opened.tokenizer.decode(answer) == " A dog runs."


def test_a_text_without_the_template_has_no_roles(opened: HookedLanguageModel) -> None:
    tokens = opened.trace("A dog").streams["decoder"].tokens
    assert tokens.roles is None
    assert tokens.labels[0] == "<s>"
    with pytest.raises(ValueError, match="The message is empty"):
        opened.trace((Turn("user", " "),))


@pytest.mark.parametrize(
    "template",
    [
        None,
        "{{ raise_exception('no user here') }}",
        "{% for message in messages %}{{ message.content | upper }}{% endfor %}",
        "{{ messages[0].content }} {{ messages[0].content }}",
        "{% for broken",
    ],
)
def test_a_template_that_does_not_just_wrap_is_not_offered(template: str | None, tmp_path: Path) -> None:
    folder = save_family(tmp_path / "model", "GPT-2")
    tokenizer = byte_level_tokenizer()
    tokenizer.chat_template = template
    tokenizer.save_pretrained(folder)
    opened = open_model(folder)
    assert not opened.tokenizer.chats
    with pytest.raises(ValueError, match="no usable chat template"):
        opened.trace((Turn("user", "Hello"),))
    assert opened.trace("A dog").streams["decoder"].tokens.roles is None


def test_claims_about_start_and_searches_are_of_the_chat_where_its_template_writes_no_start_token(
    folder: Path, tmp_path: Path
) -> None:
    AutoModelForCausalLM.from_pretrained(folder).save_pretrained(tmp_path)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    tokenizer.chat_template = tokenizer.chat_template.replace("{{ bos_token }}", "")
    tokenizer.save_pretrained(tmp_path)
    opened = open_model(tmp_path)
    trace = opened.trace(CHAT, max_new_tokens=6)
    assert opened.tokenizer.read(trace.source)[0] != trace.tgt_ids[0], "a text begins otherwise"
    case = Case(opened, trace, "decoder_self", 0, 0)
    for label in ("8b", "12"):
        claim = next(claim for claim in CLAIMS if claim.label == label)
        assert claim.measure(case) <= claim.tolerance, label
