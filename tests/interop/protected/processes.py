"""The programs of a login: the authorization server of npm's oidc-provider, and a protected server, each a process."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final

from tests.installations import Node, folder_of, javascript, node, python
from tests.interop.stdio_runs import environment

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["HERE", "authorization_server", "command", "free_port", "running"]

HERE: Final = Path(__file__).parent
HOME: Final = HERE.parents[2] / ".nox" / "interop-peers"

AUTHORIZATION_SERVER: Final = "oidc-provider@9.13.3"
OLDEST_NODE: Final = 22  # what oidc-provider says that it needs


@cache
def _runtime() -> Node:
    return node(HOME, oldest=OLDEST_NODE)


def command(package: str, script: Path) -> list[str]:
    """Return the command that runs *script* with a package, which is installed first.

    Args:
        package: The requirement, for pip or npm.
        script: A file of Python or JavaScript.
    """
    folder = folder_of(HOME, package)
    if script.suffix == ".py":
        return [python(folder, package), str(script)]
    javascript(folder, package, _runtime())
    beside = folder / "protected" / script.parent.name  # JavaScript imports from the folder that it is in
    beside.mkdir(parents=True, exist_ok=True)
    for each in script.parent.glob("*.mjs"):
        shutil.copy(each, beside)
    return [_runtime().node, str(beside / script.name)]


@contextmanager
def authorization_server(port: int, resource: str, kind: str = "jwt") -> Iterator[str]:
    """Run an authorization server within the block; return its issuer.

    Args:
        port: Its port.
        resource: The URL of the protected server.
        kind: The format of access tokens, ``jwt`` or ``opaque``.
    """
    start = command(AUTHORIZATION_SERVER, HERE / "authorization_server.mjs")
    with running([*start, str(port), resource, kind], "stdout"):
        yield f"http://127.0.0.1:{port}"


def free_port() -> int:
    """Return a port of this machine that is free now."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        return int(bound.getsockname()[1])


@contextmanager
def running(start: Sequence[str], says: str, marker: str = "http://") -> Iterator[None]:
    """Run a program within the block, which begins when the program has said that it listens.

    Args:
        start: Its command.
        says: Where it says so: ``stdout`` or ``stderr``.
        marker: What is in the line that says so.
    """
    other = "stderr" if says == "stdout" else "stdout"
    pipes = {says: subprocess.PIPE, other: subprocess.DEVNULL}
    with subprocess.Popen(start, **pipes, encoding="utf-8", env=environment(os.environ)) as program:
        try:
            pipe: IO[str] = getattr(program, says)
            lines: list[str] = []
            for line in pipe:
                lines.append(line)
                if marker in line:
                    break
            else:
                raise AssertionError(f"{start} did not start: {''.join(lines)[-2000:]}")
            yield
        finally:
            program.terminate()
