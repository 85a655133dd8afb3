"""Check the references of a document: each ``$ref``, and chains and circles of aliases."""

from __future__ import annotations

from difflib import get_close_matches
from itertools import islice
from typing import TYPE_CHECKING
from urllib.parse import unquote

from mcpgen.codegen.diagnostics import Diagnostic, pointer_to
from mcpgen.codegen.keywords import Fault, shown

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

__all__ = ["MAX_ALIAS_CHAIN", "MOST_SUGGESTIONS", "alias_faults", "reference_fault", "referenced_name"]

# Aliases of aliases are resolved recursively. The longest official chain has 5 links.
MAX_ALIAS_CHAIN = 64

# The search for a similar name takes milliseconds, and a document can have thousands of references. A comparison takes
# quadratic time, so longer names are not compared; real names are shorter.
MOST_SUGGESTIONS = 20
_LONGEST_COMPARED = 100

_HOMES = ("$defs", "definitions")


def referenced_name(reference: str) -> tuple[str, str] | None:
    """Return ``$defs`` or ``definitions``, and the name of the definition there that *reference* points at.

    Return None if it points elsewhere. Percent and tilde escapes are decoded (RFC 6901, sections 3 to 6).
    """
    if not reference.startswith("#/"):
        return None
    tokens = unquote(reference[2:]).split("/")
    if len(tokens) != len(("home", "name")) or tokens[0] not in _HOMES:
        return None
    home, name = tokens
    return home, name.replace("~1", "/").replace("~0", "~")


def reference_fault(reference: str, *, home: str, names: Collection[str], suggestions: int = 1) -> Fault | None:
    """Return the fault of *reference*, or None if it points at one of *names* under *home*.

    If the name does not exist and *suggestions* is greater than 0, the hint suggests a similar one.
    """
    if not reference.startswith("#"):
        hint = f"Copy the definition into this document and use #/{home}/Name."
        return Fault(
            "MG106", f"{shown(reference)} points at another document, and the generator never fetches documents", hint
        )
    target = referenced_name(reference)
    if target is None:
        return Fault("MG105", f"{shown(reference)} does not point at a definition", f"Use #/{home}/Name.")
    if target[0] != home or target[1] not in names:
        hint = f"Add the definition, or point at an existing one under `{home}`."
        if suggestions <= 0:
            hint += f" (Only the first {MOST_SUGGESTIONS} such faults get a suggestion.)"
        elif near := _like(target[1], names):
            hint = f"Did you mean #/{home}/{near}?"
        return Fault("MG107", f"{shown(reference)} points at a definition that does not exist", hint)
    return None


def _like(name: str, names: Collection[str]) -> str:
    """Return the most similar of *names*, or an empty string; compare at most 1,000 of them."""
    compared = [each for each in islice(names, 1000) if max(len(each), len(name)) <= _LONGEST_COMPARED]
    return next(iter(get_close_matches(name, compared, n=1)), "")


def alias_faults(aliases: Mapping[str, Sequence[str]], *, home: str) -> Iterator[Diagnostic]:
    """Yield a diagnostic for each circle and each chain in *aliases* that is too long.

    Args:
        aliases: For each definition, the definitions that it is an alias, a union or an extension of.
        home: The keyword that holds the definitions: ``$defs`` or ``definitions``.
    """
    length: dict[str, int] = {}  # of the longest chain from each finished definition
    for start in aliases:
        if start in length:
            continue
        chain = {start: iter(aliases[start])}  # the current chain, with the remaining targets of each definition
        longest = {start: 0}
        while chain:
            name = next(reversed(chain))
            target = next(chain[name], None)
            if target is None:
                del chain[name]
                length[name] = longest.pop(name)
                if length[name] == MAX_ALIAS_CHAIN:
                    yield _overlong(name, home)
                if chain:
                    owner = next(reversed(chain))
                    longest[owner] = max(longest[owner], length[name] + 1)
            elif target in chain:
                names = list(chain)
                yield _circle(names[names.index(target) :], home)
            elif target in length:
                longest[name] = max(longest[name], length[target] + 1)
            else:
                chain[target] = iter(aliases.get(target, ()))
                longest[target] = 0


def _circle(names: list[str], home: str) -> Diagnostic:
    most = 8  # keeps the message readable
    listed = [*names[:most], *(["…"] if len(names) > most else []), names[0]]
    return Diagnostic(
        code="MG109",
        pointer=pointer_to(home, names[0]),
        message="the definition is an alias of itself: " + " -> ".join(listed),
        hint="Make one of these definitions an object or an array that holds the next: this ends the circle.",
    )


def _overlong(name: str, home: str) -> Diagnostic:
    return Diagnostic(
        code="MG006",
        pointer=pointer_to(home, name),
        message=f"the definition is a chain of more than {MAX_ALIAS_CHAIN} aliases",
        hint="Refer to the last definition of the chain directly.",
    )
