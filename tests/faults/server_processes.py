"""The real server as a process, and a client at the far ends of its streams."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from mcpgen.generated import registry
from tests.faults import faulty_handlers
from tests.patience import PATIENCE_SECONDS

if TYPE_CHECKING:
    from collections.abc import Sequence


def _heed_interrupts() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)


class Process:
    """A server with `guests` as its handlers, and a client of some revision."""

    def __init__(self, revision: str, program: Sequence[str] = (str(Path(faulty_handlers.__file__)),)) -> None:
        env = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
        pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        # A shell that starts tests in the background has them ignore SIGINT, and servers would inherit that.
        pipes["preexec_fn"] = _heed_interrupts
        self.popen = subprocess.Popen([sys.executable, *program], bufsize=0, env=env, **pipes)
        streams = (self.popen.stdin, self.popen.stdout, self.popen.stderr)
        self.stdin, self.stdout, self.stderr = (0 if each is None else each.fileno() for each in streams)
        os.set_blocking(self.stdin, False)
        self.revision = revision
        self._read = b""
        self._lines: list[bytes] = []

    @property
    def meta(self) -> dict[str, Any]:
        """What each of its requests says about the client."""
        if registry.revision(self.revision).era == "handshake":
            return {}
        return {
            "io.modelcontextprotocol/protocolVersion": self.revision,
            "io.modelcontextprotocol/clientCapabilities": {},
        }

    def open(self) -> None:
        """Shake hands, if the revision does; in any case, see that the server is there."""
        if not self.meta:
            info = {"name": "c", "version": "1"}
            params = {"protocolVersion": self.revision, "capabilities": {}, "clientInfo": info}
            self.send({"jsonrpc": "2.0", "id": "h", "method": "initialize", "params": params})
            assert "result" in self.receive()
            self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        self.call(0, "echo", text="hello")
        assert 0 == self.receive()["id"]

    def request(self, identity: int, tool: str, **arguments: Any) -> bytes:
        """Return the line of a call."""
        params: dict[str, Any] = {"name": tool, "arguments": arguments}
        if self.meta:
            params["_meta"] = self.meta
        message = {"jsonrpc": "2.0", "id": identity, "method": "tools/call", "params": params}
        return msgspec.json.encode(message) + b"\n"

    def call(self, identity: int, tool: str, **arguments: Any) -> None:
        self.write(self.request(identity, tool, **arguments))

    def send(self, message: object) -> None:
        self.write(msgspec.json.encode(message) + b"\n")

    def write(self, data: bytes) -> None:
        """Write all of *data*; fail if the server does not read it."""
        rest, until = memoryview(data), time.monotonic() + PATIENCE_SECONDS
        while rest:
            assert select.select([], [self.stdin], [], until - time.monotonic())[1], "the server does not read"
            try:
                rest = rest[os.write(self.stdin, rest) :]
            except BlockingIOError:
                continue

    def receive(self) -> Any:
        """Return the next message."""
        return msgspec.json.decode(self.line())

    def line(self) -> bytes:
        """Return the next line; fail if there is none in time."""
        until = time.monotonic() + PATIENCE_SECONDS
        while not self._lines:
            assert select.select([self.stdout], [], [], until - time.monotonic())[0], "no answer in time"
            data = os.read(self.stdout, 1 << 20)
            assert data, f"the output has ended: {self.popen.stderr and self.popen.stderr.read()!r}"
            *self._lines, self._read = (self._read + data).split(b"\n")
        return self._lines.pop(0)

    def close_input(self) -> None:
        assert self.popen.stdin is not None
        self.popen.stdin.close()

    def end(self) -> tuple[int, bytes, str, float]:
        """Wait for its end; return the status, what was left on both outputs, and how long it took."""
        begin = time.monotonic()
        status = self.popen.wait(PATIENCE_SECONDS)
        took = time.monotonic() - begin
        assert self.popen.stdout is not None
        assert self.popen.stderr is not None
        return status, self._read + self.popen.stdout.read(), self.popen.stderr.read().decode(), took

    def held(self, what: str = "VmHWM") -> int:
        """Return how many bytes of memory it holds, or held at most."""
        status = Path(f"/proc/{self.popen.pid}/status").read_text(encoding="ascii")
        return int(status.partition(f"{what}:")[2].split()[0]) * 1024

    def descriptors(self) -> int:
        return len(list(Path(f"/proc/{self.popen.pid}/fd").iterdir()))

    def threads(self) -> int:
        return len(list(Path(f"/proc/{self.popen.pid}/task").iterdir()))

    def kill(self) -> None:
        self.popen.kill()
        self.popen.wait()
        for stream in (self.popen.stdin, self.popen.stdout, self.popen.stderr):
            if stream is not None:
                stream.close()
