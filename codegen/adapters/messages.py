"""Plan the conversion of messages: their parts, their errors, and the messages that the target lacks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from mcpgen.codegen import ir
from mcpgen.codegen.adapters.ops import Converted, Transform
from mcpgen.codegen.changes import vocabulary as v

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mcpgen.codegen.adapters.function_builder import FunctionBuilder
    from mcpgen.codegen.diff import Edition
    from mcpgen.codegen.diff.model import Kind
    from mcpgen.codegen.methods import Method

__all__ = ["ErrorCase", "GoneMessage", "Messages", "MessagePlan"]

# Types in messages that the engine writes itself: a peer adapts them without a method.
ROOTS = ("ClientCapabilities", "Implementation", "SamplingMessageContentBlock", "ServerCapabilities")

# JSON-RPC 2.0, section 5.1: the code for an error whose code has no meaning, or another one, in the target.
_INTERNAL_ERROR = -32603
_RESERVED = range(-32768, -31999)


class GoneMessage(msgspec.Struct, frozen=True):
    """A message that the target does not have from that sender, with the reason."""

    reason: str
    service: str | None


class MessagePlan(msgspec.Struct, frozen=True, kw_only=True):
    """One method of the source.

    Attributes:
        name: The method.
        params: The conversion of the params; None if the target lacks the method.
        result: The conversion of the result; None also for a notification.
        error: Whether the method can have errors.
        own_error: A declared conversion of its errors. It runs before the codes are mapped, and once more after that.
        no_error: The reason why the target cannot answer with an error.
        gone: The senders that the target does not allow, with reasons.
    """

    name: str
    params: Transform | None = None
    result: Transform | None = None
    error: bool = False
    own_error: Converted | None = None
    no_error: GoneMessage | None = None
    gone: dict[str, GoneMessage] = {}


class ErrorCase(msgspec.Struct, frozen=True, kw_only=True):
    """The conversion of errors with one code, or with a code in a range.

    Attributes:
        code: The code in the source, or the lowest code of the range.
        last: The highest code of the range.
        but: The codes of the range that are exempt.
        to: The code in the target, or None if the error cannot be expressed.
        definition: The type of *target* that the error must match to keep its code, or empty.
    """

    code: int
    to: int | None
    reason: str
    service: str | None = None
    definition: str = ""
    target: str = ""
    last: int | None = None
    but: tuple[int, ...] = ()


class Messages:
    """Plans the messages of one direction."""

    def __init__(self, builder: FunctionBuilder) -> None:
        self._builder = builder
        self._source: Edition = builder.source.edition
        self._target: Edition = builder.target.edition

    def plan(self) -> list[MessagePlan]:
        """Return the plan of each method of the source, and build the functions of types that no message contains."""
        found: list[MessagePlan] = []
        for name in sorted({each.name for each in self._source.methods}):
            ours: dict[str, Method] = {each.sender: each for each in self._source.methods if each.name == name}
            theirs: dict[str, Method] = {each.sender: each for each in self._target.methods if each.name == name}
            found.append(self._plan(name, ours, theirs))
        # Users can adapt values of a definition without a message. If another definition replaced it in the messages,
        # its function is not built yet.
        seen: set[str] = set()
        while waiting := sorted({*ROOTS, *self._builder.met} - seen):
            seen.update(waiting)
            for name in waiting:
                self._definition(name)
        return found

    def _definition(self, name: str) -> None:
        """Build the functions of the definition *name* of the source, unless it was met in a message."""
        partner = self._builder.pairing.partner(name)
        if partner is None or name not in self._source.schema.definitions:
            return
        if self._builder.pairs.get(name) != partner:
            self._builder.transform(ir.Named(name=name), ir.Named(name=partner), self._builder.place(name, partner))
            self._builder.pairs[name] = partner

    def _plan(self, name: str, ours: dict[str, Method], theirs: dict[str, Method]) -> MessagePlan:
        gone = {sender: self._gone(method) for sender, method in ours.items() if sender not in theirs}
        shared = next(((method, theirs[sender]) for sender, method in ours.items() if sender in theirs), None)
        if shared is None:
            return MessagePlan(name=name, gone=gone)
        one, other = shared
        place = self._builder.place(f"{name} params", f"{name} params")
        params = self._builder.transform(one.params, other.params, place)
        if one.result is None or other.result is None:
            return MessagePlan(name=name, params=params, gone=gone)
        return MessagePlan(
            name=name,
            params=params,
            result=self._result(one, other),
            error=one.kind == "request",  # input requests have no error responses
            own_error=self._own_error(one),
            no_error=self._no_error(one) if one.kind != other.kind == "input" else None,
            gone=gone,
        )

    def _result(self, one: Method, other: Method) -> Transform:
        place = self._builder.place(f"{one.name} result", f"{one.name} result")
        ours, theirs = _answers(one), _answers(other)
        if isinstance(ours, ir.Named) and isinstance(theirs, ir.Named):
            return self._builder.transform(ours, theirs, place)
        # The union of a method's results has a name only if the document gives it one.
        opened = [
            ir.Union(arms=tuple(side.unions.arms(each)))
            for side, each in ((self._builder.source, ours), (self._builder.target, theirs))
        ]
        return self._builder.transform(opened[0], opened[1], place)

    def _gone(self, method: Method) -> GoneMessage:
        kinds: tuple[Kind, Kind] = (
            ("notification-added", "notification-removed")
            if method.kind == "notification"
            else ("request-added", "request-removed")
        )
        place = f"{method.sender} {method.name}"
        found = self._builder.found(place)
        if found is None:
            kind = kinds[self._builder.mode != "down"]
            problem = f"{self._builder.target.label} has no `{method.name}` from the {method.sender}"
            found = self._builder.need(kind, place, self._source.schema.definitions[method.definition].pointer, problem)
        if found is None or not isinstance(found.action, v.Refuse):
            if found is not None:
                self._builder.misplaced(found, place)
            return GoneMessage("", None)
        return GoneMessage(found.reason, found.action.service)

    def _own_error(self, method: Method) -> Converted | None:
        """Return the declared conversion for the errors of one method."""
        place = f"{method.name} error"
        found = self._builder.found(place)
        if found is None or not isinstance(found.action, v.Convert):
            if found is not None:
                self._builder.misplaced(found, place)
            return None
        return self._builder.convert(found, found.action.function)

    def _no_error(self, method: Method) -> GoneMessage:
        """Return the reason why an error cannot answer a request that became an input request."""
        place = f"{method.sender} {method.name}"
        found = self._builder.found(place)
        if found is None:
            label = self._builder.target.label
            problem = f"{label} has `{method.name}` inside a result, so an error cannot answer the request"
            found = self._builder.need("carrier-changed", place, "", problem)
        if found is None or not isinstance(found.action, v.Refuse):
            if found is not None:
                self._builder.misplaced(found, place)
            return GoneMessage("", None)
        return GoneMessage(found.reason, found.action.service)

    def errors(self, codes: Iterable[int]) -> list[ErrorCase]:
        """Return the cases of errors whose code does not mean the same in the target, for all known *codes*."""
        ours = {each.code for each in self._source.errors or ()}
        theirs = {each.code for each in self._target.errors or ()}
        found: list[ErrorCase | None] = []
        for code in sorted(codes):
            match code in ours, code in theirs:
                case True, False:
                    found.append(self._error(code, str(code)))
                case False, True if self._builder.mode == "down":
                    found.append(self._returned(code))
                case False, True:
                    found.append(self._admitted(code))
                case False, False:
                    found.append(self._foreign(code))
                case _:
                    pass
        found.append(self._reserved(codes))
        return [each for each in found if each is not None]

    def _reserved(self, codes: Iterable[int]) -> ErrorCase | None:
        """Return the case of codes that only the target reserves."""
        if (bounds := self._target.reserved_errors) is None or bounds == self._source.reserved_errors:
            return None
        reason = f"{self._target.label} reserves this error code for the specification."
        known = tuple(sorted(code for code in codes if bounds[0] <= code <= bounds[1]))
        return ErrorCase(code=bounds[0], last=bounds[1], but=known, to=_INTERNAL_ERROR, reason=reason)

    def _error(self, code: int, place: str) -> ErrorCase | None:
        found = self._builder.found(place)
        if found is None:
            kind = "error-added" if self._builder.mode == "down" else "error-removed"
            found = self._builder.need(
                kind, place, "", f"{self._builder.target.label} does not define the error code {code}"
            )
        if found is None:
            return None
        match found.action:
            case v.Recode(code=to):
                return ErrorCase(code=code, to=to, reason=found.reason)
            case v.Refuse(service=service):
                return ErrorCase(code=code, to=None, reason=found.reason, service=service)
            case v.Keep():
                return None
            case _:
                self._builder.misplaced(found, place)
                return None

    def _returned(self, code: int) -> ErrorCase | None:
        """Return the case of a code that only the older side defines: the same code as on the way up."""
        action = self._builder.opposite(str(code))
        if isinstance(action, v.Keep):
            return None
        to = action.code if isinstance(action, v.Recode) else _INTERNAL_ERROR
        reason = f"{self._builder.source.label} does not define the error code {code}."
        return ErrorCase(code=code, to=to, reason=reason)

    def _admitted(self, code: int) -> ErrorCase | None:
        """Return the case of a code that only the newer side defines: the error keeps it if it matches its type."""
        if not (definition := self._defined(code)):
            return None
        reason = (
            f"{self._builder.target.label} defines the error code {code}, but this error does not match the definition."
        )
        return ErrorCase(code=code, to=_INTERNAL_ERROR, reason=reason, definition=definition, target=self._target.label)

    def _foreign(self, code: int) -> ErrorCase | None:
        """Return the case of a code that neither side defines. Outside JSON-RPC's range it belongs to applications."""
        if code not in _RESERVED:
            return None
        reason = f"{self._builder.target.label} does not define the error code {code}."
        return ErrorCase(code=code, to=_INTERNAL_ERROR, reason=reason)

    def _defined(self, code: int) -> str:
        """Return the definition of the target for errors with *code*."""
        for each in self._target.schema.objects():
            constants = {key.wire: key.constant.values for key in each.properties if key.constant}
            if constants.get("code") == (code,):
                return each.name
        return ""


def _answers(method: Method) -> ir.TypeRef:
    """Return all that *method* may be answered with."""
    result = ir.Named(name="Result") if method.result is None else method.result
    return ir.Union(arms=(result, ir.Named(name=method.task_result))) if method.task_result else result
