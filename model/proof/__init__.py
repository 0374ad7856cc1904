"""The claims, measured."""
