"""Packages that only some of the commands need, and what to say where one is not installed."""

HUGGING_FACE = "pip install -r model/checkpoints/huggingface-requirements.txt"
EXTRAS = {
    "transformers": HUGGING_FACE,
    "huggingface_hub": HUGGING_FACE,
    "ctranslate2": "pip install -r model/commands/export-requirements.txt",
}
"""package -> the command that installs it; the extras of pyproject.toml have the same"""


def say_missing(error: ImportError) -> str:
    """Say which package is missing and what installs it; another error keeps its words."""
    package = (error.name or "").partition(".")[0]
    return f"{package} is not installed. Run: {EXTRAS[package]}" if package in EXTRAS else str(error)
