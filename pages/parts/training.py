"""Training: where a tab of earlier versions went."""

import streamlit as st

from pages.views import Run
from pages.widgets.page_links import link_with


def say_where_parts_went(_: Run) -> None:
    """A sentence and a link, where a link of an earlier version asks for a tab that is now on another page."""
    if st.query_params.get("training") == "Parts since 2017":
        tab = "What each part buys"
        st.info(f"“Parts since 2017” is now the tab “{tab}” of the page Since 2017.", icon=":material/info:")
        link_with(f"Open “{tab}”", "since_2017", since=tab)
