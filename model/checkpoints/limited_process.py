"""What a folder makes the app compute, in a process of its own: a chat template, which is a program, and a tokenizer,
which nearly is one. `limited.py` starts it, and ends it.

It imports nothing of this project, because it has to start fast: it is run by its path. It reads one task as JSON from
its standard input and writes one answer.
"""

import json
import sys
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

MOST_WRITTEN = 200_000
"""characters that a template may write"""
MOST_GROWTH = 32
"""times as many characters as a text has, that a tokenizer may make of it: Unicode's forms need up to 18"""
MOST_STEPS = 1_000
"""parts of a tokenizer, one after the other"""
LONGEST_PIECE = 10_000
"""characters"""
PROBES = ("A dog runs. ", "a", " ", "\\n", "1", "ab", "a ", "a1", "!?", ".,", "é", "中", "🤖", "\u0301", "<", "A")
PROBE_LENGTH = 3_000
"""characters of each text, which repeats one of PROBES: a pattern that goes back again and again takes long there"""


def main() -> None:
    """Do the task under its limits."""
    task = json.load(sys.stdin)
    doing = {"chats": _fill_in, "tokenizer": _try_tokenizer}[task["kind"]]
    try:
        answer = doing(task)
    except MemoryError:
        answer = {"exceeded": True}
    except BaseException as error:  # whatever the program raises; a panic of tokenizers is no Exception
        answer = {"refused": str(error) or type(error).__name__}
    sys.stdout.write(json.dumps(answer))


def _limit(task: Mapping[str, Any]) -> None:
    """From here on: so many seconds of the processor and bytes of memory, and not a byte written to a file."""
    try:
        import resource
    except ImportError:  # Windows: whoever started this ends it
        return
    for kind, most in (
        ("RLIMIT_CPU", task["seconds"]),
        ("RLIMIT_AS", task["bytes"]),
        ("RLIMIT_FSIZE", 0),
        ("RLIMIT_CORE", 0),
    ):
        try:
            resource.setrlimit(getattr(resource, kind), (most, most))
        except (AttributeError, OSError, ValueError):  # not every system has, and grants, each
            continue


def _fill_in(task: Mapping[str, Any]) -> dict[str, Any]:
    """The chats in the template."""
    environment = _environment()
    _limit(task)
    template, texts = environment.from_string(task["template"]), []
    for chat in task["chats"]:
        parts, length = [], 0
        for part in template.generate(tools=None, documents=None, **(task["facts"] | chat)):
            parts.append(part)
            length += len(part)
            if length > MOST_WRITTEN:
                return {"exceeded": True}
        texts.append("".join(parts))
    return {"texts": texts}


def _environment() -> Any:
    """What transformers gives a template (utils/chat_template_utils.py)."""
    import jinja2
    from jinja2.ext import Extension, loopcontrols
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    class Generation(Extension):
        """{% generation %} marks what the assistant wrote, for training; here it changes nothing."""

        tags = {"generation"}  # noqa: RUF012 - as jinja2 declares it

        def parse(self, parser: Any) -> Any:
            next(parser.stream)
            return parser.parse_statements(["name:endgeneration"], drop_needle=True)

    class Dictionaries:
        def __call__(self, *args: Any, **values: Any) -> dict:
            return dict(*args, **values)

        def fromkeys(self, *args: Any) -> dict:
            return dict.fromkeys(*args)

    class Namespace(jinja2.utils.Namespace):
        def __setitem__(self, name: str, value: Any) -> None:
            if name.startswith("_"):
                raise jinja2.exceptions.SecurityError(name)
            super().__setitem__(name, value)

    def refuse(message: str) -> None:
        raise jinja2.exceptions.TemplateError(message)

    def as_json(value: Any, ensure_ascii: bool = False, **options: Any) -> str:
        return json.dumps(value, ensure_ascii=ensure_ascii, **options)

    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, loopcontrols]
    )
    environment.filters["tojson"] = as_json
    environment.globals |= {
        "raise_exception": refuse,
        "strftime_now": lambda form: datetime.now().strftime(form),
        "dict": Dictionaries(),
        "namespace": Namespace,
    }
    return environment


def _try_tokenizer(task: Mapping[str, Any]) -> dict[str, Any]:
    """Whether a tokenizer.json reads texts that make a pattern slow, and cannot make much of little."""
    from tokenizers import Tokenizer

    with open(task["path"], encoding="utf-8") as file:
        text = file.read()
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return {"texts": []}  # damaged, as transformers says better
    for part in ("normalizer", "pre_tokenizer", "post_processor", "decoder"):
        steps = list(_steps(found.get(part) or {}))
        growth = 1.0
        for step in steps:
            growth *= max(1.0, _growth(step))
        if len(steps) > MOST_STEPS or growth > MOST_GROWTH:
            return {"exceeded": True}
    pieces = [piece for piece in _pieces(found) if isinstance(piece, str)]
    if max(map(len, pieces), default=0) > LONGEST_PIECE:
        return {"exceeded": True}
    del found, pieces
    _limit(task)
    try:
        tokenizer = Tokenizer.from_str(text)
    except Exception:  # as above
        return {"texts": []}
    for probe in PROBES:
        tokenizer.encode((probe * PROBE_LENGTH)[:PROBE_LENGTH])
    return {"texts": []}


def _steps(part: Any) -> Iterator[Mapping[str, Any]]:
    """The parts of a tokenizer's step, those inside them, too."""
    if isinstance(part, list):
        for inside in part:
            yield from _steps(inside)
    elif isinstance(part, dict):
        yield part
        for name in ("normalizers", "pretokenizers", "processors", "decoders"):
            yield from _steps(part.get(name))


def _growth(step: Mapping[str, Any]) -> float:
    """How many times as long a text may become by a step."""
    content, pattern = step.get("content"), step.get("pattern")
    if step.get("type") == "Replace" and isinstance(content, str) and isinstance(pattern, dict):
        # A regular expression may match between all characters.
        replaced = pattern.get("String")
        return len(content) / max(len(replaced), 1) if isinstance(replaced, str) and replaced else 1.0 + len(content)
    if step.get("type") == "TemplateProcessing":
        return max(sum("Sequence" in piece for piece in step.get(name) or ()) / 2 for name in ("single", "pair"))
    return 1.0


def _pieces(found: Mapping[str, Any]) -> Iterator[Any]:
    vocabulary = (found.get("model") or {}).get("vocab") or ()
    for piece in vocabulary:
        yield piece[0] if isinstance(piece, list) and piece else piece
    for token in found.get("added_tokens") or ():
        yield token.get("content") if isinstance(token, dict) else token


if __name__ == "__main__":
    main()
