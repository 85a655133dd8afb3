"""A server over HTTP: one endpoint for clients of every revision, as an ASGI application."""

from __future__ import annotations

__all__: list[str] = []
