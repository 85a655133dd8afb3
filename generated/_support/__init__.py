"""The hand-written part of the generated packages: what all revisions share.

Copied by ``mcpgen build --out`` into the package of each revision, so that such a package needs msgspec alone.
"""
