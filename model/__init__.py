"""The Transformer of Vaswani et al. (2017): its model, its training and its inside."""

VERSION = "1.0.0"
"""of the whole project; pyproject.toml reads it here"""
