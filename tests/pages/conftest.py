"""Pages run without a browser, on the tiny model."""

from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from streamlit.testing.v1 import AppTest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def packages_read_once() -> Iterator[None]:
    """Each new AppTest looks for components in every installed package, longer than it then takes to draw a page."""
    from streamlit.components.v2 import manifest_scanner

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(manifest_scanner, "scan_component_manifests", cache(manifest_scanner.scan_component_manifests))
        yield


@pytest.fixture
def open_app(request: pytest.FixtureRequest) -> Iterator[Callable[..., "AppTest"]]:
    """Opens the app at once on a page, as a link does, with a query in the URL; nothing cached stays behind."""
    import streamlit as st
    from streamlit.testing.v1 import AppTest

    def open_app(page: str = "pages/translate.py", **query: str) -> AppTest:
        app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)
        for key, value in query.items():
            app.query_params[key] = value
        return (app if page == "pages/translate.py" else app.switch_page(page)).run()

    request.getfixturevalue("packages_read_once")
    request.getfixturevalue("checkpoint_folder")
    st.cache_resource.clear()
    yield open_app
    st.cache_resource.clear()
