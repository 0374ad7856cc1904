"""The search of the bar: what is found, what a result does, and what is said where there is none."""

import pytest

from model.language import speaking
from model.needs import Need
from model.trace import Kind
from pages import PAGES
from pages.frame.bar import OPENS
from pages.frame.search import WORD, Act, Token, find
from pages.text import languages
from pages.views.glossary import terms

ALL = frozenset(Need)
KINDS = (
    Kind("encoder_self", "encoder", "encoder", False, (0, 1), 4, 4),
    Kind("cross", "decoder", "encoder", False, (0, 1, 2), 2, 2),
)
TOKENS = (Token("it", 5, "encoder_self", "Source"), Token("Tier", 1, "cross", "Target"))
ACTS = (Act("Present this page", "x", "projector slides"), Act("Light or dark", "x", "theme"))


def search(word: str, features=ALL):
    return find(word, features, TOKENS, KINDS, ACTS)


def test_every_page_and_every_word_of_the_glossary_is_the_first_of_its_sort_under_its_name() -> None:
    named = [("Page", page.title) for pages in PAGES.values() for page in pages]
    named += [("Word", name) for term in terms() for name in term.names]
    for sort, name in named:
        first = next(hit for hit in search(f" {name.upper()} ") if hit.sort == sort)
        assert name in (first.name, *first.names)


def test_every_tab_is_found_and_its_result_leads_to_it() -> None:
    for pages in PAGES.values():
        for page in (page for page in pages if not page.stacked):
            for view in page.views:
                title = view.tab or view.title
                hits = [hit for hit in search(title) if (hit.sort, hit.page, hit.name) == ("Tab", page.name, title)]
                assert [hit.query for hit in hits] == [{page.tabs_key: title}], (page.title, title)


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
    assert search("it")[0].sets == {"kind": "encoder_self", "query": 5}


@pytest.mark.parametrize(("word", "name"), [("slides", "Present this page"), ("theme", "Light or dark")])
def test_an_action_is_found_by_other_words_for_it(word: str, name: str) -> None:
    assert name in [hit.name for hit in search(word)]


def test_what_the_model_cannot_show_comes_last() -> None:
    hits = search("masks", features=ALL - {Need.FULL_ROWS})
    lacking = [Need.FULL_ROWS in hit.needs for hit in hits]
    assert any(lacking)
    assert lacking == sorted(lacking)


def open_search(app, word: str):
    """With a word that is typed already: in these tests a second run would close the dialog."""
    app.session_state[OPENS], app.session_state[WORD] = "Search", word
    app.run()
    assert not app.exception
    return app


def said(app) -> str:
    return " ".join(element.value for element in (*app.text, *app.markdown, *app.caption))


def test_the_search_explains_a_word_on_every_page(open_app) -> None:
    app = open_search(open_app("pages/masks.py"), "GPT")
    assert "A decoder without an encoder" in said(app)


def test_a_head_and_a_token_of_the_search_are_chosen(open_app) -> None:
    app = open_search(open_app("pages/masks.py"), "encoder L1H2")
    app.button(key="hit-Head-1").click().run()
    state = app.session_state
    assert (state["kind"], state["layer"], state["head"]) == ("encoder_self", 1, 2)


@pytest.mark.parametrize("word", ["zebra-crossing", "<b>x</b>", "[a](http://b.c)"])
def test_a_word_that_is_nowhere_gets_a_sentence_and_is_plain_text(word: str, open_app) -> None:
    app = open_search(open_app("pages/masks.py"), word)
    assert any(f"Nothing here is called “{word}”" in element.value for element in app.text)


def test_a_mistyped_word_gets_the_closest_names(open_app) -> None:
    assert "Did you mean “softmax”" in said(open_search(open_app("pages/masks.py"), "sofmax"))
