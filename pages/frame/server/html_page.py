"""What the HTML page itself brings, before anything is drawn.

The style sheet, so that it holds from the first frame and nothing moves later. Light or dark as the visitor chose it,
before Streamlit asks. Of a server that is just starting,
Plotly: its script takes a browser more than half a second, which it has while the server imports torch. And the content
security policy, by which a browser calls no other machine, whatever a page might hold.
"""

import base64
import hashlib
import re
import sys
from collections.abc import Awaitable, Callable
from functools import cache
from pathlib import Path
from urllib.parse import urlencode

import streamlit
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from model.beside import read_beside
from model.language import tr

STYLE = Path(__file__).parents[1] / "style/style.css"
SCHEME = STYLE.with_name("scheme.js")
SCRIPTS = Path(streamlit.__file__).with_name("static") / "static/js"
_MOVED = read_beside(__file__, "moved")
MOVED = _MOVED["pages"]
"""an older address -> today's, below the root"""
# Inline styles, because Streamlit and Plotly write them; scripts from blobs, because that is how Streamlit loads those
# of components. Eval, because Plotly may compile with it, and because the browser tests, which run under this policy,
# wait by it: it opens no way to another host. The app may stand in a frame on any page (`?embed=true`), so nothing is
# said of its ancestors.
POLICY = {
    "default-src": "'self'",
    "script-src": "'self' blob: 'unsafe-eval'",
    "style-src": "'self' 'unsafe-inline'",
    "img-src": "'self' data: blob:",
    "font-src": "'self' data:",
    "connect-src": "'self'",
    "frame-src": "'none'",
    "object-src": "'none'",
    "base-uri": "'none'",
    "form-action": "'none'",
}
"""Content security policy: what a page may load, and from where. docs/deploy.md explains it."""
_HOST = re.compile(r"[\w.\-]+(:\d+)?|\[[\da-fA-F:.]+\](:\d+)?", re.ASCII)
_INLINE_SCRIPT = re.compile(r"<script(?![^>]*\ssrc=)[^>]*>(.*?)</script>", re.DOTALL)
_UNUSED = (b"accept-encoding", b"if-none-match", b"if-modified-since")
"""request headers that would get a compressed answer, or none"""


def has_started() -> bool:
    """Whether the sidebar, and with it torch, is imported; until then a visit waits for seconds."""
    return hasattr(sys.modules.get("pages.frame.sidebar.sidebar"), "shared_inputs")


def starting() -> str:
    """What a visitor reads meanwhile."""
    return tr("Starting the model …")


async def complete_page(request: Request, answer: Callable[[Request], Awaitable[Response]]) -> Response:
    """Starlette middleware: the answer with the policy; a page gets the style sheet, of a starting server also Plotly.

    The addresses in MOVED redirect to today's.
    """
    response = await _complete(request, answer)
    response.headers["Content-Security-Policy"] = security_policy(request.headers.get("host", ""))
    # A browser takes no file for another kind than the server says it is.
    response.headers["X-Content-Type-Options"] = "nosniff"
    return response


def security_policy(host: str) -> str:
    """POLICY as a header of the server's answers, with the page's inline scripts by their hashes, and with the
    request's host: some browsers do not count the page's own websocket among 'self'."""
    sockets = f" ws://{host} wss://{host}" if _HOST.fullmatch(host) else ""
    more = {"script-src": _script_hashes(), "connect-src": sockets}
    return "; ".join(f"{name} {sources}{more.get(name, '')}" for name, sources in POLICY.items())


@cache
def _script_hashes() -> str:
    page = (SCRIPTS.parents[1] / "index.html").read_text(encoding="utf-8")
    digests = (
        hashlib.sha256(script.encode()).digest()
        for script in _INLINE_SCRIPT.findall(page + _scheme() + _early_plotly())
    )
    return "".join(f" 'sha256-{base64.b64encode(digest).decode()}'" for digest in digests)


async def _complete(request: Request, answer: Callable[[Request], Awaitable[Response]]) -> Response:
    if "text/html" not in request.headers.get("accept", ""):
        return await answer(request)
    if (moved := _moved(request)) is not None:
        return RedirectResponse(moved)
    request.scope["headers"] = [(name, value) for name, value in request.scope["headers"] if name not in _UNUSED]
    response = await answer(request)
    if not response.headers.get("content-type", "").startswith("text/html"):
        return response
    body = b"".join([part async for part in response.body_iterator])
    # In the body, and so after Streamlit's own styles.
    style = f"<style>{STYLE.read_text(encoding='utf-8')}</style></body>".encode()
    early = _scheme() + ("" if has_started() else _early_plotly())
    body = body.replace(b"</head>", f"{early}</head>".encode(), 1)
    return HTMLResponse(body.replace(b"</body>", style, 1), response.status_code, {"Cache-Control": "no-cache"})


def _moved(request: Request) -> str | None:
    """Today's address of one that has changed; relative, because the app may stand below another path of a proxy."""
    page, query = request.url.path.rpartition("/")[2], dict(request.query_params)
    for moved in _MOVED["tabs"]:
        (old, key, tab), (new, parameter, title) = moved["older"], moved["today"]
        if page == old and query.get(key) == tab:
            del query[key]
            return f"./{new}?{urlencode(query | {parameter: title})}"
    return f"./{MOVED[page]}{request.url.query and '?'}{request.url.query}" if page in MOVED else None


@cache
def _scheme() -> str:
    """HTML that makes the page light or dark as the visitor chose it; Streamlit's own script comes after it."""
    return f"<script>{SCHEME.read_text(encoding='utf-8')}</script>"


@cache
def _early_plotly() -> str:
    """HTML that loads Streamlit's Plotly at once, and runs it as soon as the browser has nothing else to do."""
    script = next(SCRIPTS.glob("PlotlyChart.*.js"), None)
    if script is None:
        return ""
    address = f"./static/js/{script.name}"
    wait = "(self.requestIdleCallback ?? setTimeout)"
    return (
        f'<link rel="modulepreload" crossorigin href="{address}">'
        f'<script type="module">{wait}(() => import("{address}"))</script>'
    )
