"""Command lines beside train, evaluate and translate: python -m model.commands.NAME --help."""
