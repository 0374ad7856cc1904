"""A small Hugging Face model with real weights: RXNMapper, an ALBERT that learned chemical reactions, in safetensors.

Schwaller et al. 2021, "Extraction of organic chemistry grammar from unsupervised learning of chemical reactions". The
weights are those of the package rxnmapper 0.4.3 (MIT, see LICENSE); `make.py` wrote these files from it. The package
itself is not installed: it needs transformers below 5, and its weights are a .bin file, which the app does not open.
"""

from pathlib import Path

FOLDER = Path(__file__).parent
