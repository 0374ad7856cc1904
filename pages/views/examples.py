"""Example sentences of a checkpoint, read from its examples.json: some with a head worth a look, some everyday ones."""

import json
import math
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from model.analysis.words import Groups, attention_words, merge, row_tokens
from model.checkpoints.files import read_text
from model.checkpoints.store import DEFAULT_CHECKPOINT, checkpoint_path, shown_message
from model.language import sentence
from model.trace import Tokens, Trace
from viz.tokens import word

SHIPPED = Path(__file__).parents[2] / "checkpoints" / DEFAULT_CHECKPOINT
"""its sentences are also offered with checkpoints that have no examples.json"""

FEWEST_TOKENS = 7
"""from which on their length says something of the language"""
Word = tuple[str, int]
"""a token without its word-start marker, and which of its occurrences, from 0"""


@dataclass(frozen=True)
class Example:
    """A sentence, and a row of attention weights whose largest weight is worth a look."""

    sentence: str
    label: str
    """what it shows, in a few words, for the menu"""
    why: str
    """one more sentence, which holds whatever the model does"""
    kind: str
    layer: int | None
    """None, as `head`: no head is named, and each run says which of its heads comes closest"""
    head: int | None
    query: Word
    """the row: in the encoder the token it reads, in the decoder the token it predicts"""
    key: Word
    """the token with the row's largest weight, if a head is named"""

    @property
    def place(self) -> dict[str, str | int]:
        """The values of the sidebar's controls that show its head; none if no head is named."""
        return {} if self.head is None else {"kind": self.kind, "layer": self.layer, "head": self.head}


@dataclass(frozen=True)
class Strongest:
    """The head that gives most weight from one word to another, of all heads of a kind."""

    layer: int
    head: int
    query: int
    """position of the word's first token, as is `key`"""
    key: int
    weight: float
    even: float
    """the weight if all visible keys had the same"""
    largest: bool
    """whether no other word gets more in this row"""
    heads: int
    """how many heads there are"""
    distance: int | None
    """words from the query back to the key; None where they belong to two texts"""
    habit: float
    """share of the head's rows that give most to the word at this distance; 0 where there is none"""


@dataclass(frozen=True)
class Examples:
    """The examples of one checkpoint."""

    showing: tuple[Example, ...] = ()
    sentences: tuple[str, ...] = ()
    """everyday ones; may repeat those of `showing`"""
    about: str = ""
    """what the checkpoint was trained on, in a sentence"""
    usual_nats: float = math.inf
    """mean −log p of a token, below which 98 of 100 translations of held-out text of that kind stay"""
    usual_characters: float = 0.0
    """characters of a token on average, of which 99 of 100 held-out texts of that kind have at least as many"""
    problem: str = ""
    """why examples.json could not be read; empty if it could"""

    @property
    def menu(self) -> tuple[str, ...]:
        """Every sentence once, those that show something first."""
        return tuple(dict.fromkeys((*(example.sentence for example in self.showing), *self.sentences)))

    def of(self, sentence: str) -> tuple[Example, ...]:
        """Those with this sentence."""
        return tuple(example for example in self.showing if example.sentence == sentence)


def examples_of(checkpoint: str) -> Examples:
    """The examples of a checkpoint; one without examples.json gets the shipped sentences, without any head."""
    folder = checkpoint_path(checkpoint)
    if not os.path.exists(folder / "examples.json"):  # raises nothing where the folder may not be entered
        shipped = read_examples(SHIPPED)
        return Examples(sentences=shipped.menu)
    return read_examples(folder)


def largest_weight(example: Example, trace: Trace) -> tuple[int, int, float] | None:
    """Query, key and weight that the example is about; None where the row's largest weight is elsewhere in this run.

    Also None where the example names no head.
    """
    if example.head is None:
        return None
    try:
        attention = trace.attention(example.kind, example.layer)
        pattern = attention.pattern[example.head]
        rows = attention.predicts.labels if attention.predicts else attention.query_tokens
        query, key = position_of(rows, example.query), position_of(attention.key_tokens, example.key)
    except (LookupError, ValueError):
        return None
    return (query, key, float(pattern[query, key])) if int(np.argmax(pattern[query])) == key else None


def strongest_head(example: Example, trace: Trace) -> Strongest | None:
    """The head of the example's kind that gives most weight from its query to its key, as words; None without these."""
    attentions = [(layer, one) for (kind, layer), one in trace.attentions.items() if kind == example.kind]
    best: Strongest | None = None
    for layer, attention in attentions:
        queries, keys = attention_words(attention)
        try:
            query = position_of(_words(row_tokens(attention), queries), example.query)
            key = position_of(_words(attention.key_tokens, keys), example.key)
        except IndexError:
            return None
        table = merge(attention.pattern.astype(np.float64), queries, keys)
        head = int(table[:, query, key].argmax())
        if best is not None and table[head, query, key] <= best.weight:
            continue
        open_keys = attention.mask[head] / attention.mask[head].sum(axis=-1, keepdims=True)
        distance = None if attention.crosses else query - key
        best = Strongest(
            layer,
            head,
            queries[query][0],
            keys[key][0],
            float(table[head, query, key]),
            float(merge(open_keys, queries, keys)[query, key]),
            bool(table[head, query].argmax() == key),
            sum(one.n_heads for _, one in attentions),
            distance,
            0.0 if distance is None else _share_at(table[head], distance),
        )
    return best


def _share_at(table: np.ndarray, distance: int) -> float:
    """Of the rows of (query, key) that have a key so far back, the share that gives it most."""
    rows = np.arange(max(distance, 0), len(table) + min(distance, 0))
    return float((table[rows].argmax(axis=-1) == rows - distance).mean())


def _words(tokens: Sequence[str], groups: Groups) -> tuple[str, ...]:
    return tuple("".join(tokens[i] for i in group) for group in groups)


def unfamiliar(trace: Trace, translated: bool = True) -> dict[str, Any] | None:
    """What tells that the model was not trained for such a text; None where it was, or where that cannot be told.

    The rule: a token that it reads is a byte or the one for what is unknown; its tokens are shorter than those of 99 of
    100 held-out texts, because words of another language fall into small pieces; or the model's own translation,
    unchanged, is more surprising to it than 98 of 100 translations of held-out text, in nats per token. Where the
    target is that of another run, and not `translated` by the model, it says nothing of the text.
    """
    examples, tokens = examples_of(trace.checkpoint), next(iter(trace.streams.values())).tokens
    read = tokens.between(0, tokens.prompt_length or len(tokens))
    strange = sum(bool(re.fullmatch(r"<unk>|\[UNK\]|<0x..>", label)) for label in read.labels)
    characters = _characters_of_a_token(read)
    # A model without a head has logits of no token.
    translates = translated and trace.logits.size > 0 and any(kind.crosses for kind in trace.kinds)
    surprise = float(-trace.target_log_probabilities.mean()) if translates else 0.0
    if not strange and characters >= examples.usual_characters and surprise <= examples.usual_nats:
        return None
    facts = {"strange": strange, "tokens": len(read), "surprise": surprise, "usual": examples.usual_nats}
    facts |= {"characters": characters, "usual_characters": examples.usual_characters}
    return facts | {"about": examples.about}


def _characters_of_a_token(read: Tokens) -> float:
    """On average, masks left out; infinite where the text has too few tokens to tell."""
    spans = [span for span, label in zip(read.spans, read.labels, strict=True) if span and "<mask>" not in label]
    return sum(end - start for start, end in {*spans}) / len(spans) if len(spans) >= FEWEST_TOKENS else math.inf


def read_examples(folder: Path) -> Examples:
    """What examples.json in the folder holds; nothing if there is none, and `problem` says why it cannot be read."""
    path = folder / "examples.json"
    try:
        known = path.stat()
        return _read(path, known.st_size, known.st_mtime_ns)
    except FileNotFoundError:
        return Examples()
    except KeyError as error:
        problem = sentence("{name} is missing.", name=str(error))
    except (OSError, ValueError, TypeError, RecursionError) as error:
        problem = str(error)
    return Examples(
        problem=shown_message(
            sentence("There are no example sentences: {path} cannot be read. {problem}", path=path, problem=problem)
        )
    )


@lru_cache(maxsize=64)
def _read(path: Path, _size: int, _changed: int) -> Examples:
    """A file that was last changed then; each choice of a first token asks for it, so one page several times."""
    found = json.loads(read_text(path))
    sentences = tuple(_typed(sentence, str) for sentence in found["sentences"])
    usual = float(found.get("usual_nats", math.inf)), float(found.get("usual_characters", 0.0))
    facts = _typed(found.get("about", ""), str), *usual
    return Examples(tuple(map(_example, found["showing"])), sentences, *facts)


def _example(entry: dict[str, Any]) -> Example:
    texts = (_typed(entry[name], str) for name in ("sentence", "label", "why", "kind"))
    named = "layer" in entry or "head" in entry
    numbers = (_typed(entry[name], int) if named else None for name in ("layer", "head"))
    words = ((_typed(entry[name][0], str), _typed(entry[name][1], int)) for name in ("query", "key"))
    return Example(*texts, *numbers, *words)


def _typed(value: Any, kind: type) -> Any:
    if not isinstance(value, kind):
        raise TypeError(f"{value!r} should be of type {kind.__name__}.")
    return value


def position_of(tokens: tuple[str, ...], wanted: Word) -> int:
    """Raises IndexError where there are fewer of them."""
    return [i for i, token in enumerate(tokens) if word(token) == wanted[0]][wanted[1]]
