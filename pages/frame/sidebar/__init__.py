"""What is run: the text, the model, the head and the temperature, on every page alike."""
