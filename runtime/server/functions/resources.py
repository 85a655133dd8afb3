"""Functions as resources, at one URI or at all URIs that match a template."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET, Struct, UnsetType, ValidationError

from mcpgen.runtime.adapt.pattern_texts import pattern_check
from mcpgen.runtime.errors import RequestError, UsageError
from mcpgen.runtime.protocol.argument_checks import check_icons, check_required_texts
from mcpgen.runtime.protocol.newest import ErrorCode, models
from mcpgen.runtime.protocol.value_syntax import uri_fault
from mcpgen.runtime.server.cache_hints import CacheHint, check_cache_hint
from mcpgen.runtime.server.functions.media import Media
from mcpgen.runtime.server.functions.results import UnsendableResult, encode_result, list_items
from mcpgen.runtime.server.functions.schemas import argument_type
from mcpgen.runtime.server.functions.signatures import Signature, read_signature
from mcpgen.runtime.server.functions.text_arguments import check_texts, check_textual, converted, is_list

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mcpgen.runtime.server.functions.dependencies import Injector
    from mcpgen.runtime.server.functions.signatures import BaseContext
    from mcpgen.runtime.server.functions.uri_template import Template  # noqa: TC004 (no resource is decoded)

__all__ = ["FixedResource", "ResourceFunction", "ResourceNotFound", "TemplateResource", "make_resource"]

RESOURCE_CONTENTS = (models.TextResourceContents, models.BlobResourceContents)
FULL_RESULTS = (models.ReadResourceResult, models.InputRequiredResult)


class ResourceFunction(Struct, frozen=True):
    """A function that returns the contents of resources.

    Attributes:
        label: The function's name in messages to its author.
        replay: Whether it may run again from its start when the client retries with answers to its requests.
        cache_hint: How long clients may reuse the contents; None: as the server says.
        contents_meta: The ``_meta`` of the contents that are made of its value.
    """

    label: str
    replay: bool
    mime_type: str | UnsetType
    cache_hint: CacheHint | None
    call: Callable[..., Awaitable[Any]]
    context: tuple[str, ...]
    contents_meta: dict[str, object] | UnsetType = UNSET

    async def read(
        self, uri: str, arguments: dict[str, Any], context: BaseContext, default_hint: CacheHint | None = None
    ) -> models.ReadResourceResult | models.InputRequiredResult:
        """Call the function, and return its value as the contents of *uri*."""
        for name in self.context:
            arguments[name] = context
        value = await self.call(**arguments)
        if isinstance(value, FULL_RESULTS):
            return value
        items = list_items(value) or ()
        if not any(isinstance(each, (*RESOURCE_CONTENTS, Media)) for each in items):
            items = (value,)
        hint = self.cache_hint
        if hint is None and default_hint is not None:
            # With its context or a dependency, the function may return something else to each user.
            hint = default_hint.for_one_user() if self.context else default_hint
        fields = {} if hint is None else hint.fields
        return models.ReadResourceResult(contents=[self._contents(uri, each) for each in items], **fields)

    def _contents(self, uri: str, value: object) -> models.ReadResourceResultContentsItem:
        if isinstance(value, RESOURCE_CONTENTS):
            return value
        if isinstance(value, Media):
            return value.to_contents(uri)
        if isinstance(value, str):
            return models.TextResourceContents(uri=uri, mime_type=self.mime_type, text=value, meta=self.contents_meta)
        if isinstance(value, (bytes, bytearray)):
            blob = b64encode(value).decode()
            return models.BlobResourceContents(uri=uri, mime_type=self.mime_type, blob=blob, meta=self.contents_meta)
        if value is None:
            raise TypeError(
                f"{self.label} returned None, which is no content; return a value, or raise ResourceNotFound(uri)"
            )
        try:
            text = encode_result(value).decode()
        except UnsendableResult as error:
            raise TypeError(f"{self.label} returned {error}") from None
        mime_type = "application/json" if self.mime_type is UNSET else self.mime_type
        return models.TextResourceContents(uri=uri, mime_type=mime_type, text=text)


class FixedResource(Struct, frozen=True):
    """A function that is registered at one URI."""

    definition: models.Resource
    function: ResourceFunction


class TemplateResource(Struct, frozen=True):
    """A function that is registered at all URIs that match a template.

    Attributes:
        definition: Its entry in ``resources/templates/list``.
    """

    definition: models.ResourceTemplate
    function: ResourceFunction
    template: Template
    _arguments: type[Struct]
    _joined: tuple[str, ...]
    _check: Callable[[object], None] | None

    def arguments(self, uri: str) -> dict[str, Any] | None:
        """Return the function's arguments; None if *uri* does not match, or a value is not of its type."""
        # With `urllib.parse`, it takes two milliseconds to import, and few servers have templates.
        from mcpgen.runtime.server.functions.uri_matching import match  # noqa: PLC0415

        found = match(self.template, uri)
        if found is None:
            return None
        for name in self._joined:
            found[name] = "/".join(found[name])
        try:
            if self._check is not None:
                self._check(found)
            return converted(found, self._arguments)
        except ValidationError:
            return None


class ResourceNotFound(RequestError):  # noqa: N818 (named as those of runtime/errors.py are)
    """There is no resource at a URI. A resource function raises it if it has nothing for the URI.

    Spec: 2026-07-28, server/resources#error-handling. The adapters recognise it by its data, and give peers of earlier
    revisions the code -32002.
    """

    def __init__(self, uri: str) -> None:
        check_required_texts(uri=uri)
        super().__init__(ErrorCode.INVALID_PARAMS, "Resource not found", {"uri": uri})


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
    cache_hint: CacheHint | None,
    injector: Injector,
    contents_meta: dict[str, object] | None = None,
) -> FixedResource | TemplateResource:
    """Make a resource of a function, or a resource template if *uri* is a template.

    Raises:
        UsageError: The function cannot be a resource, or *uri* is neither a URI nor a template.
    """
    check_icons(icons)
    signature = read_signature(function)
    resource_name = signature.name if name is None else name
    if not resource_name:
        raise UsageError(f"the resource {uri!r} of {signature.label} has no name; set it with `name=`")
    hint = None if cache_hint is None else check_cache_hint("cache_hint", cache_hint)
    call, context = injector.bind(function, signature)
    shown = UNSET if contents_meta is None else contents_meta
    reader = ResourceFunction(signature.label, replay, mime_type or UNSET, hint, call, context, shown)
    shared: dict[str, Any] = {
        "name": resource_name,
        "title": title or UNSET,
        "description": (signature.description if description is None else description) or UNSET,
        "mime_type": mime_type or UNSET,
        "annotations": annotations or UNSET,
        "icons": list(icons) if icons else UNSET,
        "meta": dict(meta) if meta else UNSET,
    }
    if "{" not in uri and "}" not in uri:
        _check_fixed(uri, signature)
        return FixedResource(models.Resource(uri=uri, size=UNSET if size is None else size, **shared), reader)
    if size is not None:
        raise UsageError(
            f"`size` cannot be set for the resource template {uri!r}, since only a resource at a fixed URI has one; "
            "remove it"
        )
    from mcpgen.runtime.server.functions import uri_template  # noqa: PLC0415 (few servers have resources)

    template = uri_template.parse(uri)
    joined = _check_variables(template, signature)  # first: most types that `argument_type` advises are not textual
    arguments = argument_type(signature)
    definition = models.ResourceTemplate(uri_template=uri, **shared)
    return TemplateResource(definition, reader, template, arguments, joined, pattern_check(arguments))


def _check_fixed(uri: str, signature: Signature) -> None:
    if uri_fault(uri) is not None or uri.endswith(":"):  # a scheme alone names nothing
        raise UsageError(
            f"{uri!r} of {signature.label} is not a URI (RFC 3986) with a scheme and a path; write one in ASCII, with "
            "%XX for spaces and other characters, such as config:app"
        )
    if signature.parameters:
        listed = ", ".join(f"{{{each.name}}}" for each in signature.parameters)
        raise UsageError(
            f"{signature.label} has parameters, but the URI {uri!r} has no variables; add {listed} to the URI"
        )


def _check_variables(template: Template, signature: Signature) -> tuple[str, ...]:
    """Check that variables and parameters correspond; return the list variables whose parameter is one string."""
    parameters = {each.name: each for each in signature.parameters}
    joined: list[str] = []
    for variable in template.variables:
        parameter = parameters.pop(variable.name, None)
        what = f"the variable {variable.name!r} of {template.text!r}"
        if parameter is None:
            raise UsageError(
                f"no parameter of {signature.label} takes the value of {what}; add a parameter `{variable.name}`, or "
                "give a parameter and the variable the same name"
            )
        where = f"parameter `{parameter.name}` of {signature.label}"
        if variable.optional and parameter.default is msgspec.NODEFAULT:
            raise UsageError(f"{what} is optional, but {where} has no default; add one")
        if variable.many and is_list(parameter):
            check_texts(parameter, where)
            continue
        if variable.many and variable.optional:
            raise UsageError(f"{what} may occur several times, but {where} is not a list; annotate it as list[str]")
        if variable.many:
            joined.append(variable.name)
        check_textual(parameter, where)
    if missing := [each.name for each in parameters.values() if each.default is msgspec.NODEFAULT]:
        raise UsageError(
            f"parameter `{missing[0]}` of {signature.label} is not a variable of {template.text!r}; add "
            f"{{{missing[0]}}} to the template, or a default to the parameter"
        )
    return tuple(joined)
