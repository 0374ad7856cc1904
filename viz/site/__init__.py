"""The static page: the model in JavaScript."""
