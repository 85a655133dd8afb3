"""Which definitions are JSON-RPC envelopes, and so go to ``messages.py`` instead of ``models.py``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mcpgen.codegen import ir

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from mcpgen.codegen.methods import Method

__all__ = ["envelopes"]

# The keys of a request or a notification; ``jsonrpc`` alone marks responses, errors and the generic messages.
_MESSAGE_KEYS = frozenset({"id", "jsonrpc", "method", "params"})
# Unions of results, each of which is a model: only their role makes them part of a message.
_RESULT_UNIONS = frozenset({"ClientResult", "ServerResult"})


def envelopes(schema: ir.Schema, methods: Iterable[Method]) -> frozenset[str]:
    """Return the names of the envelopes of *schema*: requests, notifications, responses and the unions of these.

    A definition that a model mentions is a model too: models.py must not import messages.py.
    """
    found = {each.name for each in schema.objects() if _is_envelope(each)}
    found |= _RESULT_UNIONS & schema.definitions.keys()
    while grown := {
        each.name
        for each in schema.aliases()
        if each.name not in found and (mentioned := set(ir.names(each.type))) and mentioned <= found
    }:
        found |= grown
    found -= {name for method in methods for ref in (method.params, method.result) if ref for name in ir.names(ref)}
    while mentioned := {
        name for each in schema.definitions.values() if each.name not in found for name in _names(each) if name in found
    }:
        found -= mentioned
    return frozenset(found)


def _is_envelope(definition: ir.Object) -> bool:
    keys = {each.wire for each in definition.properties}
    return "jsonrpc" in keys or ("method" in keys and keys <= _MESSAGE_KEYS)


def _names(definition: ir.Definition) -> Iterator[str]:
    """Yield the definitions that *definition* mentions."""
    types = [definition.type] if isinstance(definition, ir.Alias) else [each.type for each in definition.properties]
    return (name for each in types for name in ir.names(each))
