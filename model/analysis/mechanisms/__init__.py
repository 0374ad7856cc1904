"""Other mechanisms on a run's own queries, keys and values: modern parts, linear, sparse and tiled attention."""
