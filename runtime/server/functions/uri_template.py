"""Parse URI templates (RFC 6570).

RFC 6570 defines how a template is expanded, and says that matching is not always possible. A template is accepted if
matching is well defined:

* ``{var}`` is one value between literals, without ``/``; ``{a,b}``, ``{.ext}``, ``{/a,b}`` and ``{;name}`` are the same
  with the separators of the RFC;
* ``{+var}``, ``{#var}`` and ``{/var*}`` may hold ``/``; a template has at most one of them, because the end of the
  first of two would be ambiguous;
* ``{?a,b*}`` at the end are named values, in any order, each of which is optional.

Literals must separate the variables, so that a URI is matched in one pass, without backtracking, in time that grows
with its length alone. If a separator also occurs in the values, variables to the left of a ``{+var}`` are as short as
possible from the start, and those to the right of it from the end; without a ``{+var}``, the leftmost are as long as
possible.

`mcpgen.runtime.server.functions.uri_values` decides which values are allowed.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct

from mcpgen.runtime.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["Template", "Variable", "in_ascii", "parse"]

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
# RFC 6570, section 2.1: characters that a literal must not contain. Non-ASCII characters are allowed here.
NOT_LITERAL = re.compile(r"[\x00-\x20\"'<>\\^`{|}\x7f]|%(?![0-9A-Fa-f]{2})")
NOT_ASCII = re.compile(r"[^\x00-\x7f]+")


class Operator(NamedTuple):
    """RFC 6570, appendix A: the text that an operator writes before the first value and between values."""

    first: str
    separator: str
    named: bool
    spans: bool
    "Whether a value may hold reserved characters, ``/`` among them."


OPERATORS = {
    "": Operator("", ",", named=False, spans=False),
    "+": Operator("", ",", named=False, spans=True),
    "#": Operator("#", ",", named=False, spans=True),
    ".": Operator(".", ".", named=False, spans=False),
    "/": Operator("/", "/", named=False, spans=False),
    ";": Operator(";", ";", named=True, spans=False),
    "?": Operator("?", "&", named=True, spans=False),
}


class Variable(Struct, frozen=True):
    """One variable of a template.

    Attributes:
        spans: Whether its values may hold ``/``.
        reserved: Whether its values are written with reserved characters as they are, not percent-encoded.
        many: Whether it is a list: the segments of ``{/var*}``, the occurrences in ``{?var*}``.
        optional: Whether a URI may leave it out.
    """

    name: str
    spans: bool = False
    reserved: bool = False
    many: bool = False
    optional: bool = False


class Template(Struct, frozen=True):
    """A parsed template.

    Attributes:
        text: The template.
        literals: The text before each variable, and after the last, in ASCII; only the last may be empty.
        variables: Its variables, in order; those of ``{?…}`` come last.
    """

    text: str
    literals: tuple[str, ...]
    variables: tuple[Variable, ...]

    @property
    def query(self) -> tuple[Variable, ...]:
        """The variables of ``{?…}``."""
        return self.variables[len(self.literals) - 1 :]


def parse(text: str) -> Template:
    """Parse a template.

    Raises:
        UsageError: It is not a template, or matching is not well defined.
    """
    literals = [""]
    variables: list[Variable] = []
    for literal, expression in _pieces(text):
        if variables and variables[-1].optional and (literal or expression):
            raise _refused(text, "something follows {?…}; write the whole query as one {?…} at the end, such as {?a,b}")
        literals[-1] += in_ascii(literal)
        if not expression:
            continue
        operator, specs = _specs(expression, text)
        if operator == "?":
            variables += [Variable(name, many=explode, optional=True) for name, explode in specs]
            continue
        for literal_before, variable in _read(operator, specs, text):
            literals[-1] += literal_before
            if not literals[-1] and variables:
                raise _refused(
                    text,
                    f"nothing separates {variables[-1].name!r} and {variable.name!r}, so it is unclear where the first "
                    "one ends; put a literal such as / between them",
                )
            variables.append(variable)
            literals.append("")
    _check(text, literals, variables)
    return Template(text, tuple(literals), tuple(variables))


def in_ascii(text: str) -> str:
    """Return *text* with its non-ASCII characters percent-encoded (RFC 6570, section 3.1), as a URI has them."""
    return text if text.isascii() else NOT_ASCII.sub(_percent_encoded, text)


def _percent_encoded(found: re.Match[str]) -> str:
    return "".join(f"%{each:02X}" for each in found[0].encode("utf-8", "surrogatepass"))


def _refused(text: str, why: str) -> UsageError:
    return UsageError(f"the URI template {text!r} cannot be used: {why}")


def _pieces(text: str) -> Iterator[tuple[str, str]]:
    """Yield each literal with the expression that follows it, without its braces; the last has none."""
    rest = text
    while True:
        literal, opened, rest = rest.partition("{")
        if bad := NOT_LITERAL.search(literal):
            raise _refused(text, f"it has the character {bad[0]!r} outside of {{…}}; percent-encode it or remove it")
        expression, closed, after = rest.partition("}")
        if opened and (not closed or not expression):
            raise _refused(text, "a { has no }" if not closed else "{} names no variable; write {name}")
        yield literal, expression
        if not opened:
            return
        rest = after


def _read(operator: str, specs: Sequence[tuple[str, bool]], text: str) -> Iterator[tuple[str, Variable]]:
    """Yield each variable of an expression, with the text that the operator writes before it."""
    rules = OPERATORS[operator]
    for index, (name, explode) in enumerate(specs):
        if explode and (operator != "/" or len(specs) > 1):
            advice = f"write {{/{name}*}} without a / before it, or {{?{name}*}}"
            raise _refused(text, f"the list {name}* cannot be matched here; {advice}")
        before = (rules.separator if index else rules.first) + (f"{name}=" if rules.named else "")
        yield before, Variable(name, spans=rules.spans or explode, reserved=rules.spans, many=explode)


def _specs(expression: str, text: str) -> tuple[str, Sequence[tuple[str, bool]]]:
    """Return the operator of an expression, and each variable's name and whether it is exploded."""
    operator = expression[0] if expression[0] in OPERATORS else ""
    specs: list[tuple[str, bool]] = []
    for spec in expression.removeprefix(operator).split(","):
        name = spec.removesuffix("*")
        if not NAME.fullmatch(name):
            raise _refused(text, f"{{{expression}}}: {_name_problem(spec)}")
        specs.append((name, name != spec))
    return operator, specs


def _name_problem(spec: str) -> str:
    if ":" in spec:
        return f"{spec!r} shortens the value, so a URI does not contain all of it; remove :{spec.partition(':')[2]}"
    if spec[:1] == "&":
        return "{&…} cannot be matched; write the whole query as {?…}"
    return f"{spec!r} is not the name of a parameter; use letters, digits and _"


def _check(text: str, literals: Sequence[str], variables: Sequence[Variable]) -> None:
    names = [each.name for each in variables]
    if repeated := next((name for name in names if names.count(name) > 1), None):
        raise _refused(text, f"the variable {repeated!r} occurs more than once; rename all but one")
    if sum(each.spans for each in variables) > 1:
        raise _refused(
            text,
            "more than one variable can contain '/', so it is unclear where the first one ends; allow '/' in one only",
        )
    if not SCHEME.match(literals[0]):
        raise _refused(text, "it does not start with a scheme; write one, such as file:")
    if variables and variables[-1].optional:
        if any("#" in each for each in literals):
            raise _refused(text, "it has '#' before {?…}, so {?…} would belong to the fragment; remove the fragment")
        if any("?" in each for each in literals):
            raise _refused(text, "it has '?' before {?…}; write the whole query as {?…}")
