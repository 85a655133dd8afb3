"""A TCP proxy that gives each new connection to the next of several servers, which see the client's address."""

from __future__ import annotations

import socket
import threading
from contextlib import contextmanager, suppress
from itertools import cycle
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence


def _pump(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
    for each in (source, target):
        with suppress(OSError):
            each.shutdown(socket.SHUT_RDWR)


@contextmanager
def connection_proxy(ports: Sequence[int]) -> Generator[int]:
    """Forward connections to *ports*, one after the other, within the block; yield the port of the proxy."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        connections: list[socket.socket] = []

        def accept() -> None:
            for port in cycle(ports):
                try:
                    client, (address, _) = listener.accept()
                except OSError:
                    return
                try:
                    server = socket.create_connection(("127.0.0.1", port), source_address=(address, 0))
                except OSError:
                    client.close()
                    continue
                connections.extend((client, server))
                for pair in ((client, server), (server, client)):
                    threading.Thread(target=_pump, args=pair, daemon=True).start()

        accepting = threading.Thread(target=accept, daemon=True)
        accepting.start()
        try:
            yield listener.getsockname()[1]
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            accepting.join()
            for each in connections:
                with suppress(OSError):
                    each.close()
