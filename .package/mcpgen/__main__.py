"""Run the ``mcpgen`` command with ``python -m mcpgen``."""

from __future__ import annotations

from mcpgen.cli import main

if __name__ == "__main__":
    main(prog_name="mcpgen")
