"""Views of the menu's "Attention": what a head computes."""
