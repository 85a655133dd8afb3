"""The laws of adapters, for one ordered pair of revisions.

``Judge`` knows nothing about how adapters come about: it is given routes and asks what they do to the instances of each
subject. Every law yields findings; none of them stops at the first.
"""

from __future__ import annotations

import json
from itertools import pairwise
from typing import TYPE_CHECKING, Protocol, TypeAlias

import msgspec

from tests.adapters.changes import Loss, unreported, untrue
from tests.adapters.findings import Finding, Findings
from tests.adapters.subjects import INSTANCES, payloads
from tests.oracle.subjects import REVISIONS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tests.adapters.subjects import Subject
    from tests.oracle.shapes import Json


class Adapted(Protocol):
    """What comes out of a route."""

    @property
    def value(self) -> Json:
        """The value in the target revision."""
        ...

    @property
    def losses(self) -> Sequence[Loss]:
        """What it says less."""
        ...

    @property
    def kept(self) -> bool:
        """Whether the value carries what was lost."""
        ...


class Route(Protocol):
    """What adapts the values of one subject from one revision to another."""

    @property
    def is_identity(self) -> bool:
        """Whether it leaves everything alone."""
        ...

    def adapt(self, value: Json, *, keep: bool = False) -> Adapted:
        """Return *value* in the target revision."""
        ...


class Routes(Protocol):
    """Where routes come from."""

    @property
    def refusal(self) -> type[Exception]:
        """What is raised for a method that the target lacks, and for a value that it cannot express."""
        ...

    @property
    def invalid(self) -> type[Exception]:
        """What is raised for a value that its own revision does not allow."""
        ...

    def __call__(self, source: str, target: str, subject: Subject) -> Route:
        """Return the route, or raise ``refusal``."""
        ...


# Whoever keeps what was lost may bound how much; from a message so small, everything has to be kept.
ALWAYS_KEPT_BYTES = 16 * 1024

Way: TypeAlias = "tuple[str, ...]"

encoded = msgspec.json.encode
_sorted = msgspec.json.Encoder(order="sorted").encode


_NAMED = "io.modelcontextprotocol/protocolVersion"


class Judge:
    """Puts the routes from *source* to *target* on trial."""

    def __init__(self, source: str, target: str, routes: Routes) -> None:
        """Find out which subjects both revisions have."""
        self.source = source
        self.target = target
        self._routes = routes
        self.sent = payloads(source)
        self.received = payloads(target)
        self.findings = Findings()
        self.trials = 0
        self.adapted = 0
        self._known: dict[tuple[str, str, Subject], Route | None] = {}

    @property
    def subjects(self) -> list[Subject]:
        """The subjects of both revisions."""
        return [each for each in self.sent.schemas if each in self.received.schemas]

    @property
    def between(self) -> tuple[str, ...]:
        """The revisions that lie on the way."""
        one, other = sorted([REVISIONS.index(self.source), REVISIONS.index(self.target)])
        return REVISIONS[one + 1 : other]

    @property
    def is_down(self) -> bool:
        """Whether the target is the older one."""
        return REVISIONS.index(self.target) < REVISIONS.index(self.source)

    def _find(self, law: str, subject: Subject, instance: Json, says: str, way: Way = ()) -> None:
        self.findings.add(Finding(law, way or (self.source, self.target), subject, instance, says))

    def _route(self, source: str, target: str, subject: Subject) -> Route | None:
        """Return the route, or None if it is refused; crashes are findings."""
        key = (source, target, subject)
        if key not in self._known:
            try:
                self._known[key] = self._routes(source, target, subject)
            except self._routes.refusal as error:
                self._known[key] = None
                if not getattr(error, "service", None) and subject.part != "definition":
                    self._find("routes", subject, None, f"refused without naming a service\n{error!r}", key[:2])
        return self._known[key]

    def _has_room(self, subject: Subject, after: Json) -> bool:
        """Whether *after* can hold what was lost: not if the target has no metadata there, nor if it is too much."""
        holder = "data" if subject.part == "error" else "_meta"
        inside = after.get(holder, {})
        return (
            isinstance(inside, dict)
            and self.received.closed.accepts(subject.key, {**after, holder: inside})
            and len(encoded(after)) < ALWAYS_KEPT_BYTES
        )

    def hostile(self) -> Findings:
        """What its own revision forbids is refused, or comes out as something valid; nothing crashes."""
        for subject in self.subjects:
            if (route := self._route(self.source, self.target, subject)) is None:
                continue
            for value in self.sent.mutants(subject):
                self.trials += 1
                try:
                    after = route.adapt(value).value
                except (self._routes.invalid, self._routes.refusal):
                    continue
                except Exception as error:  # noqa: BLE001  (a crash is a finding)
                    self._find("crashes", subject, value, f"{type(error).__name__}: {_general(error)}\n{error!r}")
                    continue
                self._check_validity(subject, value, after, "validity of what was invalid")
        return self.findings

    def _adapt(self, value: Json, subject: Subject, way: Way, *, keep: bool = False) -> Adapted | None:
        """Return *value* adapted along *way*, None if that is refused; only the first step keeps what is lost."""
        adapted: Adapted | None = None
        try:
            for index, (source, target) in enumerate(pairwise(way)):
                if (route := self._route(source, target, subject)) is None:
                    return None
                adapted = route.adapt(adapted.value if adapted else value, keep=keep and index == 0)
        except self._routes.refusal as error:
            self._check_refusal(subject, value, error, way)
            return None
        except Exception as error:  # noqa: BLE001  (a crash is a finding, not the end of the trial)
            self._find("crashes", subject, value, f"{type(error).__name__}: {_general(error)}\n{error!r}", way)
            return None
        return adapted

    def _check_refusal(self, subject: Subject, value: Json, error: Exception, way: Way) -> None:
        pointer: object = getattr(error, "pointer", None)
        if not getattr(error, "step", None) or not isinstance(pointer, str):
            self._find("refusals", subject, value, f"a refusal without step or pointer\n{error!r}", way)
        elif not pointer and not getattr(error, "service", None):
            self._find("refusals", subject, value, f"the whole message is refused and no service named\n{error!r}", way)

    def _instances(self) -> Iterator[tuple[Subject, Json]]:
        for subject in self.subjects:
            if self._route(self.source, self.target, subject) is not None:
                for value in self.sent.instances(subject):
                    self.trials += 1
                    yield subject, value

    def existence(self) -> Findings:
        """There is a route for what both revisions have as the same kind of message, and none for what only one has."""
        for subject in self.sent.schemas:
            refused = self._route(self.source, self.target, subject) is None
            if subject in self.received.schemas:
                if refused and self._is_one_kind(subject):
                    self._find("routes", subject, None, "no route, though both revisions have it")
            elif not refused and not self._is_shared(subject):
                self._find("routes", subject, None, "a route, though the target does not have it")
        return self.findings

    def _is_one_kind(self, subject: Subject) -> bool:
        """Whether both revisions have it: a request that became an input is for an engine to translate."""
        key = (subject.name, subject.sender)
        return self.sent.kinds.get(key) == self.received.kinds.get(key)

    def _is_shared(self, subject: Subject) -> bool:
        """Whether the target has it elsewhere: errors have no shape of their own, arms degrade."""
        return subject.part in {"error", "definition"}

    def outputs(self) -> Findings:
        """What comes out is valid, decodes, keeps what is nobody's, and every change is reported; inputs stay."""
        expressed: dict[Subject, int] = {}
        for subject, value in self._instances():
            before = encoded(value)
            adapted = self._adapt(value, subject, (self.source, self.target))
            expressed[subject] = expressed.get(subject, 0) + (adapted is not None)
            if encoded(value) != before:
                value.clear()  # others are tried with it too
                value.update(json.loads(before))
                self._find("inputs stay", subject, value, "the input was changed")
            if adapted is None:
                continue
            self.adapted += 1
            self._check_validity(subject, value, adapted.value, "validity")
            if adapted.losses or encoded(adapted.value) != before:
                self._check_losses(subject, value, adapted)
                self._check_need(subject, value, adapted)
        for subject, count in expressed.items():
            # Most retries carry input of which an older revision knows nothing; nothing else is refused as often.
            if count < INSTANCES / 10 and self._is_one_kind(subject):
                self._find("refusals", subject, None, f"only {count} of {INSTANCES} instances can be expressed")
        return self.findings

    def _check_losses(self, subject: Subject, value: Json, adapted: Adapted) -> None:
        route = self._route(self.source, self.target, subject)
        if route is not None and route.is_identity:
            self._find("identity", subject, value, f"an identity that is none\n{adapted.value!r}")
        found = [*unreported(value, adapted.value, adapted.losses)]
        if not self.between:  # later steps find things elsewhere
            found += untrue(value, adapted.value, adapted.losses)
        for says in found:
            self._find("losses", subject, value, f"{says}\n{adapted.value!r}\nlosses: {adapted.losses!r}")

    def _check_need(self, subject: Subject, value: Json, adapted: Adapted) -> None:
        """Going up, what is as it should be in the target stays: foreign keys too, if they are valid there."""
        # Not true of a longer way, on which what comes between may not know a key; and codes mean what they mean. A
        # foreign type of a result is not believed: in older revisions every result is complete. Nor is the revision
        # that a request of an older one names. And the metadata of roots/list has a type of its own since 2026-07-28.
        if self.is_down or self.between or subject.part == "error" or "resultType" in value:
            return
        if subject.name == "roots/list" and "_meta" in value:
            return
        meta = value.get("_meta") if isinstance(value, dict) else None
        if isinstance(meta, dict) and meta.get(_NAMED, self.target) != self.target:
            return
        if self.received.closed.accepts(subject.key, value):
            self._find("need", subject, value, f"valid in the target, and changed\n{adapted!r}")

    def _check_validity(self, subject: Subject, value: Json, after: Json, law: str) -> None:
        if not self.received.closed.accepts(subject.key, after):
            plain = self.received.plain.accepts(subject.key, after)
            says = "a key that is foreign to the target" if plain else "not valid in the target"
            self._find(law, subject, value, f"{says}\n{after!r}")
        try:
            self.received.decoder(subject)(encoded(after))
        except (msgspec.MsgspecError, ValueError) as error:
            self._find(f"{law} of bindings", subject, value, f"{_general(error)}\n{after!r}")

    def returns(self) -> Findings:
        """There, back and there again is the same as there."""
        way = (self.source, self.target)
        for subject, value in self._instances():
            if not self.is_down and not self.sent.clean(subject, value):
                continue  # what was foreign is adopted going up, and lost coming down
            if (there := self._adapt(value, subject, way)) is None:
                continue
            again = self._adapt(there.value, subject, (self.target, self.source, self.target))
            if again is not None and _sorted(again.value) != _sorted(there.value):
                difference = _first_difference(there.value, again.value)
                self._find("returns", subject, value, f"{difference}\n{there.value!r}\n{again.value!r}")
        return self.findings

    def stepping(self) -> Findings:
        """A long way is the same as its parts, in values, losses and refusals."""
        for subject, value in self._instances():
            straight = self._adapt(value, subject, (self.source, self.target))
            for middle in self.between if self.source < self.target else self.between[::-1]:
                if subject in payloads(middle).schemas:
                    self._check_stepping(subject, value, straight, middle)
        return self.findings

    def _check_stepping(self, subject: Subject, value: Json, straight: Adapted | None, middle: str) -> None:
        way = (self.source, middle, self.target)
        first = self._adapt(value, subject, way[:2])
        second = first and self._adapt(first.value, subject, way[1:])
        if first is None or second is None or straight is None:
            if (second is None) != (straight is None):
                self._find("stepping", subject, value, f"{'straight' if second else 'stepping'} alone is refused", way)
        elif encoded(second.value) != encoded(straight.value):
            difference = _first_difference(straight.value, second.value)
            self._find("stepping", subject, value, f"{difference}\n{straight.value!r}\n{second.value!r}", way)
        elif [*map(repr, first.losses), *map(repr, second.losses)] != [*map(repr, straight.losses)]:
            says = f"other losses\n{straight.losses!r}\n{first.losses!r}\n{second.losses!r}"
            self._find("stepping", subject, value, says, way)

    def keeping(self) -> Findings:
        """What is kept on the way down comes back on the way up, and does not make the message invalid meanwhile."""
        way = (self.source, self.target, self.source)
        for subject, value in self._instances():
            if subject.part == "definition" or not self.sent.clean(subject, value):
                continue  # a definition by itself has no metadata to keep things in
            if (kept := self._adapt(value, subject, way[:2], keep=True)) is None:
                continue
            self.adapted += 1
            self._check_validity(subject, value, kept.value, "validity of what is kept")
            if not self.is_down:
                continue
            if kept.losses and not kept.kept:
                if self._has_room(subject, kept.value):
                    self._find("keeping", subject, value, f"nothing is kept\n{kept.value!r}\n{kept.losses!r}")
                continue
            back = self._adapt(kept.value, subject, way[1:])
            if back is None:
                self._find("keeping", subject, value, f"the way back is refused\n{kept.value!r}", way)
            elif _sorted(back.value) != _sorted(value):
                difference = _first_difference(value, back.value)
                self._find("keeping", subject, value, f"{difference}\n{kept.value!r}\n{back.value!r}", way)
        return self.findings


def _general(error: Exception) -> str:
    """Return the part of the message that does not depend on the instance."""
    return str(error).partition("`$")[0]


def _first_difference(before: Json, after: Json) -> str:
    from tests.adapters.changes import changes

    found = next((f"{each.pointer or '/'} {each.kind}" for each in changes(before, after)), "another number")
    return f"different at {found}"
