"""A server's process that listens on a port of this machine, and says where."""

from __future__ import annotations

import os
import re
import subprocess
import threading
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tests.bench import load
from tests.bench.http.wire import Address, address
from tests.bench.load import ServerGone

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType
    from typing import Self

_URL: Final = re.compile(r"serving \S+ at (http://\S+)")
_START_SECONDS: Final = 30
_END_SECONDS: Final = 10


class Listening:
    """A server that runs until the end of the block.

    Attributes:
        address: Where it listens.

    Args:
        command: What starts it.
        token: The access token that it wants, if any.
    """

    def __init__(self, command: Sequence[str], token: str = "") -> None:
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        self._process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=environment
        )
        self._said: deque[str] = deque(maxlen=30)
        self._url = ""
        self._known = threading.Event()
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()
        self._known.wait(_START_SECONDS)
        if not self._url:
            self.__exit__(None, None, None)
            raise ServerGone(self.last_words())
        self.address: Address = address(self._url, token)

    def __enter__(self) -> Self:
        """Return the server."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End it: as a host does, and the hard way if that does not help."""
        self._process.terminate()
        try:
            self._process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._listener.join(_END_SECONDS)
        if self._process.stderr and not self._listener.is_alive():  # a child of the server may have inherited the pipe
            self._process.stderr.close()

    @property
    def patience(self) -> load.Patience:
        """A block in which it is killed if it takes too long."""
        return load.Patience(self._process)

    def cpu(self) -> int:
        """Return the nanoseconds of CPU that all threads of it had, or 0 if the system does not say."""
        tasks = Path(f"/proc/{self._process.pid}/task").glob("*/schedstat")
        return sum(int(each.read_text(encoding="ascii").split()[0]) for each in tasks)

    def resident(self) -> float:
        """Return the MiB of memory that it has at the moment."""
        return load.resident(self._process.pid)

    def descriptors(self) -> int:
        """Return how many descriptors it has open, or 0 if the system does not say."""
        return load.descriptors(self._process.pid)

    def last_words(self) -> str:
        """Return the last of what it printed."""
        return "".join(self._said) or "it said nothing"

    def _listen(self) -> None:
        if self._process.stderr is None:
            raise AssertionError  # it is a pipe
        for line in self._process.stderr:
            self._said.append(line.decode(errors="replace"))
            if (found := _URL.search(self._said[-1])) and not self._url:
                self._url = found[1]
                self._known.set()
        self._known.set()
