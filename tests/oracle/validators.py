"""Validators of the definitions of one document: jsonschema, which decides, and jsonschema-rs, which is fast.

jsonschema is the oracle. It takes milliseconds an instance, a hundred times what jsonschema-rs takes, so the hundreds
of thousands of mutants go to the fast one, and a sample of them goes to both, which must agree (``test_oracle``).
Formats are annotations in both drafts, and neither validator asserts them.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Any

import jsonschema_rs
from jsonschema.validators import validator_for

if TYPE_CHECKING:
    from collections.abc import Mapping

    from jsonschema.protocols import Validator

    from tests.oracle.shapes import Json


class Validators:
    """Validators for the definitions of one document, each built when it is first asked for."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        """Take the definitions of *document*; its ``$schema`` says which draft."""
        self._document = dict(document)
        self._section = "$defs" if "$defs" in document else "definitions"
        self._kind = validator_for(self._document)
        jsonschema_rs.meta.validate(self._document)
        self.names = frozenset(document[self._section])
        self._fast: dict[str, Any] = {}
        self._reference: dict[str, Validator] = {}

    def accepts(self, name: str, value: Json) -> bool:
        """Whether *value* is valid as the definition *name*, says jsonschema-rs."""
        if name not in self._fast:
            self._fast[name] = jsonschema_rs.validator_for(self._rooted(name), validate_formats=False)
        verdict: bool = self._fast[name].is_valid(value)
        return verdict

    def reference_accepts(self, name: str, value: Json) -> bool:
        """Whether *value* is valid as the definition *name*, says jsonschema."""
        if name not in self._reference:
            self._reference[name] = self._kind(self._rooted(name))
        return self._reference[name].is_valid(value)

    def _rooted(self, name: str) -> dict[str, Any]:
        return {
            "$schema": self._document["$schema"],
            self._section: self._document[self._section],
            # In allOf, because draft-07 ignores everything beside a reference.
            "allOf": [{"$ref": f"#/{self._section}/{name}"}],
        }


def sampled(text: bytes, one_in: int) -> bool:
    """Whether *text* belongs to a sample of about one in *one_in*, the same one on every machine."""
    return zlib.crc32(text) % one_in == 0
