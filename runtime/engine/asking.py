"""A question that a server has put to its client: sent as a request, or inside a demand for input.

Spec:
    2024-11-05 to 2025-11-25, client/roots, client/sampling, client/elicitation; 2026-07-28, basic/patterns/mrtr.
"""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET, Raw, UnsetType

from mcpgen.runtime.adapting.pointers import is_object
from mcpgen.runtime.errors import RequestRefused, TransportClosed

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcpgen.runtime.peers.codec import AskCodec
    from mcpgen.runtime.wire.messages import ErrorResponse

__all__ = ["Ask"]


class Ask:
    """A question, and its answer as soon as there is one.

    Attributes:
        codec: Makes a value of home out of the answer.
        params: What the client is asked, in the terms of its revision.
        value: What the handler wanted to be sent, in the terms of home.
        on_settled: Called once, when there is an answer or none will come.
        key: What names it among those of its exchange.
    """

    __slots__ = ("_failure", "_is_settled", "_result", "codec", "key", "on_settled", "params", "value")

    def __init__(self, codec: AskCodec, params: bytes | UnsetType, value: Any) -> None:
        self.codec: AskCodec = codec
        self.params: bytes | UnsetType = params
        self.value: Any = value
        self.on_settled: Callable[[], None] | None = None
        self.key: str = ""
        self._is_settled = False
        self._result: Any = None
        self._failure: Exception | None = None

    @property
    def is_settled(self) -> bool:
        """Whether there is an answer, or none will come."""
        return self._is_settled

    @property
    def digest(self) -> str:
        """What tells this question from another one at the same place."""
        params = b"" if isinstance(self.params, UnsetType) else self.params
        return sha256(self.codec.method.encode() + b"\0" + params).hexdigest()

    def read(self, raw: Raw) -> Any:
        """Return the client's result as home has it.

        Raises:
            InvalidPayload: The client's revision does not allow it.
        """
        return _several(self.value, self.codec.result(raw))

    def settle(self, result: Any) -> None:
        """Take *result*, which `read` returned, for the answer."""
        self._result = result
        self._done()

    def refuse(self, response: ErrorResponse) -> None:
        """Take an error response for the answer."""
        self.fail(RequestRefused(self.codec.method, self.codec.error(response)))

    def fail(self, failure: Exception) -> None:
        """Take it that there will be no answer, because of *failure*."""
        self._failure = failure
        self._done()

    def outcome(self) -> Any:
        """Return the answer.

        Raises:
            RequestRefused: The client answered with an error.
            InvalidPayload: It answered with something else than its revision allows.
            UnsupportedByPeer: The client that came back cannot be asked any more.
            TransportClosed: It has gone.
        """
        if self._failure is not None:
            raise self._failure
        return self._result

    def _done(self) -> None:
        if self._is_settled:
            return
        self._is_settled = True
        if self.on_settled is not None:
            self.on_settled()

    def leave(self) -> None:
        """Take it that there is nobody left to answer."""
        self.fail(TransportClosed("the client has gone before it answered"))


def _several(asked: Any, result: Any) -> Any:
    """Return *result* with a list wherever a choice of several was asked for.

    Before 2025-11-25 forms have no such choice: the adapter offers one of the options, and a string comes back.

    Spec:
        2025-11-25, client/elicitation, "Supported Schema Types" (multi-select enums are new).
    """
    content = getattr(result, "content", UNSET)
    schema = getattr(asked, "requested_schema", None)
    if not is_object(content) or schema is None:
        return result
    properties: dict[str, Any] = msgspec.to_builtins(schema).get("properties", {})
    given: dict[str, Any] = content
    wrapped = {
        name: [answer] if isinstance(answer, str) and properties.get(name, {}).get("type") == "array" else answer
        for name, answer in given.items()
    }
    return result if wrapped == given else msgspec.structs.replace(result, content=wrapped)
