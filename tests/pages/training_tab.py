"""The tabs of Training whose numbers change by themselves, in a session of their own."""

from streamlit.testing.v1 import AppTest

from tests.pages import figures
from tests.pages.conftest import ROOT


def open_tab(tab: str, **query: str) -> AppTest:
    """The page on a short sentence, run once."""
    page = AppTest.from_file(str(ROOT / "pages/training.py"), default_timeout=120)
    page.session_state["training"] = tab
    page.query_params.update({"source": "a dog"} | query)
    page.run()
    return page


def words(page: AppTest) -> str:
    """What it says, without the marks of Markdown."""
    warnings = " ".join(warning.value for warning in page.warning)
    return f"{figures.words(page)} {warnings}".replace("\\", "").replace("*", "")
