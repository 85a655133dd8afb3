"""What the template ``models.py.jinja`` shows."""

from __future__ import annotations

import msgspec

__all__ = ["AliasView", "ClassView", "FieldView", "ModelsView", "ShortcutView"]


class FieldView(msgspec.Struct, frozen=True, kw_only=True):
    """One field of a class.

    Attributes:
        heading: A comment above the field, or nothing.
        name: The attribute.
        annotation: Its type.
        default: The default with " = ", or nothing.
        doc: Its docstring, or nothing.
    """

    heading: str
    name: str
    annotation: str
    default: str
    doc: str


class ShortcutView(msgspec.Struct, frozen=True, kw_only=True):
    """How a checked class sees quickly that there is nothing to settle.

    Attributes:
        doc: Its docstring.
        converts: The open objects that every message has, as calls that check them, and their keys.
        present: The condition that another field to settle is there, or nothing if there are none.
    """

    doc: str
    converts: tuple[tuple[str, str], ...]
    present: str


class ClassView(msgspec.Struct, frozen=True, kw_only=True):
    """One class."""

    name: str
    bases: str
    options: str
    doc: str
    fields: tuple[FieldView, ...]
    shortcut: ShortcutView | None


class AliasView(msgspec.Struct, frozen=True, kw_only=True):
    """One alias: the lines that define it, and its docstring."""

    lines: tuple[str, ...]
    doc: str


class ModelsView(msgspec.Struct, frozen=True, kw_only=True):
    """The content of models.py or messages.py."""

    classes: tuple[ClassView, ...]
    aliases: tuple[AliasView, ...]
    exports: tuple[str, ...]
    typing_imports: tuple[str, ...]
    msgspec_imports: tuple[str, ...]
    siblings: tuple[str, ...]
    own_imports: tuple[tuple[str, tuple[str, ...]], ...]
    base_imports: tuple[tuple[str, tuple[str, ...]], ...]
    checked: str
    misplaced: str
    validation_error: str
