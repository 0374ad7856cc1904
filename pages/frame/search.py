"""The search of the bar: pages, tabs, words of the field, tokens and heads of the run, and actions."""

import difflib
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from types import MappingProxyType
from typing import Any

import streamlit as st

from model.language import joined, language, later, quoted, tr
from model.needs import Need
from model.run import Place
from model.trace import Kind, Trace
from pages import PAGES, Page, page_of
from pages.views.glossary import terms
from pages.widgets.canvas import component
from pages.widgets.controls import set_controls
from pages.widgets.glossary import show_term
from pages.widgets.page_links import link_with
from viz.tokens import as_markdown, labels

WORD = "search-word"
"""in the session: what is typed"""
MOST = 12
"""results that are shown"""
MOST_OF_A_SORT = 4
HEAD = (
    r"第?\s*(?:l|layer|{layer})\s*(\d{{1,4}})\s*[,，、./ -]?\s*第?\s*(?:h|head|{head})\s*(\d{{1,4}})",
    r"第?\s*(\d{{1,4}})\s*{layer}\s*[,，、]?\s*(?:第?\s*(\d{{1,4}})\s*个?\s*{head}|{head}\s*(\d{{1,4}}))",
)
"""how a head is written, with the words of a language: L1H1, layer 1 head 1; 第 1 层头 1, 第 1 层第 1 个头"""
CJK = re.compile("[\u3040-\u30ff\u3400-\u9fff]")
"""letters of languages that put no space between words"""
CLOSE = 0.7
"""how alike a mistyped word is, from 0 to 1"""
ICONS = {"Word": "menu_book", "Token": "token", "Head": "grid_view", "Tab": "tab"}
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
    """A result."""

    sort: str
    """Page, Tab, Word, Token, Head or Action"""
    name: str
    names: tuple[str, ...] = ()
    """other names by which it is found"""
    text: str = ""
    """what is said about it: a word in it is a weaker hit"""
    page: str = ""
    """the file that it leads to, without .py"""
    query: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """parameters of the link to it"""
    sets: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    """controls that it sets, and their values"""
    needs: tuple[Need, ...] = ()
    """of the opened model"""
    act: Act | None = None

    def distance(self, wanted: str) -> int | None:
        """How far the name is from these words; None: they are nowhere."""
        names = [name.casefold() for name in (self.name, *self.names)]
        if wanted in names:
            return 0
        if any(name.startswith(wanted) for name in names):
            return 1
        words = wanted.split()
        if any(all(re.search(rf"\b{re.escape(word)}", name) for word in words) for name in names):
            return 2
        if any(all(word in name for word in words) for name in names):
            return 3
        text = " ".join((*names, self.text.casefold()))
        starts = (("" if CJK.match(word) else r"(?<!\w)") + re.escape(word) for word in words)
        return 4 if all(re.search(start, text) for start in starts) else None


def tokens_of(trace: Trace, kind: str) -> tuple[Token, ...]:
    """Every token that a query stands for, each once, with the kind of attention in which it is one.

    Args:
        trace: of the run on screen.
        kind: of the chosen attention, which stays where it has the token.
    """
    found: list[Token] = []
    for name, stream in trace.streams.items():
        kinds = [each.name for each in trace.kinds if each.queries == name]
        if kinds:
            shown = labels((stream.predicts or stream.tokens).labels)
            chosen = kind if kind in kinds else kinds[0]
            found += [Token(text, row, chosen, stream.label) for row, text in enumerate(shown)]
    return tuple(found)


def find(
    word: str,
    features: Collection[Need],
    tokens: Sequence[Token] = (),
    kinds: Sequence[Kind] = (),
    actions: Sequence[Act] = (),
) -> list[Hit]:
    """The results, the best first; without a word the actions and the pages.

    Args:
        word: as typed.
        features: of the opened model; what it cannot show comes last.
        tokens: of the run.
        kinds: of the model's attention.
        actions: that can be done.
    """
    wanted = " ".join(word.casefold().split())
    acts = [Hit("Action", act.name, text=act.others, act=act) for act in actions]
    if not wanted:
        return acts
    pool = [*acts, *_pages_and_tabs(), *_words(), *(_token(token) for token in tokens)]
    ranked = [(hit.distance(wanted), hit) for hit in pool]
    hits = [hit for far, hit in sorted((pair for pair in ranked if pair[0] is not None), key=lambda pair: pair[0])]
    hits = [*_heads(wanted, kinds), *hits]
    return sorted(hits, key=lambda hit: not set(hit.needs) <= set(features))


def _pages_and_tabs() -> tuple[Hit, ...]:
    return _pages_and_tabs_in(language().code)


@cache
def _pages_and_tabs_in(_code: str) -> tuple[Hit, ...]:
    found: list[Hit] = []
    for section, pages in PAGES.items():
        for page in pages:
            about = f"{tr(section)} {tr(page.summary)} {tr(page.look_for)}"
            names = tuple({page.title} - {tr(page.title)})
            found.append(Hit("Page", tr(page.title), names, about, page=page.name, needs=page.needs))
            if not page.stacked:
                found += _tabs(page)
    return tuple(found)


def _tabs(page: Page) -> Iterator[Hit]:
    for title, needs in {view.tab or view.title: view.needs for view in page.views}.items():
        known = tuple(need for need in needs if isinstance(need, Need))
        name, needed = tr(title), (*page.needs, *known)
        names = tuple({title} - {name})
        yield Hit("Tab", name, names, tr(page.title), page=page.name, query={page.tabs_key: name}, needs=needed)


def _words() -> tuple[Hit, ...]:
    """The terms, which are found by their English names, too."""
    found = []
    for term in terms():
        names = tuple(dict.fromkeys([*term.others, *({term.key} - {term.name})]))
        found.append(Hit("Word", term.name, names, term.text, page=term.page, query=term.query))
    return tuple(found)


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
    st.session_state[WORD] = ""


def show_hits(word: str, hits: Sequence[Hit], acts: Mapping[Act, Callable[[], Any]]) -> None:
    """The results as links and buttons, or a sentence that says what to do."""
    if not word.strip():
        st.caption(
            tr(
                "Pages and tabs by their names, words of the field with what they mean, tokens of this run, "
                "heads such as L1H1 or “cross L3H3”, and what can be done here:"
            )
        )
    elif not hits:
        _say_nothing_there(word)
    counts: dict[str, int] = {}
    with st.container(gap="xxsmall"):
        for hit in hits:
            counts[hit.sort] = counts.get(hit.sort, 0) + 1
            if counts[hit.sort] <= (MOST if hit.sort in ("Action", "Head") else MOST_OF_A_SORT):
                _show(hit, f"hit-{hit.sort}-{counts[hit.sort]}", acts)
    component("search")(key="search-keys", data={"word": word}, height=1)


def _show(hit: Hit, key: str, acts: Mapping[Act, Callable[[], Any]]) -> None:
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
        _show_word(hit)
    else:
        where = f" · {tr(page_of(f'{hit.page}.py').title)}" if hit.sort == "Tab" else ""
        link_with(f"{name}{where}", hit.page, **hit.query)


def _show_word(hit: Hit) -> None:
    show_term(next(term for term in terms() if term.name == hit.name))


def _say_nothing_there(word: str) -> None:
    names = {name.casefold(): name for hit in (*_pages_and_tabs(), *_words()) for name in (hit.name, *hit.names)}
    close = difflib.get_close_matches(" ".join(word.casefold().split()), names, n=3, cutoff=CLOSE)
    text = [tr("Nothing here is called “{word}”.", word=word.strip()[:100])]
    if close:
        words = joined((quoted(names[name]) for name in close), later("{before} or {one}"))
        text.append(tr("Did you mean {words}?", words=words))
    text.append(tr("Try a word such as softmax, a token of your sentence, a head such as L1H1, or the name of a page."))
    st.text(" ".join(text))
