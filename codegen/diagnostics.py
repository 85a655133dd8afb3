"""Findings about schema documents, as values.

A schema usually has several faults, so the stages of the generator collect ``Diagnostic`` values instead of raising at
the first one. ``Refused`` carries them out of a stage that cannot go on. Only ``report.py`` and the commands print.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["CODES", "Diagnostic", "Refused", "codes_table", "pointer_to"]

# Stable: cited by tests, by docs/diagnostics.md and by users. A code is never reused for another meaning; a retired one
# stays as a comment. MG0xx: file and document; MG1xx: schema constructs; MG2xx: names; MG3xx: overlay and pins; MG4xx:
# output; MG5xx: adapters.
CODES: dict[str, str] = {
    "MG001": "The file cannot be read.",
    "MG002": "The file is not UTF-8 text.",
    "MG003": "The file is not JSON.",
    "MG004": "An object in the document repeats a key.",
    "MG005": "A number in the document is outside what JSON or this generator can carry.",
    "MG006": "The document is nested too deeply.",
    "MG007": "The file is larger than any schema document should be.",
    "MG008": "A string in the document is not Unicode text.",
    "MG009": "The document is not a JSON object.",
    "MG010": "The document is not a schema document: it has no definitions, or two places for them.",
    "MG011": "The document is a schema, but does not define MCP messages.",
    "MG101": "The schema uses a keyword that is not supported, or not in this place.",
    "MG102": "A keyword has a value of the wrong shape.",
    "MG103": "`type` names a type that JSON Schema does not have.",
    "MG104": "The schema `false` accepts nothing and cannot become a type.",
    "MG105": "A `$ref` does not point at a definition of this document.",
    "MG106": "A `$ref` points at another document; such references are never fetched.",
    "MG107": "A `$ref` points at a definition that does not exist.",
    "MG108": "A `$ref` has sibling keywords, which revisions of JSON Schema treat differently.",
    "MG109": "Definitions are aliases of each other in a circle.",
    "MG110": "An `enum` or `const` value is not a string, integer, boolean or null.",
    "MG111": "An integer does not fit into 64 bits.",
    "MG112": "Bounds leave no value, or two are given for one direction.",
    "MG113": "`required` names a key that `properties` does not describe.",
    "MG114": "A keyword that needs at least one alternative has none.",
    "MG115": "A `pattern` is not a regular expression that ECMA-262 and Python share.",
    "MG116": "The document describes a type at its top, where it has no name.",
    "MG117": "`properties`, `additionalProperties` or `items` stands without `type`, and is read as if it were there.",
    "MG118": "Bounds stand where no type can keep them: without `type`, or a `pattern` beside `enum` or `const`.",
    "MG119": "The `default` of a required key, which the bindings fill in, is not known to be valid there.",
    "MG120": "datamodel-code-generator, the front end, does not take the document.",
    "MG121": "`additionalProperties` restricts the keys beside known properties.",
    "MG122": "Two arms of an `allOf` give different schemas for one property.",
    "MG123": "An `allOf` cannot be merged, because it does not say that the value is an object.",
    "MG124": "An `anyOf` stands beside keywords that also decide what the value is.",
    "MG125": "An `enum` lists no value that has the type, and is within the bounds, given beside it.",
    "MG126": "An `enum`, or an `anyOf` of constants, has more values than can be written as one type.",
    "MG130": "A method's result type is not known.",
    "MG131": "Two messages of one direction have the same method.",
    "MG132": "A message does not fix its method.",
    "MG133": "The capabilities of a side cannot be made of the methods that it serves.",
    "MG134": "A union has more arms than Python can compile.",
    "MG201": "A definition's name is not an ASCII Python identifier, nor a generic type's (`Record<string,string>`).",
    "MG202": "A definition's name is a Python keyword.",
    "MG203": "A definition's name starts with two underscores.",
    "MG204": "A property's name holds characters that the bindings cannot carry.",
    "MG210": "Two inline types would get the same name.",
    "MG211": "Two properties of an object would become the same Python attribute.",
    "MG212": "A definition has a name that the generated modules need for themselves.",
    "MG213": "Two methods would become the same Python method.",
    "MG301": "A vendored document does not have the pinned hash.",
    "MG302": "`PINNED.toml` cannot be understood.",
    "MG303": "The revision is not one of the pinned ones.",
    "MG304": "The revision's label cannot be used.",
    "MG305": "The revision is already vendored with other content.",
    "MG306": "The document differs from the vendored one.",
    "MG307": "The schema room cannot be written.",
    "MG310": "A patch of the overlay does not find the value that it replaces.",
    "MG311": "A pointer of the overlay matches nothing in the document.",
    "MG312": "The overlay cannot be understood.",
    "MG313": "The inline schemas that an overlay extracts are not all the same.",
    "MG314": "`docs.toml` cannot be understood.",
    "MG315": "An overlay speaks of something that the document does not have.",
    "MG316": "Overlays give two meanings to an error code, or two codes to a name.",
    "MG401": "The output folder holds something that was not generated.",
    "MG402": "The output folder cannot be written.",
    "MG403": "The output differs from what the schema says.",
    "MG404": "There is no output folder.",
    "MG501": "Nothing says how a difference between two revisions is adapted.",
    "MG502": "A declared change explains no difference, or is never applied.",
    "MG503": "The declared changes of a step cannot be used.",
}


class Diagnostic(msgspec.Struct, frozen=True, kw_only=True):
    """One finding about a schema document."""

    code: str  # "MG104"; a key of CODES
    severity: Literal["error", "warning"] = "error"
    pointer: str = ""  # RFC 6901, for example "/$defs/Tool/properties/execution"; "" is the document as a whole
    message: str  # what is wrong, in the schema author's words
    hint: str = ""  # what to do next

    def __str__(self) -> str:
        """Return the finding as one line, without the hint."""
        place = f" at {self.pointer}" if self.pointer else ""
        return f"{self.code} {self.severity}{place}: {self.message}"


class Refused(Exception):  # noqa: N818 - named for what happened to the document, as TransportClosed is
    """The document was not accepted; ``diagnostics`` says why and is never empty."""

    def __init__(self, diagnostics: Iterable[Diagnostic]) -> None:
        """Carry *diagnostics*, in the order in which they were found."""
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
