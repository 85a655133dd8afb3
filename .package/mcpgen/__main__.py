"""``python -m mcpgen``: the ``mcpgen`` command, of the interpreter that is meant."""

from __future__ import annotations

from mcpgen.cli import main

if __name__ == "__main__":
    main(prog_name="mcpgen")
