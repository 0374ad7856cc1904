"""Data, loss, schedule and the training loop."""
