"""In the box "Model", for the person at this machine: the models of its Hugging Face cache, and the path of a folder.

A path comes from this field alone: no address, link or course opens one.
"""

from pathlib import Path

import streamlit as st

from model.checkpoints.store import CheckpointError, bring_model
from model.language import tr, tr_error
from pages.compute.runs import models_on_this_machine
from pages.frame.server.command_line import is_at_this_machine
from pages.frame.sidebar.opened_model import CHECKPOINT
from pages.text import names_in
from pages.widgets.controls import box
from viz.tokens import as_markdown, visible

PATH, FIND, PROBLEM = "local-path", "local-find", "local-problem"
"""in the session: the typed path, the searched name, and what is wrong with the path"""
MOST_WITHOUT_SEARCH = 8
READ = names_in("families")
"""family -> what of the model can be read, besides its attention"""


def show_local_models() -> None:
    """A closed box; nothing is looked for before it is opened."""
    if is_at_this_machine():
        box(tr("Other models on this machine"), "local-models", _show, icon=":material/computer:")


def _show() -> None:
    st.text_input(tr("Path of a folder"), key=PATH, placeholder=tr("A folder with config.json"), on_change=_open_path)
    if problem := st.session_state.get(PROBLEM):
        st.warning(as_markdown(visible(tr_error(problem))), icon=":material/folder_off:")
    models = models_on_this_machine()
    st.caption(tr("In the Hugging Face cache, {count:,} that can be opened", count=len(models)))
    if len(models) > MOST_WITHOUT_SEARCH:
        wanted = st.text_input(tr("Find"), key=FIND).casefold()
        models = [model for model in models if wanted in f"{model.name} {model.kind}".casefold()]
    for model in models:
        about = f"{model.kind} · {model.size / 1e6:,.3g} MB · {tr(READ[model.family])}"
        label = f"**{as_markdown(visible(model.name))}**  \n:small[{as_markdown(visible(about))}]"
        st.button(label, key=f"local-{model.name}", on_click=_open, args=(model.name,), width="stretch")


def _open_path() -> None:
    """Before the page runs again: the folder is open, or what is wrong with it is said."""
    if typed := (st.session_state[PATH] or "").strip():
        _open(str(Path(typed).expanduser().absolute()))


def _open(name: str) -> None:
    if not is_at_this_machine():
        return
    st.session_state[PROBLEM] = None
    try:
        bring_model(name)
    except CheckpointError as error:
        st.session_state[PROBLEM] = error
    else:
        st.session_state[CHECKPOINT] = name
