"""Pieces of a sentence, rows of the embedding matrix and their neighbours (section 3.4)."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.analysis.stream.vocabulary import cosines, embedding_rows, kind_of, lengths, neighbours, spell
from model.checkpoints.translator import Translator
from model.network.config import BOS, EOS, PAD, UNK
from tests.model.tiny import random_checkpoint, random_model

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=30) | st.text("a▁\ufdd0🦖é \u0301", max_size=12)


@pytest.fixture(scope="module")
def untied(tiny_config, tokenizer) -> Translator:
    return random_checkpoint(replace(tiny_config, tie_embeddings=False), tokenizer)


@given(text=TEXT)
def test_the_pieces_of_a_text_spell_all_of_it_in_order(tokenizer, text: str) -> None:
    ids = tokenizer.encode(text)
    pieces = spell(tokenizer, ids)
    assert [piece.id for piece in pieces] == ids
    assert [piece.token for piece in pieces] == tokenizer.tokens(ids)
    spelled = "".join(piece.text for position, piece in enumerate(pieces) if piece.first == position)
    assert spelled == (" " + text if text else "")


@given(text=TEXT)
def test_bytes_of_one_character_name_the_same_first_and_last(tokenizer, text: str) -> None:
    pieces = spell(tokenizer, tokenizer.encode(text))
    for position, piece in enumerate(pieces):
        assert piece.first <= position <= piece.last
        assert all(pieces[i].first == piece.first for i in range(piece.first, piece.last + 1))
        if piece.kind == "byte":
            assert len(piece.text) == len(piece.utf8) == 1
        else:
            assert piece.first == piece.last
            assert piece.utf8 == piece.text.encode()


def test_four_bytes_are_together_one_emoji(tokenizer) -> None:
    _, *pieces = spell(tokenizer, tokenizer.encode("🦖"))
    assert [piece.token for piece in pieces] == ["<0xF0>", "<0x9F>", "<0xA6>", "<0x96>"]
    assert {(piece.kind, piece.text, piece.first, piece.last) for piece in pieces} == {("byte", "🦖", 1, 4)}


def test_a_typed_name_of_a_byte_is_no_byte(tokenizer) -> None:
    pieces = spell(tokenizer, tokenizer.encode("<0xF0>"))
    assert b"\xf0" not in [piece.utf8 for piece in pieces]
    assert "".join(piece.text for i, piece in enumerate(pieces) if piece.first == i) == " <0xF0>"


@given(values=st.lists(st.integers(0, 255), max_size=12))
def test_bytes_that_spell_nothing_stand_alone(tokenizer, values: list[int]) -> None:
    ids = [4 + value for value in values]
    assert tokenizer.tokens(ids) == [f"<0x{value:02X}>" for value in values]
    pieces = spell(tokenizer, ids)
    assert b"".join(piece.utf8 for piece in pieces) == bytes(values)
    for position, piece in enumerate(pieces):
        if not piece.text:
            assert piece.first == piece.last == position
        elif len(piece.text.encode()) == piece.last - piece.first + 1:
            assert bytes(values[piece.first : piece.last + 1]).decode() == piece.text


def test_special_and_unknown_tokens_spell_nothing(tokenizer) -> None:
    pieces = spell(tokenizer, [PAD, UNK, BOS, EOS])
    assert [piece.kind for piece in pieces] == ["special", "unknown", "special", "special"]
    assert all(piece.text == "" and piece.utf8 == b"" for piece in pieces)
    assert kind_of(tokenizer, "▁dog", 300) == "text"


@pytest.mark.parametrize("side", ["source", "target"])
@pytest.mark.parametrize("model", ["translator", "untied"])
def test_rows_times_the_root_plus_positions_are_the_run_s_input(model: str, side: str, request) -> None:
    translator = request.getfixturevalue(model)
    trace = translator.trace("A dog 🦖 runs.")
    ids, embedded = (trace.src_ids, trace.src_embedded) if side == "source" else (trace.tgt_ids, trace.tgt_embedded)
    scaled = embedding_rows(translator, side, ids) * np.float32(translator.embedding_scale)
    assert np.array_equal(scaled, embedded.embedding)
    assert np.array_equal(scaled + embedded.positional, embedded.sum)
    assert lengths(embedded)["sum"] == pytest.approx(np.sqrt((embedded.sum.astype(float) ** 2).sum(-1)), rel=1e-12)


@pytest.mark.parametrize("side", ["source", "target"])
def test_neighbours_are_the_nearest_of_the_whole_vocabulary(untied, side: str) -> None:
    matrix = untied.embedding_matrix(side).astype(np.float64)
    for token_id in (BOS, 30, 300, len(matrix) - 1):
        found = neighbours(untied.tokenizer, cosines(untied, side, token_id), token_id)
        by_hand = {
            i: float(row @ matrix[token_id] / np.sqrt((row @ row) * (matrix[token_id] @ matrix[token_id])))
            for i, row in enumerate(matrix)
            if i != token_id
        }
        nearest = sorted(by_hand, key=by_hand.get, reverse=True)[:10]
        assert [neighbour.id for neighbour in found] == nearest
        assert [neighbour.cosine for neighbour in found] == pytest.approx([by_hand[i] for i in nearest], abs=1e-12)
        assert [neighbour.token for neighbour in found] == untied.tokenizer.tokens(nearest)
        assert [neighbour.kind for neighbour in found] == [kind_of(untied.tokenizer, n.token, n.id) for n in found]


def test_sides_of_an_untied_model_have_neighbours_of_their_own(untied, translator) -> None:
    assert not np.array_equal(cosines(untied, "source", 300), cosines(untied, "target", 300))
    assert np.array_equal(cosines(translator, "source", 300), cosines(translator, "target", 300))


def test_an_empty_row_is_like_nothing(translator, tiny_config) -> None:
    model = random_model(tiny_config)
    model.src_embedding.tokens.weight[PAD] = 0
    translator = replace(translator, model=model)
    assert not cosines(translator, "source", PAD).any()
    assert cosines(translator, "source", 300)[[PAD, 300]] == pytest.approx([0, 1])
