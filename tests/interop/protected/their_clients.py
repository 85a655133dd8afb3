"""Clients of others that log in to a protected server of ours, in each revision that has authorization."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Final

import msgspec

from tests.interop.protected.processes import HERE, authorization_server, command, free_port, running
from tests.interop.stdio_runs import environment

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["CLIENTS", "KINDS", "Client", "failures"]

KINDS: Final = ("jwt", "opaque")
SECONDS: Final = 120
AT_ONCE: Final = 3

HANDSHAKES: Final = ("2025-03-26", "2025-06-18", "2025-11-25")
ALL: Final = (*HANDSHAKES, "2026-07-28")


class Client(msgspec.Struct, frozen=True):
    """A client that logs in.

    Attributes:
        name: What failures call it.
        package: The requirement, for pip or npm.
        driver: The file in ``drivers/`` that uses it.
        revisions: The ones that it is made to speak.
    """

    name: str
    package: str
    driver: str
    revisions: tuple[str, ...]


CLIENTS: Final = (
    Client("Python SDK 1.30", "mcp==1.30.0", "python_v1.py", HANDSHAKES),
    Client("Python SDK 2.3", "mcp==2.3.0", "python_v2.py", ALL),
    Client("FastMCP 4.1", "fastmcp==4.1.2", "fastmcp_v4.py", ALL),
    Client("TypeScript SDK 1.32", "@modelcontextprotocol/sdk@1.32.2", "typescript_v1.mjs", HANDSHAKES),
    Client("TypeScript SDK 2.4", "@modelcontextprotocol/client@2.4.0", "typescript_v2.mjs", ALL),
)


def failures() -> Iterator[str]:
    """Run all clients, and say what came back that must not."""
    commands = {each: command(each.package, HERE / "drivers" / each.driver) for each in CLIENTS}
    for kind in KINDS:
        port, own_port = free_port(), free_port()
        resource = f"http://127.0.0.1:{own_port}/mcp"
        with authorization_server(port, resource, kind) as issuer:
            serve = [sys.executable, str(HERE / "protected_server.py"), str(own_port), issuer, kind]
            with running(serve, "stderr"), ThreadPoolExecutor(AT_ONCE) as pool:
                runs = {
                    (client, revision): pool.submit(_logged_in, [*start, resource, revision])
                    for client, start in commands.items()
                    for revision in client.revisions
                }
                for (client, revision), run in runs.items():
                    if run.result() != wanted(revision):
                        yield f"{client.name} in {revision} with {kind} tokens: {run.result()}"


def wanted(revision: str) -> dict[str, Any]:
    """Return what a driver must print.

    The first call needs one scope, the second one more, for which the client has to log in again.
    """
    texts = [f"ann: files:read ({revision})", "ann wrote", f"ann: files:read files:write ({revision})"]
    return {"texts": texts, "logins": 2}


def _logged_in(start: Sequence[str]) -> Any:
    env = environment(os.environ)
    done = subprocess.run(start, capture_output=True, check=False, encoding="utf-8", timeout=SECONDS, env=env)
    return json.loads(done.stdout) if done.returncode == 0 else done.stderr[-2000:]
