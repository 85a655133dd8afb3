"""Adapt values between revisions, for gateways and for the runtime; `route` returns the adapter of a message part."""

from __future__ import annotations

from mcpgen.runtime.adapt.extensions import route
from mcpgen.runtime.adapt.routes import (
    Adapted,
    Loss,
    Losses,
    Part,
    Route,
    Router,
    Sender,
    Severity,
    definition_route,
)

__all__ = ["Adapted", "Loss", "Losses", "Part", "Route", "Router", "Sender", "Severity", "definition_route", "route"]
