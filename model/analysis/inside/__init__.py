"""Training from the inside: one step of Adam, dropout at its places, number formats, and why the rate warms up."""
