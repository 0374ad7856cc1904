"""Folders that anybody may have made: what is read of them, what it may take, and what they cannot set off."""

import json
import os
import re
import sys
import threading
import types
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

import pytest
from transformers import AutoTokenizer, GenerationConfig, PreTrainedConfig
from transformers.utils.chat_template_utils import render_jinja_template

from model.checkpoints import limited
from model.checkpoints.card import read_card
from model.checkpoints.files import CheckpointError
from model.checkpoints.huggingface import open_model
from model.checkpoints.huggingface.copies import DROPPED, copies
from model.language import Sentence
from model.trace import Turn
from tests.model.checkpoints.huggingface.folders import byte_level_tokenizer, change_json, save_chat_model

SECRET = "words-of-another-file"
ENDLESS = (
    "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}{{ messages[0].content }}",
    "{{ 'a' * (10 ** 10) }}{{ messages[0].content }}",
    "{{ 'a'.ljust(10 ** 10) }}{{ messages[0].content }}",
    "{% for a in range(99999) %}{{ 'a' * 99999 }}{% endfor %}{{ messages[0].content }}",
)


@pytest.fixture
def folder(copy) -> Path:
    return copy("GPT-2")


def within(seconds: float, work: Callable[[], object]) -> list[object]:
    """What the work gives or raises; the test fails, and leaves it behind, where it does not end."""
    got: list[object] = []

    def do() -> None:
        try:
            got.append(work())
        except ValueError as error:
            got.append(error)

    thread = threading.Thread(target=do, daemon=True)
    thread.start()
    thread.join(seconds)
    assert got, "it goes on and on"
    return got


def a_pipe(path: Path, _: Path) -> None:
    os.mkfifo(path)


def a_link_to_another_file(path: Path, elsewhere: Path) -> None:
    elsewhere.write_text(json.dumps({"model_type": SECRET, "sentence": SECRET}), "utf-8")
    path.symlink_to(elsewhere)


def an_endless_device(path: Path, _: Path) -> None:
    path.symlink_to("/dev/zero")


def a_file_of_gigabytes(path: Path, _: Path) -> None:
    with open(path, "wb") as file:
        file.truncate(3 * 2**30)


NO_FILES = (a_pipe, a_link_to_another_file, an_endless_device, a_file_of_gigabytes)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no pipes among its files")
@pytest.mark.parametrize("name", ["README.md", "metrics.json", "log.csv", "config.json"])
@pytest.mark.parametrize("what", NO_FILES)
def test_a_card_reads_regular_files_of_its_folder_alone(what: Callable, name: str, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    what(folder / name, tmp_path / "elsewhere")
    (card,) = within(20, lambda: read_card(folder))
    assert name in card.missing
    assert SECRET not in str(card)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no pipes among its files")
@pytest.mark.parametrize("what", NO_FILES)
@pytest.mark.parametrize("name", ["config.json", "tokenizer.json", "chat_template.jinja", "model.safetensors"])
def test_a_folder_with_a_link_a_pipe_or_a_file_without_end_is_refused(what: Callable, name: str, folder: Path) -> None:
    (folder / name).unlink(missing_ok=True)
    what(folder / name, folder.parent / "elsewhere")
    (said,) = within(60, lambda: open_model(folder))
    assert isinstance(said, CheckpointError)
    assert SECRET not in str(said)


def test_a_model_in_the_cache_whose_files_are_links_to_those_beside_it_opens(folder: Path, tmp_path: Path) -> None:
    blobs, snapshot = tmp_path / "models--a--b/blobs", tmp_path / "models--a--b/snapshots/1234"
    blobs.mkdir(parents=True)
    snapshot.mkdir(parents=True)
    for number, path in enumerate(sorted(folder.iterdir())):
        path.rename(blobs / f"hash-{number}")
        (snapshot / path.name).symlink_to(f"../../blobs/hash-{number}")
    assert open_model(snapshot).trace("A dog").attentions


def test_nothing_but_the_reader_opens_a_file_of_a_folder() -> None:
    """By the source: `open`, `read_text` and transformers' `from_pretrained` get what the reader found, or a copy."""
    sources = {path: path.read_text("utf-8") for path in Path("model/checkpoints").rglob("*.py")}
    for path, text in sources.items():
        if path.name in ("files.py", "limited_process.py", "devices.py") and "huggingface" not in path.parts:
            continue
        for line in text.splitlines():
            opens = any(word in line for word in (".read_text(", ".read_bytes(", " open(", "load_file(", "safe_open("))
            assert not opens or "find_weights(" in line or "import" in line, (path, line)
            if "from_pretrained(" in line and "def " not in line and "``" not in line and "`" not in line:
                assert "copy" in line or line.strip() == "return factory.from_pretrained(", (path, line)


@pytest.mark.parametrize(
    ("file", "settings"),
    [
        ("config.json", {"attn_implementation": "somebody/kernels"}),
        ("config.json", {"_attn_implementation": "somebody/kernels"}),
        ("config.json", {"_attn_implementation_internal": "somebody/kernels"}),
        ("config.json", {"experts_implementation": "somebody/kernels"}),
        ("config.json", {"auto_map": {"AutoConfig": "somebody/code--configuration.Config"}}),
        (
            "config.json",
            {"task_specific_params": {"a": [{"auto_map": {"AutoModel": "code.Model"}, "attn_implementation": "a/b"}]}},
        ),
        ("config.json", {"configuration_files": ["config.4.0.0.json"]}),
        (
            "config.json",
            {"use_kernels": True, "kernel_config": {"kernel_mapping": {"RMSNorm": "somebody/kernels:Norm"}}},
        ),
        ("generation_config.json", {"custom_generate": "somebody/code", "cache_implementation": "quantized"}),
        ("generation_config.json", {"compile_config": {"backend": "somebody.code"}}),
        ("tokenizer_config.json", {"auto_map": {"AutoTokenizer": ["code.Tokenizer", None]}}),
        ("tokenizer_config.json", {"vocab_file": "/etc/passwd", "fast_tokenizer_files": ["tokenizer.4.0.0.json"]}),
    ],
)
def test_settings_that_name_code_kernels_or_files_never_reach_transformers(
    file: str, settings: dict, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the package is there that would bring the kernels from the network."""
    asked: list[object] = []
    kernels = types.ModuleType("kernels")
    kernels.__getattr__ = lambda name: lambda *found, **options: asked.append((name, found, options))
    monkeypatch.setitem(sys.modules, "kernels", kernels)
    change_json(folder / "config.4.0.0.json", **json.loads((folder / "config.json").read_text()) | {"n_head": 1})
    change_json(folder / file, **settings)
    seen = []
    for reading in (PreTrainedConfig, GenerationConfig):
        reads = reading._dict_from_json_file.__func__

        def spy(cls: type, path: object, reads: Callable = reads) -> dict:
            seen.append(found := reads(cls, path))
            return found

        monkeypatch.setattr(reading, "_dict_from_json_file", classmethod(spy))
    opened = open_model(folder)
    assert opened.trace("A dog").attentions
    assert asked == []
    assert seen
    assert not names_code(seen)
    assert opened.config.n_heads > 1, "of config.json itself"
    with copies(folder) as copy:
        for path in copy.glob("*config.json"):
            assert not names_code(json.loads(path.read_text("utf-8")))


def names_code(settings: object) -> set[str]:
    """The names of settings that DROPPED has, also inside others."""
    return {name for name in re.findall(r'"(\w+)":', json.dumps(settings, default=str)) if DROPPED.fullmatch(name)}


def test_a_tokenizer_that_passed_its_trial_is_not_tried_again_wherever_it_lies_and_one_that_failed_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried, run, enough = [], limited._run, limited.TOKENIZER_BYTES
    limited._try.cache_clear()
    monkeypatch.setattr(limited, "_run", lambda task, who: (tried.append(task["bytes"]), run(task, who))[1])
    for name in ("one", "two"):
        byte_level_tokenizer().save_pretrained(tmp_path / name)
    paths = [tmp_path / name / "tokenizer.json" for name in ("one", "two")]
    for memory in (2**20, 2**20, enough):
        monkeypatch.setattr(limited, "TOKENIZER_BYTES", memory)
        with pytest.raises(limited.Exceeded) if memory < enough else nullcontext():
            limited.try_tokenizer(paths[0], 1)
    limited.try_tokenizer(paths[1], 1)
    assert tried == [2**20, 2**20, enough]


def with_template(folder: Path, template: str) -> Path:
    tokenizer = byte_level_tokenizer()
    tokenizer.chat_template = template
    tokenizer.save_pretrained(folder)
    return folder


@pytest.mark.parametrize("template", ENDLESS)
def test_a_model_opens_without_a_template_that_has_no_end_and_says_so(
    template: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limited, "SECONDS", 1)
    (opened,) = within(60, lambda: open_model(with_template(folder, template)))
    assert not opened.tokenizer.chats
    assert any("chat template" in note for note in opened.notes)
    assert opened.trace("A dog").attentions


def test_a_template_that_has_no_end_for_some_turns_alone_refuses_those(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limited, "SECONDS", 1)
    folder = save_chat_model(tmp_path / "chats")
    template = AutoTokenizer.from_pretrained(folder).chat_template
    opened = open_model(with_template(folder, template + "{% if messages | length > 2 %}" + ENDLESS[0] + "{% endif %}"))
    assert opened.tokenizer.chats
    assert opened.tokenizer.apply_chat_template((Turn("user", "Hi"),))
    turns = (Turn("user", "Hi"), Turn("assistant", "Yo"), Turn("user", "Bye"))
    (said,) = within(60, lambda: opened.tokenizer.apply_chat_template(turns))
    assert "takes more than 1 second" in str(said)


@pytest.mark.parametrize(
    "template",
    [
        "{% for m in messages %}{% if m.role == 'user' %}{% continue %}{% endif %}{{ m | tojson }}{% endfor %}",
        "{% set n = namespace(seen=0) %}{% for m in messages %}{% set n.seen = n.seen + 1 %}{{ n.seen }}{% endfor %}",
        "{{ bos_token }}{% generation %}{{ messages[-1].content | trim }}{% endgeneration %}",
        "{{ dict(a=1) | tojson(indent=2) }}{{ strftime_now('%Y') }}{{ tools is none }}",
        "{% if add_generation_prompt %}{{ messages[1:] }}{% endif %}\n   {% if true %}a{% endif %}\n",
        "{{ missing }}{{ messages[0]['content'][::-1] }}",
    ],
)
def test_a_template_gives_what_it_does_in_transformers(template: str) -> None:
    chat = [{"role": "user", "content": " Hü\n"}, {"role": "assistant", "content": "Yo"}]
    facts = {"bos_token": "<s>"}
    for prompt in (True, False):
        (theirs,), _ = render_jinja_template([chat], chat_template=template, add_generation_prompt=prompt, **facts)
        asked = [{"messages": chat, "add_generation_prompt": prompt}]
        assert limited.fill_in(template, facts, asked) == (theirs,)


@pytest.mark.parametrize(
    "template", ["{{ ''.__class__.__mro__ }}", "{{ messages.append(1) }}", "{{ cycler.__init__.__globals__ }}"]
)
def test_a_template_reaches_nothing_behind_its_values(template: str) -> None:
    with pytest.raises(ValueError, match=r"unsafe|undefined|denied|attribute"):
        limited.fill_in(template + "{{ 1 + none }}", {}, [{"messages": [], "add_generation_prompt": True}])


def test_a_program_of_a_folder_gets_no_variable_of_the_environment() -> None:
    text = "{{ self }}{{ environ }}"
    assert "environ" not in limited.fill_in(text, {}, [{"messages": [], "add_generation_prompt": True}])[0]


GROWING = {"type": "Replace", "pattern": {"String": "ꙮ"}, "content": "ꙮꙮ"}
BACKTRACKING = {"type": "Split", "pattern": {"Regex": "(a+)+$|(1+)+$|( +)+$"}, "behavior": "Isolated", "invert": False}


@pytest.mark.parametrize(
    "part",
    [
        {"normalizer": {"type": "Sequence", "normalizers": [GROWING] * 40}},
        {"normalizer": GROWING | {"content": "a" * 10_000}},
        {"normalizer": GROWING | {"pattern": {"Regex": ""}, "content": "a" * 1000}},
        {"decoder": {"type": "Sequence", "decoders": [GROWING] * 40}},
        {"added_tokens": [{"id": 0, "content": "a" * 100_000, "special": True}]},
    ],
)
def test_a_tokenizer_that_makes_much_of_little_is_refused(part: dict, folder: Path) -> None:
    change_json(folder / "tokenizer.json", **part)
    (said,) = within(60, lambda: open_model(folder))
    assert isinstance(said, CheckpointError)
    assert "tokenizer" in str(said)
    assert isinstance(said.args[0].facts["problem"], Sentence), "all of it can be said in another language"


def test_a_pattern_that_goes_back_without_end_refuses_a_text_in_a_sentence(folder: Path) -> None:
    change_json(folder / "tokenizer.json", pre_tokenizer=BACKTRACKING)
    (found,) = within(60, lambda: open_model(folder))
    if isinstance(found, ValueError):
        assert "tokenizer" in str(found)
        return
    (said,) = within(60, lambda: found.tokenizer.read("a" * 40 + "b"))
    assert isinstance(said, ValueError)
