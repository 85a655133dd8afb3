"""Where in the specification a test is written, and which revisions a rule holds in.

The first argument of `spec` is a revision, or `ext-tasks`. The second is a page of it, with the heading of the rule:
``spec("2025-11-25", "basic/lifecycle#version-negotiation")``.
"""

from __future__ import annotations

import pytest

from mcpgen.generated.registry import REVISIONS

LABELS = [each.label for each in REVISIONS]
HANDSHAKES = [each.label for each in REVISIONS if each.era == "handshake"]
STATELESS = [each.label for each in REVISIONS if each.era == "stateless"]

# Homes that have the most to adapt: the oldest, the last with a handshake, and the newest.
HOMES = [LABELS[0], HANDSHAKES[-1], LABELS[-1]]

# Whose rules are in the ledger: the revisions, and the extension for tasks. It has one text, a draft.
TASKS = "ext-tasks"
TEXTS = [*LABELS, TASKS]

spec = pytest.mark.spec
everywhere = pytest.mark.parametrize("revision", LABELS)
with_handshakes = pytest.mark.parametrize("revision", HANDSHAKES)
without_handshakes = pytest.mark.parametrize("revision", STATELESS)
from_every_home = pytest.mark.parametrize("native_revision", HOMES)


def since(first: str, until: str | None = None) -> list[str]:
    """Return the revisions from *first* on, up to the one before *until*."""
    return LABELS[LABELS.index(first) : LABELS.index(until) if until else None]
