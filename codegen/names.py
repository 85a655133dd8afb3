"""Convert wire names to Python names: one rule each for attributes, classes, methods and folders."""

from __future__ import annotations

import keyword
import re

# Names that the class bodies in models.py use, in code or in annotations. An attribute with the same name would shadow
# them. `as_dict`, `check` and `view` are methods of every open object.
_TAKEN_ATTRIBUTES = frozenset(
    {"as_dict", "bool", "check", "const", "dict", "field", "float", "int", "list", "models", "object", "preset", "str"}
    | {"view"}
)
# A label becomes a folder name, which file systems limit to 255 bytes. While it is written, it has a longer name.
MAX_LABEL_LENGTH = 80
# The name of an inline type is made of the keys and constants on the way to it. A longer part is cut. If two types then
# have one name, that is reported.
_MAX_PART_LENGTH = 200
_WORD_BOUNDARY = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_NOT_WORD = re.compile(r"[^A-Za-z0-9]+")
_APPLIED = re.compile(r"[A-Za-z][A-Za-z0-9_]*<[A-Za-z0-9_<>, ]+>")
_PLAIN_WORDS = re.compile(r"[a-z]+(_[a-z]+)*")


def snake(name: str) -> str:
    """Return *name* in snake_case; characters other than letters and digits are separators."""
    words = _NOT_WORD.sub("_", _WORD_BOUNDARY.sub("_", name))
    return words.strip("_").lower()


def pascal(name: str) -> str:
    """Return *name* in PascalCase, cut; capitals inside a word stay (``mimeType`` becomes ``MimeType``)."""
    whole = "".join(word[:1].upper() + word[1:] for word in _NOT_WORD.split(local_name(name)) if word)
    return whole[:_MAX_PART_LENGTH]


def local_name(wire: str) -> str:
    """Return *wire* without a reverse-DNS prefix: ``io.modelcontextprotocol/clientInfo`` is ``clientInfo``.

    Spec:
        2025-11-25, basic/index, "_meta": a key is an optional prefix ending in a slash, and a name.
    """
    prefix, slash, name = wire.rpartition("/")
    return name if slash and "." in prefix and name else wire


def definition(name: str) -> str:
    """Return the class name for the definition *name*: ``Record<string,string>`` becomes ``Record_string_string``.

    TypeScript's schema generators, also the one of MCP, write applied generic types in this way. All other names stay
    unchanged.
    """
    return _NOT_WORD.sub("_", name).strip("_") if _APPLIED.fullmatch(name) else name


def attribute(wire: str) -> str:
    """Return the Python attribute for the key *wire*: snake_case, never a keyword, never private.

    A key without any ASCII letter or digit is written as its code points.
    """
    name = snake(local_name(wire)) or "u" + "_".join(f"{ord(char):04x}" for char in wire)
    if name[0].isdigit():
        name = f"field_{name}"
    return f"{name}_" if keyword.iskeyword(name) or name in _TAKEN_ATTRIBUTES else name


def camel(attribute_name: str) -> str | None:
    """Return the wire name that ``rename="camel"`` gives an attribute, or None if its rule is not obvious."""
    if not _PLAIN_WORDS.fullmatch(attribute_name):
        return None
    first, *rest = attribute_name.split("_")
    return first + "".join(word.title() for word in rest)


def package(label: str) -> str:
    """Return the folder of a revision's bindings, ``v2025_11_25``: other characters become underscores."""
    return "v" + re.sub(r"[^A-Za-z0-9]", "_", label)
