"""The bodies of generated functions, line by line."""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

from mcpgen.codegen import names
from mcpgen.codegen.adapters.discriminators import may_overlap
from mcpgen.codegen.adapters.ops import (
    Absent,
    Admit,
    Call,
    Case,
    Condition,
    Converted,
    Defaulted,
    Dropped,
    Foreign,
    Function,
    Keep,
    Moved,
    Nested,
    Operation,
    Refused,
    Relabelled,
    Switch,
    Transform,
)

if TYPE_CHECKING:
    from collections.abc import Container, Iterator, Mapping

    from mcpgen.codegen.adapters.messages import ErrorCase

__all__ = ["Lines"]


class Lines:
    """Writes functions of one step, and remembers the constants that they use.

    Attributes:
        reasons: Name by text.
        keys: Name by set, both as Python.
        helpers: The functions of the support module ``steps`` that they use.
        fields: Name, by revision, of what tells whether a value is valid there.
    """

    def __init__(self, names_by_reason: Mapping[str, str], taken: Container[str], older: str) -> None:
        """Start a module whose constants for reasons are called as given, unless the name is *taken*."""
        self.reasons: dict[str, str] = {}
        self.keys: dict[str, str] = {}
        self.fields: dict[str, str] = {}
        self.helpers: set[str] = set()
        self._names = names_by_reason
        self._taken = taken
        self._older = older

    def body(self, function: Function, *, source: str, target: str) -> list[str]:
        """Return the body of *function*, which takes values of the revision *source* to *target*."""
        match function.body:
            case Switch() as switch:
                return [*self._switch(function, switch, source)]
            case tuple() as operations:
                # Going down, the source itself lacks what is foreign; going up, the target does.
                lacking = target if source == self._older else source
                lines: list[str] = []
                if not (operations and isinstance(operations[0], Converted) and operations[0].key is None):
                    lines.append("value = dict(value)")
                for each in operations:
                    lines += self._operation(each, function, (source, target, lacking))
                return [*lines, "return value"]
            case Keep() | Call() as transform:
                return [f"return {applied(transform, 'value', 'at')}"]
            case _:
                assert_never(function.body)

    def errors(self, cases: tuple[ErrorCase, ...]) -> list[str]:
        """Return the body of the function that maps error codes."""
        lines = ['code = value["code"]']
        for each in cases:
            lines += self._error(each)
        return [*lines, "return value"]

    def refusal(self, reason: str, service: str | None, at: str) -> str:
        """Return the statement that gives a message up."""
        return f"losses.refuse({at}, {self.constant(reason)}, {service!r})"

    def constant(self, text: str) -> str:
        """Return the name of the module's constant that holds the reason *text*."""
        found = self._names.get(text) or names.snake(text).upper()
        return self.reasons.setdefault(text, f"{found}_" if found in self._taken else found)

    def not_in(self, label: str) -> str:
        """Return the name of the reason that the revision *label* does not define a key."""
        return self.constant(f"{label} does not define this key.")

    # Unions

    def _switch(self, function: Function, switch: Switch, source: str) -> Iterator[str]:
        if switch.first is not None:
            yield f"value = {switch.first.function}(value, at, losses)"
        is_mixed = any(each.condition.sort != "object" for each in switch.cases)
        tests = [_condition(each.condition, is_mixed=is_mixed) for each in switch.cases]
        for index, case in enumerate(switch.cases):
            later = [
                at for at in range(index + 1, len(tests)) if may_overlap(case.condition, switch.cases[at].condition)
            ]
            if tests[index] in tests[:index] or not (_acts(case) or any(_acts(switch.cases[at]) for at in later)):
                continue
            own = [*tests[index]]
            # Keys of one arm may be unknown keys of another: where both are there, what is valid decides.
            rivals = [[each for each in tests[at] if each not in own] for at in later if tests[at] != tests[index]]
            if case.definition and rivals:
                own.append(self._rivalled(rivals, f"{self._fields(source)}.admit({case.definition!r}, '', value)"))
            self.helpers |= {name for name in ("is_array", "is_object") if any(name in each for each in own)}
            if not own:
                yield self._case(function, case)
                return
            yield f"if {' and '.join(own)}:"
            yield f"    {self._case(function, case)}"
        yield "return value"

    def _rivalled(self, rivals: list[list[str]], admitted: str) -> str:
        """Return the test for an arm that others overlap: none of them, by the *rivals*' tests, or it is *admitted*."""
        if not all(rivals):
            return admitted
        told = dict.fromkeys(" and ".join(each) for each in rivals)
        others = f"not ({next(iter(told))})" if len(told) == 1 else f"not (({') or ('.join(told)}))"
        return f"({others} or {admitted})"

    def _case(self, function: Function, case: Case) -> str:
        """Return the statement for the values of one arm."""
        if case.refused is not None:
            return self.refusal(case.refused.reason, case.refused.service, "at")
        if case.converted is not None:  # what it returns is a value of another arm
            return f"return {function.name}({case.converted.function}(value, at, losses), at, losses)"
        return f"return {applied(case.transform, 'value', 'at')}"

    def _fields(self, label: str) -> str:
        """Return the name of what knows the fields of the revision *label*."""
        return self.fields.setdefault(label, "_OLD" if label == self._older else "_NEW")

    # Objects

    def _operation(  # noqa: C901 one case per operation
        self, operation: Operation, function: Function, labels: tuple[str, str, str]
    ) -> list[str]:
        """Return the lines of one operation; *labels* are source, target, and who lacks what is foreign."""
        source, target, lacking = labels
        match operation:
            case Foreign(keys=keys):
                return self._foreign(keys, function.name, lacking)
            case Admit():
                return self._admit(operation, target)
            case Dropped():
                return self._dropped(operation)
            case Defaulted():
                return self._defaulted(operation)
            case Refused() | Absent():
                return self._refused(operation)
            case Converted(key=None, function=call):
                return [f"value = dict({call}(value, at, losses))"]
            case Converted(key=key, spelled=spelled, function=call):
                made = f"{call}(value[{key!r}], (at, {spelled!r}), losses)"
                return [f"if {key!r} in value:", f"    value[{key!r}] = {made}"]
            case Moved(key=key, to=to):
                kept = f"{{{to!r} if key == {key!r} else key: held for key, held in value.items()}}"
                return [f"if {key!r} in value:", f"    value = {kept}"]
            case Relabelled(key=key):
                return [f"if value.get({key!r}) == {source!r}:", f"    value[{key!r}] = {target!r}"]
            case Nested(key=key, spelled=spelled, required=required, transform=transform):
                line = f"value[{key!r}] = {_nested(transform, key, spelled)}"
                return [line] if required else [f"if {key!r} in value:", f"    {line}"]
            case _:
                assert_never(operation)

    def _foreign(self, keys: tuple[str, ...], function: str, lacking: str) -> list[str]:
        text = "frozenset({" + ", ".join(map(repr, keys)) + "})"
        name = self.keys.setdefault(text, f"_{function.upper()}")
        return [
            f"if not {name}.isdisjoint(value):",
            f"    losses.drop_all(value, {name}, at, {self.not_in(lacking)})",
        ]

    def _admit(self, operation: Admit, target: str) -> list[str]:
        key = repr(operation.key)
        reason = self.constant(f"{target} does not allow this value there.")
        test = f"{self._fields(target)}.admit({operation.definition!r}, {key}, value[{key}]"
        if isinstance(operation.closing, Call):
            # Without the keys in it that the target does not define, it might say something else.
            self.helpers.add("Losses")
            closed = applied(operation.closing, f"value[{key}]", "()").replace("losses)", "Losses())")
            return [
                f"if {key} in value and not ({test}) and {closed} == value[{key}]):",
                f"    losses.drop(value, {key}, at, {reason})",
            ]
        return [f"if {key} in value and not {test}):", f"    losses.drop(value, {key}, at, {reason})"]

    def _dropped(self, operation: Dropped) -> list[str]:
        key = repr(operation.key)
        drop = f"losses.drop(value, {key}, at, {self.constant(operation.reason)})"
        if not operation.unless:
            return [f"if {key} in value:", f"    {drop}"]
        return [
            f"if {key} in value:",
            f"    if {_is_constant(f'value[{key}]', operation.unless)}:",
            f"        del value[{key}]  # what its absence means",
            "    else:",
            f"        {drop}",
        ]

    def _defaulted(self, operation: Defaulted) -> list[str]:
        key = repr(operation.key)
        if operation.function is None and operation.reason is None:
            return [f"value.setdefault({key}, {operation.value!r})"]
        made = repr(operation.value) if operation.function is None else f"{operation.function}(value, at, losses)"
        lines = [f"if {key} not in value:", f"    value[{key}] = {made}"]
        if operation.reason is not None:
            lines.append(f"    losses.defaulted((at, {key}), {self.constant(operation.reason)})")
        return lines

    def _refused(self, operation: Refused | Absent) -> list[str]:
        if operation.key is None:
            return [self.refusal(operation.reason, operation.service, "at")]
        key = repr(operation.key)
        test = "not in" if isinstance(operation, Absent) else "in"
        return [f"if {key} {test} value:", f"    {self.refusal(operation.reason, operation.service, f'(at, {key})')}"]

    # Errors

    def _error(self, case: ErrorCase) -> Iterator[str]:
        told = f"code == {case.code}"
        if case.last is not None:
            told = f"{case.code} <= code <= {case.last} and code not in {case.but!r}"
        if case.definition:
            told += f" and not {self._fields(case.target)}.admit({case.definition!r}, '', value)"
        yield f"if {told}:"
        if case.to is None:
            at = "(at, 'code')"
            yield f"    {self.refusal(case.reason, case.service, at)}"
        else:
            yield f"    losses.degraded((at, 'code'), {self.constant(case.reason)})"
            yield f"    return {{**value, 'code': {case.to}}}"


def _nested(transform: Transform, key: str, spelled: str) -> str:
    return applied(transform, f"value[{key!r}]", f"(at, {spelled!r})")


def applied(transform: Transform, value: str, at: str) -> str:
    """Return the expression that sends *value*, which stands at *at*, through *transform*."""
    if isinstance(transform, Keep):
        return value
    match transform.over:
        case "value":
            return f"{transform.function}({value}, {at}, losses)"
        case "items":
            place = f"({at}, index)"
            return f"[{transform.function}(each, {place}, losses) for index, each in enumerate({value})]"
        case "members":
            place = f"({at}, key)"
            return f"{{key: {transform.function}(each, {place}, losses) for key, each in {value}.items()}}"
        case _:
            assert_never(transform.over)


_TESTS = {
    "object": "is_object(value)",
    "array": "is_array(value)",
    "string": "isinstance(value, str)",
    "number": "isinstance(value, (int, float)) and not isinstance(value, bool)",
    "boolean": "isinstance(value, bool)",
    "null": "value is None",
}


def _acts(case: Case) -> bool:
    return case.converted is not None or case.refused is not None or isinstance(case.transform, Call)


def _is_constant(value: str, constants: tuple[object, ...]) -> str:
    """Return the test for one of *constants*; to Python, true and 1 are equal."""
    tests = [
        f"{value} is {each!r}"
        if each is None or isinstance(each, bool)
        else f"not isinstance({value}, bool) and " * isinstance(each, int) + f"{value} == {each!r}"
        for each in constants
    ]
    if len(tests) > 1 and all(isinstance(each, str) for each in constants):
        return f"{value} in {constants!r}"
    return tests[0] if len(tests) == 1 else f"({' or '.join(tests)})"


def _condition(condition: Condition, *, is_mixed: bool) -> list[str]:
    """Return the tests that together tell an arm."""
    tests = [_TESTS[condition.sort]] if is_mixed else []
    tests += [_is_constant(f"value.get({key!r})", values) for key, values in condition.constants]
    tests += [f"{key!r} in value" for key in condition.keys]
    some = [f"{key!r} in value" for key in condition.some_of]
    return [*tests, *([f"({' or '.join(some)})"] if len(some) > 1 else some)]
