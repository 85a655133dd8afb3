"""What races: our bindings, the models of mcp-types, and msgspec without any types as the floor.

mcp-types has two sets of models. The *surface* models say what one era allows on the wire, like ours; they are internal
and found in the tables of `mcp_types.methods`. The models that its users get and construct are the same for all
revisions; the functions of `mcp_types.methods` validate a message with the former and return one of the latter.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, get_args

import msgspec

from tests.bench import payloads

if TYPE_CHECKING:
    from collections.abc import Mapping

OURS: Final = "mcpgen"
METHODS: Final = "`model_validate_json`, `model_dump_json(by_alias, exclude_none)`"
FUNCTIONS: Final = "mcp_types.methods"
FLOOR: Final = "floor"

Contenders = dict[str, Callable[[], object]]


class Codec(msgspec.Struct, frozen=True):
    """One message to decode and encode again.

    Attributes:
        name: What the message is, for the table.
        type: Name of its class in our models and among the surface models.
        surface: The table of `mcp_types.methods` that holds the class, and the method.
        text: Returns the message in a revision.
        least_ratio: How many times faster than mcp-types we promise to be.
        most_microseconds: How long it may take at most.
    """

    name: str
    type: str
    surface: tuple[str, str]
    text: Callable[[str], bytes]
    least_ratio: float | None = None
    most_microseconds: float | None = None


CODECS: Final = (
    Codec(
        "`tools/call` request",
        "CallToolRequest",
        ("CLIENT_REQUESTS", "tools/call"),
        payloads.request,
        least_ratio=4,
    ),
    Codec(
        "the same, more arguments, a progress token",
        "CallToolRequest",
        ("CLIENT_REQUESTS", "tools/call"),
        payloads.followed_request,
    ),
    Codec(
        "`CallToolResult`, 11 blocks",
        "CallToolResult",
        ("SERVER_RESULTS", "tools/call"),
        payloads.tool_result,
        least_ratio=8,
        most_microseconds=8,
    ),
    Codec(
        "`ListToolsResult`, 100 tools",
        "ListToolsResult",
        ("SERVER_RESULTS", "tools/list"),
        payloads.tool_list,
    ),
)


def bindings(revision: str) -> Any:
    """Return our package of *revision*."""
    return import_module(f"mcpgen.generated.v{revision.replace('-', '_')}")


def ours(codec: Codec, revision: str) -> Contenders:
    """Return us, as a server or client uses us: with a decoder and an encoder made in advance."""
    package = bindings(revision)
    text = codec.text(revision)
    decode = package.decoder(getattr(package, codec.type))
    encode = msgspec.json.Encoder().encode
    return {OURS: lambda: encode(decode(text))}


def floor(codec: Codec, revision: str) -> Contenders:
    """Return msgspec with dicts and lists instead of types: what no bindings on top of it can beat by much."""
    text = codec.text(revision)
    decode = msgspec.json.Decoder().decode
    encode = msgspec.json.Encoder().encode
    return {FLOOR: lambda: encode(decode(text))}


def surface(codec: Codec, revision: str) -> Contenders:
    """Return mcp-types' surface model in each way that pydantic documents; the fastest is the one that counts."""
    from pydantic import TypeAdapter

    text = codec.text(revision)
    model = surface_model(codec, revision)
    adapter: Any = TypeAdapter(model)
    return {
        METHODS: lambda: model.model_validate_json(text).model_dump_json(by_alias=True, exclude_none=True),
        "`model_validate_json`, `model_dump_json(by_alias, exclude_unset)`": lambda: model.model_validate_json(
            text
        ).model_dump_json(by_alias=True, exclude_unset=True),
        "`TypeAdapter.validate_json`, `dump_json(by_alias, exclude_none)`": lambda: adapter.dump_json(
            adapter.validate_json(text), by_alias=True, exclude_none=True
        ),
        "`TypeAdapter.validate_json`, `dump_json(by_alias, exclude_unset)`": lambda: adapter.dump_json(
            adapter.validate_json(text), by_alias=True, exclude_unset=True
        ),
    }


def functions(codec: Codec, revision: str) -> Contenders:
    """Return mcp-types as its documentation has it: through its functions, from one set of models to the other."""
    from mcp_types import jsonrpc, methods
    from pydantic_core import from_json, to_json

    text = codec.text(revision)
    table, method = codec.surface

    def request() -> bytes:
        envelope: Any = jsonrpc.jsonrpc_message_adapter.validate_json(text)
        parsed = methods.parse_client_request(envelope.method, revision, envelope.params)
        body = parsed.model_dump(by_alias=True, mode="json", exclude_none=True)
        return jsonrpc.JSONRPCRequest(jsonrpc="2.0", id=envelope.id, **body).model_dump_json().encode()

    def result() -> bytes:
        parsed = methods.parse_server_result(method, revision, from_json(text))
        body = parsed.model_dump(by_alias=True, mode="json", exclude_none=True)
        return to_json(methods.serialize_server_result(method, revision, body))

    return {FUNCTIONS: request if table == "CLIENT_REQUESTS" else result}


def surface_model(codec: Codec, revision: str) -> Any:
    """Return mcp-types' surface model of a message in a revision."""
    from mcp_types import methods

    table, method = codec.surface
    found: Any = getattr(methods, table)[method, revision]
    # A method with several results has a union in the table: both sides decode the one class.
    (model,) = (each for each in get_args(found) or (found,) if each.__name__.endswith(codec.type))
    return model


def check(codec: Codec, revision: str, contenders: Mapping[str, Callable[[], object]]) -> None:
    """Make sure that all contenders do the same work: each gives back the JSON that it got.

    Raises:
        ValueError: One does not.
    """
    expected = json.loads(codec.text(revision))
    for name, run in contenders.items():
        given: Any = run()
        if json.loads(given) != expected:
            raise ValueError(f"{name} changes the {codec.type} of {revision}")


def constructions(package: Any) -> Contenders:
    """Return how some messages are constructed with *package*: our 2025-11-25, or `mcp_types`."""
    schema = {"type": "object", "properties": {"city": {"type": "string"}}}
    arguments = {"city": "Zürich"}
    text = package.TextContent(text="hi")
    return {
        "`TextContent`": lambda: package.TextContent(text="hi"),
        "`ImageContent`": lambda: package.ImageContent(data="aGk=", mime_type="image/png"),
        "`Tool`": lambda: package.Tool(name="weather", input_schema=schema),
        "`CallToolRequestParams`": lambda: package.CallToolRequestParams(name="weather", arguments=arguments),
        "`CallToolResult` of one block": lambda: package.CallToolResult(content=[text]),
    }
