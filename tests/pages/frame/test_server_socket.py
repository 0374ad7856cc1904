"""The socket that the server listens on."""

import asyncio
import socket

from pages.frame.server.server_socket import send_small_packets_at_once


async def nagle_is_off() -> bool:
    """Whether a server on a socket like Streamlit's, which names no protocol, sends small packets at once."""
    loop = asyncio.get_running_loop()
    found = loop.create_future()

    class Connection(asyncio.Protocol):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            found.set_result(transport.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) != 0)
            transport.close()

    send_small_packets_at_once(loop)
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        async with await loop.create_server(Connection, sock=listening):
            _, writer = await asyncio.open_connection(*listening.getsockname())
            writer.close()
            return await found


def test_connections_send_small_packets_at_once() -> None:
    assert asyncio.run(nagle_is_off())
