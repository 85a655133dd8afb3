"""Our own words about the definitions, from ``schema/docs.toml``."""

from __future__ import annotations

import re
import tomllib
from functools import lru_cache
from typing import TYPE_CHECKING

import msgspec

from mcpgen.codegen.overlay import read_toml

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from importlib.resources.abc import Traversable


# Comparing revisions reads the same file several times, and it takes 50 ms.
_loads = lru_cache(maxsize=2)(tomllib.loads)

_SITE = "https://modelcontextprotocol.io/specification"
_DATED = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)


def spec_url(revision: str, reference: str) -> str:
    """Return the URL of a place in the specification.

    Args:
        revision: A label. The site has a page for each dated revision; any other label means the draft.
        reference: A page, as in ``docs.toml``, perhaps with an anchor: ``basic/index#meta``.
    """
    page, mark, anchor = reference.partition("#")
    edition = revision if _DATED.fullmatch(revision) else "draft"
    parts = filter(None, [_SITE, edition, "" if page == "index" else page.removesuffix("/index")])
    return "/".join(parts) + mark + anchor


class Doc(msgspec.Struct, frozen=True, kw_only=True):
    """What is said about one definition in one revision."""

    text: str = ""
    spec: str = ""  # a page below docs/specification/<revision>/, with #section
    fields: dict[str, str] = {}  # by wire name


class _Entry(Doc, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One table of the file; ``in`` overrides parts of it for single revisions."""

    overrides: dict[str, Doc] = msgspec.field(name="in", default={})


class Docs:
    """All entries, asked for by definition and revision."""

    def __init__(self, entries: Mapping[str, _Entry] | None = None, bases: Mapping[str, str] | None = None) -> None:
        self._entries = entries or {}
        self._bases = bases or {}

    def with_draft(self, label: str, base: str) -> Docs:
        """Return entries that say about the draft *label* what these say about its *base*."""
        return Docs(self._entries, {**self._bases, label: base})

    def for_extension(self, own: Docs, shared: Collection[str]) -> Docs:
        """Return *own* entries, and these entries for the *shared* definitions, those of the base."""
        return Docs({name: each for name, each in self._entries.items() if name in shared} | dict(own._entries))

    def about(self, name: str, revision: str) -> Doc:
        """Return what is said about *name* in *revision*; empty where nothing is."""
        entry = self._entries.get(name)
        if entry is None:
            return Doc()
        own = entry.overrides.get(self._bases.get(revision, revision), Doc())
        return Doc(text=own.text or entry.text, spec=own.spec or entry.spec, fields={**entry.fields, **own.fields})

    def names(self) -> set[str]:
        """Return the definitions that something is said about."""
        return set(self._entries)

    def overridden(self, name: str) -> set[str]:
        """Return the revisions in which something else is said about *name*."""
        return set(self._entries[name].overrides)


def load_docs(file: Traversable) -> Docs:
    """Read ``docs.toml``.

    Raises:
        Refused: MG314, the file cannot be read, is not TOML or not of the documented shape.
    """
    hint = "See CONTRIBUTING.md for the shape of docs.toml."
    return Docs(read_toml(file, dict[str, _Entry], code="MG314", hint=hint, loads=_loads))
