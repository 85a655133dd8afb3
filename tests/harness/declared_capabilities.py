"""What has to be declared before something is asked, told or answered: a table of its own, to judge the engine's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

# "Capabilities" on the page of each feature, 2025-11-25 and 2026-07-28 alike; other methods need nothing.
_OF_A_SERVER: Mapping[str, tuple[str, ...]] = {
    "completion/complete": ("completions",),
    "logging/setLevel": ("logging",),
    "notifications/message": ("logging",),
    "notifications/prompts/list_changed": ("prompts", "listChanged"),
    "notifications/resources/list_changed": ("resources", "listChanged"),
    "notifications/resources/updated": ("resources", "subscribe"),
    "notifications/tools/list_changed": ("tools", "listChanged"),
    "prompts/get": ("prompts",),
    "prompts/list": ("prompts",),
    "resources/list": ("resources",),
    "resources/read": ("resources",),
    "resources/subscribe": ("resources", "subscribe"),
    "resources/templates/list": ("resources",),
    "resources/unsubscribe": ("resources", "subscribe"),
    "notifications/tasks/status": ("tasks",),
    "tasks/cancel": ("tasks", "cancel"),
    "tasks/get": ("tasks",),
    "tasks/list": ("tasks", "list"),
    "tasks/result": ("tasks",),
    "tools/call": ("tools",),
    "tools/list": ("tools",),
}

# Completions came before their capability: 2025-03-26, changelog, "Added `completions` capability".
_WITHOUT = {("2024-11-05", "completion/complete")}


def server_lacks(
    capabilities: Mapping[str, Any], revision: str, method: str, params: Mapping[str, Any] | None = None
) -> str | None:
    """Return the capability that a server of *revision* would have to declare for *method*, unless it did."""
    path = () if (revision, method) in _WITHOUT else _OF_A_SERVER.get(method, ())
    if _has(capabilities, path) and "task" in (params or {}):
        path = ("tasks", "requests", *method.split("/"))  # 2025-11-25, basic/utilities/tasks, "Server Capabilities"
    return None if _has(capabilities, path) else ".".join(path)


def may_tell_roots(capabilities: Mapping[str, Any]) -> bool:
    """Return whether a client has declared that it tells of changed roots (client/roots, "Capabilities")."""
    return _has(capabilities, ("roots", "listChanged"))


def takes_tasks(capabilities: Mapping[str, Any], method: str) -> bool:
    """Return whether a peer has declared that *method* may become a task (2025-11-25, basic/utilities/tasks)."""
    return _has(capabilities, ("tasks", "requests", *method.split("/")))


def client_lacks(capabilities: Mapping[str, Any], revision: str, method: str, params: Mapping[str, Any]) -> str | None:
    """Return the capability that a client would have to declare before it is asked this, unless it did."""
    for path in _needs(method, params):
        if revision in _ONE_SAMPLING and path[:1] == ("sampling",):
            path = path[:1]  # noqa: PLW2901 (finer capabilities came with 2025-11-25)
        if path[:1] == ("elicitation",) and _speaks_forms(capabilities, revision, path[1]):
            continue
        if not _has(capabilities, path):
            return ".".join(path)
    return None


_ONE_SAMPLING = frozenset({"2024-11-05", "2025-03-26", "2025-06-18"})


def _speaks_forms(capabilities: Mapping[str, Any], revision: str, mode: str) -> bool:
    # 2025-11-25, client/elicitation, "Capabilities": an empty object means forms; before, there is nothing else.
    declared = capabilities.get("elicitation")
    if mode != "form" or declared is None:
        return False
    return revision == "2025-06-18" or not {"form", "url"} & set(declared)


def _needs(method: str, params: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    if method == "roots/list":
        yield ("roots",)
    if method == "sampling/createMessage":
        yield ("sampling",)
        if "tools" in params or "toolChoice" in params:
            yield ("sampling", "tools")
        if params.get("includeContext", "none") != "none":
            yield ("sampling", "context")
    if method == "elicitation/create":
        yield ("elicitation", "url" if params.get("mode") == "url" else "form")
    if method in ("tasks/list", "tasks/cancel"):
        yield ("tasks", method.partition("/")[2])
    if "task" in params:
        yield ("tasks", "requests", *method.split("/"))


def _has(declared: Any, path: tuple[str, ...]) -> bool:
    for key in path:
        declared = declared.get(key) if isinstance(declared, dict) else None
    return declared is not None and declared is not False
