"""A gateway: what type checkers see of the adapters."""

from __future__ import annotations

from typing import Any, assert_type

from mcpgen import AdaptationError, InvalidPayload, UsageError
from mcpgen.runtime.adapt import Adapted, Loss, Losses, Part, Route, Severity, definition_route, route


def down(value: dict[str, object]) -> object:
    """Adapt what came, and read everything there is to read of it."""
    way = route("2026-07-28", "2024-11-05", "tools/list", "result", sender="client")
    assert_type(way, Route)
    assert_type(way.is_identity, bool)
    assert_type(way.part, Part | None)
    adapted = way.adapt(value, keep=True)
    assert_type(adapted, Adapted)
    assert_type(adapted.value, Any)
    assert_type(adapted.losses, tuple[Loss, ...])
    assert_type(adapted.kept, bool)
    for loss in adapted.losses:
        assert_type(loss.severity, Severity)
        assert_type(loss.pointer, str)
    return adapted.value


def steps_alone(value: object) -> list[Loss]:
    """Adapt a value that is known to be valid."""
    losses = Losses()
    definition_route("2025-11-25", "2025-06-18", "ContentBlock").adapt_valid(value, losses)
    return losses.found


def service(value: object) -> str | None:
    """Read what an error says."""
    try:
        route("2025-11-25", "2026-07-28", "tools/call", "result").adapt(value)
    except AdaptationError as error:
        assert_type(error.service, "str | None")
        assert_type(error.losses, tuple[Loss, ...])
        return error.service
    except InvalidPayload as error:
        assert_type(error.pointer, str)
        return error.revision
    except UsageError:
        return None
    return ""
