"""Where one is: the URL, the language, the menu, and what the browser does around every page."""
