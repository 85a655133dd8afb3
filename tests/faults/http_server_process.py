"""The real server as a process that listens, and what of it can be seen from outside."""

from __future__ import annotations

import json
import os
import re
import select
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tests.faults import http_faulty_handlers
from tests.faults.http_raw_client import PATIENCE_SECONDS, Line

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

PROGRAM: Final = str(Path(http_faulty_handlers.__file__))
COMMAND: Final = ("-m", "mcpgen", "serve", PROGRAM, "--http", "127.0.0.1:0")
MEGABYTE: Final = 1024 * 1024

_LINE: Final = re.compile(r"mcpgen: serving (.+) at http://(.+):([0-9]+)(/.*)\n")


def _heed_interrupts() -> None:
    # A shell that starts tests in the background has them ignore SIGINT, and servers would inherit that.
    signal.signal(signal.SIGINT, signal.SIG_DFL)


class House:
    """A server that listens, as a process.

    Args:
        program: What Python is to run; by default our guests, with what is *given* to them.
        given: See `http_guests`.

    Attributes:
        port: Where it listens.
    """

    def __init__(self, program: Sequence[str] | None = None, **given: Any) -> None:
        argv = [sys.executable, *(program or (PROGRAM, json.dumps(given)))]
        pipes: Any = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        self.popen = subprocess.Popen(argv, bufsize=0, preexec_fn=_heed_interrupts, **pipes)  # noqa: PLW1509 (no threads)
        self._said = b""
        self._lines: list[Line] = []
        try:
            self.port = int(self._announcement()[3])
        except BaseException:
            self.kill()
            raise

    def _announcement(self) -> re.Match[str]:
        until = time.monotonic() + PATIENCE_SECONDS
        while True:
            found = _LINE.search(self._said.decode())
            if found is not None:
                return found
            self._hear(until)

    def _hear(self, until: float) -> None:
        assert self.popen.stderr is not None
        ready, _, _ = select.select([self.popen.stderr], [], [], max(0, until - time.monotonic()))
        assert ready, f"nothing more was said in time: {self._said!r}"
        data = os.read(self.popen.stderr.fileno(), 65536)
        assert data, f"the server has ended: {self._said!r}"
        self._said += data

    @property
    def said(self) -> str:
        """What it has printed as errors so far."""
        assert self.popen.stderr is not None
        while select.select([self.popen.stderr], [], [], 0)[0]:
            data = os.read(self.popen.stderr.fileno(), 65536)
            if not data:
                break
            self._said += data
        return self._said.decode()

    def line(self) -> Line:
        """Return a new connection."""
        made = Line(self.port)
        self._lines.append(made)
        return made

    def close_lines(self) -> None:
        """Close all connections."""
        for each in self._lines:
            each.close()
        self._lines.clear()

    def tell(self, number: int) -> None:
        """Send it a signal."""
        self.popen.send_signal(number)

    def end(self) -> tuple[int, str, float]:
        """Wait for its end; return the status, what it has said as errors, and how long it took."""
        begin = time.monotonic()
        assert self.popen.stderr is not None
        while select.select([self.popen.stderr], [], [], PATIENCE_SECONDS)[0]:
            data = os.read(self.popen.stderr.fileno(), 65536)
            if not data:
                break
            self._said += data
        status = self.popen.wait(PATIENCE_SECONDS)
        return status, self._said.decode(), time.monotonic() - begin

    def held(self, what: str = "VmRSS") -> int:
        """Return how many bytes of memory it holds."""
        status = Path(f"/proc/{self.popen.pid}/status").read_text(encoding="ascii")
        return int(status.partition(f"{what}:")[2].split()[0]) * 1024

    def descriptors(self) -> int:
        return len(os.listdir(f"/proc/{self.popen.pid}/fd"))  # noqa: PTH208 (a count, quickly)

    def holds(self, *lines: Line) -> int:
        """Return how many of these connections it has not closed, those that it has not taken yet included."""
        ports = {each.own_port for each in lines}
        found = 0
        for row in Path("/proc/net/tcp").read_text(encoding="ascii").splitlines()[1:]:
            _, local, remote, state, *_ = row.split()
            if int(local[-4:], 16) == self.port and int(remote[-4:], 16) in ports:
                found += state == "01"  # established
        return found

    def until(self, condition: Callable[[], object]) -> None:
        """Return when *condition* holds, of which nothing tells."""
        until = time.monotonic() + PATIENCE_SECONDS
        while not condition():
            assert time.monotonic() < until, "it does not come to be so"
            time.sleep(0.005)

    def kill(self) -> None:
        self.close_lines()
        self.popen.kill()
        self.popen.wait()
        for stream in (self.popen.stdout, self.popen.stderr):
            if stream is not None:
                stream.close()
