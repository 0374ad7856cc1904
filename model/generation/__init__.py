"""How a model writes: greedy and beam search, sampling, forced prefixes."""
