"""Pictures: numpy arrays and labels in; a Plotly figure, or the payload of a component, out."""
