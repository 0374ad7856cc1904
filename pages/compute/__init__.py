"""The result cache, the queue for model runs, and work that starts at the press of a button."""
