"""No text says "1 heads": every branch of every English text, with each of its counts 1."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from jinja2 import Environment, nodes

from pages.text import TEXT, WORDS, sections_of
from pages.text.check import entries_of

NOUNS = (
    *("attention", "cell", "change", "comparison", "head", "key", "layer", "piece", "prefix", "row", "sentence"),
    *("step", "sub-layer", "text", "token", "training", "translation", "value", "word"),
)
"""what a run can have one of"""
NEVER_ONE = {
    *("all", "chinchilla", "d", "equal", "far", "farthest", "lengths", "limit", "most", "often"),
    *(
        "others",
        "own",
        "paper",
        "peak",
        "perplexities",
        "pool",
        "scored",
        "seeds",
        "sizes",
        "step",
        "sublayers",
        "tanhs",
    ),
    *("vocabulary", "warmup", "words", "config.vocab_size", "fitted.warmup", "measured.sentences", "measured.steps"),
    *("furthest.apart", "new.step", "one.heads", "one.layers"),
}
"""facts that are always more: of studies and published models, constants, sizes of a vocabulary"""
ONE, SEVERAL, WORD = "1", "7", "…"
_PLURALS = "|".join("queries" if noun == "query" else f"{noun}s" for noun in (*NOUNS, "query"))
_BETWEEN = "(?:(?!(?:alone|and|for|has|have|in|its|of|or|over|to) )[a-z-]+ ){0,2}"
_WRONG = re.compile(rf"(?<![\w.,·×+=/]){ONE}(?:\*\*)? {_BETWEEN}(?:{_PLURALS})\b")


def name_of(node: nodes.Node) -> str:
    """An expression that may be a count, without its filters: "size.heads", "keys"."""
    match node:
        case nodes.Name():
            return node.name
        case nodes.Getattr():
            return f"{name_of(node.node)}.{node.attr}"
        case nodes.Getitem() | nodes.Filter():
            return name_of(node.node)
        case nodes.Call() if getattr(node.node, "name", "") == "len":
            return name_of(node.args[0])
    return ""


def number(node: nodes.Node) -> int | None:
    return node.value if isinstance(node, nodes.Const) and type(node.value) is int else None


class Rendering:
    """A template as text with both branches of each condition, save of one that compares a count with a number.

    Args:
        several: the counts that are not 1 in it.
    """

    def __init__(self, several: frozenset[str]) -> None:
        self.several = several

    def count(self, node: nodes.Node) -> int:
        return int(SEVERAL if name_of(node) in self.several | NEVER_ONE else ONE)

    def truth(self, test: nodes.Node) -> bool | None:
        """None where the condition is about something else than counts."""
        match test:
            case nodes.Not():
                inner = self.truth(test.node)
                return None if inner is None else not inner
            case nodes.And() | nodes.Or():
                sides, decides = {self.truth(test.left), self.truth(test.right)}, isinstance(test, nodes.Or)
                return decides if decides in sides else None if None in sides else not decides
            case nodes.Compare() if name_of(test.expr) and (other := number(test.ops[0].expr)) is not None:
                count = self.count(test.expr)
                signs = {"eq": count == other, "ne": count != other, "gt": count > other, "lt": count < other}
                return signs.get(test.ops[0].op) if other in (1, 2) else None
        return None

    def value(self, node: nodes.Node) -> str:
        match node:
            case nodes.TemplateData():
                return node.data
            case nodes.Const():
                return str(node.value)
            case nodes.CondExpr():
                truth = self.truth(node.test)
                branches = [node.expr1] if truth is not False else []
                return " ¦ ".join(map(self.value, branches if truth else [*branches, node.expr2]))
            case nodes.Filter(name="plural"):
                return node.args[self.count(node.node) != 1].value
            case nodes.Filter(name="f") if re.search(r"[%eg]|\.[1-9]f", node.args[0].value):
                return WORD
            case nodes.Filter() if node.name not in ("f", "length"):
                return WORD
        return str(self.count(node)) if name_of(node) else WORD

    def text(self, body: list[nodes.Node]) -> str:
        parts = []
        for node in body:
            match node:
                case nodes.Output():
                    parts += map(self.value, node.nodes)
                case nodes.If():
                    parts.append(self.branches(node))
                case nodes.For() | nodes.Macro():
                    parts.append(self.text(node.body))
        return "".join(parts)

    def branches(self, node: nodes.If) -> str:
        texts = []
        for test, body in ((node.test, node.body), *((each.test, each.body) for each in node.elif_)):
            truth = self.truth(test)
            if truth is not False:
                texts.append(self.text(body))
            if truth:
                return " ¦ ".join(texts)
        return " ¦ ".join([*texts, self.text(node.else_)])


def plurals_of_one(template: str) -> set[str]:
    """What a text says of one as of several: with all counts 1, and again with each that it compares being more."""
    tree = Environment().parse(re.sub(r"^% (.+)\n", r"{% \1 %}", template, flags=re.MULTILINE))
    compared = {name_of(each.expr) for each in tree.find_all(nodes.Compare) if number(each.ops[0].expr) in (1, 2)}
    cases = [frozenset(), *(frozenset({name}) for name in compared)]
    return {found for several in cases for found in _WRONG.findall(Rendering(several).text(tree.body))}


def texts() -> Iterator[tuple[str, str]]:
    for path in sorted(TEXT.glob("*.md")):
        yield from ((f"{path.stem}: {title}", text) for title, text in sections_of(path.read_text("utf-8")).items())
    for file, entries in entries_of().items():
        yield from ((f"{file}: {key}", "\n".join(words_in(entry))) for key, entry in entries.items())


def words_in(entry: Any) -> Iterator[str]:
    """The texts of a term, a station or a question."""
    for words in (entry.get(name, "") for name in WORDS if name != "options" or "place" in entry):
        yield from [words] if isinstance(words, str) else words


def test_a_text_counts_one_as_one() -> None:
    """A question of guesses.toml about one of a thing has a single option, and is not asked."""
    found = {where: wrong for where, text in texts() if (wrong := plurals_of_one(text)) and "guesses" not in where}
    assert found == {}


@pytest.mark.parametrize(
    "wrong",
    [
        "without {{ k }} heads",
        "{% if k == 1 %}one head{% else %}{{ k }} of {{ n }} heads{% endif %}",
        "**{{ keys | length }}** source tokens",
        "{% if shown %}nothing{% else %}the {{ n }} rows{% endif %}",
    ],
)
def test_one_of_several_is_noticed(wrong: str) -> None:
    assert plurals_of_one(wrong)


@pytest.mark.parametrize(
    "right",
    [
        '{{ k }} {{ k | plural("head", "heads") }}',
        "{% if k == 1 %}one head{% else %}{{ k }} heads{% endif %}",
        "{{ k }} head{% if k != 1 %}s{% endif %}",
        "layer {{ layer }}: {{ share | f('.1%') }} of all heads",
        "{{ vocabulary }} tokens",
    ],
)
def test_one_and_several_in_their_forms_are_no_fault(right: str) -> None:
    assert not plurals_of_one(right)
