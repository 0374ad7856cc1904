"""Chats: turns as a person types them, and the text that a tokenizer's chat template makes of them."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from model.checkpoints.limited import Exceeded, fill_in
from model.checkpoints.typed_text import one_line
from model.language import Refusal
from model.trace import Turn

ROLES = ("system", "user", "assistant")
INDENT = "  "
"""before each further line of a turn, so that none of them can be taken for the beginning of another turn"""
MOST_TURNS = 100
"""of a chat; a run has no room for more"""
MOST_QUOTED = 200
"""characters of what a template says when it refuses"""

_UNFINISHED = re.compile(r"(<0x[0-9A-F]{2}>)+$")
_TURN = re.compile(rf"({'|'.join(ROLES)}):", re.IGNORECASE)


def read_turns(text: str) -> tuple[Turn, ...]:
    """Turns from plain text, as `write_turns` writes it; blank text has none.

    Raises:
        ValueError: the text does not begin with a role.
    """
    turns: list[Turn] = []
    for line in text.strip().split("\n") if text.strip() else ():
        if found := _TURN.match(line):
            turns.append(Turn(found[1].lower(), line[found.end() :].lstrip()))
        elif turns:
            turns[-1] = replace(turns[-1], text=f"{turns[-1].text}\n{line.removeprefix(INDENT)}")
        else:
            raise Refusal(
                "Each of the earlier turns begins on a new line with its role: “System:”, “User:” or “Assistant:”."
            )
    return tuple(replace(turn, text=turn.text.strip()) for turn in turns)


def write_turns(turns: Sequence[Turn]) -> str:
    """Turns as plain text: `User: Hello!`, further lines of a turn indented."""
    return "\n".join(f"{turn.role.capitalize()}: " + f"\n{INDENT}".join(turn.text.split("\n")) for turn in turns)


def whole_characters(answer: str) -> str:
    """The answer without bytes at its end that only begin a character: the model had no more tokens to finish it."""
    return _UNFINISHED.sub("", answer.strip()).strip()


@dataclass(frozen=True)
class FilledTemplate:
    """A chat as one text."""

    text: str
    parts: tuple[tuple[int, int, str], ...]
    """first character, the one after the last, and role of each turn and of the generation prompt, in their order"""

    def role_at(self, start: int, end: int) -> str:
        """The role of a token that covers these characters; one that a turn shares with the template is the turn's."""
        last = max(end, start + 1)
        return next((role for first, after, role in self.parts if start < after and first < last), "template")


def fill_in_template(tokenizer: object, turns: Sequence[Turn]) -> FilledTemplate:
    """What the chat template of a transformers tokenizer makes of the turns, up to where the answer begins.

    Where each turn stands is found by filling in other words, between which the template's own remain.

    Raises:
        ValueError: a turn is empty, the last one is not the user's, or the template refuses them; the sentence says so.
    """
    turns = [replace(turn, text=turn.text.strip()) for turn in turns]
    _check(turns)
    probes = {f"words {number} of nobody": turn for number, turn in enumerate(turns)}
    probing = [Turn(turn.role, probe) for probe, turn in probes.items()]
    text, filled, bare = _render(tokenizer, (turns, True), (probing, True), (turns, False))
    places = sorted((filled.find(probe), probe) for probe in probes)
    if any(filled.count(probe) != 1 for probe in probes):
        raise Refusal("The chat template of this model repeats a turn, changes it or leaves it out.")
    ends = [place + len(probe) for place, probe in places]
    frames = [filled[end:following] for end, (following, _) in zip(ends, [*places[1:], (None, "")], strict=True)]
    parts, at = [], places[0][0]
    for (_, probe), frame in zip(places, frames, strict=True):
        turn = probes[probe]
        # A template may shorten a turn, such as by what an assistant thought before its answer.
        if text.startswith(turn.text + frame, at):
            end = at + len(turn.text)
        elif not frame or (end := text.find(frame, at)) < 0:
            break
        parts.append((at, end, turn.role))
        at = end + len(frame)
    if at != len(text) or len(parts) < len(turns) or text[: places[0][0]] != filled[: places[0][0]]:
        raise Refusal("Where this model's chat template puts each turn could not be determined.")
    if text.startswith(bare) and text != bare:
        parts.append((max(len(bare), parts[-1][1]), len(text), "generation prompt"))
    return FilledTemplate(text, tuple(parts))


def has_chat_template(tokenizer: object) -> bool:
    """True if there is a template that writes more than the message of a user, and leaves that as it is.

    Raises:
        Exceeded: the template takes too long, or too much memory.
    """
    if not getattr(tokenizer, "chat_template", None):
        return False
    message = Turn("user", "another one, 2 \u00d7 longer")
    try:
        filled = fill_in_template(tokenizer, [message])
    except Exceeded:
        raise
    except ValueError:
        return False
    (start, end, _), *_ = filled.parts
    return filled.text[start:end] == message.text != filled.text


def _check(turns: Sequence[Turn]) -> None:
    if len(turns) > MOST_TURNS:
        raise Refusal(
            "The chat has {count:,} turns; at most {most} fit. Remove some.", count=len(turns), most=MOST_TURNS
        )
    for turn in turns:
        if turn.role not in ROLES:
            raise Refusal(
                "The role of a turn is {roles} or {last}, not {role!r}.",
                roles=", ".join(ROLES[:-1]),
                last=ROLES[-1],
                role=turn.role,
            )
    if not turns or turns[-1].role != "user":
        raise Refusal("A chat ends with what the user says; the model answers that.")
    if not turns[-1].text:
        raise Refusal("The message is empty: there is nothing to answer. Type at least one word.")
    for number, turn in enumerate(turns):
        if not turn.text:
            raise Refusal(
                "Turn {number} of the chat, {role}, is empty: write what was said, or remove it.",
                number=number,
                role=turn.role,
            )


def _render(tokenizer: object, *chats: tuple[Sequence[Turn], bool]) -> tuple[str, ...]:
    """The text of each chat; beside its turns, whether an answer is to follow."""
    filled = [
        {"messages": [{"role": turn.role, "content": turn.text} for turn in turns], "add_generation_prompt": answers}
        for turns, answers in chats
    ]
    try:
        return fill_in(tokenizer.get_chat_template(), tokenizer.special_tokens_map, filled)
    except Exceeded:
        raise
    except Exception as error:  # a template is a program of others, and may say anything
        said = one_line(str(error))[:MOST_QUOTED]
        raise Refusal("The chat template of this model refuses these turns: {said}", said=said) from error
