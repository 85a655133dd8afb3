"""Exact, typed Python bindings for every revision of the Model Context Protocol.

The package is a house of rooms: ``mcpgen.codegen`` reads schema documents and writes source,
``mcpgen.generated`` is what it wrote, ``mcpgen.runtime`` speaks. Importing this module loads none of them.
"""

from __future__ import annotations

__all__ = ["__version__"]

# The one place that states the version: the build reads it from here.
__version__ = "0.1.0"
