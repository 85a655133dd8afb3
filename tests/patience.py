"""How long tests wait: long enough for any machine, since no test is about speed."""

from __future__ import annotations

from typing import Final

PATIENCE_SECONDS: Final = 60.0
"""For what happens at once: longer only means that it never does."""

BUSY_SECONDS: Final = 30.0
"""What a busy machine may take beyond a time that is bounded. The longest that was measured are 14 seconds."""
