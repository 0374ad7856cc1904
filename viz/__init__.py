"""Pictures: numpy arrays and labels in; a Plotly figure, or a Drawing for a component of our own, out."""
