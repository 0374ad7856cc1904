"""Text that means harm: ten thousand strings through vocabulary, translation, trace and pictures.

Nothing but the ValueError that the Python face documents may come out, each in a sentence; no string may take long,
and memory may not grow without bound.
"""

import random
import resource
import time
from collections.abc import Callable, Iterator, Sequence

from model.checkpoints.tokenizer import Tokenizer
from model.checkpoints.translator import Translator
from model.language import Refusal
from model.network.config import TransformerConfig
from tests.model.tiny import random_model, train_tiny_tokenizer
from tests.soak.drawing import draw, draw_figures

SEED = 2017
LONGEST = 100_000
SECONDS_A_STRING = 20.0
GROWTH = 2**30
"""bytes that the whole run may add"""
BATCH = 50
TRANSLATED = 80
"""characters of the longest string that is translated: an untrained model writes to its limit"""

MARKUP = (
    "<script>window.__hit=1</script>",
    '<img src=x onerror="window.__hit=1">',
    "<svg onload='window.__hit=1'>",
    '<iframe srcdoc="<script>parent.__hit=1</script>">',
    '"><a href="javascript:window.__hit=1">a</a>',
    "</textarea></style></script><b>",
    "[click](javascript:window.__hit=1) ![x](http://example.invalid/x.png)",
    "# head\n* list\n> quote\n```code```\n---\n|a|b|\n|-|-|",
    ":red[x] :material/home: :smile: :badge[x] [[x]]",
    "$\\frac{1}{0}$ $$\\def\\x{\\x\\x}\\x$$ \\(x\\) \\[y\\]",
    "`code` **bold** _it_ ~~no~~ <!-- x -->",
    "%{x} %{customdata[0]} <extra></extra> {{7*7}} ${7*7} #{7*7} <%= 7*7 %>",
    "' OR 1=1; DROP TABLE tokens; --",
    '{"__proto__": {"x": 1}} __import__("os").system("true")',
    "../../../../etc/passwd %00 ..\\..\\ file:///etc/passwd C:\\con",
    "%s %n %d %x %p {0} {0.__class__}",
    "<s> </s> <pad> <unk> <0x41> \u2581\u2581",
    "=1+1 @SUM(A1) +1 -1 \t|cmd",
    "\x1b[31m\x1b]0;title\x07 \x08\x08",
    "constructor toString hasOwnProperty __proto__ prototype NaN Infinity null undefined",
)
INVISIBLE = (
    "\u200b\u200c\u200d\u2060\ufeff\u00ad\u034f\u061c\u180e\u2028\u2029\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2069"
)
SPACES = " \t\n\r\x0b\x0c\x85\u00a0\u1680\u2000\u2003\u2007\u3000"
WORDS = ("The", "cat", "sat", "on", "the", "mat", ".", "Zwei", "junge", "Männer", "?", "and", "a dog")

Maker = Callable[[random.Random], str]


def _some(rng: random.Random, characters: Sequence[str], most: int = 40) -> str:
    return "".join(rng.choices(characters, k=rng.randint(1, most)))


def _of_a_plane(rng: random.Random) -> str:
    """Any code points of one plane, unassigned and private ones and lone surrogates among them."""
    plane = rng.choice((0, 0, 0, 1, 2, 3, 14, 15, 16))
    return "".join(chr(plane * 0x10000 + rng.randrange(0x10000)) for _ in range(rng.randint(1, 30)))


def _combining(rng: random.Random) -> str:
    marks = [chr(code) for code in range(0x300, 0x370)]
    return "".join(base + _some(rng, marks, 60) for base in _some(rng, "aeoZ\u05d0\u0e01", 4))


def _right_to_left(rng: random.Random) -> str:
    letters = [chr(code) for code in (*range(0x5D0, 0x5EB), *range(0x627, 0x64B))]
    return "\u202e" * rng.randint(0, 2) + _some(rng, letters) + " abc " + _some(rng, [*letters, " "])


def _control(rng: random.Random) -> str:
    return _some(rng, [chr(code) for code in (*range(32), *range(127, 160))]) + rng.choice(WORDS)


def _surrogates(rng: random.Random) -> str:
    return _some(rng, ["\ud800", "\udc00", "\udfff", "\udbff", "a", " "])


def _emoji(rng: random.Random) -> str:
    return _some(
        rng, ["\U0001f469", "\u200d", "\U0001f4bb", "\ufe0f", "\U0001f3fd", "\U0001f1e9", "\U0001f1ea", "\U000e0041"]
    )


def _markup(rng: random.Random) -> str:
    return " ".join(rng.choices((*MARKUP, *WORDS), k=rng.randint(1, 5)))


def _mutated(rng: random.Random) -> str:
    """Markup with single characters taken out, doubled or replaced."""
    text = list(rng.choice(MARKUP))
    for _ in range(rng.randint(1, 6)):
        text[rng.randrange(len(text))] = rng.choice(("", "<", ">", '"', "\x00", "&lt;", "\u202e", "%3C", "\\"))
    return "".join(text) or "x"


def _long(rng: random.Random) -> str:
    unit = rng.choice(
        ("a", "a ", "\u0301", "\u202e", "<b>", "\U0001f469", "\x00", ".", "\n", "((", "\ud800", "A dog runs. ")
    )
    return (unit * LONGEST)[: rng.choice((300, 5_000, LONGEST))]


def _ordinary(rng: random.Random) -> str:
    return " ".join(rng.choices(WORDS, k=rng.randint(1, 12)))


def _mixed(rng: random.Random) -> str:
    return "".join(rng.choice(SHORT)(rng)[:20] for _ in range(3))


SHORT: tuple[Maker, ...] = (
    _of_a_plane,
    _combining,
    _right_to_left,
    _control,
    _surrogates,
    _emoji,
    _markup,
    _mutated,
    _ordinary,
    lambda rng: _some(rng, INVISIBLE),
    lambda rng: _some(rng, SPACES),
)
MAKERS: tuple[Maker, ...] = (*SHORT, _mixed, _mixed)
LONG_EVERY = 97
DRAW_EVERY = 30
"""A Plotly figure takes longer than all else; every string becomes chips, labels and payloads."""


def strings(count: int, seed: int = SEED) -> Iterator[str]:
    """The same hostile strings for the same seed; the first ones are the empty text and the plainest attacks."""
    rng = random.Random(seed)
    first = ("", "\x00", "\ud800", *MARKUP)
    for number in range(count):
        if number < len(first):
            yield first[number]
        else:
            yield _long(rng) if number % LONG_EVERY == 0 else rng.choice(MAKERS)(rng)


def tiny_translator() -> Translator:
    tokenizer: Tokenizer = train_tiny_tokenizer()
    config = TransformerConfig(
        vocab_size=len(tokenizer), d_model=16, n_heads=2, d_ff=32, n_encoder_layers=1, n_decoder_layers=1, max_len=48
    )
    return Translator("tiny", "0" * 64, random_model(config), tokenizer)


def survives(translator: Translator, source: str, target: str, figures: bool) -> str:
    """What went wrong with this pair of texts; empty where nothing did."""
    start = time.perf_counter()
    try:
        _through_everything(translator, source, target, figures)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    seconds = time.perf_counter() - start
    return f"took {seconds:.1f} s" if seconds > SECONDS_A_STRING else ""


def _through_everything(translator: Translator, source: str, target: str, figures: bool) -> None:
    ids = translator.tokenizer.encode(source)
    whole = "".join("\ufffd" if "\ud800" <= character <= "\udfff" else character for character in source)
    assert translator.tokenizer.decode(ids) == whole, "the text does not come back"
    for side, other in ((source, "Ein Hund"), ("A dog", source)):
        try:
            translator.trace(side, other)
        except ValueError as error:
            _check_sentence(translator, error, side, other)
    shown = translator.truncate(source)
    if shown.strip():
        trace = translator.trace(shown, translator.truncate(target).strip() or "Ein Hund")
        draw(trace, translator)
        if figures:
            draw_figures(trace, translator)


def _check_sentence(translator: Translator, error: ValueError, source: str, target: str | None) -> None:
    """The documented refusals: blank, or too long; as a sentence that says what to do."""
    said = str(error)
    texts = [text for text in (source, target) if text is not None]
    blank = (
        any(not translator.prepare(text).strip() for text in texts)
        and "is empty: there is nothing to look at. Type at least" in said
    )
    # A person's text is put on one line first; what the model refuses is the text as it is.
    long = any(not translator.fits(text) for text in texts) and said.endswith("fit. Shorten it.")
    if not (blank or long) or type(error) is not Refusal:
        raise AssertionError(f"refused without the documented sentence: {said}") from error


def run(count: int, seed: int = SEED) -> list[str]:
    """What went wrong, string by string."""
    translator, failures, waiting, before = tiny_translator(), [], [], "Ein Hund"
    memory = _peak()
    for number, text in enumerate(strings(count, seed)):
        if problem := survives(translator, text, before, figures=number % DRAW_EVERY == 0):
            failures.append(f"string {number} {text[:60]!r}: {problem}")
        before = text
        waiting += [text] if len(text) <= TRANSLATED else []
        if len(waiting) == BATCH:
            failures += _translated(translator, waiting)
            waiting = []
    failures += _translated(translator, waiting)
    if _peak() - memory > GROWTH:
        failures.append(f"memory grew by {(_peak() - memory) / 2**20:,.0f} MiB")
    return failures


def _translated(translator: Translator, texts: list[str]) -> list[str]:
    """Beside one another in a batch; blank ones stay blank."""
    try:
        found = translator.translate(texts, beam_size=1)
        assert len(found) == len(texts)
        assert not any(translation for text, translation in zip(texts, found, strict=True) if not text.strip())
    except Exception as error:
        return [f"a batch from {texts[0][:40]!r}: {type(error).__name__}: {error}"]
    return []


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def main(count: int = 10_000) -> list[str]:
    """Run so many strings and print a line; returns what went wrong."""
    start = time.perf_counter()
    failures = run(count)
    print(
        f"hostile text: {count:,} strings, {len(failures)} failures, {time.perf_counter() - start:.0f} s, "
        f"peak memory {_peak() / 2**20:,.0f} MiB"
    )
    return [failure.encode("unicode_escape").decode() for failure in failures]
