"""Clients of others that log in to a protected server of ours, at an authorization server from npm.

``python -m tests.interop.protected.runs`` runs all of them, with tokens that are JSON Web Tokens and with opaque ones.
"""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final

import msgspec

from tests.installations import folder_of, javascript, node, python

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["failures"]

HERE: Final = Path(__file__).parent
HOME: Final = HERE.parents[2] / ".nox" / "interop-peers"

AUTHORIZATION_SERVER: Final = "oidc-provider@9.13.3"
OLDEST_NODE: Final = 22  # what oidc-provider says that it needs
KINDS: Final = ("jwt", "opaque")
SECONDS: Final = 120

# The first call needs one scope, the second one more, for which the client has to log in again.
WANTED: Final = {"texts": ["ann: files:read", "ann wrote", "ann: files:read files:write"], "logins": 2}


class LoggingIn(msgspec.Struct, frozen=True):
    """A client that logs in.

    Attributes:
        name: What failures call it.
        package: The requirement, for pip or npm.
        driver: The file in ``drivers/`` that uses it.
    """

    name: str
    package: str
    driver: str


CLIENTS: Final = (
    LoggingIn("Python SDK 2.3", "mcp==2.3.0", "python_v2.py"),
    LoggingIn("TypeScript SDK 2.4", "@modelcontextprotocol/client@2.4.0", "typescript_v2.mjs"),
)


def failures() -> Iterator[str]:
    """Run all clients, and say what came back that must not."""
    runtime = node(HOME, oldest=OLDEST_NODE)
    home = folder_of(HOME, AUTHORIZATION_SERVER)
    javascript(home, AUTHORIZATION_SERVER, runtime)
    shutil.copy(HERE / "authorization_server.mjs", home)
    commands = {each: _command(each, runtime) for each in CLIENTS}
    for kind in KINDS:
        port, own_port = _free_port(), _free_port()
        issuer, resource = f"http://127.0.0.1:{port}", f"http://127.0.0.1:{own_port}/mcp"
        authorize = [runtime.node, str(home / "authorization_server.mjs"), str(port), resource, kind]
        serve = [sys.executable, str(HERE / "protected_server.py"), str(own_port), issuer, kind]
        with _running(authorize, "stdout"), _running(serve, "stderr"):
            for client, command in commands.items():
                found = _logged_in([*command, resource])
                if found != WANTED:
                    yield f"{client.name} with {kind} tokens: {found}"


def _command(client: LoggingIn, runtime: Any) -> list[str]:
    folder = folder_of(HOME, client.package)
    if client.driver.endswith(".py"):
        return [python(folder, client.package), str(HERE / "drivers" / client.driver)]
    javascript(folder, client.package, runtime)
    beside = folder / "protected"
    beside.mkdir(exist_ok=True)
    shutil.copy(HERE / "drivers" / client.driver, beside)
    return [runtime.node, str(beside / client.driver)]


def _logged_in(command: Sequence[str]) -> Any:
    done = subprocess.run(command, capture_output=True, check=False, encoding="utf-8", timeout=SECONDS)
    return json.loads(done.stdout) if done.returncode == 0 else done.stderr[-2000:]


def _free_port() -> int:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        return int(bound.getsockname()[1])


@contextmanager
def _running(command: Sequence[str], says: str) -> Iterator[None]:
    """Run a program within the block, which begins when the program has written a line with an address."""
    with subprocess.Popen(command, **{says: subprocess.PIPE}, encoding="utf-8") as program:
        try:
            pipe: IO[str] = getattr(program, says)
            if not any("http://" in line for line in pipe):
                raise AssertionError(f"{command} did not start")
            yield
        finally:
            program.terminate()


def main() -> None:
    """Run all clients.

    Raises:
        SystemExit: Something else came back than must.
    """
    wrong = list(failures())
    sys.stdout.write(f"{len(CLIENTS) * len(KINDS)} clients logged in, {len(wrong)} failed\n")
    if wrong:
        raise SystemExit("\n".join(wrong))


if __name__ == "__main__":
    main()
