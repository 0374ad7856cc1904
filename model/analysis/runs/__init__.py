"""Two runs compared, and what a run depends on: changes, gradients, swapped weights."""
