"""Notifications of changed lists, which are collected: many changes in one step of an event loop are one notification.

Theory of operation. A function may be registered or hidden in any thread, and the connections of a server may belong to
several event loops (each blocking client has one). So a change is noted for each loop that has a connection, and the
loop sends the notification in its next turn. Threads share the notes without a lock: each operation on them is one
operation of a dict. A thread schedules a turn after each note, and the first turn sends all notes.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from mcpgen.runtime.transports.event_loops import EventLoop, call_soon

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from mcpgen.runtime.server.change_delivery import ChangeDelivery
    from mcpgen.runtime.server.session_output import SessionOutput

__all__ = ["ListChanges"]


class ListChanges:
    """Sends notifications of changed lists to all connections of a server.

    Args:
        connections: The connections, each with its event loop.
        delivery: Sends the notifications.
    """

    def __init__(self, connections: Mapping[SessionOutput, EventLoop], delivery: ChangeDelivery) -> None:
        self._connections = connections
        self._delivery = delivery
        self._pending: dict[EventLoop, dict[str, None]] = {}

    def announce(self, methods: Iterable[str]) -> None:
        """Send the notifications *methods* in the next turn of each event loop; call this in any thread."""
        changed = dict.fromkeys(methods)
        if not changed:
            return
        for loop in dict.fromkeys(list(self._connections.values())):  # a copy, since other threads may add some
            pending = self._pending.setdefault(loop, {})
            pending.update(changed)
            if not call_soon(loop, partial(self._send, loop, pending)):
                self._pending.pop(loop, None)

    def forget(self, method: str) -> None:
        """Drop the notification *method*, because it is sent now."""
        for each in list(self._pending.values()):
            each.pop(method, None)

    def _send(self, loop: EventLoop, pending: dict[str, None]) -> None:
        self._pending.pop(loop, None)
        methods = list(pending)
        for each in methods:
            pending.pop(each, None)
            self._delivery.deliver_in(loop, partial(_send_one, each), (loop, each))


def _send_one(method: str, connection: SessionOutput) -> None:
    connection.notify_change(method, None)
