"""`Image`, `Audio` and `File`: what becomes of them in tools, prompts and resources, and what is refused."""

from __future__ import annotations

import os
from base64 import b64decode
from typing import TYPE_CHECKING

import pytest
from msgspec import UnsetType

from mcpgen import Audio, File, Image, PromptError, RequestRefused, Server, ToolError, UsageError, connect
from mcpgen.runtime.protocol.newest import models
from mcpgen.runtime.server.functions.media import MAX_MEDIA_BYTES, Media

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.runtime.server.functions.callers import Caller

pytestmark = pytest.mark.anyio

PNG = b"\x89PNG\r\n\x1a\nrest"
WAV = b"RIFF\x00\x00\x00\x00WAVEfmt "


def made(tmp_path: Path, name: str, data: bytes) -> Path:
    path = tmp_path / name
    path.write_bytes(data)
    return path


async def test_a_tool_returns_an_image_from_a_path(caller: Caller, tmp_path: Path) -> None:
    path = made(tmp_path, "dot.PNG", b"whatever")

    @caller.catalogue.tool
    def draw() -> Image:
        return Image(path, annotations=models.Annotations(priority=1.0))

    (block,) = (await caller.call("draw")).content
    (tool,) = (await caller.tools()).tools

    assert (b"whatever", "image/png") == (b64decode(block.data), block.mime_type)
    assert 1.0 == block.annotations.priority
    assert isinstance(tool.output_schema, UnsetType)


async def test_a_tool_returns_texts_blocks_and_media_in_one_list(caller: Caller) -> None:
    @caller.catalogue.tool
    def all_of_it() -> list[str | models.TextContent | Media]:
        return ["a", models.TextContent(text="b"), Image(PNG), Audio(WAV), File(b"x", name="a b.bin")]

    content = (await caller.call("all_of_it")).content

    assert ["text", "text", "image", "audio", "resource"] == [each.type for each in content]
    assert "file:///a%20b.bin" == content[-1].resource.uri
    assert "application/octet-stream" == content[-1].resource.mime_type


@pytest.mark.parametrize(
    ("medium", "expected"),
    [
        (lambda: Image(PNG), "image/png"),
        (lambda: Image(data=b"\xff\xd8\xff\xe0"), "image/jpeg"),
        (lambda: Image(b"?", format="webp"), "image/webp"),
        (lambda: Image(b"?", format=".JPG"), "image/jpeg"),
        (lambda: Image(b"?", format="qoi"), "image/qoi"),
        (lambda: Image(PNG, mime_type="image/apng"), "image/apng"),
        (lambda: Image(b"?", name="x.gif"), "image/gif"),
        (lambda: Audio(WAV), "audio/wav"),
        (lambda: Audio(b"?", format="wav"), "audio/wav"),
        (lambda: Audio(b"ID3"), "audio/mpeg"),
        (lambda: File(b"?", name="a.csv"), "text/csv"),
        (lambda: File(PNG), "image/png"),
        (lambda: File(b"?"), "application/octet-stream"),
        (lambda: File(b"?", format="pdf"), "application/pdf"),
        (lambda: File(b"?", mime_type="text/plain; charset=utf-8"), "text/plain; charset=utf-8"),
    ],
)
def test_the_type_follows_from_what_is_given(medium: Callable[[], Media], expected: str) -> None:
    assert expected == medium().mime_type


@pytest.mark.parametrize(
    ("medium", "reason"),
    [
        (Image, "Image needs either a path or bytes"),
        (lambda: Image("a.png", data=PNG), "Image needs either a path or bytes"),
        (lambda: Image(b""), "Image is empty: `data` has no bytes"),
        (lambda: Image(b"???"), "the MIME type of Image is unknown; set it"),
        (lambda: Image(WAV), "`data` has the MIME type audio/wav, which Image does not take; use Audio"),
        (lambda: Audio(PNG, name="x.png"), "x.png has the MIME type image/png, which Audio does not take; use Image"),
        (lambda: Image(PNG, mime_type="png"), "`mime_type` of Image is 'png'; write one such as"),
        (lambda: Image(PNG, format="image/png"), "`format` of Image is 'image/png'; write one such as 'png'"),
        (lambda: File(b"?", mime_type="text/ plain"), "`mime_type` of File is 'text/ plain'"),
        (lambda: Image(1), "`path` of Image must be a path or bytes, not int"),  # type: ignore[arg-type]  # wrong on purpose
        (lambda: File(data="x"), "`data` of File must be bytes, not str"),  # type: ignore[arg-type]  # wrong on purpose
        (
            lambda: File(b"12345", max_bytes=4),
            "File is too large: `data` has 5 bytes, and `max_bytes` is 4; in a tool or a prompt, return a",
        ),
    ],
)
def test_what_cannot_be_sent_is_refused(medium: Callable[[], Media], reason: str) -> None:
    with pytest.raises(UsageError) as caught:
        medium()

    assert str(caught.value).startswith(reason)


def test_a_path_that_cannot_be_read_is_an_error_of_the_system(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        Image(tmp_path / "missing.png")


@pytest.mark.parametrize("kind", ["folder", "pipe"])
def test_only_regular_files_are_read(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "x.png"
    path.mkdir() if kind == "folder" else os.mkfifo(path)

    with pytest.raises(UsageError, match="not a regular file"):
        Image(path)


def test_an_empty_file_and_one_that_is_too_large_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"Image is empty: x\.png has no bytes"):
        Image(made(tmp_path, "x.png", b""))
    with (tmp_path / "big.bin").open("wb") as big:
        big.truncate(MAX_MEDIA_BYTES + 1)  # a hole: nothing is written
    with pytest.raises(UsageError, match=r"File is too large: big\.bin has 3,096,577 bytes"):
        File(tmp_path / "big.bin")


async def test_the_largest_file_reaches_a_client(tmp_path: Path, revision: str) -> None:
    server = Server("large")
    path = made(tmp_path, "large.bin", b"x" * MAX_MEDIA_BYTES)

    @server.tool
    def large() -> File:
        return File(path)

    async with connect(server, revisions=[revision]) as client:
        (block,) = (await client.call_tool("large")).content

    assert isinstance(block, models.EmbeddedResource)
    assert isinstance(block.resource, models.BlobResourceContents)
    assert MAX_MEDIA_BYTES == len(b64decode(block.resource.blob))


async def test_audio_reaches_clients_of_every_revision(revision: str) -> None:
    server = Server("audio")

    @server.tool
    def say() -> Audio:
        return Audio(WAV)

    async with connect(server, revisions=[revision]) as client:
        (block,) = (await client.call_tool("say")).content

    if revision == "2024-11-05":
        assert isinstance(block, models.EmbeddedResource)
        assert "audio/wav" == block.resource.mime_type
    else:
        assert isinstance(block, models.AudioContent)


async def test_a_prompt_returns_media(caller: Caller) -> None:
    @caller.catalogue.prompt
    def look() -> list[str | Image]:
        return ["What is this?", Image(PNG)]

    messages = (await caller.get("look")).messages

    assert [("user", "text"), ("user", "image")] == [(each.role, each.content.type) for each in messages]


async def test_a_resource_returns_media_at_its_own_uri(caller: Caller, tmp_path: Path) -> None:
    path = made(tmp_path, "notes.txt", "é".encode())

    @caller.catalogue.resource("x:text")
    def utf_8() -> File:
        return File(path)

    @caller.catalogue.resource("x:latin")
    def latin_1() -> File:
        return File("é".encode("latin-1"), mime_type="text/plain")

    @caller.catalogue.resource("x:both")
    def both() -> list[Media]:
        return [Image(PNG), File(path)]

    (text,) = (await caller.read("x:text")).contents
    (latin,) = (await caller.read("x:latin")).contents
    image, also_text = (await caller.read("x:both")).contents

    assert ("é", "x:text", "text/plain") == (text.text, text.uri, text.mime_type)
    assert b"\xe9" == b64decode(latin.blob)
    assert (PNG, "x:both", "image/png", "é") == (b64decode(image.blob), image.uri, image.mime_type, also_text.text)


async def test_text_of_prompt_and_tool_errors_reaches_the_client(revision: str) -> None:
    server = Server("failing")

    @server.prompt
    def prompt() -> str:
        raise PromptError("no such thing")

    @server.prompt
    def other() -> str:
        raise ToolError("no such tool")

    @server.resource("x:failing")
    async def resource() -> str:
        raise ToolError("no such content")

    async with connect(server, revisions=[revision]) as client:
        for attempt, message in (
            (client.get_prompt("prompt"), "no such thing"),
            (client.get_prompt("other"), "no such tool"),
            (client.read_resource("x:failing"), "no such content"),
        ):
            with pytest.raises(RequestRefused) as caught:
                await attempt

            assert (-32603, message) == (caught.value.code, caught.value.message)


def test_a_medium_says_what_it_is() -> None:
    assert "Image(12 bytes, 'image/png')" == repr(Image(PNG))
    assert "File('a.csv', 3 bytes, 'text/csv')" == repr(File(b"a,b", name="a.csv"))
