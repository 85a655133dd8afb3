"""A Redis server of its own for tests: on loopback, at a free port, stopped by its process id.

All clients are a user with the rights that the guide names, and no others.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from tests.patience import PATIENCE_SECONDS

if TYPE_CHECKING:
    from collections.abc import Generator

_NAMED: Final = os.environ.get("MCPGEN_REDIS_SERVER")  # such as a path of valkey-server
_PROGRAM: Final = shutil.which(_NAMED) if _NAMED else shutil.which("redis-server") or shutil.which("valkey-server")

_GUIDE: Final = Path(__file__).parents[2] / "docs" / "guide" / "many-workers.md"


def rights() -> tuple[list[str], list[str]]:
    """Return the rules of the guide for an ACL user: those of a worker, and what a `RedisTaskStore` needs, too."""
    page = _GUIDE.read_text(encoding="utf-8")
    found = re.search(r"These ACL rules .*?`(.*?)`.*?`RedisTaskStore` needs these, too: `(.*?)`", page, re.DOTALL)
    assert found
    return found[1].split(), found[2].split()


def _libraries(program: str) -> str:
    """Return what is linked to *program*."""
    ldd = shutil.which("ldd")
    return subprocess.run([ldd, program], check=False, capture_output=True, text=True).stdout if ldd else ""


needs_redis = pytest.mark.skipif(
    _PROGRAM is None, reason="redis-server is a program of the system (apt-get install redis-server), and not here"
)

needs_tls = pytest.mark.skipif(
    _PROGRAM is None or "libssl" not in _libraries(_PROGRAM),
    reason="redis-server was built without TLS, or is not here",
)


class RedisServer:
    """A running server.

    Attributes:
        port: Where it listens.
        url: What clients connect to, as a user with the rights that the guide names.
        admin_url: What a test connects to that looks into the server.
    """

    def __init__(self, folder: Path, *options: str) -> None:
        self.port: int = free_port()
        self.url: str = f"redis://worker:secret@127.0.0.1:{self.port}"
        self.admin_url: str = f"redis://127.0.0.1:{self.port}"
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
                break
        of_workers, of_tasks = rights()
        self.command("ACL", "SETUSER", "worker", "on", ">secret", *of_workers, *of_tasks)

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


def free_port() -> int:
    """Return a port at which nothing listens."""
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
