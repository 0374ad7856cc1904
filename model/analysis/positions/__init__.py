"""How a model knows the order of its tokens."""
