"""Attention Explorer: the frame around every page. Start it with `streamlit run app.py`.

Streamlit runs this file in two ways: as a module when the server starts, and as a script for every visitor.
"""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext
from threading import Thread

import streamlit as st
from starlette.middleware import Middleware
from starlette.middleware.base import BaseHTTPMiddleware
from streamlit.runtime.pages_manager import PagesManager
from streamlit.starlette import App

from pages.frame.address.menu import route
from pages.frame.server.command_line import read_arguments
from pages.frame.server.html_page import complete_page, has_started, starting
from pages.frame.server.open_files import raise_limit
from pages.frame.server.routes import OpenRoutes
from pages.frame.server.server_socket import ask_no_other_machine, send_small_packets_at_once
from pages.frame.server.start import open_browser


def main() -> None:
    """Draw the menu, then the sidebar, then the page."""
    page = route()
    # Placed by the style sheet over the page: it must not push the page down.
    with st.container(key="starting"), nullcontext() if has_started() else st.spinner(starting()):
        # Imported after the menu is on screen, because importing torch takes seconds.
        from pages.frame.sidebar.sidebar import shared_inputs

    with shared_inputs(page.url_path):
        page.run()


@asynccontextmanager
async def lifespan(_server: App) -> AsyncIterator[None]:
    """When the server starts: load the model and compute the first picture, so that no visitor waits for them."""
    # The menu comes from st.navigation; else Streamlit would take the folder `pages` for its older kind of menu.
    PagesManager.uses_pages_directory = False
    raise_limit()
    send_small_packets_at_once(asyncio.get_running_loop())
    Thread(target=_warm_up, name="warm-up", daemon=True).start()
    if shows_browser:
        Thread(target=open_browser, name="browser", daemon=True).start()
    yield


def _warm_up() -> None:
    from pages.frame.warm_up import warm_up

    warm_up()


if __name__ == "__main__":
    main()
else:
    # Before there is a server, so that a sentence on what is wrong is all that it prints.
    shows_browser = read_arguments(sys.argv[1:])
    ask_no_other_machine()
    # The outermost completes the answers of the other one, too.
    around = [Middleware(BaseHTTPMiddleware, dispatch=complete_page), Middleware(OpenRoutes)]
    app = App(__file__, lifespan=lifespan, middleware=around)
