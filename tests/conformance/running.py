"""Our server and our client, as the suite meets them: processes of what is installed."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Thread, Timer
from typing import TYPE_CHECKING, Final

from tests.conformance.suite import environment
from tests.harness import several_workers

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["ServerFailed", "client_command", "serving"]

HERE: Final = Path(__file__).parent

# A machine that is busy takes a while to import everything.
START_SECONDS: Final = 120
# With open streams, two seconds is what the server takes; the rest is for a busy machine.
END_SECONDS: Final = 60

# The client of the suite sends null for an optional key. Our server reads it, and logs that (ADR 0027).
_READ_ANYWAY: Final = "null is read as absent, at /inputResponses"

_SERVING: Final = re.compile(r"mcpgen: serving .+ at (http://\S+)")


class ServerFailed(Exception):  # noqa: N818 (what happened)
    """The server did not start, or did not end as it should."""


def client_command(*, is_told: bool) -> list[str]:
    """Return how to start our client.

    Args:
        is_told: Whether it is told what is spoken.
    """
    return [sys.executable, str(HERE / "everything_client.py"), *([] if is_told else ["--any"])]


@contextmanager
def serving(*, by_workers: bool = False) -> Iterator[str]:
    """Serve ``everything_server.py`` over HTTP, yield its URL, and end it.

    Args:
        by_workers: Whether several workers serve it, each of which gets the next request.

    Raises:
        ServerFailed: It did not start, printed what it should not, or did not end when it was told to.
    """
    file = HERE / "everything_server.py"
    script = Path(sys.executable).parent / ("mcpgen.exe" if os.name == "nt" else "mcpgen")
    alone = [str(script), "serve", str(file), "--http", "127.0.0.1:0"]
    command = several_workers.command(file) if by_workers else alone
    env = environment()
    flags = subprocess.CREATE_NEW_PROCESS_GROUP if sys.platform == "win32" else 0
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=env,
        creationflags=flags,
        start_new_session=sys.platform != "win32",
    ) as process:
        try:
            url = _url(process)
            said: list[str] = []
            reader = Thread(target=lambda: said.extend(process.stdout or ()), daemon=True)
            reader.start()
            yield url
            process.send_signal(signal.CTRL_BREAK_EVENT if sys.platform == "win32" else signal.SIGTERM)
            try:
                process.wait(END_SECONDS)
            except subprocess.TimeoutExpired:
                raise ServerFailed(f"the server did not end within {END_SECONDS} seconds") from None
            reader.join()
        finally:
            _kill(process)
    said = [line for line in said if _READ_ANYWAY not in line]
    if process.returncode or said:
        raise ServerFailed(f"the server ended with {process.returncode}, and had said: {''.join(said) or 'nothing'}")


def _kill(process: subprocess.Popen[str]) -> None:
    """Kill a server with its workers, which would keep its output open, so that reading it would never end."""
    if sys.platform == "win32":
        process.kill()
        return
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def _url(process: subprocess.Popen[str]) -> str:
    late = Timer(START_SECONDS, _kill, [process])
    late.start()
    try:
        line = process.stdout.readline() if process.stdout else ""
        found = _SERVING.fullmatch(line.rstrip())
        if found is not None:
            return found[1]
        rest, _ = process.communicate()
    finally:
        late.cancel()
    raise ServerFailed(f"the server did not say where it is; it said: {line}{rest}")
