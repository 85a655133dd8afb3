"""What the templates ``methods.py.jinja`` and ``side.py.jinja`` show."""

from __future__ import annotations

import msgspec

__all__ = ["Entry", "Error", "Key", "MethodsView", "Sent", "Served", "SideView", "Table"]


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """One constant of methods.py."""

    constant: str
    type: str
    value: str
    doc: str


class Table(msgspec.Struct, frozen=True, kw_only=True):
    """One table of methods.py: the function that makes it, and the lines with the constants."""

    name: str
    maker: str
    doc: str
    lines: tuple[str, ...]


class Error(msgspec.Struct, frozen=True, kw_only=True):
    """One member of ErrorCode."""

    name: str
    code: int
    doc: str


class Key(msgspec.Struct, frozen=True, kw_only=True):
    """One constant of MetaKey."""

    name: str
    key: str
    doc: str


class MethodsView(msgspec.Struct, frozen=True, kw_only=True):
    """The content of methods.py."""

    revision: str
    label: str
    era: str
    errors: tuple[Error, ...]
    reserved_errors: str  # a range as Python, or nothing
    meta_keys: tuple[Key, ...]
    methods: tuple[Entry, ...]
    tables: tuple[Table, ...]
    exports: tuple[str, ...]
    shown: tuple[str, ...]  # what the package exports, too
    typing_imports: tuple[str, ...]
    msgspec_imports: tuple[str, ...]
    support: str
    support_imports: tuple[tuple[str, tuple[str, ...]], ...]
    siblings: tuple[str, ...]


class Served(msgspec.Struct, frozen=True, kw_only=True):
    """One method of a handlers class."""

    name: str
    params: str
    answer: str
    doc: str
    raises: str


class Sent(msgspec.Struct, frozen=True, kw_only=True):
    """One method of a class that sends."""

    name: str
    parameter: str
    result: str
    doc: str
    body: str


class SideView(msgspec.Struct, frozen=True, kw_only=True):
    """The content of server.py or client.py."""

    name: str
    word: str
    revision: str
    doc: str
    unhandled: str
    declares: bool
    served: tuple[Served, ...]
    sent: tuple[Sent, ...]
    capabilities: tuple[tuple[str, str], ...]
    typing_imports: tuple[str, ...]
    msgspec_imports: tuple[str, ...]
    methods_imports: tuple[str, ...]
    support: str
    support_imports: tuple[tuple[str, tuple[str, ...]], ...]
    siblings: tuple[str, ...]
