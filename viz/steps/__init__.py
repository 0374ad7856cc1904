"""The seven steps of one head."""
