"""What the HTML page itself brings, before anything is drawn.

The style sheet, so that it holds from the first frame and nothing moves later. And, of a server that is just starting,
Plotly: its script takes a browser more than half a second, which it has while the server imports torch.
"""

import sys
from collections.abc import Awaitable, Callable
from functools import cache
from pathlib import Path

import streamlit
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

STYLE = Path(__file__).with_name("style.css")
SCRIPTS = Path(streamlit.__file__).with_name("static") / "static/js"
MOVED = {"translate": "", "how_it_is_known": "verification"}
"""addresses that a reader may guess, or know from earlier versions -> today's, below the root"""
_UNUSED = (b"accept-encoding", b"if-none-match", b"if-modified-since")
"""request headers that would get a compressed answer, or none"""


def has_started() -> bool:
    """Whether the sidebar, and with it torch, is imported; until then a visit waits for seconds."""
    return hasattr(sys.modules.get("pages.frame.sidebar"), "shared_inputs")


async def complete_page(request: Request, answer: Callable[[Request], Awaitable[Response]]) -> Response:
    """Starlette middleware: the answer; an HTML page gets the style sheet and, while the server starts, Plotly.

    The addresses in MOVED redirect to today's.
    """
    if "text/html" not in request.headers.get("accept", ""):
        return await answer(request)
    if (moved := MOVED.get(request.url.path.rpartition("/")[2])) is not None:
        # Relative, because behind a proxy the app may stand below another path.
        query = f"?{request.url.query}" if request.url.query else ""
        return RedirectResponse(f"./{moved}{query}")
    request.scope["headers"] = [(name, value) for name, value in request.scope["headers"] if name not in _UNUSED]
    response = await answer(request)
    if not response.headers.get("content-type", "").startswith("text/html"):
        return response
    body = b"".join([part async for part in response.body_iterator])
    # In the body, and so after Streamlit's own styles.
    style = f"<style>{STYLE.read_text(encoding='utf-8')}</style></body>".encode()
    if not has_started():
        body = body.replace(b"</head>", f"{_early_plotly()}</head>".encode(), 1)
    return HTMLResponse(body.replace(b"</body>", style, 1), response.status_code, {"Cache-Control": "no-cache"})


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
