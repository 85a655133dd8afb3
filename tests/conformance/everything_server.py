"""A server with one thing of everything, for clients of every revision.

The official conformance suite says what there has to be, and its names. It is also an example of what a server can do;
``mcpgen serve tests/conformance/everything_server.py --http 127.0.0.1:8000`` serves it over HTTP; without the option,
on standard input and output.
"""

from __future__ import annotations

import os
from base64 import b64decode
from typing import TYPE_CHECKING, Annotated, Any, Literal

import anyio
from msgspec import UNSET, Meta, Struct
from msgspec.structs import replace

from mcpgen import Context, RedisTaskStore, RequestError, Server, ToolError
from mcpgen.generated.v2026_07_28 import (
    AudioContent,
    ContentBlock,
    CreateMessageRequest,
    CreateMessageRequestParams,
    CreateMessageResult,
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitResult,
    EmbeddedResource,
    ImageContent,
    InputRequest,
    InputRequiredResult,
    ListRootsRequest,
    ListRootsResult,
    ListToolsResult,
    PromptMessage,
    SamplingMessage,
    TextContent,
    TextResourceContents,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
SILENCE = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA="

# One of several workers cannot add a tool to the others, and lists must not depend on the worker.
IS_SHARED = "SEVERAL_WORKERS" in os.environ

# What the suite wants between two notifications, so that they do not come at once.
PAUSE_SECONDS = 0.05

server = Server(
    "everything",
    version="1.0",
    title="Everything",
    instructions="There is a tool, a resource or a prompt for each thing that a server can do.",
    tasks=RedisTaskStore(os.environ["MCPGEN_REDIS"], name="everything", timeout_seconds=10) if IS_SHARED else None,
)


# --- Content


@server.tool
def test_simple_text() -> str:
    """Return a text."""
    return "This is a simple text response for testing."


@server.tool
def test_image_content() -> ImageContent:
    """Return a picture, one red pixel."""
    return ImageContent(data=PIXEL, mime_type="image/png")


@server.tool
def test_audio_content() -> AudioContent:
    """Return a sound, though nothing can be heard."""
    return AudioContent(data=SILENCE, mime_type="audio/wav")


@server.tool
def test_embedded_resource() -> EmbeddedResource:
    """Return a resource."""
    text = "This is an embedded resource content."
    return EmbeddedResource(
        resource=TextResourceContents(uri="test://embedded-resource", mime_type="text/plain", text=text)
    )


@server.tool
def test_multiple_content_types() -> list[ContentBlock]:
    """Return a text, a picture and a resource."""
    return [
        TextContent(text="Multiple content types test:"),
        ImageContent(data=PIXEL, mime_type="image/png"),
        EmbeddedResource(
            resource=TextResourceContents(
                uri="test://mixed-content-resource", mime_type="application/json", text='{"test":"data","value":123}'
            )
        ),
    ]


@server.tool
def test_error_handling() -> str:
    """Fail in a way that the model is told about."""
    raise ToolError("This tool intentionally returns an error for testing")


# --- Notifications


@server.tool
async def test_tool_with_logging(ctx: Context) -> str:
    """Log three times."""
    await ctx.log("info", "Tool execution started")
    await anyio.sleep(PAUSE_SECONDS)
    await ctx.log("info", "Tool processing data")
    await anyio.sleep(PAUSE_SECONDS)
    await ctx.log("info", "Tool execution completed")
    return "Logged three times."


@server.tool
async def test_logging_tool(ctx: Context) -> str:
    """Log once; only who asked for it gets that."""
    await ctx.log("info", "This is for those who asked for it")
    return "Logged once."


@server.tool
async def test_tool_with_progress(ctx: Context) -> str:
    """Tell three times how far it has come."""
    for progress in (0, 50, 100):
        if progress:
            await anyio.sleep(PAUSE_SECONDS)
        await ctx.progress(progress, total=100)
    return "Done."


@server.tool
async def test_reconnection(ctx: Context) -> str:
    """Close the connection before there is a result, which the client comes back for."""
    await ctx.disconnect()
    await anyio.sleep(PAUSE_SECONDS)
    return "This came when you were back."


@server.tool
async def test_trigger_tool_change(ctx: Context) -> str:
    """Add a tool, or remove it if it is there, and tell who listens."""
    if IS_SHARED:
        pass
    elif "test_passing_tool" in server._registry.tools.entries:
        server.remove_tool("test_passing_tool")
    else:

        @server.tool
        def test_passing_tool() -> str:
            """Come and go."""
            return "Here today, gone tomorrow."

    await ctx.tools_changed()
    return "There are other tools now."


@server.tool
async def test_trigger_prompt_change(ctx: Context) -> str:
    """Add a prompt, or remove it if it is there, and tell who listens."""
    if IS_SHARED:
        pass
    elif "test_passing_prompt" in server._registry.prompts.entries:
        server.remove_prompt("test_passing_prompt")
    else:

        @server.prompt
        def test_passing_prompt() -> str:
            """Come and go."""
            return "Here today, gone tomorrow."

    await ctx.prompts_changed()
    return "There are other prompts now."


# --- Questions that a function waits for


@server.tool
async def test_sampling(prompt: str, ctx: Context) -> str:
    """Ask the client's model.

    Args:
        prompt: What to ask it.
    """
    answer = await ctx.sample(prompt, max_tokens=100)
    return f"LLM response: {answer.content.text if isinstance(answer.content, TextContent) else answer.content}"


@server.tool
async def test_missing_capability(ctx: Context) -> str:
    """Ask the client's model, which a client without one has to be told."""
    return f"{(await ctx.sample('Are you there?', max_tokens=10)).model} is there."


class Contact(Struct):
    """How to reach somebody."""

    username: Annotated[str, Meta(description="User's response")]
    email: Annotated[str, Meta(description="User's email address")]


@server.tool
async def test_elicitation(message: str, ctx: Context) -> str:
    """Ask the user for a name and an address.

    Args:
        message: What to tell the user.
    """
    form = await ctx.elicit(message, Contact)
    return f"User response: action: {form.action}, content: {form.content}"


@server.tool
async def test_streaming_elicitation(ctx: Context) -> str:
    """Tell how far it has come, ask the user, and go on."""
    await ctx.progress(1, total=2)
    form = await ctx.elicit("How are you reached?", Contact)
    await ctx.progress(2, total=2)
    return f"User response: {form.action}"


class Defaults(Struct):
    """A form whose fields are filled in already."""

    name: Annotated[str, Meta(description="User name")] = "John Doe"
    age: Annotated[int, Meta(description="User age")] = 30
    score: Annotated[float, Meta(description="User score")] = 95.5
    status: Annotated[Literal["active", "inactive", "pending"], Meta(description="User status")] = "active"
    verified: Annotated[bool, Meta(description="Verification status")] = True


@server.tool
async def test_elicitation_sep1034_defaults(ctx: Context) -> str:
    """Show the user a form with a default in each field."""
    form = await ctx.elicit("Please review and update the form fields with defaults", Defaults)
    return f"Elicitation completed: action={form.action}, content={form.content}"


# Titles are more than a type can say, so this form is written as its schema.
CHOICES: dict[str, Any] = {
    "untitledSingle": {"type": "string", "enum": ["option1", "option2", "option3"]},
    "titledSingle": {
        "type": "string",
        "oneOf": [
            {"const": "value1", "title": "First Option"},
            {"const": "value2", "title": "Second Option"},
            {"const": "value3", "title": "Third Option"},
        ],
    },
    "legacyEnum": {
        "type": "string",
        "enum": ["opt1", "opt2", "opt3"],
        "enumNames": ["Option One", "Option Two", "Option Three"],
    },
    "untitledMulti": {"type": "array", "items": {"type": "string", "enum": ["option1", "option2", "option3"]}},
    "titledMulti": {
        "type": "array",
        "items": {
            "anyOf": [
                {"const": "value1", "title": "First Choice"},
                {"const": "value2", "title": "Second Choice"},
                {"const": "value3", "title": "Third Choice"},
            ]
        },
    },
}


@server.tool
async def test_elicitation_sep1330_enums(ctx: Context) -> str:
    """Let the user choose in each way that a form has."""
    form = await ctx.elicit("Please select options from the enum fields", {"properties": CHOICES})
    return f"Elicitation completed: action={form.action}, content={form.content}"


# --- Questions that are a result; the function is called again, from the start, with the answers


def form(message: str, **fields: str) -> ElicitRequest:
    """Return the request for a form whose *fields* are of these types, and all needed."""
    schema: dict[str, object] = {
        "type": "object",
        "properties": {name: {"type": kind} for name, kind in fields.items()},
        "required": list(fields),
    }
    return ElicitRequest(params=ElicitRequestFormParams(message=message, requested_schema=schema))


def question(text: str, *, max_tokens: int = 100) -> CreateMessageRequest:
    """Return the request for what the client's model says to *text*."""
    messages = [SamplingMessage(role="user", content=TextContent(text=text))]
    return CreateMessageRequest(params=CreateMessageRequestParams(messages=messages, max_tokens=max_tokens))


def filled_in(answer: object, field: str) -> object:
    """Return what the user wrote into a field; None if they did not want to."""
    return answer.content.get(field) if isinstance(answer, ElicitResult) and answer.content else None


@server.tool
def test_input_required_result_elicitation(ctx: Context) -> str | InputRequiredResult:
    """Demand a name, and greet."""
    if "user_name" not in ctx.input_responses:
        return InputRequiredResult(input_requests={"user_name": form("What is your name?", name="string")})
    return f"Hello, {filled_in(ctx.input_responses['user_name'], 'name') or 'stranger'}!"


@server.tool
def test_input_required_result_sampling(ctx: Context) -> str | InputRequiredResult:
    """Demand an answer of the client's model, and pass it on."""
    answer = ctx.input_responses.get("capital_question")
    if not isinstance(answer, CreateMessageResult):
        return InputRequiredResult(input_requests={"capital_question": question("What is the capital of France?")})
    return answer.content.text if isinstance(answer.content, TextContent) else "That was no text."


@server.tool
def test_input_required_result_list_roots(ctx: Context) -> str | InputRequiredResult:
    """Demand the client's roots, and name them."""
    answer = ctx.input_responses.get("client_roots")
    if not isinstance(answer, ListRootsResult):
        return InputRequiredResult(input_requests={"client_roots": ListRootsRequest()})
    return f"Roots: {', '.join(root.uri for root in answer.roots)}"


@server.tool
def test_input_required_result_request_state(ctx: Context) -> str | InputRequiredResult:
    """Demand a confirmation, with a state that has to come back."""
    if ctx.request_state != "asked":
        return InputRequiredResult(
            input_requests={"confirm": form("Please confirm", ok="boolean")}, request_state="asked"
        )
    return f"state-ok, confirmed: {filled_in(ctx.input_responses.get('confirm'), 'ok')}"


@server.tool
def test_input_required_result_tampered_state(ctx: Context) -> str | InputRequiredResult:
    """Demand a confirmation, with a state that nobody else can have written."""
    if ctx.request_state != "genuine":
        return InputRequiredResult(
            input_requests={"confirm": form("Please confirm", ok="boolean")}, request_state="genuine"
        )
    return f"Confirmed: {filled_in(ctx.input_responses.get('confirm'), 'ok')}"


@server.tool
def test_input_required_result_multiple_inputs(ctx: Context) -> str | InputRequiredResult:
    """Demand a name, a greeting and the roots at once."""
    wanted: dict[str, InputRequest] = {
        "user_name": form("What is your name?", name="string"),
        "greeting": question("Generate a greeting", max_tokens=50),
        "client_roots": ListRootsRequest(),
    }
    if not wanted.keys() <= ctx.input_responses.keys():
        return InputRequiredResult(input_requests=wanted, request_state="asked")
    return f"{filled_in(ctx.input_responses['user_name'], 'name')}, you have answered everything."


@server.tool
def test_input_required_result_multi_round(ctx: Context) -> str | InputRequiredResult:
    """Demand a name, then a colour, which is another demand; the state keeps the name meanwhile."""
    if "step1" in ctx.input_responses:
        return InputRequiredResult(
            input_requests={"step2": form("Step 2: What is your favorite color?", color="string")},
            request_state=f"name:{filled_in(ctx.input_responses['step1'], 'name')}",
        )
    if ctx.request_state is None or "step2" not in ctx.input_responses:
        return InputRequiredResult(
            input_requests={"step1": form("Step 1: What is your name?", name="string")}, request_state="nothing yet"
        )
    name = ctx.request_state.removeprefix("name:")
    return f"{name} likes {filled_in(ctx.input_responses['step2'], 'color')}."


@server.tool
def test_input_required_result_capabilities(ctx: Context) -> str | InputRequiredResult:
    """Demand whatever the client has declared that it can give."""
    declared = ctx.peer.capabilities
    wanted: dict[str, InputRequest] = {}
    if declared.elicitation is not UNSET:
        wanted["name"] = form("What is your name?", name="string")
    if declared.sampling is not UNSET:
        wanted["greeting"] = question("Generate a greeting", max_tokens=50)
    if declared.roots is not UNSET:
        wanted["roots"] = ListRootsRequest()
    if wanted.keys() <= ctx.input_responses.keys():
        return f"You gave {', '.join(ctx.input_responses) or 'nothing'}."
    return InputRequiredResult(input_requests=wanted)


# --- Arguments


@server.tool
def test_x_mcp_header(
    region: Annotated[str, Meta(description="Where to run", extra_json_schema={"x-mcp-header": "Region"})],
) -> str:
    """Take an argument that HTTP repeats in a header, where a proxy can see it."""
    return f"This ran in {region}."


class Address(Struct):
    """Where somebody lives."""

    street: str | None = None
    city: str | None = None


@server.tool
def json_schema_2020_12_tool(
    name: str | None = None,
    address: Address | None = None,
    contactMethod: Literal["phone", "email"] | None = None,  # noqa: N803 (the suite's name)
    phone: str | None = None,
    email: str | None = None,
) -> str:
    """Take arguments whose schema depends on each other."""
    if not (phone if contactMethod == "phone" else email):
        raise ToolError("There is no way to reach you.")
    return f"{name} of {address and address.city} is reached by {phone or email}."


# A signature cannot say that one argument is needed if another has some value. So the schema is written by hand, and a
# middleware puts it in the place of the one that was made.
DEPENDENT: dict[str, object] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}


@server.middleware
async def by_hand(params: Any, ctx: Context, call_next: Callable[[Any, Context], Awaitable[Any]]) -> Any:
    """Replace a schema in the list of tools."""
    result = await call_next(params, ctx)
    if not isinstance(result, ListToolsResult):
        return result
    tools = [
        replace(tool, input_schema=DEPENDENT) if tool.name == "json_schema_2020_12_tool" else tool
        for tool in result.tools
    ]
    return replace(result, tools=tools)


# --- Tasks


@server.tool
def greet(name: str) -> str:
    """Greet at once."""
    return f"Hello, {name}!"


@server.tool(task=True)
async def slow_compute(seconds: float, label: str = "") -> str:
    """Take a while."""
    await anyio.sleep(seconds)
    return f"{label or 'It'} took {seconds:g} seconds."


@server.tool(task="always")
async def failing_job() -> str:
    """Fail in a way that the model is told about, after a while."""
    await anyio.sleep(PAUSE_SECONDS)
    raise ToolError("This job fails intentionally.")


@server.tool(task=True)
async def protocol_error_job() -> str:
    """Fail in a way that is an error of the protocol."""
    await anyio.sleep(PAUSE_SECONDS)
    raise RequestError(-32603, "This job fails intentionally.")


class Confirmation(Struct):
    """Whether the user is sure."""

    confirm: bool


@server.tool(task=True)
async def confirm_delete(filename: str, ctx: Context) -> str:
    """Ask the user before anything is deleted."""
    form = await ctx.elicit(f"Delete {filename}?", Confirmation)
    return f"{filename} was {'deleted' if form.content is not None and form.content.confirm else 'kept'}."


@server.tool(task=True)
async def multi_input(ctx: Context) -> str:
    """Ask the user for two things at once."""
    answers: list[str] = []

    async def ask(what: str) -> None:
        answers.append((await ctx.elicit(what, {"properties": {"name": {"type": "string"}}})).action)

    async with anyio.create_task_group() as group:
        group.start_soon(ask, "What is your name?")
        group.start_soon(ask, "And that of your cat?")
    return f"You answered {', '.join(answers)}."


@server.tool(task="deferred")
async def test_tool_with_task(ctx: Context) -> str | InputRequiredResult:
    """Ask for a name, and only then become a task."""
    if "user_name" not in ctx.input_responses:
        return InputRequiredResult(input_requests={"user_name": form("What is your name?", name="string")})
    await ctx.defer()
    await anyio.sleep(PAUSE_SECONDS)
    return f"Hello, {filled_in(ctx.input_responses['user_name'], 'name') or 'stranger'}!"


# --- Resources


@server.resource("test://static-text", mime_type="text/plain")
def static_text() -> str:
    """Be a text."""
    return "This is the content of the static text resource."


@server.resource("test://static-binary", mime_type="image/png")
def static_binary() -> bytes:
    """Be a picture."""
    return b64decode(PIXEL)


@server.resource("test://watched-resource", mime_type="text/plain")
def watched_resource() -> str:
    """Be watched."""
    return "Watched resource content."


class Data(Struct, rename="camel"):
    """What a template returns."""

    id: str
    template_test: bool
    data: str


@server.resource("test://template/{id}/data", mime_type="application/json")
def template(id: str) -> Data:  # noqa: A002 (the suite's name)
    """Be different for each id."""
    return Data(id=id, template_test=True, data=f"Data for ID: {id}")


# --- Prompts


@server.prompt
def test_simple_prompt() -> str:
    """Ask for nothing."""
    return "This is a simple prompt for testing."


@server.prompt
def test_prompt_with_arguments(arg1: str, arg2: str) -> str:
    """Use two arguments.

    Args:
        arg1: First test argument.
        arg2: Second test argument.
    """
    return f"Prompt with arguments: arg1='{arg1}', arg2='{arg2}'"


@server.completion("test_prompt_with_arguments", "arg1")
def complete_arg1(value: str) -> list[str]:
    """Suggest what is known of the first argument."""
    return [each for each in ("paris", "park", "party", "test", "testValue1") if each.startswith(value)]


@server.prompt
def test_prompt_with_embedded_resource(resourceUri: str) -> list[PromptMessage | str]:  # noqa: N803 (the suite's name)
    """Show a resource.

    Args:
        resourceUri: Which one.
    """
    text = "Embedded resource content for testing."
    resource = TextResourceContents(uri=resourceUri, mime_type="text/plain", text=text)
    return [
        PromptMessage(role="user", content=EmbeddedResource(resource=resource)),
        "Please process the embedded resource above.",
    ]


@server.prompt
def test_prompt_with_image() -> list[PromptMessage | str]:
    """Show a picture."""
    return [
        PromptMessage(role="user", content=ImageContent(data=PIXEL, mime_type="image/png")),
        "Please analyze the image above.",
    ]


@server.prompt
def test_input_required_result_prompt(ctx: Context) -> str | InputRequiredResult:
    """Demand a context, and use it."""
    if "user_context" not in ctx.input_responses:
        wanted = form("What context should the prompt use?", context="string")
        return InputRequiredResult(input_requests={"user_context": wanted})
    return f"Use this context: {filled_in(ctx.input_responses['user_context'], 'context')}"


if __name__ == "__main__":
    server.run()
