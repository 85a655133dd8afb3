"""Routes: adapters of one part of a message from one revision to another, for gateways and for the engine.

Theory of operation. The generator writes a step between neighbouring revisions for each part of each message. A route
composes the steps of one part, omits those that change nothing, and is cached for the life of the process. A step
assumes that its value is valid, so `Route.adapt` first checks the value against the source revision. Only the first
step can meet a key that its revision does not define, so a later step that would only drop such keys is omitted, too.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec
from msgspec import UNSET, Struct

from mcpgen.generated.adapters import Loss, Losses, Message, Refusal, Severity
from mcpgen.generated.adapters import Part as Step
from mcpgen.runtime.adapt.declared_keys import is_declared
from mcpgen.runtime.adapt.json_pointer import ABSENT, is_object, look_up, pointer_to, tokens_of
from mcpgen.runtime.adapt.payloads import Part, Payload, Sender, definition_payload, message_payload, senders
from mcpgen.runtime.adapt.stash import KEY, Stash, apply_stash, difference, is_same_json, put_stash, take_stash
from mcpgen.runtime.adapt.steps import GENERATED, Steps, step_name
from mcpgen.runtime.errors import AdaptationError, InvalidPayload, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Adapted", "Loss", "Losses", "Part", "Route", "Router", "Sender", "Severity", "definition_route", "route"]

JSON: TypeAlias = Any
"""What `json.loads` returns: dict, list, str, int, float, bool or None."""


class Adapted(Struct, frozen=True, kw_only=True):
    """The result of a route.

    Attributes:
        value: The value in the target revision. It may share parts with the source value.
        losses: The losses, in the order in which they occurred.
        kept: Whether *value* carries a stash of the lost values.
        restored: Whether values from a stash were restored.
    """

    value: JSON
    losses: tuple[Loss, ...] = ()
    kept: bool = False
    restored: bool = False


class Route(Struct, frozen=True, kw_only=True, eq=False):
    """Adapts one part of a message, or one definition, from a revision to another; `route` returns it.

    Attributes:
        source: The revision of the values.
        target: The revision that they are adapted to.
        method: The method of the message; None for a definition.
        part: The part of the message; None for a definition.
        definition: The source's name of the definition; None for a message.
        target_definition: The target's name of it.
        payload: The types that the source allows.
        steps: The name and the function of each step; empty if values stay as they are.
        reverse: Returns the route back.
    """

    source: str
    target: str
    method: str | None = None
    part: Part | None = None
    definition: str | None = None
    target_definition: str | None = None
    payload: Payload
    steps: tuple[tuple[str, Callable[[Any, Any, Losses], Any]], ...]
    reverse: Callable[[], Route]

    @property
    def is_identity(self) -> bool:
        """Whether values stay as they are, so that there are no losses."""
        return not self.steps

    def adapt(self, value: JSON, *, keep: bool = False) -> Adapted:
        """Check *value* against the source revision, and return it in the target revision.

        If the message has a stash for the target, its values are restored where the message has not changed since.

        Args:
            value: A JSON value, which is not changed. Absent params are ``{}``.
            keep: Whether to stash lost values in the message, so that the route back restores them.

        Raises:
            InvalidPayload: It is not JSON, or the source revision does not allow it.
            AdaptationError: The target revision cannot express it.
        """
        try:
            if self.source == self.target:
                self.payload.check(value)
                return Adapted(value=value)
            return self._adapt(value, keep=keep)
        except RecursionError:
            raise self.payload.too_deep() from None

    def adapt_valid(self, value: JSON, losses: Losses) -> JSON:
        """Return *value*, which is known to be valid, in the target revision.

        For engines, which check values by decoding them: this checks, stashes and restores nothing.

        Args:
            value: A JSON value, which is not changed.
            losses: Collects what is lost.

        Raises:
            InvalidPayload: It is nested too deeply.
            AdaptationError: The target revision cannot express it.
        """
        try:
            for name, adapt in self.steps:
                losses.step = name
                value = adapt(value, (), losses)
        except Refusal as refusal:
            loss, service = refusal.loss, refusal.service
            raise AdaptationError(
                step=loss.step, pointer=loss.pointer, reason=loss.reason, service=service, losses=losses.found
            ) from None
        except RecursionError:
            raise self.payload.too_deep() from None
        return value

    def _adapt(self, value: JSON, *, keep: bool) -> Adapted:
        holder = self.payload.holder
        message, stash, problem = take_stash(value, holder, self.target)
        model, annotation = self.payload.check(message)
        if message is not value and not is_declared(model, annotation, (holder,)) and holder in message:
            message, stash, problem = value, None, None  # the schema has no metadata here, so the key is not ours
            model, annotation = self.payload.check(message)
        losses = Losses()
        adapted = self.adapt_valid(message, losses)
        found = losses.found
        kept: JSON = None
        restored: _Restored | None = None
        if stash is not None:
            restored, problem = self._restore(message, adapted, stash)
        if restored is not None:
            adapted = restored.value
            found = [each for each in found if not restored.covers(each)]
        if keep and self.steps:
            kept = self._keep((message, model, annotation), adapted, losses.found)
        if problem is not None:
            pointer = pointer_to((holder, KEY))
            step = f"{self.source} to {self.target}"
            found = [*found, Loss(pointer=pointer, step=step, reason=problem, severity="dropped")]
        return Adapted(
            value=adapted if kept is None else kept,
            losses=tuple(found),
            kept=kept is not None,
            restored=restored is not None,
        )

    def _restore(self, message: JSON, adapted: JSON, stash: Stash) -> tuple[_Restored | None, str | None]:
        """Return *adapted* with the restored values of *stash*, and the problem of the stash, if there is one.

        A peer controls the stash, so the restored value must be the same message for the source: adapted back, it must
        equal the received message, or at least what *adapted* becomes when it is adapted back. If it equals the
        received message, nothing was lost.
        """
        patch = apply_stash(stash, adapted)
        if patch.stale and not patch.restored:
            return None, _STALE
        try:
            back = self.reverse()
            model, annotation = back.payload.check(patch.value)
            losses = Losses()
            returned = back.adapt_valid(patch.value, losses)
            is_whole = is_same_json(returned, message)
            if not is_whole and not is_same_json(returned, back.adapt_valid(adapted, Losses())):
                return None, _FORGED
        except _NO_ROUTE_BACK:
            return None, _FORGED
        if _foreign(losses.found, back.steps, (patch.value, model, annotation)):
            return None, _FORGED
        pointers = frozenset(("",) if is_whole and not patch.stale else patch.restored)
        return _Restored(value=patch.value, pointers=pointers), _STALE if patch.stale else None

    def _keep(self, checked: _Checked, adapted: JSON, found: Sequence[Loss]) -> JSON | None:
        """Return *adapted* with a stash of its losses; None if there are none, or no room for a stash."""
        message, model, annotation = checked
        foreign = _foreign(found, self.steps, checked)
        try:
            back = self.reverse()
            losses = Losses()
            returned = back.adapt_valid(adapted, losses)
            stash = difference(returned, _without(message, foreign))
            # A foreign key that is valid in the target was admitted there, so only the route back loses it.
            added = [tokens_of(edit.at) for edit in stash.edits if edit.index is not UNSET]
            admitted = [
                pointer_to(each)
                for each in added
                if look_up(adapted, each) is not ABSENT and not is_declared(model, annotation, each)
            ]
            if admitted:
                stash = difference(returned, _without(message, [*foreign, *admitted]))
            # The route back may make up exactly the lost values by itself; then the stash has no edits.
            if not (stash.edits or stash.orders or losses.found):
                return None
            kept = put_stash(adapted, back.payload.holder, self.source, stash)
            if kept is None or not is_declared(*back.payload.check(kept), (back.payload.holder,)):
                return None
        except _NO_ROUTE_BACK:
            return None
        return kept


class _Restored(Struct, frozen=True, kw_only=True):
    """A value with restored values, and the pointers below which there are no losses any more."""

    value: JSON
    pointers: frozenset[str]

    def covers(self, loss: Loss) -> bool:
        """Whether the value that *loss* is about was restored."""
        tokens = tokens_of(loss.pointer)
        return any(pointer_to(tokens[:length]) in self.pointers for length in range(len(tokens) + 1))


_NO_ROUTE_BACK = (AdaptationError, InvalidPayload, UsageError)  # the last if the target has no such method
_STALE = "the message has changed since its stash of lost values was made, so some values were not restored"
_FORGED = "the stash of lost values does not belong to this message, so no value was restored"


class Router:
    """Makes routes, and caches them.

    Args:
        steps: The steps between neighbouring revisions.
    """

    def __init__(self, steps: Steps) -> None:
        self._steps = steps
        # The caches are bounded by the routes that exist, since `cache` does not keep exceptions.
        self.route: Callable[[str, str, str, Part, Sender | None], Route] = cache(self._route)
        self.definition_route: Callable[[str, str, str], Route] = cache(self._definition_route)

    def _route(self, source: str, target: str, method: str, part: Part, sender: Sender | None) -> Route:
        payload = message_payload(source, method, part, sender)
        able: list[Sender] = senders(source, method, part) if sender is None else [sender]
        steps: list[tuple[str, Step]] = []
        for direction in self._steps.directions(source, target):
            if not direction.messages:
                raise _no_route(step_name(direction), _NO_ADAPTER, None)
            message = direction.messages.get(method, _UNKNOWN)
            able = _able(able, message, step_name(direction))
            step = _step(message, part)
            if step is None:
                # A known message lacks a part if it travels inside of an `input_required` result, which has no errors.
                service = None if message is _UNKNOWN else "input"
                raise _no_route(step_name(direction), f"in {direction.source}, {method} has no part {part!r}", service)
            steps.append((step_name(direction), step))
        return Route(
            source=source,
            target=target,
            method=method,
            part=part,
            payload=payload,
            steps=self._composed(steps, target),
            reverse=lambda: self.route(target, source, method, part, sender),
        )

    def _definition_route(self, source: str, target: str, definition: str) -> Route:
        payload = definition_payload(source, definition)
        name = definition
        steps: list[tuple[str, Step]] = []
        for direction in self._steps.directions(source, target):
            if name not in direction.definitions:
                reason = f"{direction.target} has no definition that corresponds to {name}"
                raise _no_route(step_name(direction), reason if direction.messages else _NO_ADAPTER, None)
            name, step = direction.definitions[name]
            steps.append((step_name(direction), step))
        return Route(
            source=source,
            target=target,
            definition=definition,
            target_definition=name,
            payload=payload,
            steps=self._composed(steps, target),
            reverse=lambda: self.definition_route(target, source, name),
        )

    def _composed(
        self, steps: Sequence[tuple[str, Step]], target: str
    ) -> tuple[tuple[str, Callable[[Any, Any, Losses], Any]], ...]:
        """Return *steps* without those that change nothing."""
        # The steps between released revisions do not know the keys of a draft, so the step to it always runs.
        known = len(steps) - 1 if self._steps.is_draft(target) else len(steps)
        needed = [*steps[:1], *(each for each in steps[1:known] if not each[1].idle), *steps[max(known, 1) :]]
        return tuple((name, step.adapt) for name, step in needed if step.adapt is not _UNCHANGED)


_NO_ADAPTER = "the draft has no adapter; build it with `--based-on R --adapters`"
_UNKNOWN = Message()
_UNCHANGED = Step().adapt  # the default of a part that no rule changes


def _able(senders: Sequence[Sender], message: Message, step: str) -> list[Sender]:
    """Return those of *senders* that can still send *message* after *step*.

    Raises:
        AdaptationError: None of them can.
    """
    able: list[Sender] = [each for each in senders if each not in message.gone]
    if senders and not able:
        gone = message.gone[senders[0]]
        raise _no_route(step, gone.reason, gone.service)
    return able


def _step(message: Message, part: Part) -> Step | None:
    match part:
        case "params" | "notification":
            return message.params
        case "result":
            return message.result
        case "error":
            return message.error


def _no_route(step: str, reason: str, service: str | None) -> AdaptationError:
    return AdaptationError(step=step, pointer="", reason=reason, service=service)


_Checked: TypeAlias = tuple[JSON, Any, Any]
"""A value, and the result of `Payload.check` for it: the decoded value, and the type that it was decoded as."""


def _foreign(losses: Sequence[Loss], steps: Sequence[tuple[str, Any]], checked: _Checked) -> list[str]:
    """Return the pointers of the keys that the first step dropped because the source does not define them."""
    value, model, annotation = checked
    found: list[str] = []
    for loss in losses:
        if loss.severity == "dropped" and loss.step == steps[0][0]:
            tokens = tokens_of(loss.pointer)
            if look_up(value, tokens) is not ABSENT and not is_declared(model, annotation, tokens):
                found.append(loss.pointer)
    return found


def _without(value: JSON, pointers: Sequence[str]) -> JSON:
    """Return *value* without the keys at *pointers*; a copy if there are any."""
    if not pointers:
        return value
    copy = msgspec.json.decode(msgspec.json.encode(value))
    for pointer in pointers:
        *holder, key = tokens_of(pointer)
        found = look_up(copy, holder)
        if is_object(found):
            found.pop(key, None)
    return copy


_ROUTER = Router(GENERATED)


def route(source: str, target: str, method: str, part: Part, *, sender: Sender | None = None) -> Route:
    """Return the route of *part* of *method* from the revision *source* to *target*; it is cached.

    Args:
        source: The revision of the values.
        target: The revision that they are adapted to.
        method: The method in *source*; for a result or an error, that of the request.
        part: ``params``, ``result`` and ``error`` belong to a request, ``notification`` to a notification.
        sender: The side that sends the request or the notification. None: either.

    Raises:
        UnknownRevision: There are no bindings for one of them.
        UnknownMethod: The source has no such method.
        UsageError: The part or the sender is not one of the allowed names.
        AdaptationError: The target, or a revision on the way, has no such method from that sender.
    """
    return _ROUTER.route(source, target, method, part, sender)


def definition_route(source: str, target: str, definition: str) -> Route:
    """Return the route of a definition, such as ``ServerCapabilities``, ``Implementation`` or ``ContentBlock``.

    Args:
        source: The revision of the values.
        target: The revision that they are adapted to.
        definition: Its name in the bindings of *source*.

    Raises:
        UnknownRevision: There are no bindings for one of them.
        UnknownDefinition: The source has no such definition.
        AdaptationError: The target, or a revision on the way, has no counterpart.
    """
    return _ROUTER.definition_route(source, target, definition)
