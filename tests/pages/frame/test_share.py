"""Sharing: the address, where it works, its QR code, and the code that embeds it."""

import html
import re
from dataclasses import replace
from urllib.parse import parse_qs, urlsplit

import pytest

from model.checkpoints.store import DEFAULT_CHECKPOINT
from model.checkpoints.translator import Translator
from model.interventions import HeadGate, LiftCausalMask
from model.interventions.link import decode
from model.language import speaking
from model.run import Place, Request
from pages.frame.bar.share import SITE_VARIABLE, frame_of, qr_code, site_address, where_it_works
from pages.frame.course.course import DRAFT
from pages.text import languages


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "127.8.9.1", "::1", "[::1]", "0.0.0.0", "app.localhost"])
def test_an_address_of_this_machine_is_said_to_work_here_only(host: str) -> None:
    assert "only on this machine" in where_it_works(host)


@pytest.mark.parametrize(
    "host", ["192.168.1.7", "10.0.0.3", "172.16.4.4", "169.254.1.1", "fd00::1", "printer.local", "lab"]
)
def test_an_address_of_this_network_is_said_to_work_there_only(host: str) -> None:
    assert "only in this network" in where_it_works(host)


@pytest.mark.parametrize("host", ["example.org", "8.8.8.8", "2001:4860:4860::8888", "lab.example.org"])
def test_of_an_address_that_works_everywhere_nothing_is_said(host: str) -> None:
    assert where_it_works(host) == ""


def test_a_link_gets_a_qr_code_until_it_is_too_long_for_one() -> None:
    assert qr_code("https://example.org/masks?source=A%20dog.").startswith(b"\x89PNG")
    assert qr_code(f"https://example.org/?source={'x' * 2_900}") is not None
    assert qr_code(f"https://example.org/?source={'x' * 3_000}") is None


@pytest.mark.parametrize("query", ["", "?source=%22%3E%3Cscript%3E&layer=1", "?source=a%20dog"])
def test_the_code_for_another_page_is_one_frame_with_this_view_alone(query: str) -> None:
    address = f"https://example.org/masks{query}"
    code = frame_of(address, 'A "title" <b>')
    (source,) = re.findall(r'src="([^"]*)"', code)
    assert code.count("<") == 2
    parts = urlsplit(html.unescape(source))
    assert parse_qs(parts.query) == parse_qs(urlsplit(address).query) | {"embed": ["true"]}
    assert parts.path == "/masks"


def test_the_dialog_offers_link_qr_code_frame_and_course(open_app) -> None:
    app = open_app("pages/masks.py", layer="1")
    app.button(key="bar-share").click().run()
    assert any("embed=true" in element.value and "layer=1" in element.value for element in app.code)
    app.button(key="course-add-view").click().run()
    assert [step.inputs for step in app.session_state[DRAFT].values()] == [{"layer": "1"}]


def test_the_static_page_shows_the_same_run(translator: Translator, monkeypatch: pytest.MonkeyPatch) -> None:
    changes = (HeadGate(0.0, kind="cross", layer=1, head=0), LiftCausalMask())
    request, place = Request("A dog & a cat?", interventions=changes), Place("encoder_self", 1, 2)
    translator = replace(translator, name=DEFAULT_CHECKPOINT)
    monkeypatch.delenv(SITE_VARIABLE, raising=False)
    assert site_address(translator, request, place) == ""
    for wrong in ("javascript:alert(1)", "somewhere"):
        monkeypatch.setenv(SITE_VARIABLE, wrong)
        assert site_address(translator, request, place) == ""
    monkeypatch.setenv(SITE_VARIABLE, "https://example.org/page/")
    address = urlsplit(site_address(translator, request, place))
    asked = parse_qs(address.query)
    assert (address.netloc, address.path) == ("example.org", "/page/")
    assert (asked["source"], asked["see"]) == ([request.source], ["encoder_self.1.2"])
    assert decode(asked["changes"][0]) == changes
    assert "changes" not in site_address(translator, Request("A dog."), place)
    assert site_address(replace(translator, name="another"), request, place) == ""
    with speaking(languages()["de"]):
        assert urlsplit(site_address(translator, request, place)).path == "/page/index.de.html"


@pytest.mark.parametrize(("code", "file"), [("en", "continue.html"), ("zh", "continue.zh.html")])
def test_a_language_model_is_shown_by_the_page_that_continues_a_text(
    code: str, file: str, translator: Translator, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown, place = replace(translator, name="everyday-lm"), Place("decoder_self", 1, 2)
    monkeypatch.setenv(SITE_VARIABLE, "https://example.org/page/")
    with speaking(languages()[code]):
        address = urlsplit(site_address(shown, Request("Once upon a time"), place))
    assert address.path == f"/page/{file}"
    assert parse_qs(address.query) == {"source": ["Once upon a time"], "see": ["decoder_self.1.2"]}
    # The address of one page alone says nothing of another.
    monkeypatch.setenv(SITE_VARIABLE, "https://example.org/page/index.html")
    assert site_address(shown, Request("Once upon a time"), place) == ""


def test_the_dialog_leads_to_the_static_page_only_where_the_operator_says_so(open_app, monkeypatch) -> None:
    for site, offered in (("", 0), ("https://example.org/", 1)):
        monkeypatch.setenv(SITE_VARIABLE, site)
        app = open_app("pages/masks.py")
        app.button(key="bar-share").click().run()
        assert len(app.get("link_button")) == offered


def test_a_text_that_is_too_long_for_a_qr_code_gets_a_sentence(open_app) -> None:
    app = open_app("pages/masks.py", source="größte ä ö ü " * 150)
    app.button(key="bar-share").click().run()
    assert any("no room in a QR code" in element.value for element in app.info)
