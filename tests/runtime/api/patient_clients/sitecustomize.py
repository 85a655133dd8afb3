"""Python runs this before a program if this folder is in PYTHONPATH.

After three seconds without an answer, a client takes a server for one that needs `initialize`, and its program prints
other things than the guide. A busy machine may take longer to start a server.
"""

from __future__ import annotations

from mcpgen.runtime import limits


class ClientLimits(limits.ClientLimits, frozen=True, kw_only=True):
    """The limits of a client that waits for the start of a server as long as tests wait."""

    probe_seconds: float = 60


if __name__ == "sitecustomize":  # and not imported by a test
    limits.ClientLimits = ClientLimits  # type: ignore[misc]
