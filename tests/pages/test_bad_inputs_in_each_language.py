"""Bad input, made on purpose, in German and Chinese: the sentence that says what to do is in that language."""

import json
import re
import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from model.checkpoints.store import CHECKPOINTS_VARIABLE
from pages.text import languages
from tests.pages.figures import visible_texts

LANGUAGES = [*languages()][1:]
TEXTS = {
    "100,000 characters": "a dog " * 16_700,
    "emoji": "👩‍👩‍👧‍👦 🍕 🏳️‍🌈",
    "right to left": "\u202eשלום עולם\u202c",
    "HTML": "<script>alert(1)</script><b>dog</b>",
    "control characters": "".join(map(chr, range(1, 32))) + "\x7f\x85 dog",
}
FORGED = {
    "checkpoint": "../../etc/passwd",
    "kind": "<b>none</b>",
    "layer": "9" * 40,
    "head": "-1",
    "tau": "nan",
    "changes": '[["HeadGate", {"gate": "x"}]]',
    "part": "\u202e",
    "step": "1e999",
    "course": "AAAA",
}


def notes(app: object) -> list[str]:
    """What warns, informs or says what went wrong, and plain text."""
    return [element.value for kind in (app.info, app.warning, app.error, app.text) for element in kind]


@cache
def english_of(code: str) -> list[re.Pattern]:
    """Each English sentence that the language says otherwise, with anything for its facts."""
    strings = languages()[code].strings
    sentences = [text for text in strings if text.endswith(".") and text.count(" ") > 3 and strings[text] != text]
    return [re.compile(r".+?".join(map(re.escape, re.split(r"\{[^}]*\}", text))), re.DOTALL) for text in sentences]


def english_in(code: str, texts: list[str]) -> list[str]:
    return [text for text in texts for one in english_of(code) if one.fullmatch(text.strip())]


@pytest.mark.parametrize("code", LANGUAGES)
def test_an_empty_text_and_one_that_is_cut_get_their_sentence_in_the_language(code: str, open_app: Callable) -> None:
    for text in (" ", TEXTS["100,000 characters"]):
        own, english = (notes(open_app("pages/masks.py", source=text, lang=one)) for one in (code, "en"))
        assert len(own) == len(english) > 0
        assert not {*own} & {*english}
        assert english_in(code, own) == []
        assert text != " " or english_in(code, english), "the other tests could not fail if it were not found"


@pytest.mark.parametrize(
    ("text", "code"), [(text, LANGUAGES[number % len(LANGUAGES)]) for number, text in enumerate(TEXTS)]
)
def test_a_text_that_nobody_expects_leaves_no_english_sentence(text: str, code: str, open_app: Callable) -> None:
    app = open_app("pages/masks.py", source=TEXTS[text], lang=code)
    assert english_in(code, [*visible_texts(app), *notes(app)]) == []


@pytest.mark.parametrize("code", LANGUAGES)
def test_a_forged_value_in_a_link_leaves_no_english_sentence(code: str, open_app: Callable) -> None:
    app = open_app("pages/what_if.py", source="A dog sleeps.", lang=code, **FORGED)
    assert english_in(code, [*visible_texts(app), *notes(app)]) == []


@pytest.mark.parametrize("code", LANGUAGES)
def test_a_broken_link_of_a_course_says_so_in_the_language(code: str, open_app: Callable) -> None:
    english = {one.value for one in open_app("pages/masks.py", course="AAAA").warning}
    said = {one.value for one in open_app("pages/masks.py", course="AAAA", lang=code).warning}
    assert english
    assert said
    assert not said & english


@pytest.mark.parametrize(
    ("code", "field", "value", "english"),
    [
        (LANGUAGES[0], "n_heads", 5, "{whole} ({size}) must be a multiple of {part} ({divisor})"),
        (LANGUAGES[1], "norm", "middle", "{name} must be one of {names}, got {value!r}"),
        (LANGUAGES[0], "biases", "yes", "{name} must be true or false, got {value!r}"),
        (LANGUAGES[1], "window", -1, "{name} must be a whole number from 0 on, got {value!r}"),
    ],
)
def test_a_broken_checkpoint_says_what_is_wrong_in_the_language(
    code: str, field: str, value: object, english: str, families: Path, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch, open_app: Callable,
) -> None:  # fmt: skip
    shutil.copytree(families / "lm", tmp_path / "broken")
    path = tmp_path / "broken/config.json"
    config = json.loads(path.read_text("utf-8"))
    config["model"][field] = value
    path.write_text(json.dumps(config), "utf-8")
    monkeypatch.setenv(CHECKPOINTS_VARIABLE, str(tmp_path))
    said = " ".join([*visible_texts(open_app("pages/masks.py", lang=code, checkpoint="broken"))])
    # Of the sentence in the language, the words between its facts.
    words = [part for part in re.split(r"\{[^}]*\}", languages()[code].strings[english]) if part.strip("（）() ")]
    assert words
    assert all(part.strip() in said.replace("\\", "") for part in words), said
