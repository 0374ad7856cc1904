"""Puts the style sheet into the HTML page itself, so that it holds from the first frame and nothing moves later."""

from collections.abc import Awaitable, Callable
from pathlib import Path

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

STYLE = Path(__file__).with_name("style.css")
_UNUSED = (b"accept-encoding", b"if-none-match", b"if-modified-since")
"""request headers that would get a compressed answer, or none"""


async def add_style(request: Request, answer: Callable[[Request], Awaitable[Response]]) -> Response:
    """Starlette middleware: the answer, with the style sheet if it is an HTML page."""
    if "text/html" not in request.headers.get("accept", ""):
        return await answer(request)
    request.scope["headers"] = [(name, value) for name, value in request.scope["headers"] if name not in _UNUSED]
    response = await answer(request)
    if not response.headers.get("content-type", "").startswith("text/html"):
        return response
    body = b"".join([part async for part in response.body_iterator])
    # In the body, and so after Streamlit's own styles.
    style = f"<style>{STYLE.read_text(encoding='utf-8')}</style></body>".encode()
    return HTMLResponse(body.replace(b"</body>", style, 1), response.status_code, {"Cache-Control": "no-cache"})
