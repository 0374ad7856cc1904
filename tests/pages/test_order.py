"""The order of the menu, in which one page leads to the next, and what there is to cite."""

import pytest

from model.checkpoints.translator import Translator
from model.needs import Need
from pages import PAGES, Page, next_page
from pages.widgets.cite import app_entry, paper_entry

ALL = [page for pages in PAGES.values() for page in pages]


def way(features: set[Need]) -> list[Page]:
    """The pages that one comes to from the first one that the model has."""
    pages = [next(page for page in ALL if set(page.needs) <= features)]
    while following := next_page(pages[-1], features):
        pages.append(following)
    return pages


@pytest.mark.parametrize("lacks", [(), (Need.CROSS_ATTENTION,), (Need.LOGITS, Need.MATRICES)])
def test_page_by_page_one_comes_to_all_that_the_model_has_in_the_order_of_the_menu(
    lacks: tuple[Need, ...],
) -> None:
    features = set(Need) - set(lacks)
    assert way(features) == [page for page in ALL if set(page.needs) <= features]


def test_every_question_is_asked_once() -> None:
    assert len({page.heading for page in ALL}) == len(ALL)


@pytest.mark.parametrize("view", ["Masks: What is hidden", r"100 % & _x_ {y} \z ~ #1 $"])
def test_a_citation_is_one_balanced_entry_whatever_the_view_is_called(view: str, translator: Translator) -> None:
    trace = translator.trace("a dog")
    entry = app_entry(trace, view)
    plain = entry.replace("\\{", "").replace("\\}", "")
    assert entry.count("@") == 1
    assert plain.count("{") == plain.count("}")
    assert trace.checkpoint_hash in entry
    for special in "%&#$_":
        assert f"{special}" not in entry.replace(f"\\{special}", "").replace("attention_explorer", "")


@pytest.mark.parametrize("sections", [["3.2.3"], ["3", "6.1"]])
def test_the_paper_is_cited_with_the_sections_that_the_view_names(sections: list[str]) -> None:
    entry = paper_entry(sections)
    assert all(section in entry.split("note")[1] for section in sections)
    assert entry.count("{") == entry.count("}")
