"""The HTML page: its style sheet, and the script that it loads early."""

import base64
import hashlib
import re

import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.base import BaseHTTPMiddleware
from starlette.responses import HTMLResponse, PlainTextResponse
from starlette.routing import Route
from starlette.testclient import TestClient

from pages.frame.server import html_page
from pages.frame.server.html_page import POLICY, SCRIPTS, STYLE, complete_page, security_policy

PAGE = "<html><head></head><body></body></html>"


def test_no_selector_makes_a_browser_style_the_whole_page_again() -> None:
    """A sibling beside :has() does, what holds the whole page, and any element at all, unless a key says where.

    Plotly draws hundreds of labels one by one.
    """
    sheets = [path.read_text("utf-8") for path in STYLE.parent.glob("*.css")]
    rules = re.sub(r"/\*.*?\*/", "", "".join(sheets), flags=re.DOTALL)
    selectors = re.findall(r"[^{};]*:has\([^{]*(?={)", rules)
    assert len(selectors) > 5
    page = r"(?<![\w-])(html|body|:root)(?![\w-])|\.stApp\b|\"stApp\""
    assert [each for each in selectors if "~" in each or re.search(page, each.partition(":has(")[0])] == []
    beside = [one for each in selectors for one in re.findall(r"(\S+) *[>+]? +:has\(", each)]
    assert [one for one in beside if "st-key-" not in one] == []


@pytest.mark.parametrize("started", [False, True])
def test_a_page_has_the_style_sheet_and_of_a_starting_server_plotly_and_other_answers_stay_as_they_are(
    started: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(html_page, "has_started", lambda: started)
    routes = [Route("/", lambda _: HTMLResponse(PAGE)), Route("/text", lambda _: PlainTextResponse(PAGE))]
    client = TestClient(Starlette(routes=routes, middleware=[Middleware(BaseHTTPMiddleware, dispatch=complete_page)]))
    page = client.get("/", headers={"accept": "text/html"}).text
    head, _, body = page.partition("</head>")
    assert f"<style>{STYLE.read_text('utf-8')}</style></body>" in body
    addresses = re.findall(r'["(]\./static/js/([^"]+)"', head)
    assert len(addresses) == (0 if started else 2)
    for name in addresses:
        assert (SCRIPTS / name).stat().st_size > 1_000_000, "Plotly"
    assert client.get("/text", headers={"accept": "text/html"}).text == PAGE
    assert client.get("/").text == PAGE, "asked for by no browser"


@pytest.mark.parametrize(
    ("tried", "right"),
    [
        ("translate", ""),
        ("how_it_is_known", "verification"),
        ("said_and_measured", "often_told_wrong"),
        ("common_claims", "often_told_wrong"),
    ],
)
def test_another_address_of_a_page_leads_to_its_own_and_keeps_what_it_asks_for(tried: str, right: str) -> None:
    routes = [Route("/{path:path}", lambda request: HTMLResponse(f"<body>{request.url}</body>"))]
    client = TestClient(Starlette(routes=routes, middleware=[Middleware(BaseHTTPMiddleware, dispatch=complete_page)]))
    for folder in ("/", "/folder/"):
        found = client.get(f"{folder}{tried}?source=A%20dog&head=1", headers={"accept": "text/html"})
        assert found.url.path == f"{folder}{right}"
        assert dict(found.url.params) == {"source": "A dog", "head": "1"}


@pytest.mark.parametrize(
    ("page", "tab", "today"),
    [
        (
            "model_card",
            {"card": "Is attention an explanation?"},
            ("gradients", {"part": "Other weights, same output?"}),
        ),
        ("model_card", {"card": "Value zeroing"}, ("gradients", {"part": "Value zeroing"})),
        ("model_card", {"card": "The paper's Table 3"}, ("paper", {"paper": "The paper's Table 3"})),
        ("paper", {"paper": "Often told wrong"}, ("often_told_wrong", {"said": "Often told wrong"})),
        ("common_claims", {"said": "The paper's results"}, ("paper", {"paper": "The paper's results"})),
        ("model_card", {"card": "Scores"}, ("model_card", {"card": "Scores"})),
        ("model_card", {"said": "Often told wrong"}, ("model_card", {"said": "Often told wrong"})),
    ],
)
def test_a_tab_that_stands_on_another_page_today_is_opened_there(page: str, tab: dict, today: tuple[str, dict]) -> None:
    routes = [Route("/{path:path}", lambda request: HTMLResponse(f"<body>{request.url}</body>"))]
    client = TestClient(Starlette(routes=routes, middleware=[Middleware(BaseHTTPMiddleware, dispatch=complete_page)]))
    query = {"source": "A dog & a cat"}
    found = client.get(f"/folder/{page}", params=query | tab, headers={"accept": "text/html"})
    assert found.url.path == f"/folder/{today[0]}"
    assert dict(found.url.params) == query | today[1]


@pytest.mark.parametrize("path", ["/", "/text", "/missing", "/translate"])
@pytest.mark.parametrize("accept", ["text/html", "*/*"])
def test_every_answer_has_the_content_security_policy(path: str, accept: str) -> None:
    routes = [Route("/", lambda _: HTMLResponse(PAGE)), Route("/text", lambda _: PlainTextResponse(PAGE))]
    client = TestClient(Starlette(routes=routes, middleware=[Middleware(BaseHTTPMiddleware, dispatch=complete_page)]))
    answer = client.get(path, headers={"accept": accept}, follow_redirects=False)
    assert answer.headers["content-security-policy"] == security_policy("testserver")


def test_the_policy_names_no_other_host_and_no_host_can_add_to_it() -> None:
    for host in ("explorer.example:8501", "[::1]:8501", "", "a; img-src *", "a b", "a,b", "*"):
        policy = dict(part.split(" ", 1) for part in security_policy(host).split("; "))
        assert policy.keys() == POLICY.keys()
        assert policy["img-src"] == "'self' data: blob:"
        assert policy["connect-src"].split()[1:] in ([], [f"ws://{host}", f"wss://{host}"])
        assert "'unsafe-inline'" not in policy["script-src"]


def test_the_policy_allows_the_inline_scripts_of_the_page_and_no_other() -> None:
    served = (SCRIPTS.parents[1] / "index.html").read_text("utf-8") + html_page._scheme() + html_page._early_plotly()
    inline = [script for script in re.findall(r"<script[^>]*>([^<]*)</script>", served) if script.strip()]
    hashes = {base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in inline}
    assert len(hashes) == 3
    assert set(re.findall(r"'sha256-([^']+)'", security_policy(""))) == hashes
