"""What ends a word, in every script."""

from pathlib import Path

import pytest

from model.analysis.words import attention_words
from model.checkpoints.words import number_words
from tests.model.checkpoints.test_language_model import opened

CUTS = {
    "She didn't see 3.14.": "She didn't see 3.14.",
    "well-known and/or a—b": "well-known and/ or a— b",
    "one\ntwo\tthree\u3000four\u00a0five": "one two three four five",
    "我们坐着，你好。": "我 们 坐 着， 你 好。",
    "日本語のテキスト": "日 本 語 の テキスト",
    "한국어 문장": "한국어 문장",
    "(“Hm!”) said she": "(“Hm!”) said she",
    "dog🤖cat": "dog 🤖 cat",
}
"""text -> its words, each with the punctuation around it"""


def words_of(text: str, spans: list[tuple[int, int]], **more) -> list[str]:
    numbers = number_words(text, spans, [False] * len(spans), **more)
    found = {}
    for number, span in zip(numbers, spans, strict=True):
        found[number] = found.get(number, "") + text[slice(*span)]
    return [word.strip() for word in found.values() if word.strip()]


@pytest.mark.parametrize(("text", "words"), CUTS.items())
def test_a_word_ends_where_its_script_ends_it(text: str, words: str) -> None:
    assert words_of(text, [(i, i + 1) for i in range(len(text))]) == words.split(" ")


def test_a_piece_of_two_words_is_not_cut() -> None:
    assert words_of("中国人很多", [(0, 2), (2, 3), (3, 5)]) == ["中国", "人", "很多"]


def test_the_tokenizers_own_words_end_between_letters_and_not_inside_didn_t() -> None:
    spans = [(0, 1), (1, 2), (2, 3)]
    assert words_of("123", spans) == ["123"]
    assert words_of("123", spans, own=[0, 0, 1]) == ["12", "3"]
    assert words_of("n't", spans, own=[0, 1, 2]) == ["n't"]


def test_bytes_of_one_character_and_a_lone_marker_belong_to_the_word_that_they_begin() -> None:
    assert number_words("猫 猫", [(0, 1), (0, 1), (1, 2), (2, 3), (2, 3)], [False] * 5) == (0, 0, 1, 1, 1)
    assert number_words("a\u3000b", [(0, 1), (1, 2), (1, 2), (2, 3)], [False] * 4) == (0, 1, 1, 2)


def test_a_special_token_parts_words_and_has_no_number() -> None:
    assert number_words("ab", [(0, 1), None, (1, 2)], [False, True, False]) == (0, None, 1)


def test_a_chinese_sentence_and_two_lines_have_more_than_one_word_in_a_model_of_ours(tokenizer) -> None:
    model = opened(tokenizer)
    for text, count in (("我们坐在", 4), ("one\ntwo", 3)):
        attention = model.trace(text, max_new_tokens=0).attention("decoder_self", 0)
        rows, columns = attention_words(attention)
        assert rows == columns
        assert len(columns) == 1 + count


def test_a_word_piece_model_of_chinese_has_a_word_for_each_character(tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    from model.checkpoints.huggingface import open_model
    from tests.model.checkpoints.huggingface.folders import save_family

    folder = save_family(tmp_path, "BERT")
    tokens = open_model(folder).trace("我们 sat on 猫.").streams["encoder"].tokens
    assert tokens.words == (None, 0, 1, 2, 3, 4, 4, None)
