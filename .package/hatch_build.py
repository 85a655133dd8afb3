"""The build hook: refuse a checkout whose rooms are not linked, which would make a package without them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

ROOMS = ("codegen", "generated", "runtime", "schema", "templates")


class LinkedRooms(BuildHookInterface[Any]):
    """Looks at the links of ``.package/mcpgen`` before anything is built."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Stop the build if a room is not a folder.

        Git writes a symbolic link as a small text file where it may not create links.
        """
        del version, build_data
        unlinked = [room for room in ROOMS if not (Path(self.root) / ".package" / "mcpgen" / room).is_dir()]
        if unlinked:
            raise RuntimeError(
                f".package/mcpgen/{unlinked[0]} is not a link to {unlinked[0]}/. "
                "Run `git config core.symlinks true` and `git checkout -- .package` (see CONTRIBUTING.md)."
            )
