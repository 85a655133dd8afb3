"""The one place that knows datamodel-code-generator: a schema document in, its parsed schema objects out.

The parser reads the document, indexes and resolves its references, and validates every definition into a
``JsonSchemaObject``. We take the objects as they leave that stage. Its next stage, Python data models, is not used: it
loses what MCP needs to be exact (which objects are open, the order of union arms, names free of numbers); ADR 0003.
"""

from __future__ import annotations

import json
import warnings
from typing import Any, TypeAlias

from datamodel_code_generator import SchemaParseError
from datamodel_code_generator.parser.jsonschema import JsonSchemaObject, JsonSchemaParser
from pydantic import ValidationError

from mcpgen.codegen.diagnostics import Diagnostic, Refused

SchemaNode: TypeAlias = JsonSchemaObject | bool
"""A parsed schema; ``True`` admits anything."""


class _Definitions(JsonSchemaParser):
    """The parser, stopped where a definition would become a data model."""

    def __init__(self, source: str) -> None:
        super().__init__(source)
        self.by_name: dict[str, JsonSchemaObject] = {}

    def parse_obj(self, name: str, obj: JsonSchemaObject, path: list[str]) -> None:
        """Keep the definition *name*; the root schema, which has no path of its own, says nothing in MCP."""
        del name
        if len(path) > 1:
            self.by_name[path[-1]] = obj


def schema_objects(document: dict[str, Any]) -> dict[str, JsonSchemaObject]:
    """Return the parsed schema object of each definition, by name.

    Raises:
        Refused: MG120, the parser does not take the document; `check_document` normally says so first and better.
    """
    parser = _Definitions(json.dumps(document))
    try:
        with warnings.catch_warnings():
            # The parser warns of formats it has no Python type for (uri-template, byte); formats are not asserted.
            warnings.simplefilter("ignore")
            parser.parse_raw()
    except (SchemaParseError, ValidationError) as error:
        finding = Diagnostic(
            code="MG120",
            message=f"datamodel-code-generator cannot parse the document: {error}",
            hint="Compare the definition it names with the documents in schema/.",
        )
        raise Refused([finding]) from error
    return parser.by_name
