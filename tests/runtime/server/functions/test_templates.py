"""URI templates: what is accepted, what they match, and what strangers cannot reach through them."""

from __future__ import annotations

import ntpath
import posixpath
import string
import time
import unicodedata
from typing import TYPE_CHECKING
from urllib.parse import unquote

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from mcpgen.runtime.errors import UsageError
from mcpgen.runtime.server.functions import uri_values
from mcpgen.runtime.server.functions.uri_matching import expand, match
from mcpgen.runtime.server.functions.uri_template import parse

if TYPE_CHECKING:
    from types import ModuleType


def read(template: str, uri: str) -> dict[str, str | list[str]] | None:
    return match(parse(template), uri)


# --- what is matched


@pytest.mark.parametrize(
    ("template", "uri"),
    [("x://s{?q*}", "x://s?" + "&".join(["q=1"] * 501)), ("x://{/path*}", "x:///" + "a/" * 500 + "a")],
)
def test_a_uri_of_thousands_of_values_matches_nothing(template: str, uri: str) -> None:
    """Each takes some time to decode: a URI of 8 KiB stopped the server for half a second."""
    assert read(template, uri) is None
    shorter = read(template, uri.rpartition("&")[0] or uri.removesuffix("/a"))
    assert shorter is not None
    assert [500] == [len(each) for each in shorter.values()]


@pytest.mark.parametrize(
    ("template", "uri", "expected"),
    [
        ("x://{a}", "x://1", {"a": "1"}),
        ("x://{a}/b/{c}", "x://1/b/2", {"a": "1", "c": "2"}),
        ("x://{a}", "x://a%20b%C3%A9%25", {"a": "a bé%"}),
        ("x://{a}", "x://é", {"a": "é"}),
        ("x://é/{a}/ü", "x://é/b/ü", {"a": "b"}),
        ("x://é/{a}/ü", "x://%C3%A9/b/%C3%BC", {"a": "b"}),
        ("x://{a}", "x://me@home:8", {"a": "me@home:8"}),
        ("x://{a,b}", "x://1,2", {"a": "1", "b": "2"}),
        ("x://{name}.{ext}", "x://a.tar.gz", {"name": "a.tar", "ext": "gz"}),
        ("x://f{.ext}", "x://f.txt", {"ext": "txt"}),
        ("x:/{/a,b}", "x://1/2", {"a": "1", "b": "2"}),
        ("x://f{;a,b}", "x://f;a=1;b=2", {"a": "1", "b": "2"}),
        ("x:///{+path}", "x:///a/b%20c", {"path": "a/b c"}),
        ("x:///{+path}/info", "x:///a/info/b/info", {"path": "a/info/b"}),
        ("x:///{a}/{+path}/{b}", "x:///1/2/3/4", {"a": "1", "path": "2/3", "b": "4"}),
        ("x:///{a}-{+path}-{b}", "x:///1-2/3-4", {"a": "1", "path": "2/3", "b": "4"}),
        ("proxy:{+url}", "proxy:https://h/p?q=1", {"url": "https://h/p?q=1"}),
        ("x://p{#part}", "x://p#a/b", {"part": "a/b"}),
        ("x://{/path*}", "x:///a/b", {"path": ["a", "b"]}),
        ("x://s{?q,n}", "x://s?n=2&q=a%20b", {"q": "a b", "n": "2"}),
        ("x://s{?q,n}", "x://s?n=", {"n": ""}),
        ("x://s{?q,n}", "x://s", {}),
        ("x://s{?q,n}", "x://s?", {}),
        ("x://s{?q*}", "x://s?q=1&q=2", {"q": ["1", "2"]}),
        ("x://{a}{?q}", "x://1?q=2", {"a": "1", "q": "2"}),
    ],
)
def test_values_are_read_out_of_a_uri(template: str, uri: str, expected: dict[str, object]) -> None:
    assert expected == read(template, uri)


@pytest.mark.parametrize(
    ("template", "uri"),
    [
        ("x://{a}", "y://1"),
        ("x://{a}", "x://"),
        ("x://{a}", "x://1/2"),
        ("x://{a}", "x://1?q"),
        ("x://{a}", "x://1#q"),
        ("x://{a}/end", "x://end"),
        ("x://{a}-{b}", "x://1-"),
        ("x://{a}-{+b}", "x://1"),
        ("x://{a}-{+b}", "x://-2"),
        ("x:///{+path}", "x:///"),
        ("x://{/path*}", "x:///a//b"),
        ("x://{/path*}", "x:///a%2Fb/c"),
        ("x://s{?q}", "x://s?other=1"),
        ("x://s{?q}", "x://s?q=1&q=2"),
        ("x://s{?q}", "x://s?q=1#f"),
        ("x://s{?q}", "x://t?q=1"),
    ],
)
def test_what_is_not_of_a_template_does_not_match(template: str, uri: str) -> None:
    assert read(template, uri) is None


# --- what strangers try

SEGMENT = "file:///root/{name}"
PATH = "file:///root/{+path}"
LIST = "file:///root{/path*}"
QUERY = "file:///root{?path}"

TRAVERSALS = [
    "..",
    ".",
    "%2e%2e",
    "%2E.",
    ".%2e",
    "..%20",
    ".. .",
    "%252e%252e",
    "%25252e%25252e",
    "%2525252525252e%2e",
    "\uff0e\uff0e",
    "%EF%BC%8E%EF%BC%8E",
    "\u2025",
    "a%00",
    "%00",
    "a\x00b",
    "a%0Ab",
    "a%C2%85b",
    "a%2500",
    "%252fetc",
    "%255cetc",
    "%2543:x",
    "\uff052e.",
    "%c0%ae%c0%ae",
    "%ed%a0%80",
    "%",
    "%2",
    "%zz",
    "\ud800",
]


@pytest.mark.spec("2024-11-05", "server/resources#security-considerations")
@pytest.mark.spec("2026-07-28", "server/resources#security-considerations")
@pytest.mark.parametrize("template", [SEGMENT, PATH, LIST, QUERY])
def test_no_value_leads_up_or_is_malformed(template: str) -> None:
    prefix = {QUERY: "file:///root?path="}.get(template, "file:///root/")

    assert [] == [attack for attack in TRAVERSALS if read(template, prefix + attack) is not None]


@pytest.mark.spec("2026-07-28", "server/resources#security-considerations")
@pytest.mark.parametrize("template", [PATH, LIST])
@pytest.mark.parametrize("up", ["..", "%2e%2e", "%252e%252e", "\uff052e.", "\uff0e\uff0e", ".. "], ids=ascii)
def test_no_segment_of_a_path_leads_up(template: str, up: str) -> None:
    attacks = [
        attack
        for between in ("/", "\\", "%2f", "%2F", "%5c", "%5C", "%252f", "%255c", "\uff0f", "\uff3c")
        for attack in (
            f"{up}{between}etc",
            f"a{between}{up}",
            f"%25zz{between}{up}{between}etc",
            f"a{between}{up}{between}{up}{between}etc",
        )
    ]

    assert [] == [attack for attack in attacks if read(template, f"file:///root/{attack}") is not None]


@pytest.mark.spec("2026-07-28", "server/resources#security-considerations")
@pytest.mark.parametrize("template", [SEGMENT, QUERY])
@pytest.mark.parametrize("slash", ["/", "\\", "%2F", "%5C", "\uff0f", "%EF%BC%8F", "\uff3c", "\u2100"], ids=ascii)
def test_a_value_that_is_one_segment_holds_no_separator(template: str, slash: str) -> None:
    prefix = {QUERY: "file:///root?path="}.get(template, "file:///root/")

    assert read(template, f"{prefix}a{slash}b") is None


@pytest.mark.spec("2026-07-28", "server/resources#security-considerations")
@pytest.mark.parametrize(
    "absolute", ["/etc", "%2Fetc", "\\etc", "%5C%5Chost%5Cshare", "C:/x", "c%3A%5Cx", "C:", "\uff23:/x"]
)
def test_a_path_below_a_folder_is_not_absolute(absolute: str) -> None:
    assert read(PATH, f"file:///root/{absolute}") is None


@pytest.mark.parametrize("template", ["file://{+path}", "file:{+path}", "notes://{+path}"])
def test_a_path_is_never_absolute_whatever_precedes_it(template: str) -> None:
    assert read(template, template.replace("{+path}", "/etc/passwd")) is None
    assert {"path": "etc/passwd"} == read(template, template.replace("{+path}", "etc/passwd"))


TOKENS = ["..", "%2e", "%2f", "%5c", "%25", "%252e", "%00", "\uff0e", "\uff0f", "\uff05", "\u2025", "%C0%AE", "%3a"]
nasty = st.lists(st.sampled_from([*"./\\%:~ aC", *TOKENS]), min_size=1, max_size=9).map("".join)


def below(paths: ModuleType, path: str) -> bool:
    root = paths.normpath("/srv/root")
    return bool(paths.normpath(paths.join(root, path)).startswith(root + paths.sep))


@pytest.mark.slow
@pytest.mark.spec("2026-07-28", "server/resources#security-considerations", "bf2df650")
@settings(max_examples=1000)
@given(attack=nasty, template=st.sampled_from([SEGMENT, PATH, LIST, QUERY]))
def test_whatever_is_read_stays_below_the_folder_that_it_is_joined_to(attack: str, template: str) -> None:
    prefix = {QUERY: "file:///root?path="}.get(template, "file:///root/")
    found = read(template, prefix + attack)
    if found is None:
        return  # refused: as safe as can be
    (value,) = found.values()
    path = value if isinstance(value, str) else "/".join(value)
    if not path:
        return  # an empty value in a query
    misused = (path, unquote(path), unquote(unquote(path)), unicodedata.normalize("NFKC", path))

    assert all(below(posixpath, each) for each in misused)
    assert all(below(ntpath, each) for each in misused if each[1:2] != ":" or each[0] in string.ascii_letters)


@pytest.mark.parametrize("name", ["...a", "a..b", "..a", "a..", ".hidden", "a.b", "~", "100%25", "%2541", "a%2520b"])
def test_honest_names_with_dots_and_percents_pass(name: str) -> None:
    assert read(SEGMENT, f"file:///root/{name}") is not None


@pytest.mark.parametrize("marks", ["\u0301\u0323", "\u0344", "\u0f73", "\uff9e"])
def test_a_value_has_few_combining_marks_in_a_row(marks: str) -> None:
    """To sort 8,000 of them takes as many steps as half of their square, and a value was normalised several times."""
    count = len(unicodedata.normalize("NFKD", marks))
    assert read(SEGMENT, "file:///root/a" + marks * (30 // count)) is not None
    assert read(SEGMENT, "file:///root/a" + marks * (30 // count + 1)) is None
    assert read(SEGMENT, "file:///root/" + ("a" + marks) * 1000) is not None


def test_each_character_of_a_value_is_taken_apart_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The Arabic one stands for 18: to take apart 8,000 of them took 36 ms for each template that fits."""
    seen: list[str] = []
    count_marks = uri_values._count_marks
    monkeypatch.setattr(uri_values, "_count_marks", lambda each: seen.append(each) or count_marks(each))

    assert read("x://{a}", "x://" + "\ufdfa" * 2000) is not None
    assert ["\ufdfa"] == seen


@pytest.mark.parametrize(
    ("template", "uri"),
    [
        ("x://" + "-".join(f"{{v{i}}}" for i in range(40)) + "!", "x://" + "-" * 8000),
        ("x://" + "a".join(f"{{v{i}}}" for i in range(40)) + "a{+rest}!", "x://" + "a" * 8000),
        ("x:///{+path}/x/{name}", "x:///" + "/x" * 4000),
        ("x:///{+path}", "x:///" + "." * 8000),
        ("x:///{+path}", "x:///" + "%25" * 2600 + "2e"),
        ("x:///{+path}", "x:///" + "\ufdfa" * 8000),
        ("x://s{?q*}", "x://s?" + "q=1&" * 2000 + "q=2"),
    ],
    ids=["dashes", "letters", "overlapping", "dots", "percents", "expanding", "query"],
)
def test_no_uri_takes_long_to_read(template: str, uri: str) -> None:
    parsed = parse(template)
    started = time.process_time()
    match(parsed, uri)

    assert time.process_time() - started < 0.25


# --- what is no template


@pytest.mark.parametrize(
    ("template", "why"),
    [
        ("x://{a", "a { has no }"),
        ("x://a}", "'}' outside of {…}"),
        ("x://{a{b}}", "is not the name of a parameter"),
        ("x://{}", "{} names no variable"),
        ("x://{a}/{a}", "the variable 'a' occurs more than once"),
        ("x://{a}{?a}", "the variable 'a' occurs more than once"),
        ("x://{a}{b}", "nothing separates 'a' and 'b'"),
        ("x://{a}{+b}", "nothing separates 'a' and 'b'"),
        ("x://{+a}/{+b}", "more than one variable can contain '/'"),
        ("x://{+a,b}", "more than one variable can contain '/'"),
        ("x://{a:3}", "shortens the value"),
        ("x://{a*}", "the list a* cannot be matched here"),
        ("x://y/{a*}", "write {/a*} without a / before it, or {?a*}"),  # "x://y/{/a*}" would match "x://y//…" only
        ("x://{/a*,b}", "the list a* cannot be matched here"),
        ("x://{?a}/b", "something follows {?…}"),
        ("x://{?a}{b}", "something follows {?…}"),
        ("x://{?a}{?b}", "write the whole query as one {?…} at the end, such as {?a,b}"),
        ("x://y?z=1{?a}", "it has '?' before {?…}; write the whole query as {?…}"),
        ("x://y#z{?a}", "it has '#' before {?…}"),
        ("x://y{#z}{?a}", "it has '#' before {?…}"),
        ("x://y{&a}", "write the whole query as {?…}"),
        ("x://{a b}", "is not the name of a parameter"),
        ("x://{1}", "is not the name of a parameter"),
        ("x://{a,}", "is not the name of a parameter"),
        ("x://{=a}", "is not the name of a parameter"),
        ("x://a b/{c}", "' ' outside of {…}"),
        ("x://a%zz/{c}", "'%' outside of {…}"),
        ("x://a%{c}", "'%' outside of {…}"),
        ("x://a\n/{c}", "outside of {…}"),
        ("{scheme}://a", "it does not start with a scheme"),
        ("/{path}", "it does not start with a scheme"),
    ],
)
def test_what_cannot_be_matched_is_refused_with_a_reason(template: str, why: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse(template)

    assert why in str(caught.value)
    assert repr(template) in str(caught.value)


# --- expansion: RFC 6570, section 3.2, with values of its section 3.2.1


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("x:{hello}", "x:Hello%20World%21"),
        ("x:{half}", "x:50%25"),
        ("x:{+hello}", "x:Hello%20World!"),
        ("x:{+path}/here", "x:/foo/bar/here"),
        ("x:{+base}index", "x:http://example.com/home/index"),
        ("x:{base}index", "x:http%3A%2F%2Fexample.com%2Fhome%2Findex"),
        ("x:X{#var}", "x:X#value"),
        ("x:{x,y}", "x:1024,768"),
        ("x:X{.x,y}", "x:X.1024.768"),
        ("x:{/var,x}/here", "x:/value/1024/here"),
        ("x:{/list*}", "x:/red/green/blue"),
        ("x:{;x,y}", "x:;x=1024;y=768"),
        ("x:{?x,y}", "x:?x=1024&y=768"),
        ("x:{?x,undef}", "x:?x=1024"),
        ("x:{?list*}", "x:?list=red&list=green&list=blue"),
    ],
)
def test_templates_expand_as_the_rfc_says(template: str, expected: str) -> None:
    values = {
        "hello": "Hello World!",
        "half": "50%",
        "path": "/foo/bar",
        "base": "http://example.com/home/",
        "var": "value",
        "x": "1024",
        "y": "768",
        "list": ["red", "green", "blue"],
    }

    assert expected == expand(parse(template), values)


def test_expansion_needs_every_value_that_no_query_could_miss() -> None:
    with pytest.raises(UsageError, match="has no value for `b`"):
        expand(parse("x:{a}/{b}"), {"a": "1"})


words = st.text(st.characters(codec="utf-8"), min_size=1, max_size=12)


@pytest.mark.slow
@given(a=words, path=st.lists(words, min_size=1, max_size=4), q=words)
def test_what_is_expanded_is_read_back_or_refused(a: str, path: list[str], q: str) -> None:
    template = parse("x://h/{a}{/path*}{?q}")
    values = {"a": a, "path": path, "q": q}
    found = match(template, expand(template, values))

    assert found in (values, None)


@pytest.mark.slow
@given(
    a=st.from_regex(r"[A-Za-z0-9 _é-]{2,9}", fullmatch=True),
    path=st.from_regex(r"[a-z%]{2,4}(/[a-z ]{1,4}){0,3}", fullmatch=True),
)
def test_harmless_values_survive_the_trip(a: str, path: str) -> None:
    assume("%" not in path)
    template = parse("x://h/{a}/{+path}")

    assert {"a": a, "path": path} == match(template, expand(template, {"a": a, "path": path}))
