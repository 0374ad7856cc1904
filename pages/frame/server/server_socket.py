"""The socket that the server listens on, and what the server must not ask of others."""

import asyncio
import socket
from contextlib import suppress
from typing import Any

from streamlit import net_util


def ask_no_other_machine() -> None:
    """Keep Streamlit from asking a service on the Internet which address this machine has.

    It would ask when a page of another host connects, and wait up to two seconds for an answer. At the start it would,
    too, before this code runs: there `serverAddress` in .streamlit/config.toml keeps it from that.
    """
    net_util.get_external_ip = lambda: None


def send_small_packets_at_once(loop: asyncio.AbstractEventLoop) -> None:
    """Turn Nagle's algorithm off for the sockets that `loop` will listen on, and so for their connections.

    It holds a small packet back until the previous one is acknowledged, which the browser's side delays by 40 ms; a
    first visit loads 120 small files. asyncio turns it off by itself, but only for sockets that name TCP as their
    protocol, and Streamlit's names none.
    """
    create_server = loop.create_server

    def listen(*arguments: Any, sock: socket.socket | None = None, **options: Any) -> Any:
        if sock is not None:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return create_server(*arguments, sock=sock, **options)

    # The event loop of another library, such as uvloop, may refuse the new method: it then stays as it is.
    with suppress(AttributeError):
        loop.create_server = listen
