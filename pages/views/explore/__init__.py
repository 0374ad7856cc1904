"""Views of the menu's "Explore": translating, continuing a text, filling in; and one word in one head."""
