"""Figures for papers: the figures of the pages as SVG, PDF or PNG, drawn by Matplotlib from the same numbers."""
