"""Programs at a pseudo terminal: standard input and error are the terminal, standard output a pipe or the terminal."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path
from typing import Final

from tests.patience import PATIENCE_SECONDS

SERVER: Final = str(Path(__file__).with_name("everything.py"))
COMMAND: Final = f"{sys.executable} {SERVER}"

_MAIN: Final = "from mcpgen.cli import main; main(prog_name='mcpgen')"

PROGRAM: Final = (
    f"from mcpgen.runtime.client import connection_task; connection_task._HINT_SECONDS = {PATIENCE_SECONDS}; {_MAIN}"
)
"""`mcpgen`, which does not note that a server starts slowly: on a busy machine, each may take two seconds."""


def environment(**more: str) -> dict[str, str]:
    """Return ours, without what would change how things look."""
    hidden = {"NO_COLOR", "COLUMNS", "LINES", "FORCE_COLOR"}
    return {**{name: value for name, value in os.environ.items() if name not in hidden}, "TERM": "xterm", **more}


def run(*words: str, given: bytes = b"", notes_slow_start: bool = False, **more: str) -> tuple[int, str, str]:
    """Run ``mcpgen`` without a terminal; return the exit status and both outputs."""
    program = _MAIN if notes_slow_start else PROGRAM
    done = subprocess.run(
        [sys.executable, "-c", program, *words],
        input=given,
        capture_output=True,
        check=False,
        timeout=60,
        env=environment(**more),
    )
    return done.returncode, done.stdout.decode(), done.stderr.decode()


class Terminal:
    """``mcpgen`` at a terminal, at which the user has *typed* something before."""

    def __init__(self, *words: str, width: int = 80, is_output_too: bool = False, typed: str = "", **more: str) -> None:
        self._master, slave = pty.openpty()
        self.types(typed)
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, width, 0, 0))

        def control() -> None:
            signal.signal(signal.SIGINT, signal.SIG_DFL)  # a shell may have had us ignore it
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)

        self.process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, *words],
            stdin=slave,
            stdout=slave if is_output_too else subprocess.PIPE,
            stderr=slave,
            start_new_session=True,
            preexec_fn=control,  # noqa: PLW1509 (it takes no lock)
            env=environment(**more),
        )
        os.close(slave)
        self._seen = ""
        self.all = ""

    def sees(self, text: str) -> str:
        """Return what is on the screen up to *text*, since the last time, when it is there."""
        until = time.monotonic() + PATIENCE_SECONDS
        while text not in self._seen:
            assert self._read(until), f"the program has ended; to be seen was {self._seen!r}"
        before, found, self._seen = self._seen.partition(text)
        return before + found

    def types(self, text: str) -> None:
        os.write(self._master, text.encode())

    def interrupt(self) -> None:
        """Press Ctrl-C until the program ends: ``input()`` of CPython misses one that comes just before it reads."""
        until = time.monotonic() + PATIENCE_SECONDS
        while self.process.poll() is None:
            assert time.monotonic() < until, f"Ctrl-C did not end it; to be seen was {self._seen!r}"
            self.types("\x03")
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(1)

    def end(self) -> tuple[int, str, str]:
        """Return the exit status, what it has written to its output, and all that was to be seen."""
        until = time.monotonic() + PATIENCE_SECONDS
        while self._read(until):
            pass
        out = b"" if self.process.stdout is None else self.process.stdout.read()
        return self.process.wait(PATIENCE_SECONDS), out.decode(), self.all

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        if self.process.stdout is not None:
            self.process.stdout.close()
        os.close(self._master)

    def _read(self, until: float) -> bool:
        assert select.select([self._master], [], [], max(0.0, until - time.monotonic()))[0], self._seen
        try:
            data = os.read(self._master, 1 << 16)
        except OSError:  # every other process has closed it
            return False
        text = data.decode("utf-8", "replace").replace("\r\n", "\n")
        self._seen += text
        self.all += text
        return bool(data)
