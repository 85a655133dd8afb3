"""Decoding results, also those of servers that run ahead of the agreed revision.

Many servers send every client what only later revisions have, such as audio. So a result that the agreed revision does
not allow is decoded as a later revision of the same era, and the log says so. A result that no such revision allows is
an error.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final

import msgspec

from mcpgen.generated import registry
from mcpgen.runtime.adapt.routes import definition_route
from mcpgen.runtime.client.input_required import INPUT_REQUIRED_METHODS
from mcpgen.runtime.errors import AdaptationError, InvalidPayload, UnknownMethod
from mcpgen.runtime.protocol.codec import codec
from mcpgen.runtime.protocol.negotiation import revisions_of_era
from mcpgen.runtime.transports.event_loops import next_turn

if TYPE_CHECKING:
    from msgspec import Raw

    from mcpgen.runtime.protocol.codec import OutgoingRequestCodec
    from mcpgen.runtime.protocol.reading_policy import ReadingPolicy

__all__ = ["ResultReader"]

_LOG: Final = logging.getLogger("mcpgen.session")


class ResultReader:
    """Decodes the results of one server.

    Args:
        native_revision: The revision of the caller.
        revision: The agreed revision.
        reading: How the messages of the server are read.
    """

    def __init__(self, native_revision: str, revision: str, reading: ReadingPolicy) -> None:
        self._native_revision = native_revision
        self._revision = revision
        era = registry.revision(revision).era
        labels = revisions_of_era([each.label for each in registry.known()], era)
        self._is_stateless = era == "stateless"
        self._later_revisions = () if reading.is_strict else labels[labels.index(revision) + 1 :]
        self._reading = reading
        self._reported: set[tuple[str, str]] = set()

    def read_json(self, method: str, raw: Raw) -> dict[str, Any]:
        """Return the JSON of a result of *method*, which is neither adapted nor checked.

        Raises:
            InvalidPayload: It has a number or a text that Python does not read.
        """
        try:
            return msgspec.json.decode(raw, type=dict[str, Any])
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            what = f"the result of {method}"
            raise InvalidPayload(revision=self._revision, pointer="", what=what, reason=str(error)) from None

    async def read(self, ask: OutgoingRequestCodec, raw: Raw) -> Any:
        """Return a result in the native revision.

        A result that the agreed revision does not allow is decoded several times, each time in a turn of the event loop
        of its own.

        Raises:
            InvalidPayload: No revision of this era, from the agreed one on, allows the result.
        """
        try:
            return ask.result(raw)
        except InvalidPayload as error:
            invalid = error.with_traceback(None)
        for label in self._later_revisions:
            await next_turn()
            try:
                result = codec(self._native_revision, label, "client").outgoing_request(ask.method).result(raw)
            except (InvalidPayload, AdaptationError, UnknownMethod):
                continue
            if (ask.method, label) not in self._reported:
                self._reported.add((ask.method, label))
                _LOG.warning(
                    "the server answered %s in the format of %s, a later revision than the agreed one: %s",
                    ask.method,
                    label,
                    invalid,
                )
            return result
        await next_turn()
        normalized = self._normalized(ask, raw)
        await next_turn()
        if normalized is None:
            raise self._explain(ask.method, raw, invalid)
        return ask.result(normalized)

    def _normalized(self, ask: OutgoingRequestCodec, raw: Raw) -> Raw | None:
        return self._reading.payload(self._revision, ask.method, "result", "client", raw)

    def _explain(self, method: str, raw: Raw, invalid: InvalidPayload) -> InvalidPayload:
        """Return an error about the final result, where *invalid* is about the union with `InputRequiredResult`."""
        if not self._is_stateless or method not in INPUT_REQUIRED_METHODS:
            return invalid
        types = registry.revision(self._revision).bindings().methods.CLIENT_REQUESTS
        name = types[method].params.__name__.replace("RequestParams", "Result")
        try:
            value = msgspec.json.decode(raw)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return invalid  # which says so
        try:
            definition_route(self._revision, self._revision, name).payload.check(value)
        except InvalidPayload as found:
            return InvalidPayload(
                revision=self._revision, pointer=found.pointer, what=invalid.what, reason=found.reason
            )
        return invalid
