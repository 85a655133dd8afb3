"""`connect_sync`: the blocking form of `connect`."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Unpack, overload

from mcpgen.runtime.api.blocking_client import EventLoopThread
from mcpgen.runtime.api.connect import connect
from mcpgen.runtime.api.connect_options import refuse_unknown
from mcpgen.runtime.api.sync_client import SyncClient
from mcpgen.runtime.errors import UsageError

if TYPE_CHECKING:
    from mcpgen.runtime.api.connect import Connection, Target
    from mcpgen.runtime.api.connect_options import Options
    from mcpgen.runtime.api.hosts.sync_group import SyncClientGroup

__all__ = ["connect_sync"]


@overload
def connect_sync(target: Target, **options: Unpack[Options]) -> SyncClient: ...


@overload
def connect_sync(target: Mapping[str, object], **options: Unpack[Options]) -> SyncClientGroup: ...


def connect_sync(target: Target | Mapping[str, object], **options: Unpack[Options]) -> SyncClient | SyncClientGroup:
    """Connect to a server of any revision, in a program without an event loop.

        with connect_sync("python server.py") as client:
            client.call_tool("echo", {"text": "hi"})

    The client has a thread of its own with an event loop. So it works in notebooks, too, in which a loop runs already.
    Without ``with``, call ``client.close()``; a client that is still open is closed when the interpreter exits.

    Functions such as ``elicit`` may be plain or async. They run in that thread, and cannot call the blocking client.

    Args:
        target: As for `connect`. The configuration of a host gives a `SyncClientGroup`.
        **options: As for `connect`, but without ``native_revision``.

    Raises:
        UsageError: An argument is wrong, or two arguments contradict each other.
        McpgenError: The connection failed. Nothing is left behind.
    """
    if "native_revision" in options:
        raise UsageError("connect_sync() has no option `native_revision`; leave it out, or use connect()")
    refuse_unknown(options, "connect_sync")
    # Reports wrong arguments before a thread is started.
    connection: Connection[Any] = connect(target, **options)
    blocking = _blocking_class(target)
    thread = EventLoopThread()
    try:
        return blocking(thread, thread.run(lambda: connection))
    except BaseException:
        thread.stop()
        raise


def _blocking_class(target: object) -> type[SyncClient | SyncClientGroup]:
    if not isinstance(target, Mapping):
        return SyncClient
    from mcpgen.runtime.api.hosts.sync_group import SyncClientGroup  # noqa: PLC0415 (most programs need no group)

    return SyncClientGroup


def _signature() -> inspect.Signature:
    """Return the signature of `connect`, for `help` and editors."""
    signature = inspect.signature(connect)
    kept = [each for each in signature.parameters.values() if each.name != "native_revision"]
    return signature.replace(parameters=kept, return_annotation="SyncClient")


connect_sync.__dict__["__signature__"] = _signature()
