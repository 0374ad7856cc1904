"""Tabs of single pages, named as their page."""
