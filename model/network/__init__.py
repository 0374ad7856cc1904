"""The Transformer of the paper, one equation a line."""
