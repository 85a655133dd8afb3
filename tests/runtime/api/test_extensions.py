"""Extensions: a server declares and serves one, a client declares one and calls its methods."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anyio
import msgspec
import pytest

from mcpgen import (
    AdaptationError,
    Context,
    Extension,
    InvalidPayload,
    RequestRefused,
    Server,
    UnsupportedByPeer,
    UsageError,
    connect,
)
from mcpgen.generated.extensions import apps, tasks
from mcpgen.generated.v2026_07_28 import CallToolResult, TextContent
from mcpgen.runtime.adapt import route
from mcpgen.runtime.transports import memory
from mcpgen.testing import Recorder
from tests.harness.rooms_extension import IDENTIFIER, rooms
from tests.patience import PATIENCE_SECONDS

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

STATELESS = "2026-07-28"
HANDSHAKES = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"]
META = {"io.modelcontextprotocol/protocolVersion": STATELESS, "io.modelcontextprotocol/clientCapabilities": {}}
RESERVE = "com.example/rooms/reserve"


def handlers() -> Any:
    class Rooms(rooms().ServerHandlers[Context[Any]]):  # type: ignore[misc]  # built for this test
        async def reserve_room(self, params: Any, context: Context[Any]) -> Any:
            text = f"{params.room}: {context.method}, {context.peer.extensions[IDENTIFIER]}"
            return rooms().ReserveRoomResult(confirmation=TextContent(text=text))

    return Rooms()


def room_server(**options: Any) -> Server[Any]:
    server = Server("rooms")
    server.extend(rooms(), handlers(), **options)
    return server


def params(client: Any, room: str = "5") -> Any:
    return rooms().ReserveRoomRequestParams(meta=client.meta, room=room)


async def test_a_client_calls_a_method_of_an_extension_with_its_types() -> None:
    extension = Extension(rooms(), settings={"seats": 3})
    async with connect(room_server(settings={"floors": 2}), extensions=[extension]) as client:
        result = await rooms().ClientMethods(client).reserve_room(params(client))

        assert rooms().ReserveRoomResult is type(result)
        assert f"5: {RESERVE}, {{'seats': 3}}" == result.confirmation.text
        assert {IDENTIFIER: {"floors": 2}} == client.extensions


@pytest.mark.spec("2026-07-28", "basic/versioning#extension-negotiation", "72c01f9a")
async def test_a_stateless_server_refuses_a_client_that_has_not_declared_the_extension() -> None:
    async with connect(room_server()) as client:
        with pytest.raises(RequestRefused) as refused:
            await client.request_json(RESERVE, {"room": "5"})

    assert (-32021, {"requiredCapabilities": {"extensions": {IDENTIFIER: {}}}}) == (
        refused.value.code,
        refused.value.data,
    )


async def test_invalid_params_of_an_extension_are_refused() -> None:
    async with connect(room_server(), extensions=[rooms()]) as client:
        with pytest.raises(RequestRefused, match=f"params of {RESERVE} .{IDENTIFIER}. are not valid") as refused:
            await client.request_json(RESERVE, {"room": 5})

    assert (-32602, {"pointer": "/room"}) == (refused.value.code, refused.value.data)


@pytest.mark.parametrize("given", [{"guest": "a" * 4000 + "@b"}, {"guests": [1, "a" * 3000 + "@b", "a" * 3000 + "@b"]}])
async def test_a_text_of_an_extension_that_is_too_long_for_its_pattern_is_refused(given: dict[str, object]) -> None:
    async with connect(room_server(), extensions=[rooms()]) as client:
        with pytest.raises(RequestRefused, match="at most 4000 characters in a text that must match a pattern"):
            await client.request_json(RESERVE, {"room": "5", **given})
        assert await client.request_json(
            RESERVE, {"room": "5" * 5000, "guest": "a" * 3000 + "@b", "guests": [1, "a@b"]}
        )


async def test_a_message_of_an_extension_with_too_many_objects_in_unions_is_refused() -> None:
    async with connect(room_server(), extensions=[rooms()]) as client:
        for count, is_refused in [
            (5000, False),
            (5001, True),
            (5000, False),
        ]:  # each is tried as a `Desk` and a `Screen`
            asked = client.request_json(RESERVE, {"room": "5", "wishes": [{"width": "1"}] * count})
            if is_refused:
                with pytest.raises(RequestRefused, match="more than 10,000 arms of unions would be tried"):
                    await asked
            else:
                assert await asked


async def test_a_package_of_an_older_mcpgen_whose_decoder_has_no_limit_can_be_used(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    limited = rooms().decoder

    def decoder(kind: Any) -> Any:
        return limited(kind)

    monkeypatch.setattr(rooms(), "decoder", decoder)

    async with connect(room_server(), extensions=[rooms()]) as client:
        assert await client.request_json(RESERVE, {"room": "5"})


@pytest.mark.parametrize("length", [3000, 4000])
async def test_a_result_of_an_extension_that_is_too_long_for_its_pattern_is_not_sent(
    length: int, caplog: pytest.LogCaptureFixture
) -> None:
    class Guests(rooms().ServerHandlers):  # type: ignore[misc]  # it is built by the test
        async def reserve_room(self, params: Any, _context: object, /) -> Any:
            text = TextContent(text="5")
            return rooms().ReserveRoomResult(confirmation=text, guest=params.room)

    server = Server("guests")
    server.extend(rooms(), Guests())
    async with connect(server, extensions=[rooms()]) as client:
        called = client.request_json(RESERVE, {"room": "a" * length + "@b"})
        if length == 3000:
            assert (await called)["guest"]
        else:
            with pytest.raises(RequestRefused):
                await called

    assert (length == 4000) == ("at most 4000 characters in a text that must match a pattern" in caplog.text)


async def test_only_the_last_of_two_members_of_a_name_is_matched_with_its_pattern() -> None:
    declared = {**META, "io.modelcontextprotocol/clientCapabilities": {"extensions": {IDENTIFIER: {}}}}
    call = {"jsonrpc": "2.0", "id": 1, "method": RESERVE, "params": {"_meta": declared, "room": "5", "guest": "a@b"}}
    twice = msgspec.json.encode(call).replace(b'"guest":', b'"guest":"%b","guest":' % (b"a" * 5000))
    async with memory.wire(room_server()) as wire:
        await wire.send(twice)
        answer = await wire.receive()

    assert answer["result"]["resultType"] == "complete"


async def test_a_filter_of_an_extension_that_is_too_long_for_its_pattern_is_refused() -> None:
    async with connect(room_server(), extensions=[rooms()]) as client:
        with pytest.raises(RequestRefused, match="at most 4000 characters in a text that must match a pattern"):
            async with client.listen(rooms().SubscriptionFilter(rooms=["5" * 5000])):
                pass


@pytest.mark.spec("2026-07-28", "basic/versioning#extension-negotiation", "72c01f9a")
async def test_a_client_does_not_call_a_server_that_has_not_declared_the_extension() -> None:
    async with connect(Server("plain"), extensions=[rooms()]) as client:
        with pytest.raises(UnsupportedByPeer, match="has not declared the extension"):
            await rooms().ClientMethods(client).reserve_room(params(client))


@pytest.mark.parametrize("revision", HANDSHAKES)
async def test_an_extension_with_messages_is_not_used_in_the_revisions_of_the_other_era(revision: str) -> None:
    async with connect(room_server(), extensions=[rooms()], revisions=[revision]) as client:
        assert {} == client.extensions
        with pytest.raises(UnsupportedByPeer, match=f"is not used in {revision}; its base is 2026-07-28"):
            await rooms().ClientMethods(client).reserve_room(params(client))


@pytest.mark.parametrize("revision", HANDSHAKES)
async def test_an_extension_is_used_in_a_handshake_revision_on_request(revision: str) -> None:
    server = room_server(revisions=[revision])
    extension = Extension(rooms(), revisions=[revision], settings={"seats": 3})
    async with connect(server, extensions=[extension], revisions=[revision]) as client:
        result = await rooms().ClientMethods(client).reserve_room(params(client))
        without_meta = await client.request_json(RESERVE, {"room": "6"})

    assert f"5: {RESERVE}, {{'seats': 3}}" == result.confirmation.text
    assert "6: " == without_meta["confirmation"]["text"][:3]


async def test_before_the_handshake_a_method_of_an_extension_is_not_called_unsupported() -> None:
    server = Server("rooms", revisions=["2025-11-25"])
    server.extend(rooms(), handlers(), revisions=["2025-11-25"])
    async with memory.wire(server) as wire:
        await wire.send({"jsonrpc": "2.0", "id": 1, "method": RESERVE, "params": {"room": "5"}})
        reply = await wire.receive()

    assert {"code": -32600, "message": "the session is not initialized; send initialize first"} == reply["error"]


@pytest.mark.spec("2025-11-25", "basic/utilities/tasks#associating-task-related-messages", "4690f9ed")
@pytest.mark.spec("2025-11-25", "basic/utilities/tasks#related-task-metadata", "518a85f5")
async def test_a_notification_of_an_extension_names_the_task_whose_function_sends_it() -> None:
    server = room_server(revisions=["2025-11-25"])

    @server.tool(task=True)
    async def leave(ctx: Context) -> None:
        freed = rooms().RoomFreedNotificationParams(room="5", meta={"com.example/why": "checked out"})
        await rooms().ServerMethods(ctx).room_freed(freed)

    def request(number: int, method: str, params: dict[str, Any]) -> dict[str, Any]:
        return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}

    capabilities = {"extensions": {IDENTIFIER: {}}}
    offer = {"protocolVersion": "2025-11-25", "capabilities": capabilities, "clientInfo": {"name": "a", "version": "1"}}
    async with memory.wire(server) as wire:
        with anyio.fail_after(PATIENCE_SECONDS):
            await wire.send(request(1, "initialize", offer))
            await wire.receive()
            await wire.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
            await wire.send(request(2, "tools/call", {"name": "leave", "task": {}}))
            answer, of_task, _ended = [await wire.receive() for _ in range(3)]
            await wire.send(request(3, "tools/call", {"name": "leave"}))
            of_call = await wire.receive()

    meta = {"com.example/why": "checked out"}
    related = {"io.modelcontextprotocol/related-task": {"taskId": answer["result"]["task"]["taskId"]}}
    assert {"room": "5", "_meta": {**meta, **related}} == of_task["params"]
    assert {"room": "5", "_meta": meta} == of_call["params"]


@pytest.mark.parametrize("revision", [*HANDSHAKES, STATELESS])
async def test_an_extension_without_messages_is_declared_in_every_revision(revision: str) -> None:
    server = Server("apps")
    server.extend(apps)
    server.extend("com.example/quiet", settings={"a": 1})

    async with connect(server, revisions=[revision], extensions=["com.example/loud"]) as client:
        assert {"com.example/quiet": {"a": 1}, "io.modelcontextprotocol/ui": {}} == dict(client.extensions)


@pytest.mark.parametrize("name", ["rooms", "/rooms", "com.example/", "com..example/a", "1.a/b", "com.example/-a", ""])
def test_an_identifier_needs_a_prefix(name: str) -> None:
    with pytest.raises(UsageError, match="write a prefix, a slash and a name"):
        Server("a").extend(name)
    with pytest.raises(UsageError, match="write a prefix, a slash and a name"):
        connect(Server("a"), extensions=[name])


def test_wrong_arguments_are_explained() -> None:
    class Other:
        pass

    server = room_server()
    wrong: list[tuple[str, Callable[[], object]]] = [
        ("was added before", lambda: server.extend(rooms())),
        ("must be an instance of a subclass", lambda: Server("a").extend(rooms(), Other())),
        ("must be an instance of a subclass", lambda: Server("a").extend(rooms(), rooms().ServerHandlers)),
        ("has no messages", lambda: Server("a").extend(apps, Other())),
        ("not only its identifier; pass a package", lambda: Server("a").extend("com.example/rooms", Other())),
        ("neither the package of an extension", lambda: Server("a").extend(pytest)),
        ("`settings` must be a mapping", lambda: Server("a").extend(rooms(), settings=[])),  # type: ignore[arg-type]
        ("`settings` is not JSON", lambda: Server("a").extend(rooms(), settings={"a": object()})),
        ("not to extend", lambda: Server("a").extend(Extension(rooms()), settings={})),
        ("twice", lambda: connect(server, extensions=[rooms(), IDENTIFIER])),
        ("must be a list", lambda: connect(server, extensions=IDENTIFIER)),
        ("must be a list", lambda: connect(server, extensions=rooms())),
    ]
    for text, call in wrong:
        with pytest.raises(UsageError, match=text):
            call()


def test_a_method_of_the_base_cannot_be_overridden_in_the_handlers_of_an_extension() -> None:
    class Rooms(rooms().ServerHandlers[Any]):  # type: ignore[misc]  # built for this test
        async def call_tool(self, params: Any, context: Any) -> Any:
            raise NotImplementedError

    with pytest.raises(UsageError, match="has a method `call_tool`, but mcpgen handles"):
        Server("a").extend(rooms(), Rooms())


def test_a_method_that_a_revision_has_itself_is_refused_there() -> None:
    class Tasks(tasks.ServerHandlers[Any]):
        async def get_task(self, params: Any, context: Any) -> Any:
            raise NotImplementedError

    with pytest.raises(UsageError, match="2025-11-25 has its own method tasks/get"):
        Server("a").extend(tasks, Tasks(), revisions=["2025-11-25"])
    Server("a").extend(tasks, Tasks())


async def test_middleware_is_called_around_the_methods_of_an_extension() -> None:
    server, seen = room_server(), []

    @server.middleware
    async def watch(params: Any, context: Context[Any], call_next: Any) -> Any:
        seen.append((context.method, type(params).__name__))
        return await call_next(params, context)

    async with connect(server, extensions=[rooms()]) as client:
        await rooms().ClientMethods(client).reserve_room(params(client))

    assert [(RESERVE, "ReserveRoomRequestParams")] == seen


def waitlist_server() -> Server[Any]:
    server = room_server()

    @server.tool
    def reserve(room: str) -> str:
        return f"reserved {room}"

    @server.middleware
    async def wait(params: Any, context: Context[Any], call_next: Any) -> Any:
        if context.method == "tools/call" and params.arguments == {"room": "full"}:
            return rooms().WaitlistResult(place=3)
        return await call_next(params, context)

    return server


@pytest.mark.spec("2026-07-28", "basic/index#resulttype", "e5f5e7e3")
async def test_a_tool_call_is_answered_with_a_result_of_an_extension() -> None:
    async with connect(waitlist_server(), extensions=[rooms()]) as client:
        call = rooms().ClientMethods(client).call_tool
        asked = [
            rooms().CallToolRequestParams(meta=client.meta, name="reserve", arguments={"room": each})
            for each in ("full", "5")
        ]
        waiting, reserved = [await call(each) for each in asked]

    assert rooms().WaitlistResult(place=3) == waiting
    assert CallToolResult is type(reserved)


async def test_a_result_of_an_extension_is_not_sent_to_a_client_that_has_not_declared_it() -> None:
    async with connect(waitlist_server()) as client:
        with pytest.raises(RequestRefused) as refused:
            await client.call_tool("reserve", {"room": "full"})

    assert (-32021, {"requiredCapabilities": {"extensions": {IDENTIFIER: {}}}}) == (
        refused.value.code,
        refused.value.data,
    )


async def test_the_handlers_of_a_client_finish_a_result_of_an_extension() -> None:
    class Waiter(rooms().ClientHandlers[Any]):  # type: ignore[misc]  # built for this test
        async def finish_result(self, result: Any, context: Any) -> Any:
            assert "tools/call" == context.method
            return CallToolResult(content=[TextContent(text=f"waited at {result.place}")])

    extension = Extension(rooms(), handlers=Waiter())
    async with connect(waitlist_server(), extensions=[extension]) as client:
        waited = await client.call_tool("reserve", {"room": "full"})
        plain = await client.call_tool("reserve", {"room": "5"})

    assert ("waited at 3", "reserved 5") == (waited.text, plain.text)


async def test_a_result_that_no_handler_finishes_is_an_error() -> None:
    async with connect(waitlist_server(), extensions=[rooms()]) as client:
        with pytest.raises(InvalidPayload, match="finish_result"):
            await client.call_tool("reserve", {"room": "full"})


class Listener:
    """The notifications that a client has got."""

    def __init__(self) -> None:
        self.rooms: list[str] = []
        self.changed = anyio.Event()

    def extension(self) -> Extension:
        listener = self

        class Handlers(rooms().ClientHandlers[Any]):  # type: ignore[misc]  # built for this test
            async def room_freed(self, params: Any, context: Any) -> None:
                listener.rooms.append(params.room)
                listener.changed.set()

        return Extension(rooms(), handlers=Handlers())

    async def wait(self, count: int) -> None:
        with anyio.fail_after(PATIENCE_SECONDS):
            while len(self.rooms) < count:
                self.changed = anyio.Event()
                await self.changed.wait()


async def free(extension: Any, room: str) -> None:
    freed = rooms().methods.ROOM_FREED
    await extension.notify(
        freed, rooms().RoomFreedNotificationParams(room=room), to=lambda wanted: room in wanted.rooms
    )


async def test_a_client_gets_the_notifications_of_an_extension_that_it_listens_for() -> None:
    server, listener = Server("rooms"), Listener()
    extension = server.extend(rooms(), handlers())
    async with (
        connect(server, extensions=[listener.extension()]) as client,
        client.listen(rooms().SubscriptionFilter(rooms=["5", "6"])) as changes,
    ):
        for room in ("5", "7", "6"):
            await free(extension, room)
        await listener.wait(2)

        assert ["5", "6"] == listener.rooms
        assert {"rooms": ["5", "6"]} == changes.accepted


@pytest.mark.parametrize(
    ("method", "reason"),
    [
        (
            "notifications/com.example/rooms/freed",
            r"`method` must be the constant \w+\.methods\.ROOM_FREED of the extension's package, not 'notif",
        ),
        (
            "notifications/freed",
            r"has no notification notifications/freed that a server sends; pass \w+\.methods\.ROOM_FREED$",
        ),
    ],
)
async def test_an_error_names_the_constant_of_a_notification(method: str, reason: str) -> None:
    extension = Server("rooms").extend(rooms(), handlers())
    with pytest.raises(UsageError, match=reason):
        await extension.notify(method, rooms().RoomFreedNotificationParams(room="5"))
    quiet = Server("quiet").extend("com.example/quiet")
    with pytest.raises(
        UsageError, match=f"quiet has no notifications that a server sends, so none with the name {method}"
    ):
        await quiet.notify(method, None)


async def test_the_handlers_of_a_server_accept_a_part_of_a_filter() -> None:
    class Rooms(rooms().ServerHandlers[Any]):  # type: ignore[misc]  # built for this test
        def accept_subscription(self, wanted: Any, context: Context[Any]) -> Any:
            assert IDENTIFIER in context.peer.extensions
            return rooms().SubscriptionFilter(rooms=[each for each in wanted.rooms if each != "6"])

    server, listener = Server("rooms"), Listener()
    extension = server.extend(rooms(), Rooms())
    async with (
        connect(server, extensions=[listener.extension()]) as client,
        client.listen(rooms().SubscriptionFilter(rooms=["5", "6"])) as changes,
    ):
        for room in ("6", "5"):
            await free(extension, room)
        await listener.wait(1)

        assert ["5"] == listener.rooms
        assert {"rooms": ["5"]} == changes.accepted


async def test_a_filter_of_an_extension_needs_its_declaration() -> None:
    server = room_server()
    async with connect(server) as client:
        with pytest.raises(UsageError, match="does not know SubscriptionFilter"):
            client.listen(rooms().SubscriptionFilter(rooms=["5"]))
        with pytest.raises(RequestRefused) as refused:
            await client.request_json("subscriptions/listen", {"notifications": {"rooms": ["5"]}})

    assert -32021 == refused.value.code


async def test_a_handler_notifies_the_client_of_its_own_request() -> None:
    class Rooms(rooms().ServerHandlers[Any]):  # type: ignore[misc]  # built for this test
        async def reserve_room(self, params: Any, context: Context[Any]) -> Any:
            await rooms().ServerMethods(context).room_freed(rooms().RoomFreedNotificationParams(room=params.room))
            return rooms().ReserveRoomResult(confirmation=TextContent(text="ok"))

    server, listener = Server("rooms"), Listener()
    server.extend(rooms(), Rooms())
    async with connect(server, extensions=[listener.extension()]) as client:
        await rooms().ClientMethods(client).reserve_room(params(client))
        await listener.wait(1)

    assert ["5"] == listener.rooms


async def test_a_handler_sees_the_metadata_of_its_request() -> None:
    server, seen = Server("meta"), []

    @server.tool
    async def look(context: Context[Any]) -> str:
        seen.append(context.meta)
        return "ok"

    async with connect(server) as client:
        await client.call_tool("look", meta={"com.example/key": [1]})

    assert [1] == seen[0]["com.example/key"]
    assert STATELESS == seen[0]["io.modelcontextprotocol/protocolVersion"]


async def test_the_recorder_checks_the_messages_of_an_extension() -> None:
    server, listener = waitlist_server(), Listener()
    recorder = Recorder(server)
    async with (
        connect(recorder, extensions=[listener.extension()]) as client,
        client.listen(rooms().SubscriptionFilter(rooms=["5"])),
    ):
        await rooms().ClientMethods(client).reserve_room(params(client))
        asked = rooms().CallToolRequestParams(meta=client.meta, name="reserve", arguments={"room": "full"})
        await rooms().ClientMethods(client).call_tool(asked)
        assert [] == recorder.problems()
        with pytest.raises(RequestRefused):
            await client.request_json(RESERVE, {"room": 5, "floor": 1})

    (problem,) = recorder.problems()
    assert "at /params/room: Expected `str`, got `int`" in problem


async def test_the_recorder_reports_a_method_of_an_extension_that_the_client_has_not_declared() -> None:
    recorder = Recorder(room_server())
    async with connect(recorder) as client:
        with pytest.raises(RequestRefused):
            await client.request_json(RESERVE, {"room": "5"})
        with pytest.raises(RequestRefused):
            await client.request_json("com.example/other", {"room": "5"})

    undeclared, unknown = recorder.problems()
    assert "the client has not declared the extension com.example/rooms" in undeclared
    assert "2026-07-28 has no request com.example/other" in unknown


@pytest.mark.parametrize("revision", HANDSHAKES)
async def test_the_recorder_knows_that_handshake_revisions_declare_extensions(revision: str) -> None:
    server = Server("apps")
    server.extend("com.example/quiet")
    recorder = Recorder(server)
    async with connect(recorder, revisions=[revision], extensions=["com.example/quiet"]):
        pass

    assert [] == recorder.problems()


def test_a_message_of_an_extension_passes_unchanged_between_revisions_of_one_era() -> None:
    Extension(rooms())
    value = {"room": "5", "more": 1, "_meta": META}
    unchanged = route(STATELESS, STATELESS, RESERVE, "params").adapt(value)
    older = route("2025-11-25", "2024-11-05", RESERVE, "result")

    assert value == unchanged.value
    assert older.is_identity
    with pytest.raises(AdaptationError, match="belongs to the extension"):
        route(STATELESS, "2025-11-25", RESERVE, "params")
    with pytest.raises(InvalidPayload, match="at /room"):
        route(STATELESS, STATELESS, RESERVE, "params").adapt({"room": 5, "_meta": META})


def test_an_invalid_message_of_an_extension_names_the_extension_and_its_base() -> None:
    """The reader of the error may have meant a method of the source, which has none of this name."""
    named = r"of tasks/get \(of io\.modelcontextprotocol/tasks, an extension of 2026-07-28\) are not valid"
    with pytest.raises(InvalidPayload, match=named):
        route("2024-11-05", "2025-03-26", "tasks/get", "params").adapt({"taskId": 5})
