"""A transformers tokenizer with the face of `model.checkpoints.tokenizer.Tokenizer`.

A token is shown as the characters that it covers, U+2581 before those that start a word; a part of a character is shown
as its bytes, <0xF0>.
"""

import copy
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import accumulate
from typing import Any

import torch
from torch import Tensor
from transformers.convert_slow_tokenizer import bytes_to_unicode

from model.checkpoints.chat import FilledTemplate, fill_in_template, has_chat_template
from model.checkpoints.files import quote
from model.checkpoints.huggingface.languages import Languages, find_languages
from model.checkpoints.limited import Exceeded
from model.checkpoints.words import number_words
from model.language import Refusal, Sentence, sentence_of
from model.trace import Tokens, Turn

_BYTE = re.compile(r"<0x([0-9A-F]{2})>")
_SURROGATE = re.compile("[\ud800-\udfff]")
_REPLACEMENT = "\ufffd"

Span = tuple[int, int]
"""the first character that a token covers, and the one after its last"""


class WrongTokenizer(Refusal):
    """The tokenizer does not belong to the model; the message says why."""


class Vocabulary:
    """Text <-> token ids. Without a tokenizer texts are token ids, separated by spaces."""

    def __init__(
        self, tokenizer: object | None, size: int, token_types: bool = False, begins: Iterable[int] = ()
    ) -> None:
        self._tokenizer, self._size = tokenizer, size
        self.languages = find_languages(tokenizer, size, begins) if tokenizer else None
        """those of a translator of many languages, and the two that are chosen; None: there is no choice"""
        self.special_ids = frozenset(i for i in _special_ids(tokenizer) if i < size) if tokenizer else frozenset()
        self.special_ids |= self.languages.ids if self.languages else frozenset()
        """tokens that no text consists of"""
        self._special = self.special_ids - {self.mask, self.unknown}
        """those that stand for no text: start, end, padding"""
        self._spelling = _spelling(tokenizer) if tokenizer else ""
        self._bytes = {"ByteLevel": _BYTES, "Bytes": _CHARACTERS}.get(self._spelling, {})
        """what characters of pieces stand for, where they stand for bytes"""
        self.separator = _separator(tokenizer) if tokenizer and token_types else None
        """id of the token between two texts, where the model has `token_types` and the tokenizer numbers them so"""
        self.added_tokens = len(self.read("")) if tokenizer else 0
        """special tokens that `read` adds to a text"""
        self.reads_text = tokenizer is not None
        """whether a text is words, not token ids"""
        self.chats, self.chat_problem = self._try_chat_template()
        """whether the turns of a chat can be written as in the chats that the model was trained on; and why not, where
        the template took too much to find out"""

    def _try_chat_template(self) -> tuple[bool, Sentence | None]:
        if not self._spelling or not getattr(self._tokenizer, "is_fast", False):
            return False, None
        try:
            return has_chat_template(self._tokenizer), None
        except Exceeded as error:
            return False, sentence_of(error)

    def __len__(self) -> int:
        return self._size

    def in_languages(self, languages: Languages) -> "Vocabulary":
        """The same, of texts in other languages."""
        other = copy.copy(self)
        other.languages = languages
        return other

    @property
    def mask(self) -> int | None:
        """Id of the token that stands for a hidden one; None: there is none."""
        return self._id_of("mask")

    @property
    def mask_token(self) -> str:
        """What to type for a hidden token; empty where there is none."""
        return "" if self.mask is None else self._tokenizer.mask_token

    @property
    def unknown(self) -> int | None:
        """Id of what stands for characters that the vocabulary lacks; None: it lacks none, or has no token of its own
        for them."""
        unknown = self._id_of("unk")
        return None if unknown in (self.start, self.end) else unknown

    @property
    def pad(self) -> int:
        """Id of what fills up a batch; any token will do where there is none of its own, because it is masked."""
        known = (self._id_of("pad"), self._id_of("eos"))
        return next((token for token in known if token is not None), 0)

    @property
    def separator_token(self) -> str:
        """What to type between two texts."""
        return self._tokenizer.sep_token

    @property
    def start(self) -> int | None:
        """Id of the start token."""
        return self._id_of("bos")

    @property
    def end(self) -> int | None:
        """Id of the end token."""
        return self._id_of("eos")

    def _id_of(self, name: str) -> int | None:
        """Id of a special token; None where there is none, or the model has no embedding for it."""
        token = getattr(self._tokenizer, f"{name}_token_id", None)
        return token if token is not None and 0 <= token < self._size else None

    def read(self, text: str, target: bool = False) -> list[int]:
        """Token ids with the special tokens that the tokenizer adds; `target`: in the language of the output.

        Raises:
            ValueError: there is no tokenizer, and the text is not token ids; or the text has half a character, or a
                token that the model does not know.
        """
        if self._tokenizer is None:
            return _ids_in(text, self._size)
        if self.languages:
            return self._check_ids(self.languages.around(self.encode(text), target))
        text = _check_text(text)
        texts = {"text": None, "text_target": text} if target else {"text": text}
        return self._check_ids(self._tokenize(**texts)["input_ids"])

    def encode(self, text: str) -> list[int]:
        """Token ids without special tokens; raises as `read` does."""
        if self._tokenizer is None:
            return _ids_in(text, self._size)
        return self._check_ids(self._tokenize(_check_text(text), add_special_tokens=False)["input_ids"])

    def _tokenize(self, *texts: str | None, **options: Any) -> Any:
        try:
            return self._tokenizer(*texts, **options)
        except BaseException as error:
            if type(error).__name__ != "PanicException":  # of tokenizers, which is no Exception
                raise
            raise Refusal("The tokenizer of this model cannot read this text: {error}.", error=quote(error)) from error

    def _check_ids(self, ids: Sequence[int]) -> list[int]:
        """The ids, all of which have an embedding; tokens may have been added to the tokenizer alone."""
        for i in ids:
            if not 0 <= i < self._size:
                token = self._tokenizer.convert_ids_to_tokens(int(i))
                raise Refusal(
                    "The tokenizer writes {token!r} as token {number:,}, but the model has embeddings only "
                    "for tokens 0 to {last:,}: leave it out of the text, or resize the model's embeddings and "
                    "train.",
                    token=token,
                    number=i,
                    last=self._size - 1,
                )
        return list(ids)

    def encode_next(self, text: str) -> list[int]:
        """Token ids of `text` after other text: "cat" begins a word, "-s" continues the last one."""
        continues = text.startswith("-") and text != "-"
        if self._bytes:
            return self.encode(text[1:] if continues else f" {text}")
        return self.encode(text[1:] if continues else text)

    def decode(self, ids: Sequence[int]) -> str:
        """The text of `ids`, without special tokens."""
        if self._tokenizer is None:
            return " ".join(map(str, ids))
        if self._bytes:
            return _join_bytes(self._pieces(ids))[0]
        if self.languages:  # M2M100's tokenizer takes those of its languages for text
            ids = [i for i in ids if i not in self.languages.ids]
        text = self._tokenizer.decode(list(ids), skip_special_tokens=True, clean_up_tokenization_spaces=False)
        return text.rstrip(_REPLACEMENT)

    def _pieces(self, ids: Iterable[int]) -> list[bytes]:
        """Of a byte-level vocabulary: the bytes of each token; none of special ones."""
        pieces = self._tokenizer.convert_ids_to_tokens(list(ids))
        return [
            b"" if i in self._special or piece is None else _bytes_of(str(piece), self._bytes)
            for i, piece in zip(ids, pieces, strict=True)
        ]

    def tokens(self, ids: Iterable[int]) -> list[str]:
        """How each token alone is written, as its own spelling marks words."""
        ids = [int(i) for i in ids]
        if self._tokenizer is None:
            return [f"\u2581{i}" for i in ids]
        pieces = self._tokenizer.convert_ids_to_tokens(ids)
        return [
            f"<{i}>" if piece is None else str(piece) if i in self.special_ids else self._write(piece)
            for i, piece in zip(ids, pieces, strict=True)
        ]

    def _write(self, piece: str) -> str:
        """How a piece is shown where nothing is known of its text."""
        if self._spelling == "WordPiece":
            return piece[2:] if piece.startswith("##") else f"\u2581{piece}"
        if not all(character in self._bytes for character in piece):
            return piece
        data = _bytes_of(piece, self._bytes)
        try:
            return data.decode("utf-8").replace(" ", "\u2581")
        except UnicodeDecodeError:
            return "".join(f"<0x{byte:02X}>" for byte in data)

    def apply_chat_template(self, turns: Sequence[Turn]) -> str:
        """The text that a chat model reads: the turns in its template, up to where the assistant's answer begins.

        Raises:
            ValueError: there is no template that can be used, it refuses the turns, or one of them is empty.
        """
        return self._fill_in(turns).text

    def describe_chat(self, turns: Sequence[Turn]) -> Tokens:
        """The tokens of what `apply_chat_template` gives, each with its role; raises as it does."""
        chat = self._fill_in(turns)
        self.encode(chat.text)  # raises what is wrong with the text
        ids, spans, words = self._cut(chat.text)
        tokens = self._label_all(ids, chat.text, spans, words)
        return replace(tokens, roles=tuple(chat.role_at(*span) for span in spans), turns=tuple(turns))

    def _fill_in(self, turns: Sequence[Turn]) -> FilledTemplate:
        if not self.chats:
            raise Refusal("The tokenizer of this model has no usable chat template.")
        return fill_in_template(self._tokenizer, turns)

    def describe(self, ids: Sequence[int], text: str | None = None) -> Tokens:
        """The tokens `ids` of `text` (None: of what they decode to), with the place of each in it."""
        ids = [int(i) for i in ids]
        whole = self.decode(ids) if text is None else text
        places = self._cut_as(ids, whole)
        words = places and [place and place[1] for place in places]
        return self._label_all(ids, whole, self._spans(ids, whole, places), words)

    def _label_all(
        self, ids: Sequence[int], whole: str, spans: Sequence[Span | None], own: Sequence[int | None] | None
    ) -> Tokens:
        special = tuple(i in self._special for i in ids)
        labels = self.tokens(ids)
        if self._tokenizer and all(span or mark for span, mark in zip(spans, special, strict=True)):
            labels = [
                label if i in self._special or _BYTE.fullmatch(label[:6]) else self._label(i, label, whole, spans, n)
                for n, (i, label) in enumerate(zip(ids, labels, strict=True))
            ]
        words = number_words(whole, spans, special, own)
        segments = None if self.separator is None else number_segments(torch.tensor(ids), self.separator).tolist()
        segments = segments and tuple(segments)
        return Tokens(whole, tuple(ids), tuple(labels), special, tuple(spans), words, segments)

    def _cut(self, text: str) -> tuple[list[int], list[Span], list[int | None]]:
        """What the tokenizer makes of a text: ids, the characters that each covers, and its own numbers of words."""
        found = self._tokenize(text, add_special_tokens=False, return_offsets_mapping=True)
        return list(found["input_ids"]), [tuple(span) for span in found["offset_mapping"]], found.word_ids()

    def _cut_as(self, ids: Sequence[int], text: str) -> list[tuple[Span, int | None] | None] | None:
        """The characters and the word of each of these tokens, as the tokenizer cuts the text; None for a special one.

        None in all: it gives no offsets, or cuts the text into other tokens.
        """
        if not getattr(self._tokenizer, "is_fast", False):
            return None
        known = [(i, place) for i, *place in zip(*self._cut(text), strict=True) if i not in self._special]
        if [i for i, _ in known] != [i for i in ids if i not in self._special]:
            return None
        rest = iter(known)
        return [None if i in self._special else next(rest)[1] for i in ids]

    def _label(self, i: int, piece: str, text: str, spans: Sequence[Span | None], n: int) -> str:
        """The token `i`, number n of the text: as its piece is spelled, or by the characters that it covers."""
        if self._spelling == "Metaspace" and i not in self.special_ids:
            # Offsets do not tell "▁" and "a" apart from "▁a"; the piece does.
            return _spell(piece, first=not any(spans[:n]))
        return _label(text, spans, n, piece, by_piece=i in self.special_ids or self._spelling == "WordPiece")

    def _spans(self, ids: Sequence[int], text: str, places: Sequence | None) -> list[Span | None]:
        """Characters of `text` that each token covers: the tokenizer's offsets, else how far its decoding has grown."""
        if self._tokenizer is None:
            ends = list(accumulate(len(str(i)) + 1 for i in ids))
            return [(end - len(str(i)) - 1, end - 1) for i, end in zip(ids, ends, strict=True)]
        if self._bytes:
            joined, bytes_of = _join_bytes(self._pieces(ids))
            if joined == text:
                return [None if i in self._special else place for i, place in zip(ids, bytes_of, strict=True)]
        if places:
            return [place and place[0] for place in places]
        spans, done, start = [], [], 0
        for i in ids:
            if i in self._special:
                spans.append(None)
                continue
            done.append(i)
            decoded = self._tokenizer.decode(done, skip_special_tokens=True, clean_up_tokenization_spaces=False)
            whole = len(decoded.rstrip(_REPLACEMENT))
            end = min(len(text), max(whole, start) + (len(decoded) > whole))
            spans.append((start, end))
            start = max(whole, start)
        return spans


def number_segments(ids: Tensor, separator: int) -> Tensor:
    """(..., position) -> the same: 1 from behind the first separator to the last one, which ends the second text, and 0
    elsewhere (Devlin et al. 2019, section 3.2: sentence A and sentence B)."""
    ends = (ids == separator).long()
    before = ends.cumsum(-1) - ends
    to_come = ends.flip(-1).cumsum(-1).flip(-1)
    return ((before > 0) & (to_come > 0)).long()


def _separator(tokenizer: object) -> int | None:
    """Id of the tokenizer's separator, if two texts that it joins itself have the segments that `number_segments` gives
    them."""
    separator = getattr(tokenizer, "sep_token_id", None)
    if separator is None:
        return None
    joined = tokenizer("a", "b", return_token_type_ids=True)
    found = number_segments(torch.tensor(joined["input_ids"]), separator).tolist()
    return separator if any(found) and found == list(joined["token_type_ids"]) else None


def _special_ids(tokenizer: object) -> frozenset[int]:
    """Those with a name, such as the mask, and those that were added as special ones, such as a chat's."""
    added = getattr(tokenizer, "added_tokens_decoder", {})
    return frozenset(tokenizer.all_special_ids) | {i for i, token in added.items() if token.special}


def check_tokenizer(tokenizer: object, vocabulary: int) -> None:
    """Raise WrongTokenizer if its tokens are not those that the model was trained on, as far as numbers can tell."""
    if len(tokenizer) > 1.02 * vocabulary + 64 or len(tokenizer) < 0.5 * vocabulary:
        raise WrongTokenizer(
            "The tokenizer has {count:,} tokens and the model {vocabulary:,}: they do not belong together. Give "
            "the tokenizer that the model was trained with.",
            count=len(tokenizer),
            vocabulary=vocabulary,
        )


def _check_text(text: str) -> str:
    """The text, which has no lone surrogate: half of a character, with which tokenizers fail in ways of their own."""
    if half := _SURROGATE.search(text):
        raise Refusal(
            "The text has U+{code} at character {place:,}: half of a character, which cannot stand in a text. "
            "Leave it out.",
            code=f"{ord(half[0]):04X}",
            place=half.start() + 1,
        )
    return text


def _label(text: str, spans: Sequence[Span | None], i: int, piece: str, by_piece: bool) -> str:
    """The characters of a token, U+2581 first if whitespace, or nothing, stands before them.

    `by_piece`: as the vocabulary writes it, which for a hidden or an unknown word is a name, and which may have no
    capitals and no accents where the text has them.
    """
    start, end = spans[i]
    covered = text[start:end]
    word = covered.lstrip(" ")
    alone = i > 0 and spans[i - 1] is not None and text[slice(*spans[i - 1])].isspace()
    begins = word != covered or start == 0 or (text[start - 1].isspace() and not alone)
    if not word:
        return piece
    shown = piece.removeprefix("\u2581") if by_piece else word
    return f"\u2581{shown}" if begins else shown


def _spell(piece: str, first: bool) -> str:
    """A Metaspace piece, whose U+2581 starts a word; the first one of a text starts one anyway."""
    marked = piece if piece.startswith("▁") or not first else f"▁{piece}"
    word = marked.strip("▁")
    return marked.replace(word, word.replace("▁", " ")) if word else marked


def _ids_in(text: str, size: int) -> list[int]:
    try:
        ids = [int(word) for word in text.split()]
    except ValueError:
        ids = [-1]
    if not all(0 <= i < size for i in ids):
        raise Refusal(
            "This model was opened without a tokenizer: type token ids from 0 to {last:,}, such as 5 17 42.",
            last=size - 1,
        )
    return ids


def _spelling(tokenizer: object) -> str:
    """How the tokenizer marks words, by what undoes it: ByteLevel (Ġthe), WordPiece (##ing) or Metaspace (▁the); or
    Bytes, where each is a token (ByT5)."""
    if (backend := getattr(tokenizer, "backend_tokenizer", None)) is not None:
        decoder = json.loads(backend.to_str()).get("decoder") or {}
        kinds = {each.get("type") for each in (decoder, *decoder.get("decoders", ()))}
        return next((kind for kind in ("ByteLevel", "WordPiece") if kind in kinds), "Metaspace")
    vocabulary = tokenizer.get_vocab()
    if vocabulary.keys() >= _CHARACTERS.keys():
        return "Bytes"
    return "ByteLevel" if "Ġthe" in vocabulary else "WordPiece" if "##s" in vocabulary else "Metaspace"


_BYTES = {character: byte for byte, character in bytes_to_unicode().items()}
"""the printable characters that stand for bytes in a byte-level vocabulary (GPT-2)"""
_CHARACTERS = {chr(byte): byte for byte in range(256)}
"""those that stand for bytes where each byte is a token"""


def _bytes_of(piece: str, known: Mapping[str, int]) -> bytes:
    """A token that is no piece of bytes, such as one added later, is its text."""
    spelled = all(character in known for character in piece)
    return bytes(known[character] for character in piece) if spelled else piece.encode()


def _join_bytes(pieces: Sequence[bytes]) -> tuple[str, list[Span]]:
    """The text of these bytes, <0xF0> for one of no character, and the characters that each piece covers."""
    data, at = b"".join(pieces), 0
    text, places = "", []
    while at < len(data):
        for width in range(1, 5):
            with suppress(UnicodeDecodeError):
                shown = data[at : at + width].decode("utf-8")
                break
        else:
            shown, width = f"<0x{data[at]:02X}>", 1
        places += [(len(text), len(text) + len(shown))] * width
        text, at = text + shown, at + width
    places.append((len(text), len(text)))
    ends = list(accumulate(map(len, pieces)))
    return text, [
        (places[end - len(piece)][0], places[max(end - 1, 0)][1]) if piece else (places[end][0],) * 2
        for piece, end in zip(pieces, ends, strict=True)
    ]
