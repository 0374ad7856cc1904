"""Real text of exactly so many tokens, and the model's run on it."""

from itertools import cycle

from model.checkpoints.tokenizer import Tokenizer
from model.checkpoints.translator import Translator
from model.network.config import EOS
from model.trace import Trace
from pages.views.examples import SHIPPED, read_examples

TOKENS = (20, 60, 128)
"""what pictures and runs are measured at; </s> is one of them"""


def text_of(tokenizer: Tokenizer, tokens: int) -> str:
    """The app's examples, one after the other, up to so many tokens with </s>."""
    text = ""
    words = cycle([word for sentence in read_examples(SHIPPED).sentences for word in sentence.split()])
    while len(tokenizer.encode(text)) + 1 < tokens:
        longer = f"{text} {next(words)}".strip()
        # A word of several pieces may not fit at the end: a shorter one comes.
        text = longer if len(tokenizer.encode(longer)) < tokens else text
    return text


def trace_of(translator: Translator, tokens: int) -> Trace:
    """A teacher-forced run with so many tokens on either side, whose weights are the checkpoint's own."""
    text = text_of(translator.tokenizer, tokens)
    return translator.trace_ids(text, [*translator.tokenizer.encode(text), EOS])
