"""Views of the menu's "Learn": lessons, the paper, what is often told wrong, terms."""
