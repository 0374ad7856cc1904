"""The tabs of Training whose numbers change by themselves, in a session of their own."""

from pathlib import Path

from streamlit.testing.v1 import AppTest

PAGE = str(Path(__file__).parents[2] / "pages" / "training.py")


def open_tab(tab: str, **query: str) -> AppTest:
    """The page on a short sentence, run once."""
    page = AppTest.from_file(PAGE, default_timeout=120)
    page.session_state["training"] = tab
    for key, value in {"source": "a dog", **query}.items():
        page.query_params[key] = value
    page.run()
    assert not page.exception
    return page


def words(page: AppTest) -> str:
    """What it says, without the marks of Markdown."""
    kinds = page.caption, page.info, page.markdown, page.warning
    return " ".join(element.value for kind in kinds for element in kind).replace("\\", "").replace("*", "")
