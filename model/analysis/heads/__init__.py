"""What a head does: its weights, its type, over many sentences, and how much it matters."""
