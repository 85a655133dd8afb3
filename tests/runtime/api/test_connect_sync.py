"""The blocking client: what it does like `Client`, where it runs, how it is interrupted, and how it is closed."""

from __future__ import annotations

import asyncio
import gc
import inspect
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from mcpgen import (
    Change,
    Client,
    ClientContext,
    ClientLimits,
    Context,
    RequestRefused,
    RequestTimedOut,
    Server,
    ServerExited,
    SyncChanges,
    SyncClient,
    TransportClosed,
    UnsupportedByPeer,
    UsageError,
    connect,
    connect_sync,
)
from mcpgen.generated.registry import REVISIONS
from mcpgen.runtime.protocol.newest import methods, models
from tests.patience import PATIENCE_SECONDS

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.slow

server = Server("blocked", version="1.0", instructions="Wait.")

revisions = pytest.mark.parametrize("revision", [each.label for each in REVISIONS])


@server.tool
def add(a: int, b: int) -> int:
    return a + b


@server.tool
async def slow(ctx: Context) -> str:
    await ctx.progress(1, 2, "half")
    await anyio.sleep_forever()
    return "never"


@server.tool
async def ask(ctx: Context) -> str:
    return str(
        (await ctx.elicit("Your size?", {"type": "object", "properties": {"size": {"type": "integer"}}})).content
    )


@server.tool
async def steps(ctx: Context) -> str:
    await ctx.progress(1, 2, "half")
    return "done"


@server.tool
async def change(ctx: Context) -> str:
    await ctx.tools_changed()
    return "changed"


@server.prompt
def greet(name: str) -> str:
    return f"Greet {name}."


@server.resource("x:text")
def text() -> str:
    return "hi"


@pytest.fixture(autouse=True)
def no_thread_is_left() -> object:
    before = threading.active_count()
    yield
    gc.collect()
    deadline = time.monotonic() + PATIENCE_SECONDS
    while threading.active_count() > before and time.monotonic() < deadline:
        time.sleep(0.01)  # the end of an event loop does not wait until the threads of its functions have ended
    assert before >= threading.active_count()


@revisions
def test_every_request_waits_for_its_result(revision: str) -> None:
    with connect_sync(server, revisions=[revision]) as client:
        assert isinstance(client, SyncClient)
        assert ("blocked", revision) == (client.server.name if client.server else None, client.revision)
        assert [models.TextContent(text='{"result":5}')] == client.call_tool("add", {"a": 2, "b": 3}).content
        assert "greet" == client.list_prompts().prompts[0].name
        assert isinstance(client.get_prompt("greet", {"name": "Ann"}).messages[0].content, models.TextContent)
        assert isinstance(client.read_resource("x:text").contents[0], models.TextResourceContents)
        assert ["add", "slow", "ask", "steps", "change"] == [each.name for each in client.tools()]
        assert [] == list(client.resource_templates())
        assert client.request_json("tools/list")["tools"]
        listed = client.request(methods.LIST_TOOLS, models.PaginatedRequestParams(meta=client.meta))
        assert isinstance(listed, models.ListToolsResult)
        client.ping()


def test_it_has_each_method_of_a_client_with_its_signature() -> None:
    public = {name for name in dir(Client) if not name.startswith("_")}

    assert public - {"methods"} == {name for name in dir(SyncClient) if not name.startswith("_")}
    for name in sorted(public - {"methods", "close"}):
        mine, theirs = getattr(SyncClient, name), getattr(Client, name)
        if isinstance(theirs, property):
            assert (mine.__doc__, mine.fget.__annotations__) == (theirs.__doc__, theirs.fget.__annotations__)
        else:
            assert list(inspect.signature(mine).parameters) == list(inspect.signature(theirs).parameters)
            assert not inspect.iscoroutinefunction(mine)


def test_it_takes_the_options_of_connect() -> None:
    options = dict(inspect.signature(connect).parameters)
    del options["native_revision"]

    assert list(options) == list(inspect.signature(connect_sync).parameters)


def test_errors_are_those_of_a_client() -> None:
    with connect_sync(server, revisions=["2025-11-25"]) as client:
        with pytest.raises(RequestRefused, match="Unknown tool"):
            client.call_tool("missing")
        with pytest.raises(RequestTimedOut):
            client.call_tool("slow", timeout_seconds=0.05)
        with pytest.raises(UsageError, match="did you mean `timeout_seconds`"):
            client.call_tool("add", timeout=1)  # type: ignore[call-arg]  # wrong on purpose
        assert "refused" in _traceback_of_refusal(client)


def _traceback_of_refusal(client: SyncClient) -> str:
    try:
        client.get_prompt("missing")
    except RequestRefused:
        return "refused"
    return "answered"


def test_wrong_arguments_and_failed_connections_leave_no_thread() -> None:
    with pytest.raises(UsageError, match="connect_sync\\(\\) has no option `elicitt`"):
        connect_sync(server, elicitt=None)  # type: ignore[call-arg]  # wrong on purpose
    with pytest.raises(UsageError):
        connect_sync(["no-such-program"])
    with pytest.raises(ServerExited):
        connect_sync([sys.executable, "-c", "raise SystemExit(3)"])


def test_it_works_inside_of_a_running_loop() -> None:
    async def cell() -> Any:
        with connect_sync(server) as client:
            return client.call_tool("add", {"a": 2, "b": 3}).structured_content

    assert {"result": 5} == asyncio.run(cell())


@pytest.mark.parametrize("revision", ["2025-06-18", "2025-11-25", "2026-07-28"])  # the others have no elicitation
def test_functions_that_answer_may_be_plain_or_async_and_run_in_the_thread_of_the_client(revision: str) -> None:
    threads: list[threading.Thread] = []

    def plain(params: models.ElicitRequestFormParams, context: ClientContext) -> models.ElicitResult:
        threads.append(threading.current_thread())
        return models.ElicitResult(action="accept", content={"size": 42})

    async def awaited(params: models.ElicitRequestFormParams, context: ClientContext) -> models.ElicitResult:
        await context.client.ping()
        return plain(params, context)

    for function in (plain, awaited):
        with connect_sync(server, elicit=function, revisions=[revision]) as client:
            (block,) = client.call_tool("ask").content
            assert models.TextContent(text="{'size': 42}") == block

    assert threading.current_thread() not in threads


def test_an_error_in_a_function_that_answers_reaches_the_caller_where_a_client_raises_it() -> None:
    def fail(params: models.ElicitRequestFormParams, context: ClientContext) -> models.ElicitResult:
        raise LookupError("the user is gone")

    with connect_sync(server, elicit=fail, revisions=["2026-07-28"]) as client:
        with pytest.raises(LookupError, match="the user is gone"):
            client.call_tool("ask")
        assert {"result": 5} == client.call_tool("add", {"a": 2, "b": 3}).structured_content
    with connect_sync(server, elicit=fail, revisions=["2025-11-25"]) as client:
        assert client.call_tool("ask").is_error is True


@pytest.mark.parametrize("failure", [SystemExit(3), KeyboardInterrupt()], ids=["exit", "interrupt"])
def test_a_function_that_ends_the_program_ends_its_call_and_not_the_client(failure: BaseException) -> None:
    def leave(params: models.ElicitRequestFormParams, context: ClientContext) -> models.ElicitResult:
        raise failure

    with connect_sync(server, elicit=leave, revisions=["2026-07-28"]) as client:
        with pytest.raises(type(failure)):
            client.call_tool("ask")
        client.ping()


def test_a_function_that_calls_the_blocking_client_is_told_so() -> None:
    def call_back(params: models.ElicitRequestFormParams, context: ClientContext) -> models.ElicitResult:
        client.ping()
        raise AssertionError

    def close_it(progress: float, total: float | None, message: str | None) -> None:
        client.close()

    with connect_sync(server, elicit=call_back, revisions=["2026-07-28"]) as client:
        with pytest.raises(UsageError, match=r"such as `elicit` or `log`, write `async def` and use `context\.client`"):
            client.call_tool("ask")
        with pytest.raises(UsageError, match="such as `on_progress`, do not call the client"):
            client.call_tool("steps", on_progress=close_it)
        client.ping()


def test_progress_is_reported() -> None:
    seen: list[object] = []
    with connect_sync(server) as client:
        client.call_tool("steps", on_progress=lambda *each: seen.append(each))

    assert [(1, 2, "half")] == seen


@revisions
def test_listening_is_a_context_manager_and_changes_are_iterated(revision: str) -> None:
    with connect_sync(server, revisions=[revision]) as client:
        changes = client.listen(tools=True)
        assert isinstance(changes, SyncChanges)
        assert "not opened" in repr(changes)
        with changes:
            assert changes.acknowledged.tools_list_changed
            client.call_tool("change")
            for each in changes:
                assert Change("tools") == each
                break
            assert not changes.is_closed
        with pytest.raises(UsageError, match="has nothing to listen for"):
            client.listen()


def test_listening_ends_with_the_client() -> None:
    client = connect_sync(server)
    with client.listen(tools=True) as changes:
        client.close()
        with pytest.raises(TransportClosed):
            next(iter(changes))


@pytest.mark.parametrize(
    ("revision", "wanted", "what", "changes"),
    [
        ("2025-11-25", {"tools": True}, "listen(…)", "these changes"),
        ("2025-11-25", {"uris": ["a:b"]}, "resources/subscribe", "updates of resources"),
        ("2026-07-28", {"tools": True}, "subscriptions/listen", "these changes"),
        ("2026-07-28", {"uris": ["a:b"]}, "subscriptions/listen", "updates of resources"),
    ],
)
def test_an_unsupported_listen_is_refused(revision: str, wanted: dict[str, Any], what: str, changes: str) -> None:
    server = Server("empty")
    with (
        connect_sync(server, revisions=[revision]) as client,
        pytest.raises(UnsupportedByPeer) as caught,
        client.listen(**wanted),
    ):
        raise AssertionError

    reason = f"the server has not declared that it reports {changes}"
    assert f"{what} cannot be sent to this peer of {revision}: {reason}" == str(caught.value)


def test_a_closed_client_says_so_and_can_be_closed_again() -> None:
    client = connect_sync(server)
    assert repr(client).startswith("<SyncClient to 'blocked': blocked 1.0, revision 2026-07-28, open>")
    client.close()
    client.close()

    assert repr(client).endswith("closed>")
    with pytest.raises(TransportClosed):
        client.ping()


def test_several_threads_share_a_client() -> None:
    results: list[object] = []
    with connect_sync(server) as client:

        def work(number: int) -> None:
            results.append(client.call_tool("add", {"a": number, "b": 0}).structured_content)

        threads = [threading.Thread(target=work, args=(each,)) for each in range(8)]
        for each in threads:
            each.start()
        for each in threads:
            each.join(PATIENCE_SECONDS)

    assert [{"result": each} for each in range(8)] == sorted(results, key=str)


def test_an_iteration_may_stop_early() -> None:
    with connect_sync(server) as client:
        assert "add" == next(iter(client.tools())).name
        client.ping()


SERVER = """
import os, sys
from mcpgen import Context, Server
import anyio

server = Server("child")

@server.tool
async def slow(ctx: Context) -> str:
    try:
        await ctx.progress(1)
        await anyio.sleep_forever()
    finally:
        open(sys.argv[1] + ".cancelled", "w").close()
    return ""

@server.tool
def pid() -> str:
    return str(os.getpid())

server.run()
"""


def program(tmp_path: Path, body: str) -> list[str]:
    (tmp_path / "server.py").write_text(SERVER, encoding="utf-8")
    path = tmp_path / "client.py"
    start = f"""
        import signal, sys
        from mcpgen import connect_sync
        signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
        target = [sys.executable, {str(tmp_path / "server.py")!r}, {str(tmp_path / "mark")!r}]
    """
    path.write_text(textwrap.dedent(start) + textwrap.dedent(body), encoding="utf-8")
    return [sys.executable, str(path)]


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.parametrize("end", ["", "sys.exit(0)", "raise ValueError('of the script')"])
def test_a_client_that_is_not_closed_is_closed_at_exit(tmp_path: Path, end: str) -> None:
    body = f"""
        client = connect_sync(target)
        print(client.call_tool("pid").content[0].text, flush=True)
        {end}
    """
    done = subprocess.run(
        program(tmp_path, body), check=False, capture_output=True, encoding="utf-8", timeout=PATIENCE_SECONDS
    )

    assert ("ValueError" in end) == bool(done.returncode)
    assert ("ValueError" in end) == bool(done.stderr), done.stderr
    assert not is_alive(int(done.stdout))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the platform has no fork")
def test_to_a_forked_process_a_client_is_closed(tmp_path: Path) -> None:
    body = """
        import os
        from mcpgen import TransportClosed
        client = connect_sync(target)
        client.ping()
        child = os.fork()
        if not child:
            try:
                client.ping()
            except TransportClosed as error:
                print(error, flush=True)
            sys.exit(0)  # which closes the client
        print(os.waitpid(child, 0)[1], flush=True)
        client.ping()
    """
    with subprocess.Popen(
        program(tmp_path, body), stdout=subprocess.PIPE, encoding="utf-8", start_new_session=True
    ) as process:
        try:
            shown = process.communicate(timeout=PATIENCE_SECONDS)[0]
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # a child that waits for ever, too

    error = "the client belongs to the process that was forked; connect again in this one"
    assert (0, f"{error}\n0\n") == (process.returncode, shown)


def test_a_signal_handler_may_close_a_client_that_is_being_closed() -> None:
    client = connect_sync(server)
    client._thread._stack.callback(client.close)  # in the middle of it, as a handler does
    closing = threading.Thread(target=client.close, daemon=True)
    closing.start()
    closing.join(PATIENCE_SECONDS)

    assert not closing.is_alive()


def test_an_interrupt_cancels_the_call_and_closes_the_client(tmp_path: Path) -> None:
    body = """
        try:
            with connect_sync(target) as client:
                print(client.call_tool("pid").content[0].text, flush=True)
                try:
                    client.call_tool("slow", on_progress=lambda *_: print("started", flush=True))
                except KeyboardInterrupt:
                    client.ping()
                    print("interrupted", flush=True)
                    raise
        except KeyboardInterrupt:
            print("closed", flush=True)
    """
    with subprocess.Popen(program(tmp_path, body), stdout=subprocess.PIPE, encoding="utf-8") as process:
        assert process.stdout is not None
        pid = int(process.stdout.readline())
        assert "started\n" == process.stdout.readline()
        process.send_signal(signal.SIGINT)
        rest = process.communicate(timeout=PATIENCE_SECONDS)[0]

    assert (0, "interrupted\nclosed\n") == (process.returncode, rest)
    assert (tmp_path / "mark.cancelled").exists()
    assert not is_alive(pid)


def test_a_server_that_dies_fails_the_waiting_call(tmp_path: Path) -> None:
    program(tmp_path, "")
    limits = ClientLimits(stdin_seconds=0.2, term_seconds=0.3)
    with connect_sync([sys.executable, str(tmp_path / "server.py"), "x"], limits=limits) as client:
        (block,) = client.call_tool("pid").content
        assert isinstance(block, models.TextContent)
        os.kill(int(block.text), signal.SIGKILL)
        with pytest.raises(ServerExited):
            _until_it_fails(client.ping)


def _until_it_fails(function: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        function()
