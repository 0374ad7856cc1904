"""What the paper compares: Tables 1 and 3, scoring functions, model sizes, and run time."""
