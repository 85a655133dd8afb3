"""The step to the revision that does not exist: the stubs that a build prints, filled in as its author would."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tests.adapters.sixth import NEW, OLD

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

RENAMES = "renames"

_FRAME = '''"""What {new} brought, in a world where there is one."""

from __future__ import annotations

from typing import Any

from mcpgen.codegen.changes.vocabulary import At, Change, Convert, Default, Drop, Losses, Recode, Refuse, Rename, Step

__all__ = ["STEP"]


def attached_video(block: dict[str, Any], at: At, losses: Losses) -> dict[str, Any]:
    """Return a video as an embedded resource with the same bytes."""
    losses.degraded(at, "A video became an embedded resource.")
    kept = {{key: value for key, value in block.items() if key not in {{"data", "mimeType", "seconds"}}}}
    resource = {{"uri": "attachment:video", "mimeType": block["mimeType"], "blob": block["data"]}}
    return {{**kept, "type": "resource", "resource": resource}}


def video_note(block: dict[str, Any], at: At, losses: Losses) -> dict[str, Any]:
    """Return a text that says which video was there."""
    losses.degraded(at, "A video became a note in words.")
    kept = {{key: value for key, value in block.items() if key not in {{"data", "mimeType", "seconds"}}}}
    return {{**kept, "type": "text", "text": f"[Video left out: {{block['mimeType']}}]"}}


STEP = Step(
    old="{old}",
    new="{new}",
    renames={{
{renames}
    }},
    changes=(
{changes}
    ),
)
'''


class Filled(NamedTuple):
    """What an author writes into a stub."""

    says: str
    replaced: tuple[tuple[str, str], ...] = ()


FILLED: Mapping[str, Filled] = {
    "arm-added ContentBlock[VideoContent]": Filled(
        "Videos may stand in prompts and tool results.", (("Convert(...)", "Convert(attached_video)"),)
    ),
    "arm-added CreateMessageResultContent[VideoContent]": Filled(
        "A model may answer with a video.", (("Convert(...)", "Convert(video_note)"),)
    ),
    "arm-added SamplingMessageContent[VideoContent]": Filled(
        "Videos may stand in sampling messages.", (("Convert(...)", "Convert(video_note)"),)
    ),
    "arm-added SamplingMessageContentBlock[VideoContent]": Filled(
        "Videos may be among the blocks of a sampling message.", (("Convert(...)", "Convert(video_note)"),)
    ),
    "error-added -32050": Filled("A server may say that it has no time."),
    "key-added PromptArgument.secret": Filled(
        "An argument says whether it is a secret; without a word it is none.",
        (("Default(value=...)", "Default(value=False, implied=True)"),),
    ),
    "key-removed ProgressNotificationParams.message": Filled(
        "What progress says is called a note.",
        (
            (
                '"key-removed ProgressNotificationParams.message",',
                '"key-removed ProgressNotificationParams.message", "key-added ProgressNotificationParams.note"',
            ),
            ("up=Drop(),", ""),
            # As the comment in the stub has it.
            ('# up=Rename("note"), down=Rename("message"),', 'up=Rename("note"), down=Rename("message"),'),
        ),
    ),
    "key-removed ServerCapabilities.completions": Filled("No server completes arguments."),
    "request-removed client completion/complete": Filled(
        "A server tells when it is discovered what can be completed.", (("Refuse()", 'Refuse(service="negotiation")'),)
    ),
    "requiredness-changed Tool.description": Filled(
        "Every tool describes itself.", (("Default(value=...)", 'Default(value="")'),)
    ),
}
"""By the difference that a stub covers. Where nothing is replaced, the stub is right as it is."""


def stubs_of(findings: Iterable[Mapping[str, str]]) -> dict[str, str]:
    """Return what there is to paste, by the difference that it covers; entries of ``renames`` by that word."""
    found: dict[str, str] = {}
    for finding in findings:
        where, _, stub = finding["hint"].partition("\n")
        _, _, covered = finding["message"].partition("no declared change covers `")
        found[RENAMES if "renames" in where else covered.partition("`: ")[0]] = stub
    return found


def pasted(stubs: Mapping[str, str]) -> str:
    """Return the module of the step with *stubs* as they are."""
    changes = "\n".join(stub for covered, stub in stubs.items() if covered != RENAMES)
    return _FRAME.format(old=OLD, new=NEW, renames=stubs[RENAMES], changes=changes)


def filled(stubs: Mapping[str, str]) -> dict[str, str]:
    """Return *stubs* with what they leave to the author."""
    done = {RENAMES: stubs[RENAMES]}
    for covered, answer in FILLED.items():
        stub = stubs[covered]
        words = (('says="..."', f'says="{answer.says}"'), ('spec="..."', f'spec="{NEW}, changelog#major-changes"'))
        for blank, text in (*words, *answer.replaced):
            assert stub.count(blank) == 1, (stub, blank)
            stub = stub.replace(blank, text)
        done[covered] = stub
    return done
