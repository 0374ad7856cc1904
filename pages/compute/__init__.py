"""The result cache, the queue for model runs, work that starts at the press of a button, and the View of a page."""
