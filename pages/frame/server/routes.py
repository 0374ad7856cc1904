"""The server's routes that are open, in one list; every other one that Streamlit has is closed.

Streamlit answers more than the pages of this app use: uploads, which it keeps in memory, metrics, logins, an interface
for programs, files of components. deploy/nginx.conf has the same list, and a test holds the two together.
"""

import asyncio
import re
from dataclasses import dataclass

from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from streamlit import config

from model.language import later, speaking, tr
from pages.frame.server.open_files import has_room
from pages.text import best_language


@dataclass(frozen=True)
class Route:
    """One kind of address that a page asks for."""

    path: str
    """regular expression of the whole path, below the path that the app is served under"""
    why: str
    protocol: str = "http"


PAGE = Route(r"/[\w-]*", "a page; of a name that there is none of, Streamlit's page says so")
HEALTH = Route("/_stcore/health", "whether the server has room for visitors; a page asks it while it waits for one")
OPEN = (
    PAGE,
    Route(r"/[\w-]+/", "a page with a stroke too many, which redirects to the one without"),
    HEALTH,
    Route("/_stcore/host-config", "what a page may accept from the page around it: nothing"),
    Route("/_stcore/stream", "what a visitor chooses, and what is shown", "websocket"),
    Route(r"/static/[\w./-]+", "scripts, fonts and styles"),
    Route(r"/favicon\.png", "a picture, until a page has set its own"),
    Route(r"/media/[\w.-]+", "files to save, and pictures"),
)
METHODS = ("GET", "HEAD")
"""No page sends anything but by the websocket."""
MOST_SENT = 2_000_000
"""bytes of one message from a browser: all that a visitor has typed and chosen on a page takes a hundredth"""
FIRST_MESSAGE = 60.0
"""seconds in which a page that has opened its websocket asks to be drawn"""


def is_open(protocol: str, path: str, method: str = "GET") -> bool:
    """Whether a page may ask for this: `protocol` is "http" or "websocket", `path` below the app's own."""
    return any(route.protocol == protocol and re.fullmatch(route.path, path, re.ASCII) for route in OPEN) and (
        protocol != "http" or method in METHODS
    )


class OpenRoutes:
    """ASGI middleware that answers what no page asks for with 404, before anything of it is read.

    A websocket is refused while there is no room for its visitor, and closed if its page says nothing, or too much.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self.app(scope, receive, send)
            return
        path = _path_below_the_app(scope)
        if not is_open(scope["type"], path, scope.get("method", "")):
            await _answer(404, later("There is nothing at this address."), scope, receive, send)
        elif not has_room() and (scope["type"] == "websocket" or path == HEALTH.path):
            said = later("Too many visitors are connected. Try again in a minute.")
            await _answer(503, said, scope, receive, send)
        elif scope["type"] == "websocket":
            await self.app(scope, _Bounded(receive, send), send)
        else:
            if re.fullmatch(PAGE.path, path, re.ASCII):  # whatever Streamlit may have at an address of one word
                root = scope["path"][: len(scope["path"]) - len(path)]
                scope = scope | {"path": f"{root}/", "raw_path": f"{root}/".encode()}
            await self.app(scope, receive, send)


class _Bounded:
    """What comes from a browser, until it is too long, or the first message does not come: then it has left."""

    def __init__(self, receive: Receive, send: Send) -> None:
        self.receive, self.send = receive, send
        self.patience: float | None = None

    async def __call__(self) -> Message:
        try:
            message = await asyncio.wait_for(self.receive(), self.patience)
        except TimeoutError:
            return await self._close(1008)
        # Counted from when the connection is there.
        self.patience = FIRST_MESSAGE if message["type"] == "websocket.connect" else None
        if len(message.get("bytes") or message.get("text") or "") > MOST_SENT:
            return await self._close(1009)
        return message

    async def _close(self, code: int) -> Message:
        await self.send({"type": "websocket.close", "code": code})
        return {"type": "websocket.disconnect", "code": code}


def _path_below_the_app(scope: Scope) -> str:
    """The path without the one that the app is served under (`server.baseUrlPath`), or is mounted on."""
    base = (config.get_option("server.baseUrlPath") or "").strip("/")
    return scope["path"].removeprefix(scope.get("root_path", "")).removeprefix(f"/{base}" if base else "") or "/"


async def _answer(status: int, said: str, scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] == "websocket" and "websocket.http.response" not in scope.get("extensions", {}):
        await send({"type": "websocket.close", "code": 1013})
        return
    accepted = re.split("[,;]", Headers(scope=scope).get("accept-language", ""))
    with speaking(best_language(None, *accepted)):
        text = f"{tr(said)}\n"
    # Whoever sends a body that nobody reads must not go on with it.
    await PlainTextResponse(text, status, {"Connection": "close"})(scope, receive, send)
