"""From the intermediate representation to what the templates lay out: names, order, annotations and defaults.

Everything a template prints is final here. Foreign text reaches it in two ways only: as an identifier that the rules
of ``names`` made, or through ``ascii``; prose goes through `prose`, which leaves nothing that could end a docstring.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, assert_never

from mcpgen.codegen import ir, names
from mcpgen.codegen.diagnostics import Diagnostic
from mcpgen.codegen.docstrings import wrapped
from mcpgen.codegen.layout import call, filled, literal, packed, union
from mcpgen.codegen.model_views import AliasView, ClassView, FieldView, ModelsView, ShortcutView
from mcpgen.codegen.unions import Structural, Tagged, Unions, oversized

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from collections.abc import Set as AbstractSet

    from mcpgen.codegen.texts import Texts

__all__ = ["RESERVED", "Emitter"]

_CLASS_INDENT = "    "
_METHOD_INDENT = _CLASS_INDENT * 2
_MOST_WITHOUT_HEADING = 5

# The names that the generated modules import. If a definition has the same name (`Annotated` of 2024-11-05), the import
# gets another name, not the definition.
_TYPING = ("Annotated", "Any", "Literal", "TYPE_CHECKING", "TypeAlias")
_MSGSPEC = ("Meta", "UNSET", "UnsetType", "ValidationError", "convert", "field")
_SUPPORT = {
    "structs": ("Constants", "JSON", "Model", "Open", "const", "preset"),
    "unions": ("AnyOf", "tagged"),
    "validation": ("Checked", "CheckedMeta", "decode", "decoder", "misplaced"),
}
_IMPORTED = (*_TYPING, *_MSGSPEC, *(name for names_there in _SUPPORT.values() for name in names_there))
# The other names that a package exports, and the builtins in annotations.
RESERVED = frozenset(
    {"ClientHandlers", "ClientMethods", "ErrorCode", "MetaKey", "NotificationMethod", "RequestMethod", "Sender"}
    | {"ServerHandlers", "ServerMethods", "Unhandled", "bool", "dict", "float", "int", "list", "object", "str"}
    | {"REVISION", "ERA", "models", "messages", "methods", "server", "client", "decode", "decoder"}
    | {"TYPE_CHECKING", "TypeAlias"}  # type checkers know the former by this name alone
)


class Emitter:
    """Lays out the models and the messages of one revision or extension."""

    def __init__(
        self,
        schema: ir.Schema,
        texts: Texts,
        *,
        support: str = "._support",
        imported: Mapping[str, str] | None = None,
    ) -> None:
        """Lay out *schema*.

        Args:
            schema: All definitions.
            texts: The texts of docstrings.
            support: The support package in a relative import.
            imported: The module that has each definition that is not laid out.
        """
        self.diagnostics: list[Diagnostic] = []
        self._origins = imported or {}
        self._reserved = RESERVED if imported is None else RESERVED | {"BASE", "EXTENSION", "Final"}
        self.support: str = support
        self._schema = schema
        self._unions = Unions(schema)
        self.texts = texts
        self.revision: str = texts.label
        self._used: set[str] = set()
        self._elsewhere: set[str] = set()  # the definitions in another module than the one being written
        self._siblings: set[str] = set()
        self._support = {name: self._free_name(name) for name in _IMPORTED}

    def models(self, envelopes: AbstractSet[str]) -> ModelsView:
        """Return the view of ``models.py``, which has all definitions but the *envelopes*."""
        self._check_names()
        self.diagnostics += oversized(self._schema)
        return self._view(self._schema.definitions.keys() - envelopes, ("decode", "decoder"))

    def messages(self, envelopes: AbstractSet[str]) -> ModelsView:
        """Return the view of ``messages.py``, which has the *envelopes*."""
        return self._view(envelopes, ())

    def _view(self, shown: AbstractSet[str], others: tuple[str, ...]) -> ModelsView:
        """Return the view of the module with the definitions *shown*, which also exports *others*."""
        self.module()
        self._elsewhere = self._schema.definitions.keys() - shown
        own = shown - self._origins.keys()
        classes = tuple(self._class(each) for each in self._schema.objects() if each.name in own)
        aliases = tuple(self._alias(each) for each in self._in_order_of_use() if each.name in own)
        self._used.update(others)
        modules = sorted({self._origins[name] for name in shown - own})
        return ModelsView(
            classes=classes,
            aliases=aliases,
            exports=packed(sorted((*shown, *others))),
            typing_imports=self._imports(_TYPING),
            msgspec_imports=self._imports(_MSGSPEC),
            siblings=tuple(sorted(self._siblings)),
            own_imports=self.support_imports(),
            base_imports=tuple(
                (each, filled(f"{name}," for name in sorted(shown - own) if self._origins[name] == each))
                for each in modules
            ),
            checked=self._support["Checked"],
            misplaced=self._support["misplaced"],
            validation_error=self._support["ValidationError"],
        )

    def module(self) -> None:
        """Begin another module: what earlier ones import does not count."""
        self._used.clear()
        self._siblings.clear()

    def support_imports(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """Return (module, names) for all names of the support package that the module uses."""
        found = ((module, self._imports(names_there)) for module, names_there in _SUPPORT.items())
        return tuple((f"{self.support}.{module}", used) for module, used in found if used)

    def typing_imports(self, *others: str) -> tuple[str, ...]:
        """Return what the annotations made since the last `module` import from typing, and *others*."""
        return tuple(sorted({*self._imports(_TYPING), *others}))

    def msgspec_imports(self, *others: str) -> tuple[str, ...]:
        """Return what the annotations made since the last `module` import from msgspec, and *others*."""
        return tuple(sorted({*self._imports(_MSGSPEC), *others}))

    def annotation(self, ref: ir.TypeRef, *, prefix: str = "", views: bool = True) -> str:
        """Return the static annotation for *ref*.

        Args:
            ref: The type.
            prefix: Put before the name of a definition, ``models.`` in the other modules.
            views: Whether to name the view of an open object beside its dict.
        """
        match ref:
            case ir.Anything():
                return self._use("JSON")
            case ir.Nothing():
                return self._use("UnsetType")
            case ir.Scalar():
                return self._scalar(ref)
            case ir.Fixed(values=values):
                return f"{self._use('Literal')}[{', '.join(map(ascii, values))}]"
            case ir.Array(item=item, bounds=bounds):
                return self._bounded(f"list[{self.annotation(item, prefix=prefix, views=views)}]", bounds)
            case ir.Mapping(value=value):
                return f"dict[str, {self.annotation(value, prefix=prefix, views=views)}]"
            case ir.Named(name=name):
                target = self._schema.definitions[name]
                if isinstance(target, ir.Object) and target.unknown == "kept":
                    held = f"dict[str, {self._use('JSON')}]"
                    return f"{self._use('Annotated')}[{held}, {self._mention(name, prefix)}]" if views else held
                return self._mention(name, prefix)
            case ir.Union(arms=arms):
                return " | ".join(dict.fromkeys(self.annotation(arm, prefix=prefix, views=views) for arm in arms))
            case _:
                assert_never(ref)

    # Classes

    def _class(self, target: ir.Object) -> ClassView:
        fields = self._fields(target)
        uses_camel = any(names.camel(name) == each.wire != name for name, each in fields)
        constants = any(each.constant or each.preset is not None for _, each in fields)
        settled = [(name, each.required) for name, each in fields if self._unions.is_settled(each.type)]
        checked = "CheckedMeta" if settled == [("meta", False)] else "Checked"
        bases = ["Constants"] * constants + ["Open"] * (target.unknown == "kept") + [checked] * bool(settled)
        options = ["frozen=True", "kw_only=True"]
        if uses_camel:
            options.append('rename="camel"')
        if target.unknown == "refused":
            options.append("forbid_unknown_fields=True")
        if self._unions.is_leaf(target.name):
            options.append("gc=False")  # such instances cannot be in a reference cycle
        return ClassView(
            name=target.name,
            bases=", ".join(map(self._use, bases or ["Model"])),
            options=", ".join(options),
            doc=self.texts.doc(target.name, target.description, anonymous=target.anonymous, indent=_CLASS_INDENT),
            fields=tuple(
                self._field(name, each, owner=target.name, uses_camel=uses_camel, heading=heading)
                for heading, (name, each) in zip(self._headings(target.name, fields), fields, strict=True)
            ),
            shortcut=self._shortcut(target.name, fields) if settled and checked == "Checked" else None,
        )

    def _headings(self, owner: str, fields: list[tuple[str, ir.Property]]) -> list[str]:
        """Return the comment above each field: a long class says where its optional keys begin."""
        required = sum(each.required for _, each in fields)
        has_heading = 0 < required < len(fields) > _MOST_WITHOUT_HEADING
        heading = f"Optional keys of {owner} in {self.revision}:"
        return [heading if has_heading and index == required else "" for index in range(len(fields))]

    def _shortcut(self, owner: str, fields: list[tuple[str, ir.Property]]) -> ShortcutView | None:
        """Return the shortcut of a checked class; it has none if every message has a union to settle."""
        settled = [(name, each) for name, each in fields if self._unions.is_settled(each.type)]
        always = [(name, each.wire, self._schema.resolve(each.type)) for name, each in settled if each.required]
        views = [(name, wire, self._mention(each.name)) for name, wire, each in always if isinstance(each, ir.Object)]
        if len(views) < len(always):
            return None
        unset = self._use("UNSET")
        converts = tuple((f"{self._use('convert')}(self.{name}, {view})", ascii(wire)) for name, wire, view in views)
        if converts:
            self._use("ValidationError")
            self._use("misplaced")
        optional = [name for name, each in settled if not each.required]
        return ShortcutView(
            doc=wrapped(
                f"Check the unions and open objects in the fields of {owner} in {self.revision}. "
                "Raise ValueError if one is invalid.",
                indent=_METHOD_INDENT,
            ),
            converts=converts,
            present=" or ".join(f"self.{name} is not {unset}" for name in optional),
        )

    def _fields(self, target: ir.Object) -> list[tuple[str, ir.Property]]:
        """Return (attribute, property): constants, then required, then optional keys; ``_meta`` last in its group."""
        found: dict[str, ir.Property] = {}
        for each in target.properties:
            other = found.setdefault(names.attribute(each.wire), each)
            if other is not each:
                finding = Diagnostic(
                    code="MG211",
                    pointer=each.pointer,
                    message=f"{each.wire!r} and {other.wire!r} both become {names.attribute(each.wire)}",
                    hint="Rename one of the properties.",
                )
                self.diagnostics.append(finding)
        return sorted(
            found.items(),
            key=lambda item: (not item[1].constant, not item[1].required, item[1].wire == "_meta", item[1].wire),
        )

    def _field(self, name: str, each: ir.Property, *, owner: str, uses_camel: bool, heading: str) -> FieldView:
        wire = (names.camel(name) if uses_camel else None) or name
        given = [] if wire == each.wire else [f"name={each.wire!a}"]
        annotation = self.annotation(each.type)
        default = ""
        if each.constant:
            default = f"{self._use('const')}({', '.join([ascii(each.constant.values[0]), *given])})"
        elif each.preset is not None:
            default = f"{self._use('preset')}({', '.join([ascii(each.preset), *given])})"
        elif not each.required:
            if not isinstance(each.type, ir.Nothing):
                annotation = f"{annotation} | {self._use('UnsetType')}"
            unset = self._use("UNSET")
            default = f"{self._use('field')}({', '.join([*given, f'default={unset}'])})" if given else unset
        elif given:
            default = f"{self._use('field')}({given[0]})"
        text = " ".join(
            filter(None, [self.texts.field_text(owner, each), self.texts.deprecation(f"{owner}.{each.wire}")])
        )
        return FieldView(
            heading=heading,
            name=name,
            annotation=annotation,
            default=f" = {default}" if default else "",
            doc=wrapped(text, indent=_CLASS_INDENT) if text else "",
        )

    # Aliases

    def _alias(self, alias: ir.Alias) -> AliasView:
        arms = alias.type.arms if isinstance(alias.type, ir.Union) else (alias.type,)
        static = list(dict.fromkeys(map(self.annotation, arms)))
        if alias.name in self._unions.recursive:
            static = [literal(" | ".join(static))]
        runtime = self._runtime(alias)
        typed = f"{alias.name}: {self._use('TypeAlias')} = "
        if runtime is None and isinstance(alias.type, ir.Fixed):
            values = [f"{each!a}," for each in alias.type.values]
            lines = call(f"{typed}{self._use('Literal')}[", values, "]")
        elif runtime is None:
            lines = union(typed, static)
        else:
            indent = " " * 4
            both = union(f"{indent}{typed}", static), call(f"{indent}{alias.name} = {runtime[0]}", *runtime[1:])
            lines = [f"if {self._use('TYPE_CHECKING')}:", *both[0], "else:", *both[1]]
        return AliasView(
            lines=tuple(lines), doc=self.texts.doc(alias.name, alias.description, anonymous=alias.anonymous)
        )

    def _runtime(self, alias: ir.Alias) -> tuple[str, list[str], str] | None:
        """Return what msgspec needs for *alias*: the start of an expression, its items and its end.

        None if the annotation for type checkers serves msgspec too.
        """
        kind = self._unions.kind(alias.type)
        if alias.name in self._unions.recursive or isinstance(kind, Structural):
            arms = [f"{self.annotation(arm)}," for arm in self._unions_arms(alias)]
            return f"{self._use('Annotated')}[{self._use('Any')}, {self._use('AnyOf')}(lambda: (", arms, "))]"
        if isinstance(kind, Tagged):
            objects = [f"{each}," for each in (literal(kind.tag), *map(self._mention, kind.objects))]
            rest = "".join(f" | {self.annotation(each)}" for each in kind.rest)
            return f"{self._use('tagged')}(", objects, f"){rest}"
        if isinstance(alias.type, ir.Union) and any(map(self._unions.is_swallowing, alias.type.arms)):
            return "(", [self.annotation(ir.Union(arms=tuple(self._unions.arms(alias.type))))], ")"
        return None

    def _unions_arms(self, alias: ir.Alias) -> list[ir.TypeRef]:
        """Return the arms to try for *alias*; one that is not a union is the only arm of itself."""
        arms = self._unions.arms(alias.type)
        return [arm for arm in arms if arm != ir.Named(name=alias.name)]

    def _in_order_of_use(self) -> list[ir.Alias]:
        """Return the aliases so that each comes after those it mentions; recursive ones refer to themselves late."""
        placed: dict[str, ir.Alias] = {}

        def place(alias: ir.Alias, above: frozenset[str]) -> None:
            for name in sorted(set(ir.names(alias.type))):
                target = self._schema.definitions[name]
                if isinstance(target, ir.Alias) and name not in placed and name not in above:
                    place(target, above | {name})
            placed.setdefault(alias.name, alias)

        for alias in self._schema.aliases():
            place(alias, frozenset({alias.name}))
        return list(placed.values())

    # Parts

    def _scalar(self, scalar: ir.Scalar) -> str:
        match scalar.kind:
            case "string":
                return self._bounded("str", scalar.bounds)
            case "integer":
                return self._bounded("int", [_to_int(bound) for bound in scalar.bounds])
            case "number":
                integer = self._bounded("int", [_to_int(bound) for bound in scalar.bounds])
                return f"{integer} | {self._bounded('float', scalar.bounds)}"
            case "boolean":
                return "bool"
            case "null":
                return "None"
            case _:
                assert_never(scalar.kind)

    def _bounded(self, annotation: str, bounds: Iterable[tuple[str, object]]) -> str:
        keywords = ", ".join(f"{name}={value!a}" for name, value in bounds)
        return f"{self._use('Annotated')}[{annotation}, {self._use('Meta')}({keywords})]" if keywords else annotation

    def _mention(self, name: str, prefix: str = "") -> str:
        """Return *name* as the module being written refers to it: messages.py imports models.py as a whole."""
        if prefix or name not in self._elsewhere:
            return prefix + name
        self._siblings.add("models")
        return f"models.{name}"

    def _use(self, name: str) -> str:
        self._used.add(name)
        return self._support[name]

    def _imports(self, candidates: Iterable[str]) -> tuple[str, ...]:
        """Return what is imported of *candidates*, under another name where a definition has taken it."""
        used = sorted(set(candidates) & self._used)
        return tuple(name if self._support[name] == name else f"{name} as {self._support[name]}" for name in used)

    def _free_name(self, name: str) -> str:
        while name in self._schema.definitions:
            name = f"_{name}"
        return name

    def _check_names(self) -> None:
        for name in sorted(self._reserved & self._schema.definitions.keys()):
            finding = Diagnostic(
                code="MG212",
                pointer=self._schema.definitions[name].pointer,
                message=f"the generated modules use the name {name} themselves",
                hint="Rename the definition.",
            )
            self.diagnostics.append(finding)


def _to_int(bound: tuple[str, str | int | float]) -> tuple[str, object]:
    """Return *bound* for integers, as an integer, which is what msgspec takes: 0.5 <= n means 1 <= n."""
    name, value = bound
    if not isinstance(value, float):
        return name, value
    if name == "lt" and not value.is_integer():
        name = "le"
    return name, math.ceil(value) if name == "ge" else math.floor(value)
