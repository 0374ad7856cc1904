"""The search of the bar: all that the app says, tokens and heads of the run, and actions."""

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import streamlit as st

from model.language import language, tr
from model.needs import Need
from model.run import Place
from model.trace import Kind, Trace
from pages.compute.cache import cached, put
from pages.frame.bar.full_text import Index, NoFullText, build_index, line_around
from pages.frame.bar.said import Entry
from pages.views.learn.glossary import terms
from pages.widgets.canvas import component
from pages.widgets.controls import set_controls
from pages.widgets.glossary import show_term
from pages.widgets.page_links import link_with
from viz.tokens import as_markdown, labels

WORD = "search-word"
"""in the session: what is typed"""
MOST = 12
"""results of the texts, and of any other sort, that are shown"""
MOST_WORDS, MOST_TOKENS = 2, 4
"""words of the glossary, and tokens of the run, among them"""
HEAD = (
    r"第?\s*(?:l|layer|{layer})\s*(\d{{1,4}})\s*[,，、./ -]?\s*第?\s*(?:h|head|{head})\s*(\d{{1,4}})",
    r"第?\s*(\d{{1,4}})\s*{layer}\s*[,，、]?\s*(?:第?\s*(\d{{1,4}})\s*个?\s*{head}|{head}\s*(\d{{1,4}}))",
)
"""how a head is written, with the words of a language: L1H1, layer 1 head 1; 第 1 层头 1, 第 1 层第 1 个头"""
ICONS = {"Token": "token", "Head": "grid_view"}
"""Material symbols; a page and an action have their own"""


@dataclass(frozen=True)
class Act:
    """Something that can be done on every page."""

    name: str
    icon: str
    others: str = ""
    """other words for it"""


@dataclass(frozen=True)
class Token:
    """A token of the run that can be chosen as the query."""

    text: str
    row: int
    kind: str
    """of attention, whose queries such tokens are"""
    of: str
    """what its text is called on screen"""


@dataclass(frozen=True)
class Hit:
    """A result: something that is said somewhere, something that is chosen, or something that is done."""

    sort: str
    """that of its entry; Token, Head or Action"""
    name: str
    entry: Entry | None = None
    text: str = ""
    """what is said about it beside its name"""
    sets: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    """controls that it sets, and their values"""
    act: Act | None = None


@dataclass(frozen=True)
class Found:
    """The results, the best first."""

    hits: tuple[Hit, ...] = ()
    alike: tuple[str, ...] | None = None
    """names that a word which is nowhere may mean; None: every word is somewhere"""
    texts: bool = True
    """whether this Python can search texts"""


def tokens_of(trace: Trace, kind: str) -> tuple[Token, ...]:
    """Every token that a query stands for, each once, with the kind of attention in which it is one: `kind`, the chosen
    one, where it has the token."""
    found: list[Token] = []
    for name, stream in trace.streams.items():
        kinds = [each.name for each in trace.kinds if each.queries == name]
        if kinds:
            shown = labels((stream.following or stream.tokens).labels)
            chosen = kind if kind in kinds else kinds[0]
            found += [Token(text, row, chosen, stream.label) for row, text in enumerate(shown)]
    return tuple(found)


def find(
    word: str,
    features: Collection[Need],
    tokens: Sequence[Token] = (),
    kinds: Sequence[Kind] = (),
    actions: Sequence[Act] = (),
) -> Found:
    """What there is of a word; without a word the actions. What a model with these features cannot show comes last."""
    wanted = " ".join(word.casefold().split())
    acts = [Hit("Action", act.name, text=act.others, act=act) for act in actions]
    if not wanted:
        return Found(tuple(acts))
    own = [*acts, *map(_token, tokens)]
    named = [hit for hit in own if _has(hit.name, wanted)]
    others = [hit for hit in own if hit not in named and _has(f"{hit.name} {hit.text}", wanted)]
    heads = list(_heads(wanted, kinds))
    try:
        said, alike = _index_in(language().code).search(word)
    except NoFullText:
        return Found((*heads, *named, *others), texts=False)
    best = sorted(_best(said), key=lambda entry: not set(entry.needs) <= set(features))
    hits = [*heads, *named, *(Hit(entry.sort, entry.name, entry) for entry in best), *others]
    return Found(tuple(hits), None if alike is None or named or heads else tuple(alike))


def _best(said: Sequence[Entry]) -> list[Entry]:
    """Those that are shown: few words of the glossary, and each place once, which a word may have named already."""
    best: list[Entry] = []
    for entry in said:
        words = sum(one.sort == "Word" for one in best)
        if words < MOST_WORDS if entry.sort == "Word" else entry.place not in [one.place for one in best]:
            best.append(entry)
        if len(best) == MOST:
            break
    return best


def _index_in(code: str) -> Index:
    """That of a language, built once for all sessions: two that come at the same time may both build it."""
    index = cached("search", code)
    if index is None:
        put(index := build_index(), "search", code)
    return index


def _has(text: str, wanted: str) -> bool:
    """Whether each word that is wanted begins a word of the text; of Chinese, whether it is in it."""
    text = text.casefold()
    return all(re.search(("" if word[0] > "\u2e7f" else r"(?<!\w)") + re.escape(word), text) for word in wanted.split())


def _token(token: Token) -> Hit:
    return Hit("Token", token.text, sets={"kind": token.kind, "query": token.row}, text=f"{tr(token.of)} {token.row}")


def _heads(wanted: str, kinds: Sequence[Kind]) -> Iterator[Hit]:
    """The head of each kind that a text such as "L1H1" or "cross layer 1 head 1" names."""
    words = {"layer": re.escape(tr("Layer").casefold()), "head": re.escape(tr("Head").casefold())}
    numbers = next(filter(None, (re.search(way.format(**words), wanted) for way in HEAD)), None)
    if not numbers:
        return
    layer, head = (int(number) for number in numbers.groups() if number)
    others = re.split(r"[\s,，]+", f"{wanted[: numbers.start()]} {wanted[numbers.end() :]}".strip())
    for kind in kinds:
        title = f"{kind.title} {tr(kind.title)}".casefold()
        if layer in kind.layers and head < kind.heads and all(other in title for other in others):
            sets = {"kind": kind.name, "layer": layer, "head": head}
            yield Hit("Head", tr(Place(**sets).title), sets=sets)


def keep_word() -> None:
    """Before the dialog opens: it begins without a word."""
    type_word("")


def type_word(word: str) -> None:
    """Before the dialog runs again: as if this had been typed."""
    st.session_state[WORD] = word


def show_hits(word: str, found: Found, acts: Mapping[Act, Callable[[], Any]]) -> None:
    """The results as links and buttons, or a sentence that says what to do."""
    if not word.strip():
        st.caption(
            tr(
                "Everything here, by its name or a word in it, including people, symbols and numbers; tokens of "
                "this run, heads such as L1H1 or “cross L3H3”, and what you can do here:"
            )
        )
    elif not found.texts:
        st.info(
            tr(
                "The texts cannot be searched here, because the SQLite of this Python has no full-text search (FTS5). "
                "Tokens, heads and actions are found; pages are in the menu, words in the glossary."
            ),
            icon=":material/info:",
        )
    elif found.alike is not None:
        _say_nothing_there(word, found.alike)
    counts: dict[str, int] = {}
    with st.container(gap="xxsmall"):
        for hit in found.hits:
            counts[hit.sort] = counts.get(hit.sort, 0) + 1
            if counts[hit.sort] <= (MOST_TOKENS if hit.sort == "Token" else MOST):
                _show(hit, word, f"hit-{hit.sort}-{counts[hit.sort]}", acts)
    component("search")(key="search-keys", data={"word": word}, height=1)


def _show(hit: Hit, word: str, key: str, acts: Mapping[Act, Callable[[], Any]]) -> None:
    name = as_markdown(hit.name)
    if hit.act:
        icon = f":material/{hit.act.icon}:"
        if st.button(name, key=key, icon=icon, type="tertiary", on_click=acts[hit.act]):
            st.rerun()
    elif hit.sets:
        where = f" · {hit.text}" if hit.sort == "Token" else ""
        label = f"{name}{as_markdown(where)}"
        icon = f":material/{ICONS[hit.sort]}:"
        if st.button(label, key=key, icon=icon, type="tertiary", on_click=set_controls, args=(dict(hit.sets),)):
            st.rerun()
    elif hit.sort == "Word":
        show_term(next(term for term in terms() if term.key == hit.entry.key))
    else:
        with st.container(key=f"found-{key}", gap=None):
            _show_entry(hit.entry, word)


def _show_entry(entry: Entry, word: str) -> None:
    """A link that names page, tab and section, and below it a line of the text in which the word is."""
    *around, last = entry.titles
    where = " › ".join(map(as_markdown, around))
    link_with(f"**{as_markdown(last)}**{f' · {where}' if where else ''}", entry.place[0], **entry.query)
    before, hit, after = line_around(entry, word)
    if before or hit or after:
        st.caption(f"{as_markdown(before)}{f'**{as_markdown(hit)}**' if hit else ''}{as_markdown(after)}")


def _say_nothing_there(word: str, alike: Sequence[str]) -> None:
    st.text(tr("Nothing here is called “{word}”.", word=word.strip()[:100]))
    if not alike:
        st.text(tr("Try a word such as softmax, a token of your sentence, a head such as L1H1, or the name of a page."))
        return
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.markdown(tr("Did you mean"), width="content")
        for number, name in enumerate(alike):
            st.button(as_markdown(name), key=f"mean-{number}", on_click=type_word, args=(name,))
