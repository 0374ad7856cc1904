"""Which model is open: at first the one that the app was started with, then whichever a link or a person chooses.

With `--local`, the person at this machine opens others that are on it (local_models.py).

The pages of Explore are one page in three forms. The form is that of the open model; who chooses another form, in the
menu or by its address, gets a model that has it.
"""

import streamlit as st

from model.checkpoints import store
from model.checkpoints.checkpoint import Checkpoint
from model.checkpoints.devices import available_devices
from model.language import tr
from model.needs import Need
from pages import Page, first_page_for
from pages.compute.runs import checkpoint_by_config, checkpoint_with, open_translator
from pages.frame.address.menu import HOME
from pages.frame.questions.opened_station import current_station
from pages.frame.server.command_line import is_at_this_machine
from viz.tokens import as_markdown

CHECKPOINT = "checkpoint"
"""key of the control that chooses the model, in the session and in the link"""
VISIT = "visit"
"""in the session: the open page, whether it is open for the first time, and all that have been open"""
SAID = "said-of-the-model"
"""in the session: sentences on the open model, each with the values of the session for which it is said"""
MASKS = ("<mask>", "[MASK]")
"""what hides a word in the texts of links and examples; each vocabulary has one of its own"""


def offered_checkpoints(key: str) -> dict[str, str]:
    """What the control `key` offers, with the name of each as visitors see it: the Hugging Face models that the
    app was started with or that the person at this machine has opened, every checkpoint of ours, but of the small ones
    of the studies the chosen one only."""
    asked, others = st.query_params.get(key), store.offered_models() if is_at_this_machine() else store.given_models()
    if asked in others:
        # A link that has the name with which the app was started.
        st.session_state.setdefault(key, asked)
    chosen = st.session_state.get(key) or asked
    of_study = [chosen] if store.is_of_study(chosen) else []
    return store.shown_names([*others, *store.available_checkpoints(), *of_study])


def opened_checkpoint() -> str:
    """The name of the model that this run shows, before its control is drawn."""
    return _chosen_checkpoint() or store.first_checkpoint()


def opened_device() -> str:
    """Where it runs."""
    return st.session_state.get("device") or available_devices()[0]


def open_or_say(checkpoint: str, device: str) -> tuple[Checkpoint | None, str]:
    """The model, and what is wrong with it in a sentence, if anything is."""
    try:
        return open_translator(checkpoint, device), ""
    except store.CheckpointError as error:
        return None, tr(store.shown_message(error))


def name_in_address() -> None:
    """On a first visit: put the model that the app was started with into the address; a lesson has one of its own."""
    nobody_chose = CHECKPOINT not in st.session_state and CHECKPOINT not in st.query_params
    if nobody_chose and store.given_models() and not current_station():
        st.query_params[CHECKPOINT] = store.shown_name(store.first_checkpoint())
        # Streamlit keeps the URL's first values beside the parameters; only another run takes the controls' from these.
        st.rerun()


def take_form(page: Page) -> None:
    """Before the controls are drawn, on a page of Explore that the open model cannot do: open one that can, where the
    person has chosen the page; else go to the page that is the form of the model."""
    if page.section != "Explore":
        return
    begins = CHECKPOINT not in st.session_state
    checkpoint, device = opened_checkpoint(), opened_device()
    opened, _ = open_or_say(checkpoint, device)
    if opened is None or set(page.needs) <= opened.features:
        return
    here = st.session_state.get(VISIT, ("",))[0]
    form = first_page_for(opened.features)
    nobody_chose_a_model = begins and not store.given_models() and not _chosen_checkpoint()
    if here not in ("", page.name) or nobody_chose_a_model:
        _open_for(page, checkpoint, device)
    elif form and (form.section == "Explore" or (begins and page is HOME)):
        if begins and page is not HOME:
            _say_form(page, form, checkpoint)
        # Controls that are there already keep their values, and Streamlit writes those itself.
        link = {key: text for key, text in st.query_params.to_dict().items() if key not in st.session_state}
        st.switch_page(form.path, query_params=link)


def what_is_said(page: Page) -> list[str]:
    """Of the model, on this page, for as long as it is true."""
    now = {"checkpoint": opened_checkpoint(), "source": st.session_state.get("source"), "page": page.name}
    st.session_state[SAID] = [
        (case, said) for case, said in st.session_state.get(SAID, ()) if case.items() <= now.items()
    ]
    return [said for _, said in st.session_state[SAID]]


def take_text(opened: Checkpoint | None, checkpoint: str) -> None:
    """Before the text is drawn: what hides a word in it becomes what the open model's vocabulary has for that.

    Where the vocabulary has nothing, the text stays; the page says which.
    """
    state = st.session_state
    text = state.get("source", st.query_params.get("source")) or ""
    if opened is None or not any(mask in text for mask in MASKS):
        return
    fills = {Need.MASKED_MODEL, Need.LOGITS} <= opened.features
    mask = opened.tokenizer.mask_token if fills else ""
    others = [other for other in MASKS if other in text and other != mask]
    if not others:
        return
    facts = {"other": others[0], "name": store.shown_name(checkpoint), "mask": mask}
    if mask:
        for other in others:
            text = text.replace(other, mask)
        said = tr("The text had {other}; {name} reads {mask} in its place, so the text has that now.", **facts)
    else:
        said = tr("The text stays as it is: {name} hides no words, and reads {other} like any other text.", **facts)
    _say(said, checkpoint=checkpoint, source=text)
    if not mask:
        return
    if "source" in state:
        state["source"] = text
    else:
        st.query_params["source"] = text
        st.rerun()


def _chosen_checkpoint() -> str | None:
    """What the person or the link has chosen; None: neither has, or what is not here."""
    asked = st.session_state.get(CHECKPOINT) or st.query_params.get(CHECKPOINT)
    return next((name for name, shown in offered_checkpoints(CHECKPOINT).items() if asked in (name, shown)), None)


def _open_for(page: Page, before: str, device: str) -> None:
    """Open a model that can do the page; one that was open before is named as what it replaces."""
    other = checkpoint_with(page.needs, device)
    if other is None:
        return
    st.session_state[CHECKPOINT] = other
    if VISIT in st.session_state:
        names = {"name": as_markdown(store.shown_name(other)), "before": as_markdown(store.shown_name(before))}
        changed = tr("{name} is open now: {before} cannot do what this page shows.", **names)
        st.toast(changed, icon=":material/swap_horiz:", duration="long")


def _say_form(page: Page, form: Page, checkpoint: str) -> None:
    facts = {"page": tr(page.title), "form": tr(form.title), "name": store.shown_name(checkpoint)}
    other = checkpoint_by_config(page.needs)
    said = tr("The address asks for “{page}”, which {name} does not do: this is “{form}”.", **facts)
    if other:
        opens = tr("Above, “{page}” opens the model {other}.", page=tr(page.title), other=store.shown_name(other))
        said = f"{said} {opens}"
    _say(said, checkpoint=checkpoint, page=form.name)


def _say(sentence: str, **case: str) -> None:
    """Let the page say this for as long as the session has these values."""
    st.session_state[SAID] = [one for one in st.session_state.get(SAID, []) if one[0] != case] + [(case, sentence)]
