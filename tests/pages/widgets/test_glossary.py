"""The words that a newcomer may not know: each is explained on a page, and the explanations' numbers are right."""

from pathlib import Path

import pytest

from model.run import Run
from pages.views.learn.glossary import find_terms, interview, questions, terms
from pages.widgets.glossary import define
from tests.pages.widgets.test_export import TABS

PAGES = Path(__file__).parents[3] / "pages"
GLOSSARY = {term.name: term.text for term in terms()}


def test_each_term_and_each_answer_is_a_sentence_and_has_a_place() -> None:
    for live in (*terms(), *questions()):
        assert (getattr(live, "text", "") or live.answer).endswith("."), live
        assert (PAGES / f"{live.page}.py").exists(), live
        if live.query:
            key, *tabs = TABS[live.page]
            assert dict(live.query) == {key: live.tab}, live
            assert live.tab in tabs, live


@pytest.mark.parametrize("kind", ["encoder_self", "cross"])
def test_an_answer_counts_the_attention_on_screen(translator, kind: str) -> None:
    trace = translator.trace("A dog runs through the snow.", "Ein Hund.")
    attention = trace.attention(kind, 1)
    here = interview(Run.of(translator, trace, kind, 1)).facts["answers"]
    weights = [getattr(attention.projections, name) for name in ("w_q", "w_k", "w_v", "w_o")]
    assert (
        f"{sum(w.size for w in weights):,} parameters"
        in here["How many parameters does multi-head attention have if its vectors have d dimensions?"]
    )
    (memory,) = [text for ask, text in here.items() if "How much memory" in ask]
    assert f"{attention.pattern[0].nbytes:,} bytes" in memory
    assert list(here) == [question.ask for question in questions()]


def test_every_question_can_be_opened_on_the_page(open_app) -> None:
    app = open_app("pages/glossary.py", glossary="Interview questions")
    assert [box.label for box in app.main.expander][: len(questions())] == [question.ask for question in questions()]


def test_no_name_belongs_to_two_terms() -> None:
    names = [name.casefold() for term in terms() for name in term.names]
    assert len(names) == len(set(names))


def test_a_word_that_is_nowhere_finds_nothing_and_no_word_finds_all() -> None:
    assert find_terms("zebra") == []
    assert find_terms("") == list(terms())


def test_the_page_shows_what_is_searched_for(open_app) -> None:
    app = open_app("pages/glossary.py", word="softmax")
    terms = [f"**{term.name}**" for term in find_terms("softmax")]
    shown = [element.value for element in app.main.markdown if element.value.startswith(tuple(terms))]
    assert shown[0].startswith("**softmax**")
    assert len(shown) >= len(find_terms("softmax"))
    app = open_app("pages/glossary.py", word="<b>zebra</b>")
    assert any("No term has “<b>zebra</b>”" in element.value for element in app.text)


def test_one_word_is_a_sentence_and_several_are_told_apart() -> None:
    assert define("rollout") == GLOSSARY["rollout"]
    assert define("rollout", "nats") == f"**Rollout**: {GLOSSARY['rollout']}  \n**Nats**: {GLOSSARY['nats']}"
    with pytest.raises(KeyError):
        define("no such word")
