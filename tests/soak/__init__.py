"""Long tests that a person starts by hand: `python -m tests.soak`."""
