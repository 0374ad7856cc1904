"""The static page: the model in JavaScript, the pictures' scripts and a recorded run, for any static host."""
