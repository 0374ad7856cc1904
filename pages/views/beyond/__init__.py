"""Views of the menu's "Beyond": why attention, and what came after the paper."""
