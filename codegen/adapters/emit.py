"""A planned step as views for the template ``adapter.py.jinja``: every line of a function is decided here."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

import msgspec

from mcpgen.codegen import names
from mcpgen.codegen.adapters.lines import Lines
from mcpgen.codegen.adapters.ops import Keep
from mcpgen.codegen.docs import spec_url
from mcpgen.codegen.docstrings import prose, wrapped
from mcpgen.codegen.layout import filled, words

if TYPE_CHECKING:
    from mcpgen.codegen.adapters.messages import GoneMessage, MessagePlan
    from mcpgen.codegen.adapters.ops import Function, Transform
    from mcpgen.codegen.adapters.plan import DirectionPlan, StepPlan

__all__ = ["StepView", "step_view"]


class FunctionView(msgspec.Struct, frozen=True, kw_only=True):
    """One function: its name, what its docstring says, and the lines of its body."""

    name: str
    doc: str
    lines: tuple[str, ...]
    takes: str = "dict[str, Any]"
    returns: str = "Any"


class DirectionView(msgspec.Struct, frozen=True, kw_only=True):
    """One direction.

    Attributes:
        name: ``UP`` or ``DOWN``.
        heading: The comment above the functions.
        source: The revision that values come from, as Python.
        target: The revision that they are adapted to, as Python.
        error: The statement that defines the part for errors, or nothing.
        functions: The functions that may change any value.
        closing: The functions that only remove keys which the source does not define.
        messages: (message, lines of methods).
        rows: (step, lines of names) for definitions that keep their name.
        renamed: (name, (new name, step)) as Python for the others.
    """

    name: str
    heading: str
    source: str
    target: str
    error: str
    functions: tuple[FunctionView, ...]
    closing: tuple[FunctionView, ...]
    messages: tuple[tuple[str, tuple[str, ...]], ...]
    rows: tuple[tuple[str, tuple[str, ...]], ...]
    renamed: tuple[tuple[str, str], ...]


class StepView(msgspec.Struct, frozen=True, kw_only=True):
    """A module.

    Attributes:
        old: The older revision.
        new: The newer one.
        changes: The lines of the docstring that say what the newer revision does differently.
        imports: Import statements of the declared functions.
        source: The declared functions.
        constants: (name, value) of the module's constants.
        helpers: The lines of the import from the support module ``steps``.
        support: The support package.
        fields: (name, value) of the bindings that are asked whether a value is valid.
        directions: Up, then down.
    """

    old: str
    new: str
    changes: tuple[str, ...]
    imports: str
    source: str
    constants: tuple[tuple[str, str], ...]
    helpers: tuple[str, ...]
    support: str
    fields: tuple[tuple[str, str], ...]
    directions: tuple[DirectionView, ...]


def step_view(plan: StepPlan, *, draft: str = "") -> StepView:
    """Return the view of the module for a step; if it leads to a *draft*, of the module in the draft's package."""
    return _Emitter(plan, draft).view()


def _url(reference: str) -> str:
    """Return the URL of *reference*, ``2025-11-25, basic/index#meta``, or *reference* itself if it has another form."""
    label, comma, place = reference.partition(", ")
    return spec_url(label, place) if comma and " " not in place else reference


def _error_constant(plan: DirectionPlan) -> str:
    """Return the name of the part that adapts errors."""
    return f"_ERROR_TO_{names.package(plan.target)[1:]}"


class _Emitter:
    def __init__(self, plan: StepPlan, draft: str) -> None:
        self._plan = plan
        self._draft = draft
        reasons = {each.says: names.snake(each.name).upper() for each in plan.declared.step.changes}
        for label in (plan.up.source, plan.up.target):
            suffix = names.package(label)[1:]
            reasons[f"{label} does not define this key."] = f"NOT_IN_{suffix}"
            reasons[f"{label} does not define this key, so its value has no meaning."] = f"NO_MEANING_IN_{suffix}"
            reasons[f"{label} does not allow this value there."] = f"NOT_VALID_IN_{suffix}"
        for error in (*plan.up.errors, *plan.down.errors):
            label = error.reason.partition(" ")[0]
            reasons.setdefault(error.reason, f"ERROR_{abs(error.code)}_IN_{names.package(label)[1:]}")
        declared = {node.id for node in ast.walk(ast.parse(plan.declared.source)) if isinstance(node, ast.Name)}
        self._lines = Lines(reasons, {"DOWN", "UP", *declared}, plan.up.source)

    def view(self) -> StepView:
        step = self._plan.declared.step
        directions = tuple(self._direction(each) for each in (self._plan.up, self._plan.down))
        helpers = {"At", "Direction", "Losses", "Message", "by_method", *self._lines.helpers}
        helpers |= {"Fields"} if self._lines.fields else set()
        changes = tuple(
            wrapped(f"* {prose(each.name)}: {prose(each.says)} {prose(_url(each.spec))}", indent="  ").rstrip()
            for each in step.changes
        )
        return StepView(
            old=step.old,
            new=step.new,
            changes=changes,
            imports=self._plan.declared.imports,
            source=self._plan.declared.source,
            constants=(
                *((name, repr(text)) for text, name in self._lines.reasons.items()),
                *((name, text) for text, name in self._lines.keys.items()),
            ),
            helpers=filled(f"{name}," for name in sorted(helpers)),
            support="mcpgen.generated._support" if self._draft else ".._support",
            fields=tuple(sorted((name, self._bindings(label)) for label, name in self._lines.fields.items())),
            directions=directions,
        )

    def _bindings(self, label: str) -> str:
        """Return the expression for the bindings of *label*: a draft's own are the package of the module itself."""
        return "Fields.of(__package__)" if label == self._draft else f'Fields("{names.package(label)}")'

    def _direction(self, plan: DirectionPlan) -> DirectionView:
        way = "up" if plan is self._plan.up else "down"
        functions = [self._function(each, plan) for name, each in plan.functions.items() if name not in plan.idle]
        closing = [self._function(each, plan) for name, each in plan.functions.items() if name in plan.idle]
        if plan.errors:
            self._used("step")
            functions.append(
                FunctionView(
                    name=f"{way}_error",
                    doc="Adapt the error of a request.",
                    lines=tuple(self._lines.errors(plan.errors)),
                )
            )
        functions += [
            FunctionView(
                name=f"{way}_{names.snake(each.name)}_error",
                doc=f"Adapt the error of {prose(each.name)}.",
                lines=tuple(self._own_error(each, plan, way)),
            )
            for each in plan.messages
            if each.own_error is not None
        ]
        functions += [
            FunctionView(
                name=f"{way}_{names.snake(each.name)}_error",
                doc=f"Refuse the error of {prose(each.name)}: {plan.target} has none for it.",
                lines=("del value", self._lines.refusal(each.no_error.reason, each.no_error.service, "at")),
            )
            for each in plan.messages
            if each.no_error is not None
        ]
        return DirectionView(
            name=way.upper(),
            heading=f"{plan.source} to {plan.target}",
            source=repr(plan.source),
            target=repr(plan.target),
            error=f"{_error_constant(plan)}: Final = step({way}_error)" if plan.errors else "",
            functions=tuple(functions),
            closing=tuple(closing),
            messages=self._messages(plan, way),
            rows=self._rows(plan),
            renamed=tuple(
                (repr(one), f"({other!r}, {self._part(transform, plan)})")
                for one, (other, transform) in plan.definitions.items()
                if one != other
            ),
        )

    # Tables

    def _messages(self, plan: DirectionPlan, way: str) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """Return the different messages, each with all methods that it is for."""
        rows: dict[str, list[str]] = {}
        for each in plan.messages:
            rows.setdefault(self._message(each, plan, way), []).append(each.name)
        return tuple((message, words(methods)) for message, methods in rows.items())

    def _rows(self, plan: DirectionPlan) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """Return the steps of the definitions that keep their name, each with all names that it is for."""
        rows: dict[str, list[str]] = {}
        for one, (other, transform) in plan.definitions.items():
            if one == other:
                rows.setdefault(self._part(transform, plan), []).append(one)
        if rows:
            self._lines.helpers.add("same_name")
        return tuple((part, words(found)) for part, found in sorted(rows.items(), key=lambda row: row[0] != "SAME"))

    def _message(self, plan: MessagePlan, direction: DirectionPlan, way: str) -> str:
        parts: list[str] = []
        for name, transform in (("params", plan.params), ("result", plan.result)):
            if transform is not None:
                parts.append(f"{name}={self._part(transform, direction)}")
        if plan.no_error is not None or plan.own_error is not None:
            parts.append(f"error={self._used('step')}({way}_{names.snake(plan.name)}_error)")
        elif plan.error:
            parts.append(f"error={_error_constant(direction)}" if direction.errors else f"error={self._used('SAME')}")
        # The three are the first arguments, in this order.
        if [each.partition("=")[0] for each in parts] == ["params", "result", "error"][: len(parts)]:
            parts = [each.partition("=")[2] for each in parts]
        if plan.gone:
            gone = ", ".join(f"{sender!r}: {self._gone(each)}" for sender, each in sorted(plan.gone.items()))
            parts.append(f"gone={{{gone}}}")
        return f"Message({', '.join(parts)})"

    def _own_error(self, message: MessagePlan, plan: DirectionPlan, way: str) -> list[str]:
        function = "" if message.own_error is None else message.own_error.function
        if not plan.errors:
            return [f"return {function}(value, at, losses)"]
        return [
            f"own = {function}(value, at, losses)",
            f"return {function}({way}_error(value, at, losses), at, losses) if own is value else own",
        ]

    def _gone(self, gone: GoneMessage) -> str:
        self._lines.helpers.add("Gone")
        return f"Gone(reason={self._lines.constant(gone.reason)}, service={gone.service!r})"

    def _part(self, transform: Transform, plan: DirectionPlan) -> str:
        if isinstance(transform, Keep):
            return self._used("SAME")
        return f"{self._used('closing' if transform.function in plan.idle else 'step')}({transform.function})"

    def _used(self, helper: str) -> str:
        self._lines.helpers.add(helper)
        return helper

    # Functions

    def _function(self, function: Function, plan: DirectionPlan) -> FunctionView:
        lines = self._lines.body(function, source=plan.source, target=plan.target)
        what = function.source if function.source == function.target else f"{function.source}, as {function.target}"
        if function.also:
            what = ", ".join([function.source, *sorted(set(function.also) - {function.source})])
        verb = "Remove the keys of other revisions from" if function.is_closing else "Adapt"
        doc = wrapped(prose(f"{verb} {what}."), indent="    ")
        takes = "dict[str, Any]" if isinstance(function.body, tuple) else "Any"
        return FunctionView(name=function.name, doc=doc, lines=tuple(lines), takes=takes, returns=takes)
