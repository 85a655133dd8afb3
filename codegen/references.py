"""What the ``$ref`` of a document may say, and what a chain of them may not do."""

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

# Aliases of aliases are resolved recursively. Upstream's longest chain has 5 links.
MAX_ALIAS_CHAIN = 64

# Looking for a name that is like another takes milliseconds, and a document may have many thousands of references.
# Comparing takes quadratic time, and what people call something is shorter than this.
MOST_SUGGESTIONS = 20
_LONGEST_COMPARED = 100

_HOMES = ("$defs", "definitions")


def referenced_name(reference: str) -> tuple[str, str] | None:
    """Return the home (``$defs`` or ``definitions``) and the name of the definition that *reference* points at.

    None if it points elsewhere. Percent and tilde escapes are undone (RFC 6901, sections 3 to 6).
    """
    if not reference.startswith("#/"):
        return None
    tokens = unquote(reference[2:]).split("/")
    if len(tokens) != len(("home", "name")) or tokens[0] not in _HOMES:
        return None
    home, name = tokens
    return home, name.replace("~1", "/").replace("~0", "~")


def reference_fault(reference: str, *, home: str, names: Collection[str], suggestions: int = 1) -> Fault | None:
    """Return what keeps *reference* from naming one of *names*, which the document has under *home*.

    A name that is like the one that does not exist is looked for if *suggestions* are left.
    """
    if not reference.startswith("#"):
        hint = f"Copy the definition into this document and point at #/{home}/Name."
        return Fault("MG106", f"{shown(reference)} is another document, which is never fetched", hint)
    target = referenced_name(reference)
    if target is None:
        return Fault("MG105", f"{shown(reference)} does not point at a definition", f"Point at #/{home}/Name.")
    if target[0] != home or target[1] not in names:
        hint = f"Add the definition, or point at one under {home}."
        if suggestions <= 0:
            hint += f" Names like it were looked for {MOST_SUGGESTIONS} times only."
        elif near := _like(target[1], names):
            hint = f"Did you mean #/{home}/{near}?"
        return Fault("MG107", f"{shown(reference)} points at a definition that does not exist", hint)
    return None


def _like(name: str, names: Collection[str]) -> str:
    """Return the one of *names* that is most like *name*, or nothing; of a huge document, not all are compared."""
    compared = [each for each in islice(names, 1000) if max(len(each), len(name)) <= _LONGEST_COMPARED]
    return next(iter(get_close_matches(name, compared, n=1)), "")


def alias_faults(aliases: Mapping[str, Sequence[str]], *, home: str) -> Iterator[Diagnostic]:
    """Yield a diagnostic for each circle and each overlong chain in *aliases*.

    Args:
        aliases: For each definition, those that it is only another name for, an alternative of, or an extension of.
        home: Where the definitions are: ``$defs`` or ``definitions``.
    """
    length: dict[str, int] = {}  # of the longest chain that starts at a finished definition
    for start in aliases:
        if start in length:
            continue
        chain = {start: iter(aliases[start])}  # the definitions being followed, in order, with what is left of each
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
    most = 8  # a message is read by people
    listed = [*names[:most], *(["…"] if len(names) > most else []), names[0]]
    return Diagnostic(
        code="MG109",
        pointer=pointer_to(home, names[0]),
        message="the definition leads back to itself: " + " -> ".join(listed),
        hint="Give one of them a structure of its own: an object or an array between them ends the circle.",
    )


def _overlong(name: str, home: str) -> Diagnostic:
    return Diagnostic(
        code="MG006",
        pointer=pointer_to(home, name),
        message=f"the definition is a chain of more than {MAX_ALIAS_CHAIN} aliases",
        hint="Point at the last of them directly.",
    )
