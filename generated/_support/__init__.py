"""The hand-written part of the generated packages: what all revisions share.

Copied by ``mcpgen build --out`` into each package that it writes, so that such a package needs msgspec alone.
"""
