"""A Redis server of its own for tests: on loopback, at a free port, stopped by its process id."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import pytest

from tests.patience import PATIENCE_SECONDS

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

_PROGRAM: Final = shutil.which("redis-server") or shutil.which("valkey-server")

needs_redis = pytest.mark.skipif(
    _PROGRAM is None, reason="redis-server is a program of the system (apt-get install redis-server), and not here"
)


class RedisServer:
    """A running server.

    Attributes:
        port: Where it listens.
        url: What clients connect to.
    """

    def __init__(self, folder: Path, *options: str) -> None:
        self.port: int = _free_port()
        self.url: str = f"redis://127.0.0.1:{self.port}"
        self._folder = folder
        self._options = options
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    def start(self) -> None:
        """Start it, with nothing in it."""
        assert _PROGRAM
        own = ["--port", str(self.port), "--bind", "127.0.0.1", "--save", "", "--dir", str(self._folder)]
        self._process = subprocess.Popen([_PROGRAM, *own, *self._options], stdout=subprocess.DEVNULL)
        until = time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
            except OSError:
                assert time.monotonic() < until
                time.sleep(0.01)
            else:
                return

    def stop(self) -> None:
        """Kill it, as a machine that fails would."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    @contextmanager
    def paused(self) -> Generator[None]:
        """Let it do nothing within the block; its connections stay open."""
        assert self._process
        os.kill(self._process.pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(self._process.pid, signal.SIGCONT)

    def command(self, *words: str) -> None:
        """Have it carry out a command."""
        parts = "".join(f"${len(each.encode())}\r\n{each}\r\n" for each in words)
        with socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE_SECONDS) as connection:
            connection.sendall(f"*{len(words)}\r\n{parts}".encode())
            assert not connection.recv(1000).startswith(b"-")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextmanager
def redis_server(folder: Path, *options: str) -> Generator[RedisServer]:
    """Run a server within the block."""
    server = RedisServer(folder, *options)
    try:
        yield server
    finally:
        server.stop()
