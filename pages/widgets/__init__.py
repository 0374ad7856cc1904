"""Building blocks of pages: charts, controls, export, explanations, links."""
