"""The joint SentencePiece vocabulary of both languages (paper, section 5.1), with byte fallback."""

import math
import random
import re
from collections.abc import Iterable, Sequence
from io import BytesIO
from itertools import accumulate

import sentencepiece as spm

from model.checkpoints.words import number_words
from model.language import Refusal
from model.network.config import BOS, EOS, PAD, SPECIAL_TOKENS, UNK
from model.trace import Tokens

# SentencePiece encodes a space as U+2581, so a typed U+2581 would be decoded as a space. It is escaped as a pair of
# Unicode noncharacters ("for internal use"), and so is the first of that pair.
_ESCAPE = "\ufdd0"
_ESCAPED = {"\u2581": f"{_ESCAPE}\ufdd2", _ESCAPE: f"{_ESCAPE}\ufdd1"}
_UNESCAPED = {pair: character for character, pair in _ESCAPED.items()}

MASK_TOKEN, MASK = "<mask>", len(SPECIAL_TOKENS)
"""A masked language model's vocabulary has it after the special tokens, as a word of its own."""

N_SEGMENTATIONS = 32
"""Number of a word's most probable segmentations to sample from (l in Kudo 2018)."""


class Tokenizer:
    """Text <-> token ids; `decode(encode(text))` returns every valid Unicode string unchanged.

    Raises:
        ValueError: `serialized` is not a SentencePiece model with this project's special tokens.
    """

    mask, mask_token = MASK, MASK_TOKEN
    """id and text of what hides a token; only a masked language model's vocabulary has them"""
    special_ids = frozenset(range(MASK + 1))
    """tokens that no text consists of"""
    separator = None
    """no token stands between two texts"""
    chats = False
    """there is no chat template"""
    start, end, pad = BOS, EOS, PAD
    """ids of what begins and ends a text, and of what fills up a batch"""
    unknown = UNK
    """id of what stands for characters without a piece"""

    def __init__(self, serialized: bytes) -> None:
        try:
            self._pieces = spm.SentencePieceProcessor(model_proto=serialized)
            special = tuple(self._pieces.id_to_piece(list(range(len(SPECIAL_TOKENS)))))
        except (RuntimeError, IndexError) as error:
            raise Refusal("not a SentencePiece model: {error}", error=error) from error
        if special != SPECIAL_TOKENS:
            raise Refusal("the first tokens must be {wanted}, found {special}", wanted=SPECIAL_TOKENS, special=special)
        self.serialized = serialized
        self._segmentations: dict[tuple[str, float], tuple[list[list[int]], list[float]]] = {}

    def __len__(self) -> int:
        return self._pieces.get_piece_size()

    def encode(self, text: str) -> list[int]:
        """Token ids of the most probable segmentation of `text`, without start and end tokens.

        A lone surrogate, which UTF-8 cannot represent, becomes U+FFFD.
        """
        return self._pieces.encode(_escaped(text))

    def encode_next(self, text: str) -> list[int]:
        """Token ids of `text` after other text, as labels write it: "Rüssel" begins a word, "-s" continues the last."""
        if not text.startswith("-") or text == "-":
            return self.encode(text)
        # After a line break no space is put before it; the line break itself is left out.
        ids, break_ = self.encode(f"\n{text[1:]}"), self._pieces.piece_to_id("<0x0A>")
        return ids[ids.index(break_) + 1 :]

    def sample(self, text: str, alpha: float, rng: random.Random) -> list[int]:
        """Token ids of a segmentation drawn with probability p^alpha (Kudo 2018); a smaller alpha varies more.

        No piece crosses a word boundary, so each word is segmented on its own. SentencePiece's own sampling is not
        reproducible: it draws differently in each process, whatever the seed.
        """
        ids: list[int] = []
        for word in _escaped(text).split(" ") if text else ():
            segmentations, cumulative = self._segment(word, alpha)
            ids += rng.choices(segmentations, cum_weights=cumulative)[0]
        return ids

    def _segment(self, word: str, alpha: float) -> tuple[list[list[int]], list[float]]:
        """The most probable segmentations of a word and their cumulative weights p^alpha, cached."""
        if (word, alpha) not in self._segmentations:
            space = self._pieces.piece_to_id("\u2581")
            found = self._pieces.nbest_encode(word, nbest_size=N_SEGMENTATIONS) if word else [[space]]
            scores = [sum(map(self._pieces.get_score, ids)) for ids in found]
            weights = [math.exp(alpha * (score - max(scores))) for score in scores]
            self._segmentations[word, alpha] = (found, list(accumulate(weights)))
        return self._segmentations[word, alpha]

    def decode(self, ids: list[int]) -> str:
        """The text of `ids`, ignoring start, end and padding."""
        kept = [i for i in ids if i not in (PAD, BOS, EOS)]
        text = self._pieces.decode(kept) if kept else ""
        return re.sub(f"{_ESCAPE}[\ufdd1\ufdd2]", lambda match: _UNESCAPED[match[0]], text)

    def tokens(self, ids: Iterable[int]) -> list[str]:
        """The piece of each id; a leading U+2581 marks the start of a word."""
        return [self._pieces.id_to_piece(int(i)) for i in ids]

    def rarity(self, ids: Sequence[int]) -> list[float]:
        """-log p of each piece in the unigram model of the vocabulary (Kudo 2018), in nats; bytes are rarest."""
        scores = self._pieces.get_score(list(ids))
        return [math.inf if self._pieces.is_byte(i) else -score for i, score in zip(ids, scores, strict=True)]

    def describe(self, ids: Sequence[int], text: str | None = None) -> Tokens:
        """The tokens `ids` of `text` (None: of what they decode to), with the place of each in it."""
        special, spans, decoded = tuple(i in (PAD, BOS, EOS) for i in ids), self._spans(ids), self.decode(list(ids))
        return Tokens(
            text=decoded if text is None else text,
            ids=tuple(ids),
            labels=tuple(self.tokens(ids)),
            special=special,
            spans=spans,
            words=number_words(decoded, spans, special),
        )

    def _spans(self, ids: Sequence[int]) -> tuple[tuple[int, int] | None, ...]:
        """Characters of `decode(ids)` that each token covers; the bytes of one character all cover that one."""
        kept = [i for i in ids if i not in (PAD, BOS, EOS)]
        decoded = self._pieces.decode(kept, return_type="proto")
        characters: list[int] = []
        for number, match in enumerate(re.finditer(f"(?s){_ESCAPE}[\ufdd1\ufdd2]|.", decoded.text)):
            characters += [number] * len(match[0].encode())
        found: list[tuple[int, int]] = []
        for piece, i in zip(reversed(decoded.pieces), reversed(kept), strict=True):
            if piece.end > piece.begin:
                found.append((characters[piece.begin], characters[piece.end - 1] + 1))
            elif self._pieces.is_byte(i) and found:  # SentencePiece places a character at its last byte
                found.append(found[-1])
            else:
                start = characters[piece.begin] if piece.begin < len(characters) else len(self.decode(kept))
                found.append((start, start))
        return tuple(None if i in (PAD, BOS, EOS) else found.pop() for i in ids)


def _escaped(text: str) -> str:
    text = re.sub("[\ud800-\udfff]", "\ufffd", text)
    return re.sub(f"[\u2581{_ESCAPE}]", lambda match: _ESCAPED[match[0]], text)


def train_tokenizer(sentences: Iterable[str], vocab_size: int, seed: int = 0, masked: bool = False) -> Tokenizer:
    """Learn a unigram vocabulary (Kudo 2018) of all sentences together; `masked`: with <mask>.

    Raises:
        ValueError: there are too few `sentences` for `vocab_size`.
    """
    spm.set_random_generator_seed(seed)
    model = BytesIO()
    try:
        spm.SentencePieceTrainer.train(
            sentence_iterator=iter(sentences),
            model_writer=model,
            vocab_size=vocab_size,
            model_type="unigram",
            byte_fallback=True,
            character_coverage=0.9999,
            normalization_rule_name="identity",
            remove_extra_whitespaces=False,
            pad_id=PAD,
            unk_id=UNK,
            bos_id=BOS,
            eos_id=EOS,
            pad_piece=SPECIAL_TOKENS[PAD],
            user_defined_symbols=[f"\u2581{MASK_TOKEN}"] if masked else [],
            num_threads=1,
            minloglevel=2,
        )
    except RuntimeError as error:
        raise ValueError(f"A vocabulary of {vocab_size:,} pieces {_why_not(str(error))}.") from error
    return Tokenizer(model.getvalue())


def _why_not(error: str) -> str:
    """What SentencePiece says in terms of its source code, in words."""
    if most := re.search(r"value <= (\d+)", error):
        return f"is too large for this text, from which {int(most[1]):,} can be learned at most"
    if least := re.search(r"required_chars\. \d+ vs (\d+)", error):
        return f"is too small for this text, which has so many characters that it needs {int(least[1]):,} at least"
    if "sentences_.empty" in error:
        return "cannot be learned from a text without words"
    return f"cannot be learned from this text: the special tokens and the bytes alone are {MASK + 256}"
