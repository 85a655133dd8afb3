"""Where two revisions are compared, and how each of them spells it."""

from __future__ import annotations

import msgspec

__all__ = ["Place"]


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """Where two types stand side by side.

    Attributes:
        old: As the older side spells it.
        new: As the newer side spells it.
        also: Other ways to spell it: aliases whose values stand there.
    """

    old: str
    new: str
    also: tuple[str, ...] = ()

    @property
    def spellings(self) -> tuple[str, ...]:
        """All ways to spell it, the newer side's first: a diff's ids are of that side."""
        return tuple(dict.fromkeys((self.new, self.old, *self.also)))

    def inside(self, part: str) -> Place:
        """Return the place *part* inside this one: ``.key``, ``[]``, ``{}`` or ``[arm]``."""
        return Place(old=self.old + part, new=self.new + part, also=tuple(each + part for each in self.also))
