"""Which scopes a client requests: only those that it needs now.

Spec:
    2026-07-28, basic/authorization, "Scope Selection Strategy", "Refresh Tokens" and "Step-Up Authorization Flow".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["OFFLINE", "known_scopes", "needs_step_up", "selected_scopes", "step_up_scopes"]

OFFLINE: Final = "offline_access"
"""The scope with which an authorization server issues refresh tokens."""

_MAX_CHARS: Final = 16 * 1024  # of the scopes in one authorization request, or of tokens; servers take no longer URLs


def selected_scopes(
    configured: Sequence[str] | None,
    challenged: Sequence[str],
    resource_scopes: Sequence[str] | None,
    server_scopes: Sequence[str] | None,
) -> tuple[str, ...]:
    """Return the scopes of the first authorization request; empty to leave the parameter out.

    Args:
        configured: Those that the program has chosen; None for none.
        challenged: Those of the challenge.
        resource_scopes: ``scopes_supported`` of the protected resource metadata.
        server_scopes: ``scopes_supported`` of the authorization server, which decides about ``offline_access``.
    """
    if configured is not None:
        return tuple(dict.fromkeys(configured))
    chosen = [each for each in challenged or resource_scopes or () if each != OFFLINE]
    if chosen and OFFLINE in (server_scopes or ()):
        chosen.append(OFFLINE)
    return tuple(dict.fromkeys(chosen))


def needs_step_up(requested: Sequence[str], challenged: Sequence[str]) -> bool:
    """Return whether another authorization can help: not if all the scopes were requested before."""
    return not set(challenged) <= set(requested)


def step_up_scopes(requested: Sequence[str], challenged: Sequence[str]) -> tuple[str, ...]:
    """Return the union of the scopes that were requested before and those of the challenge; the latter, if it is long.

    A server could demand other scopes for each call.
    """
    return _short_union(requested, challenged) or tuple(dict.fromkeys(challenged))


def known_scopes(requested: Sequence[str], granted: Sequence[str]) -> tuple[str, ...]:
    """Return the union of the scopes that were requested and those that were granted; the former, if it is long.

    A server could grant other scopes at each refresh.
    """
    return _short_union(requested, granted) or tuple(dict.fromkeys(requested))


def _short_union(one: Sequence[str], other: Sequence[str]) -> tuple[str, ...] | None:
    union = tuple(dict.fromkeys([*one, *other]))
    return union if len(" ".join(union)) <= _MAX_CHARS else None
