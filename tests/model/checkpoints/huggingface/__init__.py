"""Models of others."""
