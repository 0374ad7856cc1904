"""The joint SentencePiece vocabulary of both languages (paper, section 5.1), with byte fallback."""

import re
from collections.abc import Iterable
from io import BytesIO

import sentencepiece as spm

from model.config import BOS, EOS, PAD, SPECIAL_TOKENS, UNK

# SentencePiece writes a space as U+2581, so a U+2581 that someone typed would come back as a space.
# It travels as a pair of Unicode's "for internal use" characters, as does the first of that pair.
_ESCAPE = "\ufdd0"
_ESCAPED = {"\u2581": f"{_ESCAPE}\ufdd2", _ESCAPE: f"{_ESCAPE}\ufdd1"}
_UNESCAPED = {pair: character for character, pair in _ESCAPED.items()}


class Tokenizer:
    """Text <-> token ids; every string of valid Unicode comes back from `decode(encode(text))` as it was.

    Raises:
        ValueError: `serialized` is not a SentencePiece model with this project's special tokens.
    """

    def __init__(self, serialized: bytes) -> None:
        try:
            self._pieces = spm.SentencePieceProcessor(model_proto=serialized)
            special = tuple(self._pieces.id_to_piece(list(range(len(SPECIAL_TOKENS)))))
        except (RuntimeError, IndexError) as error:
            raise ValueError(f"not a SentencePiece model: {error}") from error
        if special != SPECIAL_TOKENS:
            raise ValueError(f"the first tokens must be {SPECIAL_TOKENS}, found {special}")
        self.serialized = serialized

    def __len__(self) -> int:
        return self._pieces.get_piece_size()

    def encode(self, text: str, sampling: float = 0.0) -> list[int]:
        """Token ids of `text`, without start and end tokens.

        Args:
            text: any valid Unicode; a lone surrogate, which no UTF-8 can hold, becomes U+FFFD.
            sampling: 0 for the best segmentation; above 0, one drawn at random (Kudo 2018), where
                smaller means wilder.
        """
        text = re.sub("[\ud800-\udfff]", "\ufffd", text)
        text = re.sub(f"[\u2581{_ESCAPE}]", lambda match: _ESCAPED[match[0]], text)
        if sampling:
            return self._pieces.encode(text, enable_sampling=True, alpha=sampling, nbest_size=-1)
        return self._pieces.encode(text)

    def decode(self, ids: list[int]) -> str:
        """The text of `ids`; start, end and padding leave no trace."""
        kept = [i for i in ids if i not in (PAD, BOS, EOS)]
        text = self._pieces.decode(kept) if kept else ""
        return re.sub(f"{_ESCAPE}[\ufdd1\ufdd2]", lambda match: _UNESCAPED[match[0]], text)

    def tokens(self, ids: Iterable[int]) -> list[str]:
        """The piece of each id; a leading U+2581 marks the start of a word."""
        return [self._pieces.id_to_piece(int(i)) for i in ids]


def train_tokenizer(sentences: Iterable[str], vocab_size: int, seed: int = 0) -> Tokenizer:
    """Learn a unigram vocabulary (Kudo 2018) of both languages together.

    Raises:
        ValueError: `sentences` are too few for `vocab_size`.
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
            num_threads=1,
            minloglevel=2,
        )
    except RuntimeError as error:
        raise ValueError(f"no vocabulary of {vocab_size} pieces from this text: {error}") from error
    return Tokenizer(model.getvalue())
