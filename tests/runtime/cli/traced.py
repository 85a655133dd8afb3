"""``mcpgen trace`` as a process."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any, Final

from tests.patience import PATIENCE_SECONDS

if TYPE_CHECKING:
    from collections.abc import Sequence

TRACE: Final = (
    sys.executable,
    "-c",
    "import sys; from mcpgen.cli import main; sys.argv[0] = 'mcpgen'; main()",
    "trace",
)


def _heed_interrupts() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)


class Traced:
    """The command as a process, and the far ends of its streams."""

    def __init__(self, *arguments: str, command: Sequence[str] = TRACE, **options: Any) -> None:
        options = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
        # A shell that starts tests in the background has them ignore SIGINT, and we would inherit that.
        options.setdefault("preexec_fn", _heed_interrupts)
        self.process = subprocess.Popen([*command, *arguments], bufsize=0, **options)

    def write(self, data: bytes) -> None:
        assert self.process.stdin is not None
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(self.process.stdin.fileno(), rest) :]

    def line(self) -> bytes:
        """Return the next line of its output."""
        return self._until(self.process.stdout, b"\n")

    def says(self, text: str) -> str:
        """Read its errors until *text* comes; return what came."""
        return self._until(self.process.stderr, text.encode()).decode()

    def _until(self, stream: Any, text: bytes) -> bytes:
        read, until = b"", time.monotonic() + PATIENCE_SECONDS
        while text not in read:
            assert select.select([stream], [], [], until - time.monotonic())[0], read
            data = os.read(stream.fileno(), 1 << 16)
            assert data, read
            read += data
        return read

    def end(self, data: bytes = b"") -> tuple[int, bytes, str]:
        """Write *data*, close its input, and return its status and the rest of its outputs."""
        out, err = self.process.communicate(data, PATIENCE_SECONDS)
        return self.process.returncode, out, err.decode()

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            if stream is not None:
                stream.close()
