"""The words that a newcomer may not know: each is explained on a page, and the explanations' numbers are right."""

import math
from pathlib import Path

import pytest

from pages.widgets.glossary import GLOSSARY, define

PAGES = Path(__file__).parents[3] / "pages"


@pytest.mark.parametrize("word", GLOSSARY)
def test_each_word_is_explained_on_a_page(word: str) -> None:
    calls = [line for path in PAGES.rglob("*.py") for line in path.read_text("utf-8").splitlines() if "define(" in line]
    assert any(f'"{word}"' in line or f"'{word}'" in line for line in calls)


def test_one_word_is_a_sentence_and_several_are_told_apart() -> None:
    assert define("rollout") == GLOSSARY["rollout"]
    assert define("rollout", "nats") == f"**Rollout**: {GLOSSARY['rollout']}  \n**Nats**: {GLOSSARY['nats']}"
    with pytest.raises(KeyError):
        define("no such word")


def test_the_numbers_in_the_explanations_are_right() -> None:
    assert f"{math.exp(-1):.0%}".replace("%", " %") in GLOSSARY["nats"]
    assert f"{math.exp(-2):.0%}".replace("%", " %") in GLOSSARY["nats"]
    assert f"{1 / math.log(2):.2f} bits" in GLOSSARY["nats"]
    assert f"{math.log2(8):.0f} if it is spread evenly over 8" in GLOSSARY["entropy"]
