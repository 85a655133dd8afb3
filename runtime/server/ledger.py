"""The ledger of one server: how many bytes of memory it keeps for its clients, by kind.

Theory of operation. Each thing that a client can make the server keep is charged when it is kept, at what it costs in
memory, and until it is freed, whether or not its connection still exists. It is charged once, in an account of its
kind. There are three kinds of accounts, from the cheapest on:

* `Account`: a plain integer, for what one session bounds by itself;
* `Quota`: for what owners share fairly;
* a function, for a store that counts by itself.

An account only counts. The limit is checked beside it, and has a name in `Limits`, `HttpLimits` or `TaskLimits`. If
owners have to share what an account counts already, such as the open requests of an HTTP application, a `Quota` of its
own bounds it, which is not one of the ledger's.

What is freed may leave memory in a reference cycle, where no account counts it: Python's `asyncio.TaskGroup` keeps the
arguments of a function in one if a task fails. The garbage collector frees such cycles, but it counts objects, and a
few can have hundreds of megabytes. So the ledger calls it by the bytes that were freed.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from msgspec import Raw, UnsetType

from mcpgen.runtime.protocol.json_costs import PLAIN_COSTS
from mcpgen.runtime.protocol.message_size import memory_bytes
from mcpgen.runtime.server.quota import Quota
from mcpgen.runtime.transports.process_memory import FEW_BLOCKS, collect_garbage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from mcpgen.runtime.protocol.capabilities import Peer
    from mcpgen.runtime.protocol.json_costs import JsonCosts
    from mcpgen.runtime.protocol.messages import RequestId

__all__ = [
    "HANDLER_BYTES",
    "SESSION_BYTES",
    "Account",
    "Kind",
    "Ledger",
    "change_bytes",
    "peer_bytes",
    "request_bytes",
    "server_request_bytes",
    "uris_bytes",
    "waiting_bytes",
]

# Measured in CPython 3.11 as resident memory of many: what each costs beside its texts and decoded values.
HANDLER_BYTES: Final = 4500  # a task, the frames of the handler and of those around it, its context and exchange
SESSION_BYTES: Final = 1000
_WAITING_BYTES: Final = 800
_SERVER_REQUEST_BYTES: Final = 1500
_URI_BYTES: Final = 100
_CHANGE_BYTES: Final = 250

_SMALL_BYTES: Final = 512

# Requests of so many bytes end between two collections, which take about 10 ms each. Reading the requests takes longer.
_GARBAGE_BYTES: Final = 16 * 1024 * 1024

# Requests share a declaration of up to 4,096 bytes, which `mcpgen.runtime.protocol.capabilities` caches. A longer one
# takes at least this, and is charged to its stateless request.
_SHARED_PEER_BYTES: Final = 2 * 4096

Kind: TypeAlias = Literal[
    "events", "messages", "open requests", "parked requests", "sessions", "tasks", "tokens", "uploads"
]
"""What is kept.

* events: of streams that clients can resume.
* messages: those that wait for a client that does not read, or has no stream.
* open requests: requests whose handler has not ended, even if they were cancelled, and the pending requests of these
  handlers to the client.
* parked requests: handlers that wait for a stateless client's retry.
* sessions: the declared capabilities of the clients, and the URIs of their subscriptions.
* tasks: their records and results.
* tokens: verified access tokens, as hashes, and their claims.
* uploads: bodies that have not arrived completely.
"""


class Account:
    """The bytes of one kind. The code that keeps them adds them, and subtracts them when it frees them.

    Attributes:
        bytes: The bytes that are kept now.
    """

    __slots__ = ("bytes",)

    def __init__(self) -> None:
        self.bytes: int = 0


class Ledger:
    """The bytes of memory that one server keeps for its clients."""

    def __init__(self) -> None:
        self._accounts: dict[Kind, Account] = {}
        self._quotas: dict[Kind, list[Quota]] = {}
        self._stores: dict[Kind, list[Callable[[], int]]] = {}
        self._freed_bytes = 0  # since the last garbage collection
        self._few_blocks = sys.getallocatedblocks() + FEW_BLOCKS

    @property
    def kept_bytes(self) -> int:
        """The bytes of all kinds."""
        return sum(self.by_kind().values())

    def by_kind(self) -> dict[Kind, int]:
        """Return the bytes of each kind of which something was ever kept."""
        found: dict[Kind, int] = {kind: each.bytes for kind, each in self._accounts.items()}
        for kind, quotas in self._quotas.items():
            found[kind] = found.get(kind, 0) + sum(each.kept_bytes for each in quotas)
        for kind, stores in self._stores.items():
            found[kind] = found.get(kind, 0) + sum(each() for each in stores)
        return found

    def account(self, kind: Kind) -> Account:
        """Return the account of *kind*, which all sessions share."""
        found = self._accounts.get(kind)
        if found is None:
            found = self._accounts[kind] = Account()
        return found

    def quota(self, kind: Kind, *, max_count: int, max_bytes: int) -> Quota:
        """Return a new quota of *kind*, whose entries are counted here."""
        made = Quota(max_count, max_bytes)
        self._quotas.setdefault(kind, []).append(made)
        return made

    def add_store(self, kind: Kind, kept_bytes: Callable[[], int]) -> None:
        """Count what a store of *kind* keeps; *kept_bytes* returns it."""
        self._stores.setdefault(kind, []).append(kept_bytes)

    def count_freed(self, size: int) -> None:
        """Count *size* bytes of a large request that has ended, and collect garbage from time to time."""
        self._freed_bytes += size
        if self._freed_bytes >= _GARBAGE_BYTES:
            self._freed_bytes = 0
            collect_garbage(self._few_blocks)


def request_bytes(params: Raw | UnsetType, request_id: RequestId = 0, costs: JsonCosts = PLAIN_COSTS) -> int:
    """Return what a request or notification costs in memory while its handler runs.

    Args:
        params: Undecoded.
        request_id: Its id.
        costs: What the values in the params take when they are decoded.
    """
    if type(request_id) is str:
        return _text_bytes(request_id) + request_bytes(params, 0, costs)
    if isinstance(params, UnsetType):
        return HANDLER_BYTES
    size = len(memoryview(params))
    # Most requests are that small. The decoded values of a usual one take as much again.
    if size <= _SMALL_BYTES and costs is PLAIN_COSTS:
        return HANDLER_BYTES + 2 * size
    return HANDLER_BYTES + memory_bytes(bytes(params), costs)


def waiting_bytes(request_id: RequestId, peer: Peer | None) -> int:
    """Return what an open request costs for which no handler runs; *peer* is a client that only it names."""
    size = _WAITING_BYTES
    if isinstance(request_id, str):
        size += _text_bytes(request_id)
    return size + peer_bytes(peer)


def peer_bytes(peer: Peer | None) -> int:
    """Return what *peer* costs, a client that only its request names; 0 if other requests share its declaration."""
    return 0 if peer is None or peer.memory_bytes < _SHARED_PEER_BYTES else peer.memory_bytes


def server_request_bytes(params: bytes | UnsetType) -> int:
    """Return what a request to the client costs while it waits for the answer."""
    return _SERVER_REQUEST_BYTES + (0 if isinstance(params, UnsetType) else 3 * len(params))


def uris_bytes(uris: Iterable[str]) -> int:
    """Return what subscriptions to *uris* cost."""
    return sum(_URI_BYTES + _text_bytes(each) for each in uris)


def change_bytes(uri: str | None) -> int:
    """Return what the notification of a change costs while it waits."""
    return _CHANGE_BYTES + _text_bytes(uri or "")


def _text_bytes(text: str) -> int:
    # Not `sys.getsizeof`, which changes when a text is encoded: the same bytes have to be subtracted at the end.
    return len(text) if text.isascii() else 4 * len(text)
