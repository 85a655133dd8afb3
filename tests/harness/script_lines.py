"""What clients and servers write, as lines of scripts, to try the judge of clients on."""

from __future__ import annotations

# Scripts: what the client writes begins with "> ", what the server writes with "< ".
ALL = (
    '{"logging":{},"tools":{"listChanged":true},"prompts":{},"resources":{"subscribe":true},"completions":{},'
    '"tasks":{"list":{},"cancel":{},"requests":{"tools":{"call":{}}}}}'
)
CLIENT = {
    "2024-11-05": '{"roots":{"listChanged":true},"sampling":{}}',
    "2025-03-26": '{"roots":{"listChanged":true},"sampling":{}}',
    "2025-06-18": '{"roots":{"listChanged":true},"sampling":{},"elicitation":{}}',
    "2025-11-25": (
        '{"roots":{"listChanged":true},"sampling":{"tools":{}},"elicitation":{"form":{},"url":{}},'
        '"tasks":{"requests":{"elicitation":{"create":{}}}}}'
    ),
}
NO_HANDSHAKE = '< {"jsonrpc":"2.0","id":"h","error":{"code":-32602,"message":"no"}}\n'
RELATED = '"io.modelcontextprotocol/related-task":{"taskId":"k"}'
READY = '> {"jsonrpc":"2.0","method":"notifications/initialized"}\n'


def offer(revision: str = "2025-11-25", client_can: str | None = None) -> str:
    """Return the line that begins a handshake."""
    can = CLIENT.get(revision, "{}") if client_can is None else client_can
    return (
        f'> {{"jsonrpc":"2.0","id":"h","method":"initialize","params":{{"protocolVersion":"{revision}",'
        f'"capabilities":{can},"clientInfo":{{"name":"c","version":"1"}}}}}}\n'
    )


def agreed(revision: str = "2025-11-25", server_can: str = ALL) -> str:
    """Return the line that ends it."""
    return (
        f'< {{"jsonrpc":"2.0","id":"h","result":{{"protocolVersion":"{revision}","capabilities":{server_can},'
        f'"serverInfo":{{"name":"s","version":"1"}}}}}}\n'
    )


def opened(revision: str = "2025-11-25", client_can: str | None = None, server_can: str = ALL) -> str:
    """Return the script of a handshake."""
    return offer(revision, client_can) + agreed(revision, server_can) + READY


PING = '> {"jsonrpc":"2.0","id":1,"method":"ping"}\n'
PONG = '< {"jsonrpc":"2.0","id":1,"result":{}}\n'
CALL = '> {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","_meta":{"progressToken":"t"}}}\n'
CALLED = '< {"jsonrpc":"2.0","id":1,"result":{"content":[]}}\n'
REFUSED = '< {"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"no"}}\n'
CANCEL = '> {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1,"reason":"late"}}\n'
CANCELLED = '< {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"s"}}\n'
SUBSCRIBE = '> {"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":"a:b"}}\n'
UNSUBSCRIBE = '> {"jsonrpc":"2.0","id":2,"method":"resources/unsubscribe","params":{"uri":"a:b"}}\n'


# --- what servers ask of clients that shook hands


def asks(method: str, params: str = "", identity: str = '"s"') -> str:
    """Return the line of a server's request."""
    rest = f',"params":{{{params}}}' if params else ""
    return f'< {{"jsonrpc":"2.0","id":{identity},"method":"{method}"{rest}}}\n'


def answers(result: str, identity: str = '"s"') -> str:
    """Return the line of a client's result."""
    return f'> {{"jsonrpc":"2.0","id":{identity},"result":{result}}}\n'


def refuses(code: int, identity: str = '"s"') -> str:
    """Return the line of a client's error."""
    return f'> {{"jsonrpc":"2.0","id":{identity},"error":{{"code":{code},"message":"no"}}}}\n'


FIELDS = (
    '"message":"m","requestedSchema":{"type":"object","properties":{"name":{"type":"string"},'
    '"size":{"type":"string","enum":["s","m"]}},"required":["name"]}'
)
PAGE = '"mode":"url","message":"m","elicitationId":"e","url":"https://example.com/"'
SAMPLE = '"messages":[{"role":"user","content":{"type":"text","text":"hi"}}],"maxTokens":9'
TOOLS = SAMPLE + ',"tools":[{"name":"x","inputSchema":{"type":"object"}}]'
FORM = asks("elicitation/create", FIELDS)
URL = asks("elicitation/create", PAGE)
ROOTS = asks("roots/list", '"_meta":{"progressToken":"r"}')
FORM_TASK = asks("elicitation/create", FIELDS + ',"task":{"ttl":9},"_meta":{"progressToken":"r"}')
TEXT = '{"role":"assistant","model":"m","content":{"type":"text","text":"hi"}}'
USE_BLOCK = '{"type":"tool_use","id":"u","name":"x","input":{}}'
USE = f'{{"role":"assistant","model":"m","content":{USE_BLOCK}}}'


def task(status: str = "working") -> str:
    """Return the members of a task."""
    return (
        f'"taskId":"k","status":"{status}","createdAt":"2026-01-01T00:00:00Z",'
        '"lastUpdatedAt":"2026-01-01T00:00:00Z","ttl":9'
    )


def status(value: str) -> str:
    """Return the line in which a client tells of its task."""
    return f'> {{"jsonrpc":"2.0","method":"notifications/tasks/status","params":{{{task(value)}}}}}\n'


def progress(value: str) -> str:
    """Return the line in which a client tells of progress."""
    return (
        f'> {{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":"r","progress":{value}}}}}\n'
    )


TASK_MADE = answers(f'{{"task":{{{task()}}}}}')
TASK_CALL = '> {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","task":{}}}\n'
LIST = '> {"jsonrpc":"2.0","id":"l","method":"tools/list"}\n'


def listed(support: str) -> str:
    """Return a list of one tool that may become a task, or not."""
    return (
        '< {"jsonrpc":"2.0","id":"l","result":{"nextCursor":"p","tools":[{"name":"x","inputSchema":{"type":"object"}'
        f"{support}}}]}}}}\n"
    )


# --- without a handshake

NAMED = ',"io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"}'
CAN = '{"roots":{},"sampling":{},"elicitation":{}}'
SIGNED = '"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"s","version":"1"}}'


def stated(
    method: str,
    params: str = "",
    identity: str = "1",
    client_can: str = CAN,
    meta: str = NAMED,
) -> str:
    """Return the line of a request that states its revision."""
    return (
        f'> {{"jsonrpc":"2.0","id":{identity},"method":"{method}","params":{{{params + "," if params else ""}'
        f'"_meta":{{"io.modelcontextprotocol/protocolVersion":"2026-07-28",'
        f'"io.modelcontextprotocol/clientCapabilities":{client_can}{meta}}}}}}}\n'
    )


PROBE = stated("server/discover")


def discovered(supported: str = '"2026-07-28"', server_can: str = '{"tools":{},"prompts":{}}') -> str:
    """Return the answer to the probe."""
    return (
        f'< {{"jsonrpc":"2.0","id":1,"result":{{"resultType":"complete","supportedVersions":[{supported}],'
        f'"capabilities":{server_can},"ttlMs":0,"cacheScope":"public",{SIGNED}}}}}\n'
    )


def unsupported(supported: str) -> str:
    """Return the answer to the probe of a server that does not speak its revision."""
    return (
        '< {"jsonrpc":"2.0","id":1,"error":{"code":-32022,"message":"no",'
        f'"data":{{"supported":[{supported}],"requested":"2026-07-28"}}}}}}\n'
    )


LEGACY = '< {"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"no"}}\n'
LISTEN = stated("subscriptions/listen", '"notifications":{"toolsListChanged":true}')
STATE = ',"requestState":"1"'
FORM_INPUT = f'{{"method":"elicitation/create","params":{{{FIELDS}}}}}'
ROOTS_INPUT = '{"method":"roots/list"}'


def demanded(requests: str = "", state: str = STATE, identity: str = "1") -> str:
    """Return the demand for input that answers a request."""
    inputs = f',"inputRequests":{{{requests}}}' if requests else ""
    return f'< {{"jsonrpc":"2.0","id":{identity},"result":{{"resultType":"input_required"{inputs}{state},{SIGNED}}}}}\n'


def retried(responses: str = "", state: str = STATE, identity: str = "2", **others: str) -> str:
    """Return the line of a retry."""
    inputs = f',"inputResponses":{{{responses}}}' if responses else ""
    return stated("tools/call", f'"name":"x"{inputs}{state}', identity, **others)


def first(**others: str) -> str:
    """Return the line of what is retried."""
    return stated("tools/call", '"name":"x"', **others)


NAME_GIVEN = '"a":{"action":"accept","content":{"name":"n"}}'
ROOTS_GIVEN = '"b":{"roots":[{"uri":"file:///r"}]}'
BOTH = f'"a":{FORM_INPUT},"b":{ROOTS_INPUT}'
