"""Paths that try to leave the place that a template names, read from end to end in every revision.

Spec: 2026-07-28, server/resources, "Security Considerations"; RFC 3986, section 6.2.2.3; RFC 6570.
"""

from __future__ import annotations

import json

import pytest

from mcpgen import Limits
from tests.faults.faulty_handlers import Guest
from tests.specification.citation import LABELS
from tests.specification.server.revision_client import client

pytestmark = pytest.mark.anyio

ESCAPES = (
    "..",
    "../x",
    "a/../../x",
    "a/..",
    "./x",
    "a/./x",
    "/etc/passwd",
    "//etc/passwd",
    "%2e%2e/x",
    "%2E./x",
    ".%2e%2fx",
    "..%2fx",
    "..%5cx",
    "..\\x",
    "a\\..\\..\\x",
    "%252e%252e/x",
    "%25252e%25252e/x",
    "%2525252525252e./x",
    "%c0%ae%c0%ae/x",
    "%e0%80%ae./x",
    "%ef%bc%8e%ef%bc%8e/x",
    "\uff0e\uff0e/x",
    "\u2025/x",
    "a\uff0f..\uff0fx",
    "a%00.txt",
    "a\x00b",
    "a%0ab",
    "a%1b[31m",
    "C:/x",
    "C:x",
    "c%3a/x",
    "%2fetc/passwd",
    "%5c%5chost%5cshare",
    "\\\\host\\share",
    ".. /x",
    "...%20/x",
    "..;/x".replace(";", "%00"),
    "%",
    "%zz",
    "%u002e%u002e/x",
    "a%ff",
    "",
)
HARMLESS = ("a", "a/b/c", "a.b", "..a", "a..", ".hidden", "a b", "ä", "a%20b", "a%25b", "x" * 5000, "ab:c")


# Revisions do not differ in how a URI is matched; eras do in how it arrives.
of_each_era = pytest.mark.parametrize("revision", [LABELS[0], LABELS[-1]])


def uri(before: str, value: str, behind: str = "") -> str:
    return f'"uri":{json.dumps(before + value + behind)}'


@of_each_era
@pytest.mark.parametrize("path", ESCAPES, ids=ascii)
async def test_a_path_that_leaves_its_place_names_nothing(path: str, revision: str) -> None:
    async with client(Guest().server, revision) as peer:
        for given in (uri("file:///srv/", path), uri("note://", path, "/text"), uri("list://all/", path)):
            error = await peer.error("resources/read", given)
            assert error["code"] == (-32602 if peer.is_stateless else -32002)
            assert error["data"].keys() == {"uri"}


@of_each_era
@pytest.mark.parametrize("path", HARMLESS, ids=lambda path: ascii(path)[:20])
async def test_a_path_that_stays_is_read(path: str, revision: str) -> None:
    async with client(Guest().server, revision) as peer:
        result = await peer.result("resources/read", uri("file:///srv/", path))

        assert result["contents"][0]["text"].startswith("path ")


@of_each_era
@pytest.mark.parametrize(
    "wrong",
    [
        "FILE:///srv/a",
        "file:///SRV/a",
        "file://host/srv/a",
        "file:/srv/a",
        "file:///srv//a",
        "file:///srv/x/../a/..",
        "file:///other/a",
        "file:///srv",
        "file:///srv/",
        " file:///srv/a",
        "file:///srv/a\n",
        "note:///text",
        "note://a/b/text",
        "note://a%2fb/text",
        "note://a?x=y/text",
        "note://a#b/text",
        "list://all",
        "list://all/a//b",
        "list://all/a/%2e%2e/b",
        "list://all/a%2fb",
        "file:///srv/" + "a" * 1_000_000,
        "file:///srv/" + "a/" * 500_000,
        "note://" + "a" * 1_000_000 + "/text",
        "x" * 1_000_000,
        "",
        "\x00",
    ],
    ids=lambda each: ascii(each)[:30],
)
async def test_what_is_of_no_template_is_not_found(wrong: str, revision: str) -> None:
    async with client(Guest().server, revision) as peer:
        error = await peer.error("resources/read", uri("", wrong))

        is_too_long = len(wrong) > Limits().max_uri_chars
        assert error["code"] == (-32602 if peer.is_stateless or is_too_long else -32002)
        assert ("max_uri_chars" in error["message"]) == is_too_long
        assert len(json.dumps(error)) < 4000
