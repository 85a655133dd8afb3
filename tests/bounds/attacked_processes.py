"""The attacked processes, an honest client beside the attackers, and what both show of an attack."""

from __future__ import annotations

import json
import os
import re
import select
import signal
import sys
import threading
import time
from collections import deque
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from mcpgen import HttpLimits, Limits, TaskLimits
from tests.faults.http_raw_client import Closed, Line, called
from tests.faults.http_server_process import House
from tests.faults.server_processes import Process
from tests.patience import PATIENCE_SECONDS

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from tests.faults.http_raw_client import Reply

MIB: Final = 1024 * 1024
SERVER: Final = str(Path(__file__).with_name("attacked_server.py"))
# `python -m tests.bounds --python PATH` attacks what another interpreter has installed.
PYTHON: Final = os.environ.get("MCPGEN_ATTACKED_PYTHON", sys.executable)
# The helpers of tests/faults start this interpreter, which becomes the other one.
_BECOME: Final = "import os, sys; os.environ['MCPGEN_ATTACKED'] = sys.argv[1]; os.execv(sys.argv[2], sys.argv[2:])"
# With `MCPGEN_WORKERS=4`, as in `nox -s workers`, each server that listens is so many workers, which get connections in
# turn.
WORKERS: Final = int(os.environ.get("MCPGEN_WORKERS", "1"))
_RUN_WORKERS: Final = (
    "import sys; sys.path.insert(0, sys.argv[1]); from tests.harness import several_workers; "
    "sys.exit(several_workers.run([sys.executable, *sys.argv[3:]], int(sys.argv[2]), is_graceful=False))"
)
# An honest client has another address than the attackers, as clients of public servers do.
HONEST: Final = "127.0.0.2"
_PACE_SECONDS: Final = 0.05
_SAMPLE_SECONDS: Final = 0.02
# A process that holds as much is killed, before the machine suffers: the attack has succeeded.
_HARMFUL_BYTES: Final = 4096 * MIB

STORE: Final = {f"max_{each}{share}" for each in ("tasks", "outcome_bytes") for share in ("", "_per_principal")}
SETTINGS: Final = {each for limits in (Limits, HttpLimits, TaskLimits) for each in limits.__struct_fields__} | STORE


def split(kind: str, **limits: int) -> dict[str, dict[str, int]]:
    """Return *limits* of a *kind* as each of several workers has them, which one client can then fill; none for one."""
    return {} if WORKERS == 1 else {kind: {name: value // WORKERS for name, value in limits.items()}}


def names_a_limit(text: object) -> bool:
    """Return whether an error names a setting that exists."""
    return bool(SETTINGS & set(re.findall(r"\w+", str(text))))


def command(given: dict[str, Any], *arguments: str) -> tuple[str, ...]:
    """Return the arguments of a Python that becomes the attacked one."""
    return ("-c", _BECOME, json.dumps(given), PYTHON, *arguments)


class Http(House):
    """A server that listens: by `mcpgen serve`, or with bounds of its application (``http``)."""

    def __init__(self, **given: Any) -> None:
        serve = (SERVER,) if "http" in given else ("-m", "mcpgen", "serve", SERVER, "--http", "127.0.0.1:0")
        program = command(given, *serve)
        if WORKERS > 1:
            program = ("-c", _RUN_WORKERS, str(Path(__file__).parents[2]), str(WORKERS), *program)
        super().__init__(program)
        found = re.search(r"^workers: ([0-9 ]+)$", self._said.decode(), re.MULTILINE)
        self.pids = [self.popen.pid] if found is None else [int(each) for each in found[1].split()]

    def kill(self) -> None:
        if WORKERS > 1:  # it ends the workers first
            self.close_lines()
            self.popen.terminate()
            self.popen.wait(PATIENCE_SECONDS)
        super().kill()

    def line(self, receive_bytes: int | None = None, source: str | None = None) -> Line:
        """Return a new connection, from another address than this one if *source* says so."""
        made = Line(self.port, receive_bytes, source)
        self._lines.append(made)
        return made

    def ask(self, data: bytes, source: str | None = None) -> Reply:
        """Return the response to one request on a connection of its own."""
        line = Line(self.port, source=source)
        try:
            line.send(data)
            return line.reply()
        except (OSError, Closed) as error:
            raise AssertionError(f"no answer: {error!r}") from error
        finally:
            line.close()

    def call(self, tool: str, source: str | None = None, **arguments: Any) -> str:
        """Return the text of a tool's result."""
        reply = self.ask(called(tool, **arguments), source).json
        assert "result" in reply, reply
        return str(reply["result"]["content"][0]["text"])

    def abandon(self, data: bytes) -> None:
        """Send a request, and hang up once the server has read it."""
        line = Line(self.port)
        line.send(data)
        line.socket.shutdown(1)
        line.close()

    def drain(self) -> None:
        """Read what it logs, so that it can go on."""
        _ = self.said

    def alive(self, source: str | None = HONEST) -> int:
        """Return how many handlers of `wait` are alive."""
        return int(self.call("standing", source).split()[0])


class Stdio(Process):
    """A server on pipes, whose output is read all the time."""

    def __init__(self, revision: str, *, is_read: bool = True, **given: Any) -> None:
        super().__init__(revision, command(given, SERVER))
        self.lines: deque[bytes] = deque()
        self._more = threading.Condition()
        self._reader = threading.Thread(target=self._read_all, daemon=True)
        if is_read:
            self._reader.start()

    def _read_all(self) -> None:
        rest: list[bytes] = []
        while data := os.read(self.stdout, 1 << 20):
            first, *others = data.split(b"\n")
            rest.append(first)
            for each in others:
                with self._more:
                    self.lines.append(b"".join(rest))
                    self._more.notify()
                rest = [each]

    def line(self) -> bytes:
        if not self._reader.is_alive() and not self.lines:
            return super().line()
        with self._more:
            assert self._more.wait_for(lambda: self.lines, PATIENCE_SECONDS), "no answer in time"
            return self.lines.popleft()

    def answers(self, count: int) -> list[Any]:
        """Return the next *count* messages."""
        return [self.receive() for _ in range(count)]

    def drain(self) -> None:
        while select.select([self.stderr], [], [], 0)[0] and os.read(self.stderr, 65536):
            pass

    def kill(self) -> None:
        self.popen.kill()
        if self._reader.is_alive():
            self._reader.join(PATIENCE_SECONDS)
        super().kill()


def proc(pid: int, name: str) -> int:
    """Return a number of ``/proc/PID/status``; memory is in kB there."""
    return int(Path(f"/proc/{pid}/status").read_text(encoding="ascii").partition(f"{name}:")[2].split()[0])


def kept_bytes(process: Http | Stdio) -> int:
    """Return how many bytes a server holds now: resident memory, which its allocator may keep for a while."""
    return proc(process.popen.pid, "VmRSS") * 1024


class Seen:
    """What was seen of a process, or of several workers, during an attack.

    Attributes:
        start_bytes, peak_bytes, end_bytes: Resident memory, of the worker that has the most.
        grown: How far its peak was above the start.
        kept: How far its end is above the start.
        threads, descriptors: The most that it had.
        stall_seconds: The longest time that the honest client waited for an answer; None without one.
        answered, lost: Calls of the honest client.
    """

    def __init__(self, *pids: int) -> None:
        self.pids = pids
        for each in pids:
            Path(f"/proc/{each}/clear_refs").write_text("5", encoding="ascii")  # the peak counts from here
        self._starts = [proc(each, "VmRSS") * 1024 for each in pids]
        self.start_bytes = self.end_bytes = self.peak_bytes = max(self._starts)
        self.grown = self.kept = 0
        self.threads = self.descriptors = self.answered = self.lost = 0
        self.stall_seconds: float | None = None
        self.seconds = 0.0
        self.losses: list[str] = []

    def sample(self) -> None:
        peaks = [proc(each, "VmHWM") * 1024 for each in self.pids]
        ends = [proc(each, "VmRSS") * 1024 for each in self.pids]
        self.peak_bytes, self.end_bytes = max(self.peak_bytes, *peaks), max(ends)
        self.grown = max(self.grown, *(peak - start for peak, start in zip(peaks, self._starts, strict=True)))
        self.kept = max(end - start for end, start in zip(ends, self._starts, strict=True))
        for each in self.pids:
            self.threads = max(self.threads, proc(each, "Threads"))
            self.descriptors = max(self.descriptors, len(os.listdir(f"/proc/{each}/fd")))  # noqa: PTH208 (a count)

    def figures(self) -> dict[str, float | None]:
        return {
            "start MiB": round(self.start_bytes / MIB),
            "peak MiB": round(self.peak_bytes / MIB),
            "end MiB": round(self.end_bytes / MIB),
            "threads": self.threads,
            "descriptors": self.descriptors,
            "longest stall s": None if self.stall_seconds is None else round(self.stall_seconds, 2),
            "honest calls": self.answered,
            "lost": self.lost,
            "seconds": round(self.seconds, 1),
        }


@contextmanager
def watched(process: Any, *, honest: bool = True, drain: Callable[[], None] | None = None) -> Generator[Seen]:
    """Sample *process* within the block, beside an honest client if it listens."""
    seen, over = Seen(*getattr(process, "pids", [process.popen.pid])), threading.Event()
    threads = [threading.Thread(target=_sample, args=(process, seen, over, drain or getattr(process, "drain", None)))]
    if honest and isinstance(process, Http):
        threads.append(threading.Thread(target=be_honest, args=(process.port, seen, over)))
    begin = time.monotonic()
    for each in threads:
        each.start()
    try:
        yield seen
    finally:
        over.set()
        for each in threads:
            each.join(2 * PATIENCE_SECONDS)
        seen.seconds = time.monotonic() - begin
        with suppress(OSError, ValueError, IndexError):  # it may have ended
            seen.sample()


def _sample(process: Any, seen: Seen, over: threading.Event, drain: Callable[[], None] | None) -> None:
    while not over.wait(_SAMPLE_SECONDS):
        try:
            seen.sample()
            if seen.end_bytes > _HARMFUL_BYTES:
                os.kill(process.popen.pid, signal.SIGKILL)
        except (OSError, ValueError, IndexError):  # it has ended
            return
        if drain is not None:
            drain()


def be_honest(port: int, seen: Seen, over: threading.Event, waits: list[float] | None = None) -> None:
    """Call a tool twenty times a second, on new and on used connections, and count what comes of it."""
    line, number = None, 0
    while not over.wait(_PACE_SECONDS):
        begin = time.monotonic()
        number += 1
        try:
            if line is None or number % 10 == 0:
                if line is not None:
                    line.close()
                line = Line(port, source=HONEST)
            line.send(called("echo", number, text=f"{number}"))
            reply = line.reply()
            served = reply.status == 200 and reply.json["result"]["content"][0]["text"] == f"{number}"
            problem = f"{reply.status} {reply.body[:300]!r}"
        except (OSError, Closed) as error:
            line, served, problem = None, False, repr(error)
        took = time.monotonic() - begin
        seen.stall_seconds = max(seen.stall_seconds or 0.0, took)
        if waits is not None:
            waits.append(took)
        if served:
            seen.answered += 1
        else:
            seen.lost += 1
            seen.losses.append(problem)
    if line is not None:
        line.close()
