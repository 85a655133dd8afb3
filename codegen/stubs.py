"""The method tables and the typed stubs of both sides, ready for their templates."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mcpgen.codegen import ir, names
from mcpgen.codegen.diagnostics import Diagnostic
from mcpgen.codegen.docstrings import prose, wrapped
from mcpgen.codegen.layout import filled, packed
from mcpgen.codegen.stub_views import Entry, Error, Key, MethodsView, Sent, Served, SideView, Table

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from mcpgen.codegen.emit import Emitter
    from mcpgen.codegen.methods import Method, Side
    from mcpgen.codegen.overlay import ErrorCode, Overlay, SharedOverlay

_EXPORTED_SUPPORT = ("NotificationMethod", "RequestMethod", "Sender", "Unhandled")
_UNHANDLED = (
    'By default, the method of a request raises `Unhandled`. Its caller then answers with the error "method not found".'
)
# 2026-07-28 has no error that answers an input request.
_UNHANDLED_INPUT = (
    "By default, the method of an input request raises `Unhandled`. The request that needs the input then fails."
)
_METHOD_INDENT = " " * 8
_META_PREFIX = "io.modelcontextprotocol/"

_TABLES: tuple[tuple[str, str, Side, str], ...] = (
    ("CLIENT_REQUESTS", "request", "client", "The requests of a client in {}, by method."),
    ("SERVER_REQUESTS", "request", "server", "The requests of a server in {}, by method."),
    ("INPUT_REQUESTS", "input", "server", "The requests that a server of {} sends inside a result, by method."),
    ("CLIENT_NOTIFICATIONS", "notification", "client", "The notifications of a client in {}, by method."),
    ("SERVER_NOTIFICATIONS", "notification", "server", "The notifications of a server in {}, by method."),
)
# Names that methods.py and the stub classes use themselves.
_TAKEN = frozenset(
    {
        "capabilities",
        "era",
        "models",
        "reserved_errors",
        "revision",
        "sender",
        "unset",
        *(table[0].lower() for table in _TABLES),
    }
)


class Stubs:
    """Lays out the methods of one revision."""

    def __init__(
        self, schema: ir.Schema, methods: list[Method], emitter: Emitter, *, imported: Collection[str] | None = None
    ) -> None:
        """Lay out *methods*, messages of *schema*.

        Args:
            schema: All definitions.
            methods: The methods.
            emitter: Lays out their types.
            imported: For an extension: the definitions of its base.
        """
        self.diagnostics: list[Diagnostic] = []
        self._schema = schema
        self._methods = methods
        self._emitter = emitter
        self._imported = imported
        self._constants = self._name_constants()

    def methods(self, revision: str, overlay: Overlay, shared: SharedOverlay) -> MethodsView:
        """Return the view of ``methods.py``."""
        self._emitter.module()
        entries: dict[str, Entry] = {}
        for method in self._methods:
            constant = self._constants[method]
            entries[constant] = self._entry(constant, method, method.result)
            if method.task_result:
                task = f"{constant}_AS_TASK"
                entries[task] = self._entry(task, method, ir.Named(name=method.task_result))
        tables = tuple(self._table(*table) for table in _TABLES)
        keys = self._meta_keys(overlay)
        reserved = overlay.reserved_errors
        is_revision = self._imported is None
        errors = _errors([*shared.errors * is_revision, *overlay.errors])
        fixed = [*["ERA", "REVISION"] * is_revision, *["ErrorCode"] * bool(errors), *["MetaKey"] * bool(keys)]
        fixed += _EXPORTED_SUPPORT
        others = [*["RESERVED_ERRORS"] * (reserved is not None), *(table.name for table in tables)]
        return MethodsView(
            revision=ascii(revision),
            label=self._emitter.revision,
            era=ascii(overlay.era) if is_revision else "",
            errors=errors,
            reserved_errors="" if reserved is None else f"range({reserved[0]}, {reserved[1] + 1})",
            meta_keys=keys,
            methods=tuple(entries[constant] for constant in sorted(entries)),
            tables=tables,
            exports=packed(sorted([*fixed, *entries, *others])),
            shown=tuple(sorted(fixed)),
            typing_imports=self._emitter.typing_imports("Final", *["Literal"] * is_revision),
            msgspec_imports=self._emitter.msgspec_imports(),
            support=self._emitter.support,
            support_imports=self._emitter.support_imports(),
            siblings=_siblings(each.type + each.value for each in entries.values()),
        )

    def side(self, side: Side) -> SideView:
        """Return the view of ``server.py`` or ``client.py``."""
        served = [each for each in self._methods if each.sender != side]
        sent = [each for each in self._methods if each.sender == side and each.kind != "input"]
        name = side.title()
        declares = self._declares(f"{name}Capabilities", served)
        requests = any(each.kind != "notification" for each in served)
        optional = any(not each.params_required for each in sent)
        self._emitter.module()
        stubs = tuple(self._served(each) for each in _by_name(served))
        calls = tuple(call for each in _by_name(sent) for call in self._calls(each))
        mentioned = [each.params + each.answer for each in stubs] + [each.parameter + each.result for each in calls]
        return SideView(
            name=name,
            word=side,
            revision=self._emitter.revision,
            doc=f"the messages that a {side} handles and sends."
            if self._imported is not None
            else f"the requests and notifications that a {side} handles, and the messages that it sends.",
            unhandled=_UNHANDLED_INPUT if any(each.kind == "input" for each in served) else _UNHANDLED,
            declares=declares,
            served=stubs,
            sent=calls,
            capabilities=tuple((e.python_name, self._capability(name, e)) for e in _by_name(served) if e.capability),
            typing_imports=self._emitter.typing_imports("Generic", "TypeVar"),
            msgspec_imports=self._emitter.msgspec_imports(*("UNSET", "UnsetType") * optional, *("convert",) * declares),
            methods_imports=("Sender",) + ("Unhandled",) * requests + ("declared",) * declares,
            support=self._emitter.support,
            support_imports=self._emitter.support_imports(),
            siblings=("methods",) * bool(calls) + _siblings([*mentioned, "models." * declares]),
        )

    def _name_constants(self) -> dict[Method, str]:
        """Name the table entry of each method; both directions of one message share theirs."""
        owners: dict[str, str] = {}
        found: dict[Method, str] = {}
        tasks = {f"{each.constant}_AS_TASK" for each in self._methods if each.task_result}
        for method in self._methods:
            pointer = self._schema.definitions[method.definition].pointer
            name = method.constant
            is_other = owners.setdefault(name, method.definition) != method.definition
            if method.python_name in _TAKEN or name in tasks or is_other:
                self._report(method, pointer)
            found[method] = name
        return found

    def _report(self, method: Method, pointer: str) -> None:
        finding = Diagnostic(
            code="MG213",
            pointer=pointer,
            message=f"the Python method for {method.definition} would be named {method.python_name}, which is taken",
            hint="Rename the definition.",
        )
        self.diagnostics.append(finding)

    def _meta_keys(self, overlay: Overlay) -> tuple[Key, ...]:
        """Return the keys of ``_meta`` that MCP reserves: those in the document, and those that the overlay names."""
        found = {key: prose(text) for key, text in overlay.meta_keys.items()}
        for definition in self._schema.objects():
            for each in () if definition.name in (self._imported or ()) else definition.properties:
                if each.wire.startswith(_META_PREFIX):
                    found[each.wire] = found.get(each.wire) or self._emitter.texts.field_text(definition.name, each)
        by_name = {names.attribute(key).rstrip("_").upper(): key for key in sorted(found)}
        return tuple(
            Key(name=name, key=ascii(key), doc=wrapped(found[key], indent=" " * 4) if found[key] else "")
            for name, key in by_name.items()
        )

    def _entry(self, constant: str, method: Method, result: ir.TypeRef | None) -> Entry:
        arguments = [
            f"name={method.name!a}",
            f"params={self._runtime(method.params)}",
            f"params_required={method.params_required}",
        ]
        types = [self._static(method.params)]
        maker = "NotificationMethod"
        if result is not None:
            maker = "RequestMethod"
            arguments.append(f"result={self._runtime(result)}")
            types.append(self._static(result))
        return Entry(
            constant=constant,
            type=f"{maker}[{', '.join(types)}]",
            value=f"{maker}({', '.join(arguments)})",
            doc="".join(self._emitter.texts.spec(method.definition)),
        )

    def _table(self, name: str, kind: str, sender: Side, doc: str) -> Table:
        chosen = [each for each in self._methods if each.kind == kind and each.sender == sender]
        maker = "notifications" if kind == "notification" else "requests"
        constants = [f"{self._constants[each]}," for each in sorted(chosen, key=lambda e: e.name)]
        return Table(name=name, maker=maker, doc=doc.format(self._emitter.revision), lines=filled(constants))

    def _served(self, method: Method) -> Served:
        answers: list[str] = []
        if method.result is not None:
            answers += self._answers(method.result)
        if method.task_result:
            answers.append(f"models.{method.task_result}")
        return Served(
            name=method.python_name,
            params=self._static(method.params),
            answer=" | ".join(dict.fromkeys(answers)) or "None",
            doc=self._doc(method),
            raises="" if method.result is None else f"raise Unhandled({method.name!a})",
        )

    def _answers(self, result: ir.TypeRef) -> list[str]:
        """Return what a handler may return: an open object as its dict, or as the view that encodes to it."""
        if isinstance(target := self._schema.resolve(result), ir.Object) and target.unknown == "kept":
            return [f"models.{target.name}", self._static(result)]
        return [self._static(result)]

    def _calls(self, method: Method) -> list[Sent]:
        params = self._static(method.params)
        parameter = f"params: {params}, /" if method.params_required else f"params: {params} | UnsetType = UNSET, /"
        constant = self._constants[method]
        if method.result is None:
            body = f"await self._sender.notify(methods.{constant}, params)"
            doc = self._doc(method)
            return [Sent(name=method.python_name, parameter=parameter, result="None", doc=doc, body=body)]
        calls = [("", constant, method.result)]
        if method.task_result:
            task = ir.Named(name=method.task_result)
            calls.append(("_as_task", f"{constant}_AS_TASK", task))
        return [
            Sent(
                name=method.python_name + suffix,
                parameter=parameter,
                result=self._static(result),
                doc=self._doc(method, as_task=bool(suffix)),
                body=f"return await self._sender.request(methods.{entry}, params)",
            )
            for suffix, entry, result in calls
        ]

    def _doc(self, method: Method, *, as_task: bool = False) -> str:
        text = self._emitter.texts.text(method.definition) or f"The {method.kind} `{prose(method.name)}`."
        task = f"Ask to run the request as a task. The response contains a {method.task_result}." if as_task else ""
        texts = self._emitter.texts
        paragraphs = [text, task, texts.deprecation(method.definition), *texts.spec(method.definition)]
        return wrapped(*filter(None, paragraphs), indent=_METHOD_INDENT)

    def _declares(self, name: str, served: list[Method]) -> bool:
        """Return whether the definition *name* is there, and any choice of *served* makes a value of it."""
        if name not in self._schema.definitions or self._imported is not None:
            return False
        this = ir.Named(name=name)
        declared: list[tuple[tuple[str, ...], object]] = [((), {})]
        declared += [(each.capability, self._value(name, each)) for each in served if each.capability]
        if all(self._admits(this, path, value) for path, value in declared):
            return True
        finding = Diagnostic(
            code="MG133",
            pointer=self._schema.definitions[name].pointer,
            message=f"{name} cannot be built from the methods, so the handlers have no capabilities() method",
            hint=f"Describe {name} as an object without required keys. Do the same for each object in it that declares "
            "methods.",
            severity="warning",
        )
        self.diagnostics.append(finding)
        return False

    def _admits(self, ref: ir.TypeRef, path: tuple[str, ...], value: object) -> bool:
        """Whether *ref* admits *value* at *path*, in objects with nothing else."""
        target = self._schema.resolve(ref)
        match target:
            case ir.Object(properties=properties):
                needed = {each.wire for each in properties if each.required}
                if not path:
                    return not needed and value == {}
                held = next(each.type for each in properties if each.wire == path[0])
                return needed <= {path[0]} and self._admits(held, path[1:], value)
            case ir.Union(arms=arms):
                return any(self._admits(arm, path, value) for arm in arms)
            case ir.Scalar(kind="boolean"):
                return value is True
            case _:
                return isinstance(target, ir.Mapping | ir.Anything) and value == {}

    def _capability(self, side: str, method: Method) -> str:
        """Return (path, value) of the capability as source."""
        return ascii((method.capability, self._value(f"{side}Capabilities", method)))

    def _value(self, capabilities: str, method: Method) -> object:
        """Return what declares the capability of *method*: an object, or true where the document has a boolean."""
        return True if isinstance(self._schema.member(capabilities, method.capability), ir.Scalar) else {}

    def _static(self, ref: ir.TypeRef) -> str:
        return self._emitter.annotation(ref, prefix="models.", views=False)

    def _runtime(self, ref: ir.TypeRef) -> str:
        return f"models.{ref.name}" if isinstance(ref, ir.Named) else self._static(ref)


def _siblings(annotations: Iterable[str]) -> tuple[str, ...]:
    """Return the modules of the package that *annotations* mention."""
    return ("models",) if any("models." in each for each in annotations) else ()


def _by_name(methods: list[Method]) -> list[Method]:
    return sorted(methods, key=lambda each: (each.kind == "notification", each.python_name))


def _errors(errors: list[ErrorCode]) -> tuple[Error, ...]:
    ordered = sorted({each.code: each for each in errors}.values(), key=lambda each: each.code)
    return tuple(Error(name=each.name, code=each.code, doc=prose(each.text)) for each in ordered)
