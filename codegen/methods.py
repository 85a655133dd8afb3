"""Which methods a revision has: direction, parameters, result and the capability that serving them declares."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

import msgspec

from mcpgen.codegen import ir, names
from mcpgen.codegen.diagnostics import Diagnostic
from mcpgen.codegen.overlay import MethodFacts, Overlay, SharedOverlay

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

Side: TypeAlias = Literal["client", "server"]

# The documents say who sends a message with one union for each direction. InputRequest (2026-07-28) holds what a
# server asks of a client inside a result; the client serves it as it serves the requests of earlier revisions.
_REQUEST_UNIONS: tuple[tuple[str, Side], ...] = (("ClientRequest", "client"), ("ServerRequest", "server"))
_NOTIFICATION_UNIONS: tuple[tuple[str, Side], ...] = (
    ("ClientNotification", "client"),
    ("ServerNotification", "server"),
)
INPUT_UNION = "InputRequest"


class Method(msgspec.Struct, frozen=True, kw_only=True):
    """One request or notification in one direction.

    Attributes:
        definition: The message's definition, ``CallToolRequest``.
        python_name: The name of its stub, ``call_tool``.
        params: The type of its parameters.
        params_required: Whether a message without parameters is invalid.
        result: The type of its result; None for a notification.
        task_result: The definition of the result of a task-augmented request, or nothing.
        capability: The path of the capability that serving it declares, or nothing.
    """

    name: str
    definition: str
    python_name: str
    sender: Side
    kind: Literal["request", "notification", "input"]
    params: ir.TypeRef
    params_required: bool
    result: ir.TypeRef | None = None
    task_result: str = ""
    capability: tuple[str, ...] = ()

    @property
    def constant(self) -> str:
        """The name of its entry in the method tables, ``CALL_TOOL``."""
        return self.python_name.rstrip("_").upper()


class Methods:
    """Reads the methods of one schema; collects diagnostics."""

    def __init__(
        self,
        schema: ir.Schema,
        overlay: Overlay,
        shared: SharedOverlay,
        *,
        imported: Collection[str] = (),
        general: Collection[str] = (),
    ) -> None:
        """Read *schema*.

        Args:
            schema: The definitions.
            overlay: What is known about this document.
            shared: What is known about every document.
            imported: The definitions that an extension has from its base, with its messages.
            general: Unions that may also have arms that are no messages: any request, for example.
        """
        self._imported = imported
        self._general = general
        self._schema = schema
        self._facts = {**shared.methods, **overlay.methods}
        self._capabilities = {
            "server": {**shared.capabilities.server, **overlay.capabilities.server},
            "client": {**shared.capabilities.client, **overlay.capabilities.client},
        }
        self.diagnostics: list[Diagnostic] = []
        self.all: list[Method] = []

    def read(self) -> list[Method]:
        """Return all methods, sorted by kind, sender and name."""
        for union, sender in _REQUEST_UNIONS:
            self.all += [self._method(each, sender, "request") for each in self._messages(union)]
        # A draft had messages in both places; the request is then the one that is served and sent.
        asked = {each.definition for each in self.all if each.sender == "server"}
        inputs = [each for each in self._messages(INPUT_UNION) if each.name not in asked]
        self.all += [self._method(each, "server", "input") for each in inputs]
        for union, sender in _NOTIFICATION_UNIONS:
            self.all += [self._method(each, sender, "notification") for each in self._messages(union)]
        self._add_declared()
        self._check_names()
        return self.all

    def _add_declared(self) -> None:
        """Add the methods whose sender an overlay names."""
        by_method = {_constant(each, "method"): each for each in self._schema.objects() if not each.anonymous}
        for name, facts in sorted(self._facts.items()):
            message = by_method.get(name)
            if facts.sender and message is not None:
                kind: Literal["request", "notification"] = "request" if _is_request(message) else "notification"
                self.all.append(self._method(message, facts.sender, kind))

    def _messages(self, union: str) -> list[ir.Object]:
        """Return the message definitions of *union*, sorted by method; a union flattened into one arm counts."""
        found: dict[str, ir.Object] = {}
        pending: list[ir.TypeRef] = (
            [ir.Named(name=union)] if union in self._schema.definitions.keys() - {*self._imported} else []
        )
        seen: set[ir.TypeRef] = set()
        while pending:
            if (arm := pending.pop()) in seen:
                continue
            seen.add(arm)
            target = self._schema.resolve(arm)
            if isinstance(target, ir.Union):
                pending += target.arms
            elif isinstance(target, ir.Object) and (name := _constant(target, "method")) is not None:
                message = self._original(target, name)
                if (other := found.setdefault(name, message)).name != message.name:
                    said = f"{message.name} and {other.name}, both of {union}, have the method {name!a}"
                    self._report("MG131", message, said, "Give one of them another method, or patch the union.")
            elif union not in self._general:
                where = target if isinstance(target, ir.Object) else self._schema.definitions[union]
                said = f"a member of {union} has no required key `method` with one constant value"
                self._report("MG132", where, said, "Describe each method as a definition of its own.")
        return [found[name] for name in sorted(found)]

    def _report(
        self,
        code: str,
        where: ir.Definition,
        message: str,
        hint: str,
        severity: Literal["error", "warning"] = "error",
    ) -> None:
        self.diagnostics.append(
            Diagnostic(code=code, severity=severity, pointer=where.pointer, message=message, hint=hint)
        )

    def _original(self, message: ir.Object, method: str) -> ir.Object:
        """Return the definition that *message* repeats: ClientNotification of 2026-07-28 is CancelledNotification."""
        suffixes = ("Request", "Notification")
        if message.name not in {name for name, _ in (*_REQUEST_UNIONS, *_NOTIFICATION_UNIONS)}:
            return message
        same = (each for each in self._schema.objects() if each.name != message.name)
        return next((e for e in same if e.name.endswith(suffixes) and _constant(e, "method") == method), message)

    def _method(self, message: ir.Object, sender: Side, kind: Literal["request", "notification", "input"]) -> Method:
        name = _constant(message, "method") or ""
        params = next((each for each in message.properties if each.wire == "params"), None)
        stem = message.name.removesuffix("Notification" if kind == "notification" else "Request")
        facts = self._facts.get(name, MethodFacts())
        receiver: Side = "server" if sender == "client" else "client"
        return Method(
            name=name,
            definition=message.name,
            python_name=names.attribute(stem),
            sender=sender,
            kind=kind,
            params=params.type if params else ir.Mapping(value=ir.Anything()),
            params_required=params is not None and params.required,
            result=None if kind == "notification" else self._result(stem, message, facts),
            task_result=facts.task_result if facts.task_result in self._schema.definitions else "",
            capability=self._capability(receiver, name),
        )

    def _result(self, stem: str, message: ir.Object, facts: MethodFacts) -> ir.TypeRef:
        """Return the result type of the request *stem*: what its response holds, an overlay says, or its name says."""
        response = self._schema.definitions.get(f"{stem}ResultResponse")
        if isinstance(response, ir.Object):
            for each in response.properties:
                if each.wire == "result":
                    return each.type
        for name in (facts.result, f"{stem}Result"):
            if name and name in self._schema.definitions:
                return ir.Named(name=name)
        finding = Diagnostic(
            code="MG130",
            pointer=message.pointer,
            message=f"there is no {stem}Result, and no overlay names an existing result of {message.name}",
            hint=f'Name it in the overlay, as `result` in the table [methods."{_constant(message, "method")}"].',
            severity="warning",
        )
        if finding not in self.diagnostics:  # both sides can send one request
            self.diagnostics.append(finding)
        return ir.Named(name="Result") if "Result" in self._schema.definitions else ir.Mapping(value=ir.Anything())

    def _capability(self, side: Side, method: str) -> tuple[str, ...]:
        """Return the capability path for serving *method*, if the revision's capabilities have it."""
        path = tuple(self._capabilities[side].get(method, ()))
        return path if self._schema.member(f"{side.title()}Capabilities", path) is not None else ()

    def _check_names(self) -> None:
        """Report methods of one side that would share a stub."""
        seen: dict[tuple[Side, str], Method] = {}
        for each in self.all:
            other = seen.setdefault((each.sender, each.python_name), each)
            if other is not each:
                said = f"{each.definition} and {other.definition} both become {each.python_name}"
                self._report("MG213", self._schema.definitions[each.definition], said, "Rename one of the definitions.")

    def check_listed(self) -> None:
        """Report messages that no union of a direction lists: who sends them is not known."""
        unions = [name for name, _ in (*_REQUEST_UNIONS, *_NOTIFICATION_UNIONS)]
        if not any(name in self._schema.definitions for name in unions):
            return  # the document has no directions at all, so it describes no messages
        hint = "Add it to the union of its direction, in the document or with a [[patch]] of `--overlay FILE`."
        for message, method in self._unlisted():
            said = f"{message.name} has the method {method!a}, but none of {', '.join(unions)} lists it"
            self._report("MG135", message, said, hint)
        self._check_responses()

    def check_declared(self, own: Collection[str]) -> None:
        """Report messages of an extension whose sender is not known; it has the definitions *own*."""
        for message, method in self._unlisted():
            if message.name in own and message.name not in self._imported:
                said = f"{message.name} has the method {method!a}, and its sender is not known"
                hint = f'Add [methods."{method}"] with `sender`, or `models_only = true`, to the overlay (`--overlay`).'
                self._report("MG135", message, said, hint)

    def _unlisted(self) -> Iterator[tuple[ir.Object, str]]:
        listed = {each.name for each in self.all}
        for message in self._schema.objects():
            method = _constant(message, "method")
            if method is not None and method not in listed and not message.anonymous:
                yield message, method

    def _check_responses(self) -> None:
        answered = {each.definition.removesuffix("Request") for each in self.all}
        for message in self._schema.objects():
            stem = message.name.removesuffix("ResultResponse")
            is_orphan = stem not in answered and f"{stem}Request" not in self._schema.definitions
            # A draft had a response that several requests share. Only that of one request has params of its own.
            if stem != message.name and is_orphan and f"{stem}RequestParams" in self._schema.definitions:
                said = f"{message.name} is the response of a request that the document does not define"
                hint = f"Add {stem}Request, or remove the response and its result."
                self._report("MG136", message, said, hint, severity="warning")


def _is_request(message: ir.Object) -> bool:
    """Whether *message* has an ``id``. Some documents leave out the keys of JSON-RPC, and only the name remains."""
    return message.name.endswith("Request") or any(each.wire == "id" for each in message.properties)


def _constant(message: ir.Object, key: str) -> str | None:
    """Return the string that *message* fixes for *key*."""
    for each in message.properties:
        if each.wire == key and each.constant and isinstance(value := each.constant.values[0], str):
            return value
    return None
