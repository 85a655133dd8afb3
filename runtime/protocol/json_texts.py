"""The JSON in texts that pydantic decodes: fields of the type `Json`.

The checks of a message look at its values. What a text holds must pass the same checks.
"""

from __future__ import annotations

from typing import cast

from msgspec import ValidationError

from mcpgen.runtime.limits import MAX_VALUES
from mcpgen.runtime.protocol.core_schemas import inner_schemas
from mcpgen.runtime.protocol.message_size import too_many_values

__all__ = ["has_json_texts", "json_in", "json_values"]


def has_json_texts(core_schema: object) -> bool:
    """Return whether a schema from which pydantic makes a validator has a field of the type `Json`."""
    return any(each.get("type") == "json" for each in inner_schemas(core_schema))


def json_in(text: str, max_values: int = MAX_VALUES) -> object:
    """Return the array or object that is written in *text*; None if it is something else.

    Raises:
        ValidationError: It has more than *max_values* values.
    """
    if text.lstrip()[:1] not in ("[", "{"):
        return None
    if too_many_values(text.encode("utf-8", "surrogatepass"), max_values):
        raise ValidationError(f"Expected at most {max_values} values in a string that contains JSON")
    from pydantic_core import from_json  # noqa: PLC0415 (there is a field of its type, and this reads what it reads)

    try:
        return cast("object", from_json(text))
    except ValueError:
        return None


def json_values(value: object, max_text_values: int) -> list[object]:
    """Return the arrays and objects that are written in the texts of *value*, at any depth.

    Raises:
        ValidationError: A text has more than *max_text_values* values, or they have too many values together.
    """
    most = MAX_VALUES + max_text_values  # of the largest message, and in its texts
    found: list[object] = []
    rest = [value]
    count = 0
    while rest:
        each = rest.pop()
        count += 1
        if count > most:
            raise ValidationError(f"Expected at most {most} values, including those in strings of JSON")
        if isinstance(each, dict):
            rest.extend(cast("dict[str, object]", each).values())
        elif isinstance(each, list):
            rest.extend(cast("list[object]", each))
        elif isinstance(each, str) and (inner := json_in(each, max_text_values)) is not None:
            found.append(inner)
            rest.append(inner)
    return found
