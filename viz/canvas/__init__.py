"""Our own pictures: the arrays that each takes by name, and its header. js/ has their scripts, which make the rest."""
