"""Above every page: search, share, export, present."""
