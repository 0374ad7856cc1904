"""The only caches, the queue for the model, work on a button."""
