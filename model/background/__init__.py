"""What the paper counts: Table 1, Table 3, sizes, timing."""
