"""Building blocks of pages: charts, controls, export, explanations, links, the proof strip."""
