"""A load generator: a server's process, and bytes that were prepared in advance going in and out of its pipes.

While the clock runs, nothing happens here but blocking reads and writes, and counting newlines in what came. Whether it
was right is looked at afterwards.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from threading import Timer
from typing import TYPE_CHECKING, Final

import msgspec

from tests.bench import traffic

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType
    from typing import Self

    from tests.bench.traffic import Batch, Traffic

# The largest size of a pipe that Linux allows without privileges. A window that fits into a pipe cannot block both
# sides for good.
PIPE_BYTES: Final = 1024 * 1024
_USUAL_PIPE_BYTES: Final = 64 * 1024
_READ_BYTES: Final = 1024 * 1024

# Far more than anything here takes; what hangs is killed, and what waits for it sees the end of the pipe.
PATIENCE_SECONDS: Final = 120.0


class ServerGone(Exception):  # noqa: N818 (said as a sentence)
    """The server ended, or was killed because it did not answer."""


class Pipelined(msgspec.Struct, frozen=True):
    """What a batch with several calls in flight took.

    Attributes:
        clock: Microseconds a call, by the clock.
        cpu: Microseconds of the server's CPU a call; None if the system does not count them.
    """

    clock: float
    cpu: float | None


class Started:
    """A server that runs until the end of the block, and has answered its first request."""

    def __init__(self, command: Sequence[str], talk: Traffic) -> None:
        """Start it and open the session; `first_answer` is how many milliseconds that took by the clock."""
        self.traffic = talk
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 (closed with the server)
        opening = talk.opening()
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        start = time.perf_counter()
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors, bufsize=0, env=environment
        )
        if self._process.stdin is None or self._process.stdout is None:
            raise AssertionError  # both are pipes
        self._into = self._process.stdin.fileno()
        self._out_of = self._process.stdout.fileno()
        self._patience = Patience(self._process)
        try:
            with self._patience:
                self._write(opening)
                answer = self._line()
                self.first_answer = (time.perf_counter() - start) * 1000
                spent = self._cpu()
                self.cpu_milliseconds = spent / 1e6 if spent else None
                traffic.check_opening(answer)
                if opened := talk.opened():
                    self._write(opened)
        except BaseException:
            self.__exit__(None, None, None)
            raise
        self._pipe_bytes = min(_widened(self._into), _widened(self._out_of))

    def __enter__(self) -> Self:
        """Return the server."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End it: as a host does, by closing its input, and the hard way if that does not help."""
        if self._process.stdin:
            self._process.stdin.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._process.stdout:
            self._process.stdout.close()
        self._errors.close()

    def ask(self, message: bytes) -> bytes:
        """Return the answer to one request."""
        with self._patience:
            self._write(message)
            return self._line()

    def tell(self, data: bytes) -> None:
        """Send what fits into a pipe, and wait for nothing."""
        self._write(data)

    def one_at_a_time(self, batch: Batch) -> list[float]:
        """Return the microseconds that each call took, the next being sent when the last is answered."""
        spent: list[int] = []
        answers: list[bytes] = []
        read, write, clock = os.read, os.write, time.perf_counter_ns
        into, out_of = self._into, self._out_of
        messages = batch.messages()
        with self._patience:
            for message in messages:
                start = clock()
                write(into, message)
                answer = read(out_of, _READ_BYTES)
                while not answer.endswith(b"\n"):
                    answer += self._read()
                spent.append(clock() - start)
                answers.append(answer)
        traffic.check(batch, answers)
        return [each / 1000 for each in spent]

    def pipelined(self, batch: Batch, *, window: int) -> Pipelined:
        """Answer each answer with another call, so that *window* of them, or what a pipe holds, are in flight."""
        answers: list[bytes] = []
        data, length, whole = memoryview(batch.data), batch.length, len(batch.data)
        sent = min(min(window, self._pipe_bytes // length) * length, whole)
        missing = whole // length
        with self._patience:
            cpu = self._cpu()
            start = time.perf_counter_ns()
            self._write(data[:sent])
            while missing:
                piece = self._read()
                answers.append(piece)
                answered = piece.count(b"\n")
                missing -= answered
                if sent < whole:
                    more = sent + answered * length
                    self._write(data[sent:more])
                    sent = more
            clock = time.perf_counter_ns() - start
            spent = self._cpu() - cpu
        traffic.check(batch, answers)
        count = whole // length
        return Pipelined(clock / count / 1000, spent / count / 1000 if spent else None)

    def collect(self, count: int) -> list[bytes]:
        """Return the next *count* answers, in pieces of any size."""
        answers: list[bytes] = []
        with self._patience:
            while count > 0:
                answers.append(self._read())
                count -= answers[-1].count(b"\n")
        return answers

    def resident(self) -> float:
        """Return the MiB of memory that the server has at the moment."""
        return resident(self._process.pid)

    def descriptors(self) -> int:
        """Return how many descriptors the server has open, or 0 if the system does not say."""
        return descriptors(self._process.pid)

    def _cpu(self) -> int:
        """Return the nanoseconds of CPU that all threads of the server had, or 0 if the system does not say."""
        tasks = Path(f"/proc/{self._process.pid}/task").glob("*/schedstat")
        return sum(int(each.read_text(encoding="ascii").split()[0]) for each in tasks)

    def _write(self, data: bytes | memoryview) -> None:
        while data:
            try:
                data = data[os.write(self._into, data) :]
            except BrokenPipeError:
                raise ServerGone(self._last_words()) from None

    def _read(self) -> bytes:
        if not (data := os.read(self._out_of, _READ_BYTES)):
            raise ServerGone(self._last_words())
        return data

    def _line(self) -> bytes:
        line = b""
        while not line.endswith(b"\n"):
            line += self._read()
        return line

    def _last_words(self) -> str:
        self._errors.seek(0)
        return self._errors.read().decode(errors="replace")[-2000:] or "it said nothing"


class Patience:
    """A block, to be entered any number of times, in which a process is killed that takes too long."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self._timer: Timer | None = None

    def __enter__(self) -> None:
        self._timer = Timer(PATIENCE_SECONDS, self._process.kill)
        self._timer.daemon = True
        self._timer.start()

    def __exit__(self, *_: object) -> None:
        if self._timer:
            self._timer.cancel()


def resident(process: int) -> float:
    """Return the MiB of memory that a process has at the moment."""
    try:
        pages = int(Path(f"/proc/{process}/statm").read_text(encoding="ascii").split()[1])
    except OSError:
        listed = subprocess.run(
            ["ps", "-o", "rss=", "-p", str(process)],  # noqa: S607 (wherever the system has it)
            check=True,
            capture_output=True,
        )
        return int(listed.stdout) / 1024
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def descriptors(process: int) -> int:
    """Return how many descriptors a process has open, or 0 if the system does not say."""
    return len([*Path(f"/proc/{process}/fd").glob("*")])


def _widened(pipe: int) -> int:
    if sys.platform != "linux":
        return _USUAL_PIPE_BYTES
    from fcntl import F_SETPIPE_SZ, fcntl

    try:
        return fcntl(pipe, F_SETPIPE_SZ, PIPE_BYTES)
    except OSError:  # a container may allow less
        return _USUAL_PIPE_BYTES
