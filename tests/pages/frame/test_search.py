"""The search of the bar: what is found, what a result does, and what is said where there is none."""

import sqlite3
from concurrent.futures import ThreadPoolExecutor

import pytest

from model.language import speaking, tr
from model.needs import Need
from model.trace import Kind
from pages.frame.bar.bar import OPENS
from pages.frame.bar.full_text import NoFullText, build_index, fold, line_around
from pages.frame.bar.search import WORD, Act, Token, find
from pages.lessons import lessons
from pages.text import languages
from pages.views import OPEN_SECTION
from pages.views.learn.glossary import terms
from pages.widgets.controls import OPEN_TAB
from pages.widgets.page_links import link_with, linked_pages
from tests.pages.figures import words
from tests.pages.test_pages import EVERY_PAGE

ALL = frozenset(Need)
KINDS = (
    Kind("encoder_self", "encoder", "encoder", False, (0, 1), 4, 4),
    Kind("cross", "decoder", "encoder", False, (0, 1, 2), 2, 2),
)
TOKENS = (Token("it", 5, "encoder_self", "Source"), Token("Tier", 1, "cross", "Target"))
ACTS = (Act("Present this page", "x", "projector slides"), Act("Light or dark", "x", "theme"))


def search(word: str, features=ALL):
    return find(word, features, TOKENS, KINDS, ACTS).hits


def test_every_page_and_every_word_of_the_glossary_is_the_first_of_its_sort_under_its_name() -> None:
    named = [("Page", page.title) for page in EVERY_PAGE]
    named += [("Word", name) for term in terms() for name in term.names]
    for sort, name in named:
        first = next(hit for hit in search(f" {name.upper()} ") if hit.sort == sort)
        assert fold(name) in map(fold, (first.name, *first.entry.others)), name


@pytest.mark.parametrize("code", ["en", "de", "zh"])
def test_every_tab_section_lesson_and_station_is_found_by_its_title_and_its_result_leads_there(code: str) -> None:
    with speaking(languages()[code]):
        wanted = {}
        for page in (page for page in EVERY_PAGE if page.name != "learn"):
            for view in page.views:
                tab = {} if page.stacked else {page.tabs_key: view.tab or view.title}
                wanted[tr(view.title), page.name] = tab | ({OPEN_SECTION: view.title} if view.tab or not tab else {})
        for lesson in lessons():
            for name, station in [(lesson.title, lesson.stations[0]), *((one.title, one) for one in lesson.stations)]:
                wanted[name, "learn"] = {"lesson": lesson.slug, "station": station.slug}
        for (title, page), query in wanted.items():
            entries = [hit.entry for hit in search(title) if hit.entry]
            assert any(one.place[0] == page and dict(one.query) == query for one in entries), (title, page)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("layer normalisation", "layer normalizations"),
        ("√d_k", "sqrt(d_k)"),
        ("warm-up", "warmup"),
        ("KV cache", "kv-caches"),
        ("τ", "tau"),
        ("Łukasz Kaiser", "lukasz kaiser"),
        ("BatchNorm", "batch norm"),
        ("10,000", "10000"),
    ],
)
def test_a_word_that_is_written_in_two_ways_finds_the_same_first(one: str, other: str) -> None:
    assert search(one)[0].entry == search(other)[0].entry


@pytest.mark.parametrize(
    "word", ['"', "*", 'a" OR "b', "names:x", "NEAR(a b", "-", "^", "()", "😀", "\ue000", "x" * 5000]
)
def test_no_character_means_anything_to_the_index(word: str) -> None:
    assert isinstance(find(word, ALL).hits, tuple)


def test_threads_that_search_at_the_same_time_find_what_each_finds_alone() -> None:
    index, typed = build_index(), ["softmax", "dropout", "layer normalization", "why sqrt", "beam serch", "mask"]
    with ThreadPoolExecutor(6) as pool:
        together = list(pool.map(index.search, typed * 5))
    assert together == [index.search(word) for word in typed] * 5


@pytest.mark.parametrize("word", ["Spearman", "overflows", "referee", "sum of squares"])
def test_a_result_has_a_line_with_the_word_that_was_typed(word: str) -> None:
    entry = search(word)[0].entry
    before, hit, after = line_around(entry, word)
    assert hit
    assert any(word[:5].casefold() in hit.casefold() for word in word.split())
    assert f"{before.removeprefix('… ')}{hit}{after.removesuffix(' …')}" in "\n".join(entry.lines)


def test_where_sqlite_has_no_full_text_search_the_rest_is_found_and_a_sentence_says_so(open_app, monkeypatch) -> None:
    def without(_):
        raise NoFullText

    monkeypatch.setattr("pages.frame.bar.search._index_in", without)
    found = find("tier", ALL, TOKENS, KINDS, ACTS)
    assert [hit.sort for hit in found.hits] == ["Token"]
    assert "no full-text search (FTS5)" in words(open_search(open_app("pages/masks.py"), "dropout"))


def test_an_sqlite_without_full_text_search_is_noticed(monkeypatch) -> None:
    class Without(sqlite3.Connection):
        def execute(self, *_):
            raise sqlite3.OperationalError("no such module: fts5")

    connect = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda name: connect(name, factory=Without))
    with pytest.raises(NoFullText):
        build_index()


@pytest.mark.parametrize(
    ("word", "places"),
    [
        ("L1H1", [("encoder_self", 1, 1), ("cross", 1, 1)]),
        ("l0h3", [("encoder_self", 0, 3)]),
        ("cross layer 2, head 0", [("cross", 2, 0)]),
        ("Encoder L1 H0", [("encoder_self", 1, 0)]),
        ("L7H1", []),
    ],
)
def test_a_head_is_found_in_each_kind_that_has_it(word: str, places: list) -> None:
    found = [hit.sets for hit in search(word) if hit.sort == "Head"]
    assert [(one["kind"], one["layer"], one["head"]) for one in found] == places


@pytest.mark.parametrize(
    ("code", "word", "names"),
    [
        ("de", "Schicht 2, Kopf 1", ["Cross-Attention, Schicht 2, Kopf 1"]),
        ("de", "cross L1H1", ["Cross-Attention, Schicht 1, Kopf 1"]),
        ("zh", "第1层第1个头", ["编码器自注意力，第 1 层，头 1", "交叉注意力，第 1 层，头 1"]),
        ("zh", "交叉注意力，第 2 层，头 0", ["交叉注意力，第 2 层，头 0"]),
    ],
)
def test_a_head_is_found_and_named_in_the_language_of_the_run(code: str, word: str, names: list[str]) -> None:
    with speaking(languages()[code]):
        assert [hit.name for hit in search(word) if hit.sort == "Head"] == names


def test_a_chinese_word_is_found_within_what_is_said_about_others() -> None:
    with speaking(languages()["zh"]):
        assert "logit 透镜（logit lens）" in [hit.name for hit in search("残差流")]


def test_a_token_of_the_run_is_a_result_that_chooses_it() -> None:
    hits = [hit for hit in search("tier") if hit.sort == "Token"]
    assert [dict(hit.sets) for hit in hits] == [{"kind": "cross", "query": 1}]
    assert next(hit for hit in search("it") if hit.sort == "Token").sets == {"kind": "encoder_self", "query": 5}


@pytest.mark.parametrize(("word", "name"), [("slides", "Present this page"), ("theme", "Light or dark")])
def test_an_action_is_found_by_other_words_for_it(word: str, name: str) -> None:
    assert name in [hit.name for hit in search(word)]


def test_what_the_model_cannot_show_comes_last() -> None:
    hits = search("masks", features=ALL - {Need.FULL_ROWS})
    lacking = [Need.FULL_ROWS in hit.entry.needs for hit in hits if hit.entry]
    assert any(lacking)
    assert lacking == sorted(lacking)


def open_search(app, word: str):
    """With a word that is typed already: in these tests a second run would close the dialog."""
    app.session_state[OPENS], app.session_state[WORD] = "Search", word
    app.run()
    return app


def test_a_head_and_a_token_of_the_search_are_chosen(open_app) -> None:
    app = open_search(open_app("pages/masks.py"), "encoder L1H2")
    app.button(key="hit-Head-1").click().run()
    state = app.session_state
    assert (state["kind"], state["layer"], state["head"]) == ("encoder_self", 1, 2)


@pytest.mark.parametrize("word", ["zebra-crossing", "<b>x</b>", "[a](http://b.c)"])
def test_a_word_that_is_nowhere_gets_a_sentence_and_is_plain_text(word: str, open_app) -> None:
    app = open_search(open_app("pages/masks.py"), word)
    assert any(f"Nothing here is called “{word}”" in element.value for element in app.text)


@pytest.mark.parametrize("code", ["en", "de", "zh"])
def test_a_link_names_the_tab_as_it_is_called_on_screen(code: str, monkeypatch) -> None:
    links = []
    monkeypatch.setattr("streamlit.page_link", lambda *_, query_params, **__: links.append(query_params))
    before = linked_pages.set({page.path: page.path for page in EVERY_PAGE})
    try:
        with speaking(languages()[code]):
            for term in (term for term in terms() if term.query):
                link_with(term.place, term.page, **term.to)
                assert links[-1][OPEN_TAB] == tr(term.tab)
    finally:
        linked_pages.reset(before)


def test_a_click_on_what_a_mistyped_word_may_mean_searches_for_it(open_app) -> None:
    app = open_search(open_app("pages/masks.py"), "sofmax")
    assert "Nothing here is called “sofmax”" in words(app)
    assert app.button(key="mean-0").label == "softmax"
    app.session_state[OPENS] = "Search"  # in the browser the dialog stays open
    app.button(key="mean-0").click().run()
    assert app.session_state[WORD] == "softmax"
    assert "Turns any numbers into positive ones" in words(app)
