"""Attention Explorer: the frame around every page. Start it with `streamlit run app.py`.

Streamlit runs this file twice over: once as a module, when the server starts, and as a script for every visitor.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from threading import Thread

import streamlit as st
from streamlit.starlette import App

from pages.frame.menu import route


def main() -> None:
    """Menu, then sidebar, then the page."""
    page = route()
    with st.spinner("Starting the model …"):
        # Not before the menu is on screen: torch takes seconds to import.
        from pages.frame.sidebar import shared_inputs

    with shared_inputs():
        page.run()


@asynccontextmanager
async def started(_server: App) -> AsyncIterator[None]:
    """From the server's start on: the first visitor finds the model there, and the first picture worked out."""
    Thread(target=_warm_up, name="warm-up", daemon=True).start()
    yield


def _warm_up() -> None:
    from pages.frame.warm_up import warm_up

    warm_up()


if __name__ == "__main__":
    main()
else:
    app = App(__file__, lifespan=started)
