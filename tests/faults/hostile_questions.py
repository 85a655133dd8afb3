"""What a villain asks a client, and how that is answered."""

from __future__ import annotations

import json

from mcpgen.runtime.protocol.newest import models

SECRET = "hunter2"  # noqa: S105 (must not be told)
FORM = {"mode": "form", "message": "?", "requestedSchema": {"type": "object", "properties": {}}}
DEMAND = {"resultType": "input_required", "inputRequests": {"a": {"method": "elicitation/create", "params": FORM}}}

# The server asks for something, and tells in its answer what it was answered.
ASKING = f"""
revision = greet()
while True:
    call = asked()
    if revision == STATELESS:
        if "inputResponses" in call["params"]:
            text(call, call["params"]["inputResponses"])
        elif call["params"]["name"] == "ask":
            answer(call, json.loads({json.dumps(DEMAND)!r}))
        else:
            text(call, "ok")
        continue
    if call["params"]["name"] == "ask":
        ask("q", "elicitation/create", json.loads({json.dumps(FORM)!r}))
        text(call, json.dumps(answered("q")))
    else:
        text(call, "ok")
"""


async def accept(params: object, context: object) -> models.ElicitResult:
    del params, context
    return models.ElicitResult(action="accept", content={})
