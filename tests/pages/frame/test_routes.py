"""Which addresses are open: asked of a real server, directly and through nginx as deploy/nginx.conf sets it up."""

import asyncio
import http.client
import os
import re
import resource
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, closing, suppress
from functools import cache
from pathlib import Path

import pytest
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect

from model.language import speaking, tr
from pages import PAGES
from pages.frame.server import routes
from pages.frame.server.html_page import MOVED
from pages.frame.server.open_files import RESERVED, has_room
from pages.text import languages
from tests.soak.client import Session
from tests.soak.proxy import ACCESS, ERRORS, balancing, nginx_program
from tests.soak.server import ROOT, Server

FILE_SIZE, FILES = 500_000, 16
"""bytes and number of the files that are sent"""


@pytest.fixture(scope="module")
def proxy() -> Iterator[socket.socket]:
    """What hears of each question that the server asks another machine."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(0)
        yield listening


@pytest.fixture(scope="module")
def server(proxy: socket.socket, saved_checkpoints: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """It listens to all, as behind nginx on another machine."""
    server = Server(tmp_path_factory.mktemp("server") / "log.txt", saved_checkpoints)
    address = f"http://127.0.0.1:{proxy.getsockname()[1]}"
    server.environment |= {"http_proxy": address, "https_proxy": address, "STREAMLIT_SERVER_ADDRESS": "0.0.0.0"}
    server.start()
    try:
        yield server
    finally:
        server.stop()


@pytest.fixture(scope="module")
def proxied(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[int, Path]]:
    """The port of nginx before the server, and its folder."""
    if nginx_program() is None:
        message = "needs nginx on the path"
        pytest.fail(message) if os.environ.get("CI") == "true" else pytest.skip(message)
    folder = tmp_path_factory.mktemp("nginx")
    with balancing(folder, [server]) as port:
        yield port, folder


@pytest.fixture(params=["direct", "nginx"])
def port(request: pytest.FixtureRequest, server: Server) -> int:
    return server.port if request.param == "direct" else request.getfixturevalue("proxied")[0]


def ask(port: int, method: str, path: str, body: bytes = b"", **headers: str) -> tuple[int, dict[str, str]]:
    """Status and headers of the answer; the path is sent as it is written."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    try:
        connection.request(method, path, body or None, headers)
        answer = connection.getresponse()
        answer.read()
        return answer.status, {name.lower(): value for name, value in answer.getheaders()}
    except (BrokenPipeError, ConnectionResetError):  # refused before all of it was sent
        return 499, {}
    finally:
        connection.close()


def test_the_server_asks_no_other_machine_for_its_address(server: Server, proxy: socket.socket) -> None:
    """Neither when it starts, listening to all, nor when a page of another host connects; a proxy would hear it."""
    with pytest.raises(InvalidStatus):
        connect(f"ws://127.0.0.1:{server.port}/_stcore/stream", origin="http://elsewhere.invalid", proxy=None)
    with pytest.raises(BlockingIOError):
        proxy.accept()


@cache
def framework_routes() -> set[tuple[str, str]]:
    """Path, with words for what varies, and protocol of all that Streamlit would answer."""
    code = (
        "from streamlit.runtime import Runtime\n"
        "from streamlit.starlette import App\n"
        "from streamlit import config\n"
        "for name in ('server.enableStaticServing', 'server.scriptHealthCheckEnabled', 'server.enableAgentApi'):\n"
        "    config.set_option(name, True)\n"
        f"app = App({str(ROOT / 'app.py')!r})\n"
        "for route in app._build_starlette_app().routes:\n"
        "    print('ROUTE', type(route).__name__, route.path)\n"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    rows = re.findall(r"^ROUTE (\w+) (.*)$", found.stdout, re.MULTILINE)
    paths = {(kind, re.sub(r"\{[^}]*\}", "word", path)) for kind, path in rows if kind != "Mount"}
    return {(path, "websocket" if kind == "WebSocketRoute" else "http") for kind, path in paths}


def session_id(socket: ClientConnection) -> str:
    message = BackMsg()
    message.rerun_script.query_string = ""
    socket.send(message.SerializeToString())
    while True:
        answer = ForwardMsg.FromString(socket.recv(60))
        if answer.WhichOneof("type") == "new_session":
            return answer.new_session.initialize.session_id


def test_nothing_can_be_uploaded_and_the_memory_stays(port: int, server: Server) -> None:
    with closing(Session(port)) as session:
        session.open()
        known = session_id(session.socket)
        token = re.search(r"_streamlit_xsrf=([^;]+)", ask(port, "GET", "/_stcore/health")[1].get("set-cookie", ""))
        headers = {"Content-Type": "multipart/form-data; boundary=edge", "X-Xsrftoken": token[1], "Cookie": token[0]}
        head = b'--edge\r\nContent-Disposition: form-data; name="f"; filename="f"\r\n\r\n'
        body = head + os.urandom(FILE_SIZE) + b"\r\n--edge--\r\n"
        before = server.megabytes()
        answers = [
            ask(port, "PUT", f"/_stcore/upload_file/{known}/{number}", body, **headers)[0] for number in range(FILES)
        ]
        assert all(400 <= status < 500 for status in answers), answers
        assert server.megabytes() - before < FILES * FILE_SIZE / 1e6 / 2


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "DELETE", "OPTIONS"])
def test_of_what_streamlit_answers_only_the_listed_routes_are_open(method: str, port: int) -> None:
    found = framework_routes()
    assert len(found) > 12, "of uploads, metrics, logins, components ..."
    for path, protocol in found:
        if protocol == "websocket":
            continue
        status, headers = ask(port, method, path)
        page = re.fullmatch(routes.PAGE.path, path)  # an address of one word is Streamlit's page, whatever it was
        if page and method == "GET":
            assert (status, headers["content-type"].split(";")[0]) == (200, "text/html"), path
        elif method == "GET" and routes.is_open("http", path):
            assert status in (200, 404), path
        else:
            assert 400 <= status < 500, (path, status)
        assert "metrics" not in path or status == 404


@pytest.mark.parametrize(
    "path",
    [
        "/_stcore/metrics",
        "/_stcore/%6detrics",
        "/static/../_stcore/metrics",
        "/static/%2e%2e/_stcore/metrics",
        "//_stcore/metrics",
        "/_stcore/metrics/",
        "/_stcore/health/../metrics",
        "/_stcore/script-health-check",
        "/_stcore/agent/openapi.json",
        "/_stcore/bidi-components/a/b",
        "/component/a/index.html",
        "/app/static/a",
        "/auth/login",
    ],
)
def test_no_spelling_of_a_closed_route_opens_it(path: str, port: int) -> None:
    for accept in ("*/*", "text/html"):
        assert 400 <= ask(port, "GET", path, Accept=accept)[0] < 500


@pytest.mark.parametrize(("accepts", "code"), [("de-AT,de;q=0.9,en;q=0.8", "de"), ("zh-CN", "zh"), ("xx", "en")])
def test_what_a_closed_route_says_is_in_the_language_of_the_browser(accepts: str, code: str) -> None:
    sent: list[dict] = []

    async def send(message: dict) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "method": "GET",
        "path": "/_stcore/metrics",
        "headers": [(b"accept-language", accepts.encode())],
    }
    asyncio.run(routes.OpenRoutes(None)(scope, None, send))
    with speaking(languages()[code]):
        assert sent[1]["body"].decode() == f"{tr('There is nothing at this address.')}\n"
    assert sent[0]["status"] == 404


def test_what_pages_ask_for_is_answered(port: int) -> None:
    names = [Path(page.path).stem for pages in PAGES.values() for page in pages]
    for name in ("", *names, *MOVED, "no-such-page"):
        status, headers = ask(port, "GET", f"/{name}?source=A+dog", Accept="text/html")
        assert status in (200, 307), name
        assert headers["x-content-type-options"] == "nosniff"
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/") as page:
        scripts = re.findall(r'(?:src|href)="\.(/static/[^"]+)"', page.read().decode())
    assert len(scripts) > 5
    for path in ("/_stcore/health", "/_stcore/host-config", "/favicon.png", *scripts):
        assert ask(port, "GET", path)[0] == ask(port, "HEAD", path)[0] == 200, path
        assert ask(port, "PUT", path, b"a")[0] in (403, 404, 405), path


def test_no_other_websocket_opens_and_a_message_that_no_page_sends_ends_its_own(port: int) -> None:
    with pytest.raises(InvalidStatus):
        connect(f"ws://127.0.0.1:{port}/_stcore/stream2").close()
    with connect(f"ws://127.0.0.1:{port}/_stcore/stream", subprotocols=["streamlit"], max_size=None) as socket:
        session_id(socket)
        socket.send(b"\0" * (routes.MOST_SENT + 1))
        with suppress(ConnectionClosed):
            for _ in socket:  # what was already on its way
                pass
        assert socket.close_code == 1009


def test_nginx_writes_no_text_of_a_visitor_to_its_logs(proxied: tuple[int, Path]) -> None:
    port, folder = proxied
    secret = "an-entirely-private-word"
    for path in ("/", "/what_if", "/_stcore/metrics", "/static/js/none.js", "/media/none.csv"):
        ask(port, "GET", f"{path}?source={secret}", Referer=f"http://127.0.0.1:{port}/?source={secret}")
    ask(port, "PUT", "/", secret.encode() * 100)
    asked = (folder / ACCESS).read_text("utf-8")
    assert '"GET /what_if" 200' in asked
    for path in folder.rglob("*"):
        if path.is_file():
            assert secret.encode() not in path.read_bytes(), path
    assert (folder / ERRORS).read_text("utf-8") == "", "an error would be written with the request"


def test_nginx_gives_one_address_a_part_of_the_room(proxied: tuple[int, Path]) -> None:
    with ExitStack() as stack:

        def arrive() -> None:
            for _ in range(101):
                stack.enter_context(
                    connect(f"ws://127.0.0.1:{proxied[0]}/_stcore/stream", subprotocols=["streamlit"], open_timeout=60)
                )

        with pytest.raises(InvalidStatus) as refused:
            arrive()
        assert refused.value.response.status_code == 429


def test_where_the_system_tells_no_limit_there_is_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "resource", None)
    assert has_room()


def test_silent_visitors_leave_room_and_the_health_check_tells(server: Server) -> None:
    """With far fewer open files than a system grants."""
    address, process = f"ws://127.0.0.1:{server.port}/_stcore/stream", server.process.pid
    before, (_, most) = server.complaints(), resource.prlimit(process, resource.RLIMIT_NOFILE)
    with ExitStack() as stack:
        here = stack.enter_context(closing(Session(server.port)))
        here.open()
        few = len(os.listdir(f"/proc/{process}/fd")) + RESERVED + 20
        stack.callback(resource.prlimit, process, resource.RLIMIT_NOFILE, (most, most))
        resource.prlimit(process, resource.RLIMIT_NOFILE, (few, most))

        def arrive() -> None:
            for _ in range(40):
                stack.enter_context(connect(address, subprotocols=["streamlit"]))

        with pytest.raises(InvalidStatus) as refused:
            arrive()
        assert refused.value.response.status_code == 503
        assert ask(server.port, "GET", "/_stcore/health")[0] == 503
        here.go("masks")
        assert here.problems() == []
        assert server.complaints() == before
    assert ask(server.port, "GET", "/_stcore/health")[0] == 200
