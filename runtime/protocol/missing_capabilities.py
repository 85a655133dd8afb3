"""The capabilities that a request needs and its client has not declared.

Requests go only to a client that declared the capability: "Only use capabilities that were successfully negotiated"
(2025-11-25, basic/lifecycle, "Operation").
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any

from mcpgen.runtime.protocol.capabilities import CLIENT_CAPABILITIES, has_capability, known_path

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from mcpgen.runtime.protocol.capabilities import Path, Peer

__all__ = ["capability_names", "missing_capabilities", "missing_for_all", "missing_task_capability"]


def missing_capabilities(peer: Peer, method: str, params: Mapping[str, object]) -> dict[str, object] | None:
    """Return the capabilities that our request needs and the client did not declare; None if there are none.

    Args:
        peer: The client.
        method: The method of the request.
        params: Its params in the client's revision.

    Spec:
        2025-11-25, client/roots, client/sampling, client/elicitation and basic/utilities/tasks, "Capabilities" each;
        2026-07-28, basic/index, "_meta": data of the error -32021 has this form.
    """
    return _missing(peer, _needs(method, params))


def missing_for_all(peer: Peer, requests: Iterable[tuple[str, Mapping[str, object]]]) -> dict[str, object] | None:
    """Return what `missing_capabilities` returns, for several *requests* together."""
    return _missing(peer, chain.from_iterable(_needs(method, params) for method, params in requests))


def missing_task_capability(peer: Peer, method: str) -> dict[str, object] | None:
    """Return the capability that a request needs which becomes a task of *peer*; None if the client declared it.

    Spec:
        2025-11-25, basic/utilities/tasks, "Task Support and Handling": other receivers ignore `task`.
    """
    return _missing(peer, [("tasks", "requests", *method.split("/"))])


def capability_names(missing: Mapping[str, Any]) -> list[str]:
    """Return the names of what `missing_capabilities` returns, such as ``elicitation.url``."""
    found: list[str] = []
    for key, value in missing.items():
        found += [f"{key}.{rest}" for rest in capability_names(value)] if value else [key]
    return found


def _missing(peer: Peer, needs: Iterable[Path]) -> dict[str, object] | None:
    found: dict[str, object] = {}
    for path in needs:
        known = known_path(peer.revision, "ClientCapabilities", path)
        if not (has_capability(peer.declared, known) or _is_implied(peer.declared, known)):
            parent: Any = found
            for key in known:
                parent = parent.setdefault(key, {})
    return found or None


def _needs(method: str, params: Mapping[str, object]) -> Iterator[Path]:
    capability = CLIENT_CAPABILITIES.get(method)
    if capability is not None:
        yield capability
    match method:
        case "sampling/createMessage":
            if "tools" in params or "toolChoice" in params:
                yield ("sampling", "tools")
            if params.get("includeContext", "none") != "none":
                yield ("sampling", "context")
        case "elicitation/create":
            yield ("elicitation", "url" if params.get("mode") == "url" else "form")
        case _:
            pass


def _is_implied(declared: Mapping[str, object], path: Path) -> bool:
    # 2025-11-25, client/elicitation, "Capabilities": an empty object is "equivalent to declaring support for form mode
    # only". An object without known keys counts as empty.
    return (
        path == ("elicitation", "form")
        and has_capability(declared, path[:1])
        and not has_capability(declared, ("elicitation", "url"))
    )
