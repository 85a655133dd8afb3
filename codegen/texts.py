"""The texts of docstrings: ours, else those of the document, else the place in the document."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mcpgen.codegen.docs import spec_url
from mcpgen.codegen.docstrings import prose, wrapped

if TYPE_CHECKING:
    from mcpgen.codegen import ir
    from mcpgen.codegen.docs import Docs
    from mcpgen.codegen.overlay import Overlay

__all__ = ["Texts"]


class Texts:
    """The texts of one revision or extension."""

    def __init__(self, schema: ir.Schema, *, revision: str, docs: Docs, overlay: Overlay, label: str = "") -> None:
        """Find texts for *schema*.

        Args:
            schema: All definitions.
            revision: The revision whose texts and specification apply.
            docs: Our texts.
            overlay: Says what is deprecated.
            label: How texts name the bindings, if not by the revision.
        """
        self.label: str = prose(label or revision)
        self._whole = self.label if label else f"MCP {self.label}"
        self._schema = schema
        self._revision = revision
        self._docs = docs
        self._deprecated = {name: each.reason for each in overlay.deprecated for name in each.names}

    def doc(self, name: str, description: str, *, anonymous: bool, indent: str = "") -> str:
        """Return the docstring of the definition *name*: ours, else the document's, else its place in the document."""
        about = self._docs.about(name, self._revision)
        text = prose(about.text or description)
        if not text:
            where = self._schema.definitions[name].pointer
            text = f"The value at ``{prose(where)}``." if anonymous else f"{name} of {self._whole}."
        paragraphs = [text]
        if deprecation := self.deprecation(name):
            paragraphs.append(deprecation)
        paragraphs += self.spec(name)
        return wrapped(*paragraphs, indent=indent)

    def spec(self, name: str) -> list[str]:
        """Return the paragraph with the place of the definition *name* in the specification, if it is known."""
        reference = self._docs.about(name, self._revision).spec
        return [f"Spec: {prose(spec_url(self._revision, reference))}"] if reference else []

    def deprecation(self, name: str) -> str:
        """Return why the definition *name*, or the key *name* of one, is deprecated; nothing if it is not."""
        return f"Deprecated: {prose(self._deprecated[name])}" if name in self._deprecated else ""

    def text(self, name: str) -> str:
        """Return what ``docs.toml`` or the document says of the definition *name*, on one line."""
        return prose(self._docs.about(name, self._revision).text or self._schema.definitions[name].description)

    def field_text(self, owner: str, field: ir.Property) -> str:
        """Return what ``docs.toml`` or the document says of *field* of the definition *owner*, on one line."""
        return prose(self._docs.about(owner, self._revision).fields.get(field.wire, "") or field.description)
