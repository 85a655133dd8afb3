"""Diagnostics of schema documents, as values.

A schema often has several faults. The stages of the generator collect ``Diagnostic`` values instead of stopping at the
first fault. A stage that cannot continue raises ``Refused``, which carries them. Only ``console.py`` and the commands
print.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["CODES", "Diagnostic", "Refused", "codes_table", "pointer_to"]

# Tests, docs/diagnostics.md and users cite the codes. A code is never reused for another meaning; a retired code stays
# as a comment. MG0xx: file and document; MG1xx: schema constructs; MG2xx: names; MG3xx: overlay and pins; MG4xx:
# output; MG5xx: adapters.
CODES: dict[str, str] = {
    "MG001": "The file cannot be read.",
    "MG002": "The file is not UTF-8 text.",
    "MG003": "The file is not JSON.",
    "MG004": "An object in the document repeats a key.",
    "MG005": "The document contains `NaN`, `Infinity` or a number that is too large.",
    "MG006": "The document is nested too deeply, or its `allOf` schemas are too large to merge.",
    "MG007": "The file is larger than the limit for schema documents.",
    "MG008": "A string in the document is not valid Unicode.",
    "MG009": "The document is not a JSON object.",
    "MG010": "The document has no definitions, or has both `$defs` and `definitions`.",
    "MG011": "`schema add`: the document is a JSON Schema, but does not define MCP messages.",
    "MG012": "The document has too many schemas, or too many `enum` values.",
    "MG013": "The document has keys that are too long, or too long together.",
    "MG101": "The schema uses a keyword that is not supported, or not supported in this place.",
    "MG102": "The value of a keyword has the wrong JSON type.",
    "MG103": "`type` names a type that JSON Schema does not have.",
    "MG104": "The schema is `false`: it accepts no value. Only an optional property can have it.",
    "MG105": "A `$ref` does not have the form `#/definitions/Name` or `#/$defs/Name`.",
    "MG106": "A `$ref` points at another document. The generator never fetches documents.",
    "MG107": "A `$ref` points at a definition that does not exist.",
    "MG108": "Keywords that restrict values stand beside a `$ref`. JSON Schema draft-07 ignores them, JSON "
    "Schema 2020-12 does not.",
    "MG109": "Definitions are aliases of each other in a circle.",
    "MG110": "An `enum` or `const` value is not a string, an integer, a boolean or null.",
    "MG111": "An integer, or a bound of a number, is outside of the range of 64-bit integers.",
    "MG112": "No value satisfies the bounds, or a schema has two lower bounds or two upper bounds.",
    "MG113": "`required` names a key that `additionalProperties` forbids.",
    "MG114": "A keyword that needs at least one entry is empty.",
    "MG115": "A `pattern` uses syntax that ECMA-262 and Python, or later releases of Python, read differently.",
    "MG116": "The root of the document describes a type. The root has no name, so the type is ignored.",
    "MG117": "A keyword for objects or arrays is used without `type`. The generator assumes the type.",
    "MG118": "Bounds are used without `type`, or a `pattern` is used beside `enum` or `const`.",
    "MG119": "The `default` of a required key is invalid for that key, or the generator cannot test it.",
    "MG120": "The schema parser (datamodel-code-generator) rejects the document.",
    "MG121": "`additionalProperties` is a schema that restricts further keys, beside `properties`.",
    "MG122": "Members of an `allOf` describe one property in ways that cannot be merged.",
    "MG123": "An `allOf` cannot be merged, because its members do not say that the value is an object.",
    "MG124": "An `anyOf` stands beside other keywords that also restrict the value.",
    "MG125": "No value of an `enum` or `const` is allowed by the other keywords of the schema.",
    "MG126": "An `enum`, or an `anyOf` of constants, has too many values.",
    "MG127": "A member of an `allOf` forbids keys that another member describes, so no value has them.",
    "MG130": "The result type of a method is not known.",
    "MG131": "Two messages from the same sender have the same method.",
    "MG132": "A message type does not give its method as a constant.",
    "MG133": "The capabilities of a client or server cannot be built from its methods.",
    "MG134": "A union has more members than Python can compile.",
    "MG135": "A request or notification is in none of the unions `ClientRequest`, `ServerRequest`, "
    "`ClientNotification`, `ServerNotification`, and no overlay names its sender.",
    "MG136": "A response belongs to a request that the document does not define.",
    "MG201": "A definition's name cannot become the name of a Python class.",
    "MG202": "A definition's name is a Python keyword.",
    "MG203": "A definition's name starts with two underscores.",
    "MG204": "A property's name is empty or has characters that msgspec cannot encode.",
    "MG210": "Two inline types would get the same name.",
    "MG211": "Two properties of an object would become the same Python attribute.",
    "MG212": "A definition has a name that the generated modules use themselves.",
    "MG213": "Two methods would become the same Python method.",
    "MG301": "A document in `schema/` does not have the hash that `PINNED.toml` records.",
    "MG302": "`PINNED.toml` cannot be read, or is not valid.",
    "MG303": "The revision or extension does not exist.",
    "MG304": "The label of a revision, or the name of an extension, is not valid or is taken.",
    "MG305": "The label belongs to a revision or an extension in `schema/` that has another document.",
    "MG306": "The file differs from the document in `schema/`.",
    "MG307": "The document cannot be written to `schema/`.",
    "MG310": "A patch of the overlay does not find the value that it replaces.",
    "MG311": "A pointer of the overlay matches nothing in the document.",
    "MG312": "The overlay is not valid.",
    "MG313": "Several schemas would become one definition, but they are not all equal: those of an `[[extract]]` in an "
    "overlay, or definitions of the same name inside other definitions.",
    "MG314": "`docs.toml` is not valid.",
    "MG315": "An overlay names something that the document does not have.",
    "MG316": "Overlays give one error code two names, or one name two codes.",
    "MG317": "An entry in the overlay of the base (`--based-on`) does not fit the document.",
    "MG318": "`--based-on` is missing: the command does not say which revision the document is based on.",
    "MG319": "The table `[tool.mcpgen]` of `pyproject.toml` is not valid.",
    "MG320": "A template of the user (`--templates`) is not valid.",
    "MG401": "The output folder contains files that this build does not write.",
    "MG402": "The output folder, or the file of `--changes`, cannot be written.",
    "MG403": "The output folder differs from a fresh build.",
    "MG404": "No output folder is known, or it has no bindings that the command can rebuild.",
    "MG501": "A difference between two revisions cannot be adapted automatically, and no declared change has an action "
    "for it.",
    "MG502": "A declared change matches no difference, or one of its actions is never used.",
    "MG503": "The declared changes of a step are not valid.",
}


class Diagnostic(msgspec.Struct, frozen=True, kw_only=True):
    """One fault of a schema document, an overlay or the output, or a warning about one."""

    code: str  # "MG104"; a key of CODES
    severity: Literal["error", "warning"] = "error"
    pointer: str = ""  # RFC 6901, for example "/$defs/Tool/properties/execution"; "" is the whole document
    message: str  # what is wrong, in the schema author's words
    hint: str = ""  # what to do next

    def __str__(self) -> str:
        """Return the diagnostic as one line, without the hint."""
        place = f" at {self.pointer}" if self.pointer else ""
        return f"{self.code} {self.severity}{place}: {self.message}"


class Refused(Exception):  # noqa: N818 - the name says what happened to the document, as TransportClosed does
    """The generator does not accept the document. ``diagnostics`` gives the reasons and is never empty."""

    def __init__(self, diagnostics: Iterable[Diagnostic]) -> None:
        """Carry *diagnostics* in the order of discovery."""
        self.diagnostics: tuple[Diagnostic, ...] = tuple(diagnostics)
        super().__init__(self.diagnostics)

    def __str__(self) -> str:
        """Return one line per diagnostic."""
        return "\n".join(map(str, self.diagnostics))


def pointer_to(*tokens: str | int) -> str:
    """Return the RFC 6901 pointer that leads through *tokens*."""
    return "".join("/" + str(token).replace("~", "~0").replace("/", "~1") for token in tokens)


def codes_table() -> str:
    """Return the codes as the Markdown table of ``docs/diagnostics.md``."""
    rows = [f"| {code} | {meaning} |" for code, meaning in sorted(CODES.items())]
    return "\n".join(["| code | meaning |", "|---|---|", *rows])
