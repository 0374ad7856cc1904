"""What a person asks of a trace."""
