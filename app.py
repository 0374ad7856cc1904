"""Attention Explorer: the frame around every page. Start it with `streamlit run app.py`."""

from pages.components.menu import route


def main() -> None:
    """Menu, then sidebar, then the page."""
    page = route()
    # Not before the menu is on screen: torch takes seconds to import.
    from pages.components.inputs import shared_inputs

    with shared_inputs():
        page.run()


main()
