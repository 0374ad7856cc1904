"""Sharing what is on screen: its link, a QR code, the code that shows it in a page of one's own, and a course."""

import html
import io
import os
from dataclasses import replace
from functools import partial
from ipaddress import ip_address
from urllib.parse import urlencode, urlsplit

import segno
import streamlit as st

from model.checkpoints.translator import Translator
from model.interventions.link import encode
from model.language import ENGLISH, language, tr
from model.run import Place, Request
from pages import Page
from pages.compute.trace_file import file_of
from pages.frame.course.course import DRAFT, EMBEDDING, add_step, step_of
from pages.site import FIRST, SHIPPED
from pages.widgets.canvas import component
from pages.widgets.controls import LONGEST_IN_LINK, texts_not_in_link

SITE_VARIABLE = "ATTENTION_EXPLORER_SITE"
MODULE = 5
"""pixels of a square of the QR code"""
FRAME_HEIGHT = 720
"""pixels of the view in a page of somebody else's"""


def share(page: Page, translator: Translator | None, request: Request, place: Place) -> None:
    """The contents of the dialog; arguments as of `show_bar`."""
    too_long = texts_not_in_link()
    lost = tr(
        "Opens this page with your settings, but not with your text: a link has room for {most:,} characters. "
        "After a reload the text is gone. This run's file keeps what the model read.",
        most=LONGEST_IN_LINK,
    )
    show_link(
        "share", tr("Link to this view"), lost if too_long else tr("Opens this page with your texts and settings.")
    )
    if too_long and translator:
        _offer_trace_file(translator, request)
    address = this_address()
    say_where_it_works(address)
    if translator and not too_long and (site := site_address(translator, request, place)):
        st.link_button(
            tr("In a web page that needs no server"),
            site,
            icon=":material/public:",
            help=tr("The same model, sentence, head and changes; the page computes everything itself."),
        )
    link, code, course = st.tabs([tr("QR code"), tr("In a page of your own"), tr("In a course")])
    with link:
        show_qr_code("qr", address, tr("Opens this view on a phone."))
    with code:
        st.markdown(tr("This view alone, without menu and bar, for a page or a learning platform that takes HTML:"))
        st.code(frame_of(address, page.title), language="html", wrap_lines=True)
    with course:
        _offer_course(page)


def show_link(key: str, name: str, promise: str, address: str = "") -> None:
    """A link, and a button that copies it, with a name for a screen reader and a sentence that says what it opens.

    Without an address it leads to what is on screen, which it follows.
    """
    component("share")(key=key, data={"name": name, "promise": promise, "address": address})


def say_where_it_works(address: str) -> None:
    """Where it leads nowhere from another machine or network: that, in a sentence."""
    if where := where_it_works(urlsplit(address).hostname or ""):
        st.info(where, icon=":material/info:")


def this_address() -> str:
    """The address of what is on screen, without what says how a page is embedded."""
    chosen = {name: text for name, text in st.query_params.to_dict().items() if name not in EMBEDDING}
    return f"{(st.context.url or '').partition('?')[0]}?{urlencode(chosen)}".rstrip("?")


def site_address(translator: Translator, request: Request, place: Place) -> str:
    """Where a static page shows the same run; empty if nobody has said where it is, or none has this model.

    ATTENTION_EXPLORER_SITE is the address of the folder that `make site` built, or of its page that translates.
    """
    site, file = os.environ.get(SITE_VARIABLE, ""), SHIPPED.get(translator.name)
    if urlsplit(site).scheme not in ("http", "https") or not file or (file != FIRST and not site.endswith("/")):
        return ""
    try:
        changes = encode(request.interventions)
    except ValueError:
        return ""  # too much for a link
    seen = {"source": request.source, "see": f"{place.kind}.{place.layer}.{place.head}"}
    if site.endswith("/") and (file != FIRST or language() is not ENGLISH):
        site += f"{file}.html" if language() is ENGLISH else f"{file}.{language().code}.html"
    return f"{site}?{urlencode(seen | ({'changes': changes} if changes else {}))}"


def where_it_works(host: str) -> str:
    """A sentence where the address leads nowhere from another machine, or from another network; else empty."""
    name = host.casefold().strip("[]").rstrip(".")
    try:
        address = ip_address(name)
    except ValueError:
        address = None
    if (
        name == "localhost"
        or name.endswith(".localhost")
        or (address and (address.is_loopback or address.is_unspecified))
    ):
        return tr(
            "This address works only on this machine. For others, serve the app to them (docs/deploy.md) and open "
            "it at the server's address."
        )
    if name.endswith(".local") or (name and "." not in name and ":" not in name) or (address and not address.is_global):
        return tr("This address works only in this network.")
    return ""


def qr_code(address: str) -> bytes | None:
    """A PNG of the QR code; None where the address is too long for one."""
    try:
        code = segno.make_qr(address, error="l")
    except segno.DataOverflowError:
        return None
    file = io.BytesIO()
    code.save(file, kind="png", scale=MODULE)
    return file.getvalue()


def frame_of(address: str, title: str) -> str:
    """HTML that shows the view in another page."""
    joined = "&" if urlsplit(address).query else "?"
    source, name = html.escape(f"{address}{joined}embed=true"), html.escape(f"Attention Explorer: {tr(title)}")
    return (
        f'<iframe src="{source}" title="{name}"\n        width="100%" height="{FRAME_HEIGHT}" style="border: 0" '
        'loading="lazy"></iframe>'
    )


def show_qr_code(key: str, address: str, caption: str) -> None:
    """The QR code of an address, and a button that saves it; or why there is none."""
    picture = qr_code(address)
    if picture is None:
        text = tr(
            "This link has no room in a QR code, which holds about {most:,} characters. Copy the link or shorten "
            "the text.",
            most=2900,
        )
        st.info(text, icon=":material/content_cut:")
        return
    st.image(picture, caption=caption, width="content")
    st.download_button(
        "PNG", data=picture, file_name="qr-code.png", mime="image/png", key=f"{key}-png", on_click="ignore"
    )


def _offer_trace_file(translator: Translator, request: Request) -> None:
    """What keeps a run whose text is too long for a link: its file, made when it is requested."""
    fitting = replace(request, source=translator.truncate(request.source)) if request.chat is None else request
    if fitting.target is not None:
        fitting = replace(fitting, target=translator.truncate(fitting.target))
    st.download_button(
        tr("Save this run"),
        data=partial(file_of, translator, fitting),
        file_name="run.npz",
        key="save-run",
        icon=":material/download:",
        on_click="ignore",
        help=tr("The app opens it when it is started with: streamlit run app.py -- --trace run.npz"),
    )


def _offer_course(page: Page) -> None:
    """A button that adds the view to the course that a teacher is putting together."""
    st.button(
        tr("Add to a course"), key="course-add-view", icon=":material/playlist_add:", on_click=_add_view, args=(page,)
    )
    if steps := st.session_state.get(DRAFT):
        if len(steps) == 1:
            text = tr("Your course has 1 step. Put it together at the end of the page Learn.")
        else:
            text = tr("Your course has {count} steps. Put it together at the end of the page Learn.", count=len(steps))
        st.caption(text)


def _add_view(page: Page) -> None:
    """Before the dialog runs again: the address still is that of the view."""
    add_step(step_of(page.name, st.query_params.to_dict()))
