"""The token that a person follows from page to page: a query of the chosen attention, and one of its keys."""

import re
from collections.abc import Sequence
from contextlib import suppress
from functools import lru_cache

from model.beside import read_beside
from model.run import Run
from pages.views.controls import KIND, number
from pages.views.examples import examples_of, position_of
from viz.tokens import NAMED, WORD_START, word

_WORDS = read_beside(__file__, "small_words")
PRONOUNS, FUNCTION_WORDS = (frozenset(_WORDS[name].split()) for name in ("pronouns", "function_words"))
"""the latter: words that a sentence is rarely about"""


def query_of(run: Run) -> int:
    """The row of the chosen attention that the run is about: the one a person chose, or else the first choice."""
    rows = len(run.attention.query_tokens)
    return run.query if run.query is not None and 0 <= run.query < rows else first_query(run)


def key_of(run: Run) -> int:
    """The key that goes with it: the one a person chose, or else the one with the row's largest weight."""
    keys = len(run.attention.key_tokens)
    return run.key if run.key is not None and 0 <= run.key < keys else first_key(run)


def row_in(run: Run, stream: str) -> int:
    """The same in any stream of the run: its own first choice where the chosen attention's queries are of another."""
    if stream == run.stream.name:
        return query_of(run)
    tokens = run.trace.streams[stream]
    return _worth_a_look((tokens.following or tokens.tokens).labels)


def first_query(run: Run) -> int:
    """The row to begin with.

    In the sentence of an example it is the word that the example is about; else the last pronoun, the last noun where
    capitals show it, or the last word with a meaning of its own: never a fragment of a word where there is a whole one.
    """
    attention = run.attention
    # What each row predicts, where it predicts something, else what it reads.
    tokens = attention.predicts.labels if attention.predicts else attention.query_tokens
    for example in examples_of(run.trace.checkpoint).of(run.trace.source):
        with suppress(IndexError):
            if example.kind == run.kind:
                return position_of(tokens, example.query)
    return _worth_a_look(tokens)


def first_key(run: Run) -> int:
    """The key with the largest weight in the chosen row."""
    return int(run.attention.pattern[run.head, query_of(run)].argmax())


@lru_cache(maxsize=1_000)
def _worth_a_look(tokens: tuple[str, ...]) -> int:
    whole = [i for i in range(len(tokens)) if _is_whole_word(tokens, i)]
    words = {i: word(tokens[i]) for i in whole}
    german = any(text.lower() in ("der", "die", "das", "und", "ist", "ein", "eine") for text in words.values())
    choices = (
        [i for i in whole if words[i].lower() in PRONOUNS],
        [i for i in whole if german and i and words[i][:1].isupper() and words[i].lower() not in FUNCTION_WORDS],
        [i for i in whole if words[i].lower() not in FUNCTION_WORDS],
        whole,
        [len(tokens) // 2],
    )
    return next(some for some in choices if some)[-1]


def _is_whole_word(tokens: Sequence[str], place: int) -> bool:
    token, after = tokens[place], tokens[place + 1] if place + 1 < len(tokens) else ""
    marked = any(piece.startswith(WORD_START) for piece in tokens)
    begins = token.startswith(WORD_START) or not marked
    continued = bool(re.match(r"\w", after)) and marked and not NAMED.fullmatch(after)
    return begins and not continued and bool(re.fullmatch(r"[^\W\d_]+", word(token)))


QUERY = number(
    "Row (query), {0} to {1}",
    lambda run: (0, len(run.attention.query_tokens) - 1),
    first_query,
    key="query",
    follows=True,
)
KEY_TOKEN = number(
    "Column (key), {0} to {1}", lambda run: (0, len(run.attention.key_tokens) - 1), first_key, key="key", follows=True
)
"""the same on every page of attention"""
CLICKED_TOKEN = {"kind": KIND, "query": QUERY, "key": KEY_TOKEN}
"""what a click on a token sets"""
