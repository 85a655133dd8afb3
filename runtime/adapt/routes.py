"""Adapters between revisions, for gateways and for the engine: a route takes a value from one revision to another.

Theory of operation. Between neighbouring revisions there are generated steps, for each part of each message. A route is
made once: it strings together the steps of one part, leaves out those that have nothing to do, and is kept for as long
as the process lives. A step may assume that its value is valid, so `Route.adapt` checks it first, against the revision
that it comes from. A step after the first cannot meet a key that its revision does not define, so one that does nothing
but drop such keys is needed only at the beginning.
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
    """What came out of a route.

    Attributes:
        value: The value as the target revision writes it. It may share parts with the value that went in.
        losses: What the target cannot say as the source did, in the order in which it was lost.
        kept: Whether *value* carries a stash with what was lost.
        restored: Whether a stash gave back what had been lost before.
    """

    value: JSON
    losses: tuple[Loss, ...] = ()
    kept: bool = False
    restored: bool = False


class Route(Struct, frozen=True, kw_only=True, eq=False):
    """The way of one part of a message, or of one definition, from a revision to another; `route` makes it.

    Attributes:
        source: The revision that values come from.
        target: The revision that they are adapted to.
        method: The method whose part it is; None for a definition.
        part: Which part; None for a definition.
        definition: The name that the source has for the definition; None for a message.
        target_definition: The name that the target has for it.
        payload: What the source allows.
        steps: The name of each step to take, and what it does; none, if values stay as they are.
        mirror: Returns the route back.
    """

    source: str
    target: str
    method: str | None = None
    part: Part | None = None
    definition: str | None = None
    target_definition: str | None = None
    payload: Payload
    steps: tuple[tuple[str, Callable[[Any, Any, Losses], Any]], ...]
    mirror: Callable[[], Route]

    @property
    def is_identity(self) -> bool:
        """Whether values stay as they are, so that there is nothing to adapt, and nothing to lose."""
        return not self.steps

    def adapt(self, value: JSON, *, keep: bool = False) -> Adapted:
        """Check *value* against the source revision, and return it as the target revision writes it.

        What a stash for the target holds is restored, where the value has not changed since.

        Args:
            value: A JSON value, which is not changed. Params that are absent are ``{}``.
            keep: Whether to stash in the message what is lost, so that the way back restores it.

        Raises:
            InvalidPayload: It is not JSON, or not what the source revision allows.
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
        """Return *value*, which is known to be valid, as the target revision writes it, and nothing more.

        For engines, which decode what they receive anyway: nothing is checked, stashed or restored.

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
            message, stash, problem = value, None, None  # the key of somebody else, where the schema has no metadata
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
            found = [each for each in found if not restored.mends(each)]
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
        """Return *adapted* with what *stash* gives back, and what is wrong with the stash.

        The source must not see a difference: seen from there, what is restored is the message that came. If that very
        message comes out, it said nothing that is not in the restored value, so nothing was lost.
        """
        patch = apply_stash(stash, adapted)
        if patch.stale and not patch.restored:
            return None, _STALE
        try:
            back = self.mirror()
            model, annotation = back.payload.check(patch.value)
            losses = Losses()
            view = back.adapt_valid(patch.value, losses)
            is_whole = is_same_json(view, message)
            if not is_whole and not is_same_json(view, back.adapt_valid(adapted, Losses())):
                return None, _FORGED
        except _NO_WAY_BACK:
            return None, _FORGED
        if _foreign(losses.found, back.steps, (patch.value, model, annotation)):
            return None, _FORGED
        pointers = frozenset(("",) if is_whole and not patch.stale else patch.restored)
        return _Restored(value=patch.value, pointers=pointers), _STALE if patch.stale else None

    def _keep(self, checked: _Checked, adapted: JSON, found: Sequence[Loss]) -> JSON | None:
        """Return *adapted* with a stash of what it lost; None if nothing was, or if there is no room for one."""
        message, model, annotation = checked
        foreign = _foreign(found, self.steps, checked)
        try:
            back = self.mirror()
            losses = Losses()
            returned = back.adapt_valid(adapted, losses)
            stash = difference(returned, _without(message, foreign))
            # What was foreign and valid in the target was admitted there, and is lost on the way back alone.
            added = [tokens_of(edit.at) for edit in stash.edits if edit.index is not UNSET]
            admitted = [
                pointer_to(each)
                for each in added
                if look_up(adapted, each) is not ABSENT and not is_declared(model, annotation, each)
            ]
            if admitted:
                stash = difference(returned, _without(message, [*foreign, *admitted]))
            # What the way back makes up by itself may be just what was lost; a stash without edits says so.
            if not (stash.edits or stash.orders or losses.found):
                return None
            kept = put_stash(adapted, back.payload.holder, self.source, stash)
            if kept is None or not is_declared(*back.payload.check(kept), (back.payload.holder,)):
                return None
        except _NO_WAY_BACK:
            return None
        return kept


class _Restored(Struct, frozen=True, kw_only=True):
    """A value with what a stash gave back, and the pointers below which nothing is lost any more."""

    value: JSON
    pointers: frozenset[str]

    def mends(self, loss: Loss) -> bool:
        """Whether what *loss* is about was given back."""
        tokens = tokens_of(loss.pointer)
        return any(pointer_to(tokens[:length]) in self.pointers for length in range(len(tokens) + 1))


_NO_WAY_BACK = (AdaptationError, InvalidPayload, UsageError)  # the last, where the target has no method of that name
_STALE = "the message has changed since the stash was made, so that not everything could be restored"
_FORGED = "what the stash would restore does not belong to this message"


class Router:
    """Makes routes, each once.

    Args:
        ladder: The steps between neighbours.
    """

    def __init__(self, ladder: Steps) -> None:
        self._ladder = ladder
        # Bounded by what exists: a route to nowhere is an exception, and those are not kept.
        self.route: Callable[[str, str, str, Part, Sender | None], Route] = cache(self._route)
        self.definition_route: Callable[[str, str, str], Route] = cache(self._definition_route)

    def _route(self, source: str, target: str, method: str, part: Part, sender: Sender | None) -> Route:
        payload = message_payload(source, method, part, sender)
        directions = self._ladder.directions(source, target)
        able: list[Sender] = senders(source, method, part) if sender is None else [sender]
        steps: list[tuple[str, Step]] = []
        for direction in directions:
            message = direction.messages.get(method, _UNKNOWN)
            able = _able(able, message, step_name(direction))
            step = _step(message, part)
            if step is None:
                # A message that lacks a part is one that is asked inside a result, where errors are no answers.
                service = None if message is _UNKNOWN else "input"
                raise _no_way(step_name(direction), f"{direction.source} has no {part} of {method}", service)
            steps.append((step_name(direction), step))
        return Route(
            source=source,
            target=target,
            method=method,
            part=part,
            payload=payload,
            steps=_composed(steps),
            mirror=lambda: self.route(target, source, method, part, sender),
        )

    def _definition_route(self, source: str, target: str, definition: str) -> Route:
        payload = definition_payload(source, definition)
        name = definition
        steps: list[tuple[str, Step]] = []
        for direction in self._ladder.directions(source, target):
            if name not in direction.definitions:
                reason = f"{direction.target} has nothing that corresponds to {name}"
                raise _no_way(step_name(direction), reason, None)
            name, step = direction.definitions[name]
            steps.append((step_name(direction), step))
        return Route(
            source=source,
            target=target,
            definition=definition,
            target_definition=name,
            payload=payload,
            steps=_composed(steps),
            mirror=lambda: self.definition_route(target, source, name),
        )


_UNKNOWN = Message()
_UNCHANGED = Step().adapt  # of a part that says nothing of what it does


def _able(senders: Sequence[Sender], message: Message, step: str) -> list[Sender]:
    """Return those of *senders* that can send *message* after *step* too.

    Raises:
        AdaptationError: None of them can.
    """
    able: list[Sender] = [each for each in senders if each not in message.gone]
    if senders and not able:
        gone = message.gone[senders[0]]
        raise _no_way(step, gone.reason, gone.service)
    return able


def _step(message: Message, part: Part) -> Step | None:
    match part:
        case "params" | "notification":
            return message.params
        case "result":
            return message.result
        case "error":
            return message.error


def _no_way(step: str, reason: str, service: str | None) -> AdaptationError:
    return AdaptationError(step=step, pointer="", reason=reason, service=service)


def _composed(steps: Sequence[tuple[str, Step]]) -> tuple[tuple[str, Callable[[Any, Any, Losses], Any]], ...]:
    """Return what is left of *steps* without those that have nothing to do."""
    needed = [*steps[:1], *(each for each in steps[1:] if not each[1].idle)]
    return tuple((name, step.adapt) for name, step in needed if step.adapt is not _UNCHANGED)


_Checked: TypeAlias = tuple[JSON, Any, Any]
"""A value, the model that checking it returned, and the type of that."""


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
    """Return *value* without the keys that *pointers* point to; a copy, if there are any."""
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
    """Return the way of *part* of *method* from the revision *source* to *target*.

    It is made once, and kept.

    Args:
        source: The revision that values come from.
        target: The revision that they are adapted to.
        method: The method as *source* writes it; for a result or an error, that of the request.
        part: ``params``, ``result`` and ``error`` belong to a request, ``notification`` to a notification.
        sender: Who sends the request or the notification. None: whoever may.

    Raises:
        UnknownRevision: There are no bindings for one of them.
        UnknownMethod: The source has no such method.
        UsageError: The part or the sender is none.
        AdaptationError: The target, or a revision on the way, has no such method from that sender.
    """
    return _ROUTER.route(source, target, method, part, sender)


def definition_route(source: str, target: str, definition: str) -> Route:
    """Return the way of one definition: capabilities, ``Implementation``, ``ContentBlock``, or any other.

    Args:
        source: The revision that values come from.
        target: The revision that they are adapted to.
        definition: The name that the bindings of *source* have for it.

    Raises:
        UnknownRevision: There are no bindings for one of them.
        UnknownDefinition: The source has no such definition.
        AdaptationError: The target, or a revision on the way, has nothing that corresponds to it.
    """
    return _ROUTER.definition_route(source, target, definition)
