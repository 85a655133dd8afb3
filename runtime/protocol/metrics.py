"""OpenTelemetry instruments, if the program has imported ``opentelemetry.metrics``; mcpgen does not import it.

Spec:
    OpenTelemetry, semantic conventions for MCP: ``mcp.server.operation.duration``.
"""

from __future__ import annotations

import sys
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["has_metrics", "meter", "provider", "record_duration"]

# Of the conventions, in seconds.
_BOUNDARIES: Final = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300)


def has_metrics() -> bool:
    """Whether the program has imported OpenTelemetry's metrics."""
    return "opentelemetry.metrics" in sys.modules


def provider() -> Any:  # noqa: ANN401 (OpenTelemetry may be absent)
    """Return the provider that the program has chosen."""
    return sys.modules["opentelemetry.metrics"].get_meter_provider()


def meter() -> Any:  # noqa: ANN401 (OpenTelemetry may be absent)
    """Return what makes the instruments."""
    return provider().get_meter("mcpgen")


def record_duration(seconds: float, attributes: Mapping[str, str]) -> None:
    """Record how long a request took, with the attributes of its span that have few values."""
    _duration(provider()).record(seconds, attributes)


@lru_cache(maxsize=4)  # programs have one provider; tests have more
def _duration(of: Any) -> Any:  # noqa: ANN401 (OpenTelemetry may be absent)
    return of.get_meter("mcpgen").create_histogram(
        "mcp.server.operation.duration",
        unit="s",
        description="The duration of a request, as the server sees it.",
        explicit_bucket_boundaries_advisory=_BOUNDARIES,
    )
