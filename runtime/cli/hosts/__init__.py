"""The files of hosts: where they are, how a server is written into one, and ``--config`` of the client commands."""

from __future__ import annotations

__all__: list[str] = []
