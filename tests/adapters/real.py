"""The adapters that users get, as the judge wants to call them."""

from __future__ import annotations

from itertools import permutations
from typing import TYPE_CHECKING, ClassVar

from mcpgen.runtime import adapt
from mcpgen.runtime.errors import AdaptationError, InvalidPayload
from tests.adapters.subjects import payloads
from tests.oracle.subjects import REVISIONS

if TYPE_CHECKING:
    from tests.adapters.laws import Route
    from tests.adapters.subjects import Subject

PAIRS = tuple(permutations(REVISIONS, 2))


class RealRoutes:
    """Routes of `mcpgen.runtime.adapt`."""

    refusal: ClassVar[type[Exception]] = AdaptationError
    invalid: ClassVar[type[Exception]] = InvalidPayload

    def __call__(self, source: str, target: str, subject: Subject) -> Route:
        """Return the route for *subject*."""
        if subject.part == "definition":
            return adapt.definition_route(source, target, payloads(source).local_name(subject))
        return adapt.route(source, target, subject.name, subject.part, sender=subject.sender or None)
