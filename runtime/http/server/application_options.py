"""The options of the HTTP application, and the checks that find wrong ones when it is made."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict, cast

from mcpgen.runtime.errors import UsageError
from mcpgen.runtime.limits import HttpLimits
from mcpgen.runtime.server.functions.awaitables import is_async

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mcpgen.runtime.http.server.auth.protection import Protect
    from mcpgen.runtime.http.server.responses import Scope
    from mcpgen.runtime.server.cluster.cluster import Cluster
    from mcpgen.runtime.server.event_store import EventStore

__all__ = ["Options", "check_options", "check_paths", "user_name"]


class Options(TypedDict, total=False):
    """The options of `Server.asgi`; `Application` describes them."""

    path: str
    sse_path: str
    message_path: str
    allowed_origins: Sequence[str] | None
    allowed_hosts: Sequence[str] | None
    bound_to: str | None
    events: EventStore | None
    limits: HttpLimits | None
    user: Callable[[Scope], str] | None
    trusted_proxies: Sequence[str] | None
    cluster: Cluster | None
    auth: Protect | None
    health: str | None


def check_options(limits: object, user: object, events: object, auth: object, cluster: object) -> None:
    """Check options whose faults would otherwise show with the first request.

    Raises:
        UsageError: One is of the wrong kind.
    """
    if limits is not None and not isinstance(limits, HttpLimits):
        raise UsageError(
            f"`limits` must be an HttpLimits, such as HttpLimits(max_sessions=100), not {type(limits).__name__}"
        )
    if user is not None and (not callable(user) or is_async(user)):
        raise UsageError(f"`user` must be a plain function that takes the scope and returns a str, not {user!r}")
    if events is not None and (isinstance(events, type) or not hasattr(events, "append")):
        raise UsageError(f"`events` must be an event store, such as MemoryEventStore(), not {events!r}")
    if auth is not None and (isinstance(auth, type) or not hasattr(auth, "resource")):
        raise UsageError(f"`auth` must be a Protect, such as Protect(resource=…, issuers=[…]), not {auth!r}")
    if auth is not None and user is not None:
        raise UsageError("`auth` and `user` exclude each other, since the token names the user; remove `user`")
    if cluster is not None and (isinstance(cluster, type) or not hasattr(cluster, "listen")):
        raise UsageError(f'`cluster` must be a cluster, such as Redis("redis://127.0.0.1:6379"), not {cluster!r}')


def check_paths(**paths: str) -> None:
    """Check the paths of the endpoints.

    Raises:
        UsageError: One is not a path, or two are equal.
    """
    named: dict[str, str] = {}
    for name, path in paths.items():
        if not isinstance(cast("object", path), str):
            raise UsageError(f"`{name}` must be a path, such as '/mcp', not {path!r}")
        if not path.startswith("/") or not path.isprintable() or any(each in path for each in "?# "):
            raise UsageError(f"`{name}` is {path!r}; it must begin with / and contain no space and neither ? nor #")
        other = named.setdefault(path, name)
        if other != name:
            raise UsageError(f"`{other}` and `{name}` must be different paths, but both are {path!r}")


def user_name(found: object) -> str:
    """Return what the option `user` has returned; None is no user.

    Raises:
        UsageError: It is not text, but a number, for example. A request state names its user as text.
    """
    if found is None:
        return ""
    if not isinstance(found, str):
        raise UsageError(f"`user` returned a value of the type {type(found).__name__}; return a str, such as str(…)")
    return found
