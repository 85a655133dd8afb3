"""How wire names become Python names: one rule each for attributes, classes, methods and folders."""

from __future__ import annotations

import keyword
import re

# What a class body of models.py reads while it is executed or its annotations are evaluated: an attribute of the same
# name would shadow it there. `as_dict`, `check` and `view` are methods of every open object.
_TAKEN_ATTRIBUTES = frozenset(
    {"as_dict", "bool", "check", "const", "dict", "field", "float", "int", "list", "models", "object", "preset", "str"}
    | {"view"}
)
# A label becomes the name of a folder, which file systems bound at 255 bytes, and has another name while it is written.
MAX_LABEL_LENGTH = 80
_WORD_BOUNDARY = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_NOT_WORD = re.compile(r"[^A-Za-z0-9]+")
_APPLIED = re.compile(r"[A-Za-z][A-Za-z0-9_]*<[A-Za-z0-9_<>, ]+>")
_PLAIN_WORDS = re.compile(r"[a-z]+(_[a-z]+)*")


def snake(name: str) -> str:
    """Return *name* in snake_case, with anything that is not a letter or a digit as a separator."""
    words = _NOT_WORD.sub("_", _WORD_BOUNDARY.sub("_", name))
    return words.strip("_").lower()


def pascal(name: str) -> str:
    """Return *name* in PascalCase; capitals inside it stay (``mimeType`` becomes ``MimeType``)."""
    return "".join(word[:1].upper() + word[1:] for word in _NOT_WORD.split(local_name(name)) if word)


def local_name(wire: str) -> str:
    """Return *wire* without a reverse-DNS prefix: ``io.modelcontextprotocol/clientInfo`` is ``clientInfo``.

    Spec:
        2025-11-25, basic/index, "_meta": a key is an optional prefix ending in a slash, and a name.
    """
    prefix, slash, name = wire.rpartition("/")
    return name if slash and "." in prefix and name else wire


def definition(name: str) -> str:
    """Return the class that the definition *name* becomes: ``Record<string,string>`` becomes ``Record_string_string``.

    That is how TypeScript's generators, upstream's among them, call what a generic type has been applied to. All other
    names stay as they are.
    """
    return _NOT_WORD.sub("_", name).strip("_") if _APPLIED.fullmatch(name) else name


def attribute(wire: str) -> str:
    """Return the Python attribute for the key *wire*: snake_case, never a keyword, never private.

    A key without a single ASCII letter or digit is spelt by its code points.
    """
    name = snake(local_name(wire)) or "u" + "_".join(f"{ord(char):04x}" for char in wire)
    if name[0].isdigit():
        name = f"field_{name}"
    return f"{name}_" if keyword.iskeyword(name) or name in _TAKEN_ATTRIBUTES else name


def camel(attribute_name: str) -> str | None:
    """Return the wire name that ``rename="camel"`` gives an attribute, or None where its rule is not obvious."""
    if not _PLAIN_WORDS.fullmatch(attribute_name):
        return None
    first, *rest = attribute_name.split("_")
    return first + "".join(word.title() for word in rest)


def is_nameable(label: str) -> bool:
    """Say whether a revision can be called *label*: something must remain of it in the name of a folder."""
    return (
        len(label) <= MAX_LABEL_LENGTH
        and label.isprintable()
        and any(char.isascii() and char.isalnum() for char in label)
    )


def package(label: str) -> str:
    """Return the folder of a revision's bindings: ``v2025_11_25``; every other character becomes an underscore."""
    return "v" + re.sub(r"[^A-Za-z0-9]", "_", label)
