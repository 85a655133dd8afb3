"""Functions as resources, at a URI of their own or at all URIs of a template."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET, Struct, UnsetType, ValidationError
from msgspec.structs import asdict

from mcpgen.runtime.errors import RequestError, UsageError
from mcpgen.runtime.protocol.messages import Code
from mcpgen.runtime.protocol.newest import models
from mcpgen.runtime.server.functions import invocation, uri_template
from mcpgen.runtime.server.functions.results import list_items
from mcpgen.runtime.server.functions.schemas import any_object, argument_type
from mcpgen.runtime.server.functions.signatures import Signature, read_signature
from mcpgen.runtime.server.functions.text_arguments import check_texts, check_textual, is_list
from mcpgen.runtime.server.functions.uri_matching import match
from mcpgen.runtime.server.functions.uri_template import Template

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mcpgen.runtime.server.context import Context

__all__ = ["FixedResource", "ReadableFunction", "TemplateResource", "ResourceNotFound", "make_resource"]

# RFC 3986, section 3: a scheme, a colon, something after it, and nothing that no URI may hold.
URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[^\x00-\x20\"<>\\^`{|}\x7f]+")

CONTENTS = (models.TextResourceContents, models.BlobResourceContents)
FINISHED = (models.ReadResourceResult, models.InputRequiredResult)


class ReadableFunction(Struct, frozen=True):
    """How a registered function is read.

    Attributes:
        label: What messages to its author call the function.
        replay: Whether it may run again from its start when its reader comes back with answers to its questions.
    """

    label: str
    replay: bool
    mime_type: str | UnsetType
    call: Callable[..., Awaitable[Any]]
    context: tuple[str, ...]

    async def read(
        self, uri: str, arguments: dict[str, Any], context: Context
    ) -> models.ReadResourceResult | models.InputRequiredResult:
        """Call the function, and return what it returned as the contents of *uri*."""
        for name in self.context:
            arguments[name] = context
        value = await self.call(**arguments)
        if isinstance(value, FINISHED):
            return value
        several = list_items(value) or ()
        if not any(isinstance(each, CONTENTS) for each in several):
            several = (value,)
        return models.ReadResourceResult(contents=[self._contents(uri, each) for each in several])

    def _contents(self, uri: str, value: object) -> models.ReadResourceResultContentsItem:
        if isinstance(value, CONTENTS):
            return value
        if isinstance(value, str):
            return models.TextResourceContents(uri=uri, mime_type=self.mime_type, text=value)
        if isinstance(value, (bytes, bytearray)):
            blob = b64encode(value).decode()
            return models.BlobResourceContents(uri=uri, mime_type=self.mime_type, blob=blob)
        if value is None:
            raise TypeError(f"{self.label} returned None, which is no content")
        text = msgspec.json.encode(value).decode()
        mime_type = "application/json" if self.mime_type is UNSET else self.mime_type
        return models.TextResourceContents(uri=uri, mime_type=mime_type, text=text)


class FixedResource(Struct, frozen=True):
    """A function that is registered at one URI."""

    definition: models.Resource
    reading: ReadableFunction


class TemplateResource(Struct, frozen=True):
    """A function that is registered at the URIs of a template.

    Attributes:
        definition: What ``resources/templates/list`` says of it.
    """

    definition: models.ResourceTemplate
    reading: ReadableFunction
    template: Template
    _arguments: type[Struct]
    _joined: tuple[str, ...]

    def arguments(self, uri: str) -> dict[str, Any] | None:
        """Return the function's arguments if *uri* is of this template and its values are of their types."""
        found = match(self.template, uri)
        if found is None:
            return None
        for name in self._joined:
            found[name] = "/".join(found[name])
        try:
            return asdict(msgspec.convert(found, self._arguments, strict=False, dec_hook=any_object))
        except ValidationError:
            return None


class ResourceNotFound(RequestError):  # noqa: N818 (named as those of runtime/errors.py are)
    """There is nothing at a URI: raised by a resource whose function finds nothing behind what it was asked for.

    Spec: 2026-07-28, server/resources#error-handling. The adapters know it by its data, and give peers of earlier
    revisions the code -32002.
    """

    def __init__(self, uri: str) -> None:
        super().__init__(Code.INVALID_PARAMS, "Resource not found", {"uri": uri})


def make_resource(  # noqa: PLR0913 (one per member of a resource's definition)
    function: Callable[..., Any],
    uri: str,
    *,
    name: str | None,
    title: str | None,
    description: str | None,
    mime_type: str | None,
    annotations: models.Annotations | None,
    icons: Sequence[models.Icon] | None,
    size: int | None,
    meta: Mapping[str, object] | None,
    replay: bool,
) -> FixedResource | TemplateResource:
    """Make a resource of a function, or a family of resources if its URI is a template.

    Raises:
        UsageError: The function cannot be one, or the URI must not be a resource's.
    """
    signature = read_signature(function)
    named = signature.name if name is None else name
    if not named:
        raise UsageError(f"the resource {uri!r} of {signature.label} has no name; give it one with name=")
    said = signature.description if description is None else description
    reading = ReadableFunction(
        signature.label, replay, mime_type or UNSET, invocation.as_awaitable(function), signature.context
    )
    shared: dict[str, Any] = {
        "name": named,
        "title": title or UNSET,
        "description": said or UNSET,
        "mime_type": mime_type or UNSET,
        "annotations": annotations or UNSET,
        "icons": list(icons) if icons else UNSET,
        "meta": dict(meta) if meta else UNSET,
    }
    if "{" not in uri and "}" not in uri:
        _check_fixed(uri, signature)
        return FixedResource(models.Resource(uri=uri, size=UNSET if size is None else size, **shared), reading)
    if size is not None:
        raise UsageError(f"the resource template {uri!r} has no size; only a resource with a URI of its own has one")
    template = uri_template.parse(uri)
    arguments = argument_type(signature)
    joined = _check_variables(template, signature)
    definition = models.ResourceTemplate(uri_template=uri, **shared)
    return TemplateResource(definition, reading, template, arguments, joined)


def _check_fixed(uri: str, signature: Signature) -> None:
    if not URI.fullmatch(uri):
        raise UsageError(
            f"{uri!r} of {signature.label} is no URI; it needs a scheme, such as config:app, and no blanks"
        )
    if signature.parameters:
        listed = ", ".join(f"{{{each.name}}}" for each in signature.parameters)
        raise UsageError(f"{uri!r} gives {signature.label} no values; name its parameters in the URI: {listed}")


def _check_variables(template: Template, signature: Signature) -> tuple[str, ...]:
    """Check that variables and parameters fit; return the lists that a parameter gets as one text."""
    parameters = {each.name: each for each in signature.parameters}
    joined: list[str] = []
    for variable in template.variables:
        parameter = parameters.pop(variable.name, None)
        what = f"the variable {variable.name!r} of {template.text!r}"
        if parameter is None:
            raise UsageError(f"{what} is no parameter of {signature.label}")
        if variable.optional and parameter.default is msgspec.NODEFAULT:
            raise UsageError(
                f"{what} may be missing, so parameter {parameter.name!r} of {signature.label} needs a default"
            )
        if variable.many and is_list(parameter):
            check_texts(parameter, f"parameter {parameter.name!r} of {signature.label}")
            continue
        if variable.many and variable.optional:
            raise UsageError(f"{what} may occur often, so {parameter.name!r} of {signature.label} must be a list")
        if variable.many:
            joined.append(variable.name)
        check_textual(parameter, f"parameter {parameter.name!r} of {signature.label}")
    if missing := [each.name for each in parameters.values() if each.default is msgspec.NODEFAULT]:
        raise UsageError(f"parameter {missing[0]!r} of {signature.label} is no variable of {template.text!r}")
    return tuple(joined)
