"""Said, and measured, tab "Often told wrong": what much-read explanations get wrong, and what is right."""

import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import streamlit as st

from pages.widgets.glossary import Live, link_to


@dataclass(frozen=True, kw_only=True)
class Correction(Live):
    """A mistake; all texts are Markdown."""

    wrong: str
    """as one reads it"""
    right: str


@cache
def corrections() -> tuple[Correction, ...]:
    """All of them, in the order of the paper."""
    text = Path(__file__).with_suffix(".toml").read_text(encoding="utf-8-sig")
    return tuple(Correction(**entry) for entry in tomllib.loads(text)["correction"])


def show_corrections() -> None:
    """Each mistake with what is right, and where to see it."""
    st.caption(
        "Mistakes that stand in listings, lectures and posts on the Transformer, in our words. Each with what is "
        "right, and why."
    )
    for each in corrections():
        with st.container(border=True, gap="xsmall"):
            st.markdown(f":orange[✗] {each.wrong}\n\n:green[✓] {each.right}")
            link_to(each)
