"""What the residual stream holds at each layer, and what is read from it."""
