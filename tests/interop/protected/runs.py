"""Logins between others and us, at an authorization server from npm.

``python -m tests.interop.protected.runs`` runs all of them; ``nox -s interop`` does so, too.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final

from tests.interop.protected import restarts, their_clients, their_servers

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["failures"]

PARTS: Final = (their_clients, their_servers, restarts)


def failures() -> Iterator[str]:
    """Run all clients, and say what came back that must not."""
    for each in PARTS:
        yield from each.failures()


def main() -> None:
    """Run all clients.

    Raises:
        SystemExit: Something else came back than must.
    """
    wrong = list(failures())
    logins = sum(len(each.revisions) for each in their_clients.CLIENTS) * len(their_clients.KINDS)
    logins += sum(len(each.revisions) for each in their_servers.SERVERS)
    sys.stdout.write(f"{logins} logins, {len(wrong)} failed\n")
    if wrong:
        raise SystemExit("\n".join(wrong))


if __name__ == "__main__":
    main()
