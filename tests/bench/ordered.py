"""A client's process, which connects to a server and does as it is ordered: the other end of ``clients/orders.py``.

The clock that counts is read there, around each call.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import msgspec

from tests.bench.load import Patience, descriptors, resident

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from types import TracebackType
    from typing import Self


# Long enough for a server, too, to end when its input does.
_END_SECONDS: Final = 10


class ClientGone(Exception):  # noqa: N818 (said as a sentence)
    """The client ended, because something was wrong, or was killed because it took too long."""


class Alone(msgspec.Struct, frozen=True):
    """What calls took that waited for each other, in microseconds.

    Attributes:
        clock: Each, by the clock.
        cpu: The client's CPU for one.
    """

    clock: list[float]
    cpu: float


class Together(msgspec.Struct, frozen=True):
    """What a call took while others were in flight, in microseconds.

    Attributes:
        clock: By the clock.
        cpu: Of the client's CPU.
    """

    clock: float
    cpu: float


class Ordered:
    """A client that runs until the end of the block, and has had its first call answered."""

    def __init__(self, command: Sequence[str], *, processor: int | None = None) -> None:
        """Start it; `first_answer` is how many milliseconds that took by the clock, `cpu_milliseconds` of its CPU.

        Args:
            command: What starts it.
            processor: The only one that it, and the server that it starts, may run on.
        """
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 (closed with the client)
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        with _kept_to(processor):
            start = time.perf_counter()
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors, env=environment
            )
        self._patience = Patience(self._process)
        try:
            with self._patience:
                (spent,) = self._answer()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        self.first_answer = (time.perf_counter() - start) * 1000
        self.cpu_milliseconds = spent / 1e6

    def __enter__(self) -> Self:
        """Return the client."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End it: it closes its connection when its input ends."""
        if self._process.stdin:
            self._process.stdin.close()
        try:
            self._process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._process.stdout:
            self._process.stdout.close()
        self._errors.close()

    def alone(self, count: int) -> Alone:
        """Have it call *count* times, the next time when the last is answered."""
        cpu, *clock = self._order("alone", count)
        return Alone([each / 1000 for each in clock], cpu / count / 1000)

    def together(self, count: int, *, window: int) -> Together:
        """Have it call *count* times, *window* of them at once."""
        cpu, clock = self._order("together", count, window)
        return Together(clock / count / 1000, cpu / count / 1000)

    def hold(self, count: int) -> int:
        """Return how many of *count* calls are answered rightly that a server held back until all had come."""
        (answered,) = self._order("hold", count)
        return answered

    def tasks(self) -> int:
        """Return how many tasks it has, with the one that counts them."""
        (count,) = self._order("tasks")
        return count

    def descriptors(self) -> int:
        """Return how many descriptors it has open, or 0 if the system does not say."""
        return descriptors(self._process.pid)

    def resident(self) -> float:
        """Return the MiB of memory that it has at the moment."""
        return resident(self._process.pid)

    def _order(self, name: str, *numbers: int) -> list[int]:
        if self._process.stdin is None:
            raise AssertionError  # it is a pipe
        with self._patience:
            try:
                self._process.stdin.write(f"{name} {' '.join(map(str, numbers))}\n".encode())
                self._process.stdin.flush()
            except BrokenPipeError:
                raise ClientGone(self._last_words()) from None
            return self._answer()

    def _answer(self) -> list[int]:
        if self._process.stdout is None:
            raise AssertionError  # it is a pipe
        if not (line := self._process.stdout.readline()):
            raise ClientGone(self._last_words())
        return [*map(int, line.split())]

    def _last_words(self) -> str:
        self._errors.seek(0)
        return self._errors.read().decode(errors="replace")[-2000:] or "it said nothing"


def processor() -> int | None:
    """Return a processor that a process can be kept to, or None where the system does not do that."""
    if not hasattr(os, "sched_getaffinity"):
        return None
    return max(os.sched_getaffinity(0))


@contextmanager
def _kept_to(processor: int | None) -> Iterator[None]:
    # What is started within inherits it, and so does what that starts.
    if processor is None:
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {processor})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)
