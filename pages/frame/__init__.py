"""Around every page: menu, sidebar, URL, tour."""
