"""Reading what a server answered, which may be ahead of the revision that was agreed on.

Many servers send old clients what only later revisions have, such as audio: they adapt nothing. So a result that the
revision does not allow is read as one of a revision after it, of the same era, and the log says so. What no revision
allows is refused.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final

import msgspec

from mcpgen.generated import registry
from mcpgen.runtime.adapt.routes import definition_route
from mcpgen.runtime.client.input_required import MAY_DEMAND
from mcpgen.runtime.errors import AdaptationError, InvalidPayload, UnknownMethod
from mcpgen.runtime.protocol.codec import codec
from mcpgen.runtime.protocol.negotiation import revisions_of_era

if TYPE_CHECKING:
    from msgspec import Raw

    from mcpgen.runtime.protocol.codec import OutgoingRequestCodec

__all__ = ["ResultReader"]

_LOG: Final = logging.getLogger("mcpgen.session")


class ResultReader:
    """Reads the results of one server.

    Args:
        native_revision: The revision of the caller.
        revision: The one that was agreed on.
    """

    def __init__(self, native_revision: str, revision: str) -> None:
        self._home = native_revision
        self._revision = revision
        era = registry.revision(revision).era
        labels = revisions_of_era([each.label for each in registry.REVISIONS], era)
        self._is_stateless = era == "stateless"
        self._later = labels[labels.index(revision) + 1 :]
        self._told: set[tuple[str, str]] = set()

    def read(self, ask: OutgoingRequestCodec, raw: Raw) -> Any:
        """Return a result as home has it.

        Raises:
            InvalidPayload: No revision of this era allows it.
        """
        try:
            return ask.result(raw)
        except InvalidPayload as invalid:
            for label in self._later:
                try:
                    result = codec(self._home, label, "client").ask(ask.method).result(raw)
                except (InvalidPayload, AdaptationError, UnknownMethod):
                    continue
                if (ask.method, label) not in self._told:
                    self._told.add((ask.method, label))
                    _LOG.warning("the server speaks %s as %s has it: %s", ask.method, label, invalid)
                return result
            raise self._explained(ask.method, raw, invalid) from None

    def _explained(self, method: str, raw: Raw, invalid: InvalidPayload) -> InvalidPayload:
        """Say where a final result is wrong: that it is no demand for input is known, and not to be explained."""
        if not self._is_stateless or method not in MAY_DEMAND:
            return invalid
        types = registry.revision(self._revision).bindings().methods.CLIENT_REQUESTS
        name = types[method].params.__name__.replace("RequestParams", "Result")
        try:
            definition_route(self._revision, self._revision, name).payload.check(msgspec.json.decode(raw))
        except InvalidPayload as found:
            return InvalidPayload(
                revision=self._revision, pointer=found.pointer, what=invalid.what, reason=found.reason
            )
        return invalid
