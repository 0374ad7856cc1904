"""Views of the menu's "Experiment": a model that is changed, what decided, and two runs beside each other."""
