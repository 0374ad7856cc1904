"""Views of the menu's "Model": what a head is a part of."""
