"""Texts longer than a model's context, and what is kept of them."""
