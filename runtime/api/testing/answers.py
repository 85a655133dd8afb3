"""Scripted answers to elicitation and sampling."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from mcpgen.runtime.errors import RequestError, UsageError
from mcpgen.runtime.protocol.newest import ErrorCode, models

if TYPE_CHECKING:
    from mcpgen.runtime.client.base_client import ClientContext

__all__ = ["Answer", "Answers", "UnscriptedRequest"]

Answer: TypeAlias = Mapping[str, Any] | str | models.ElicitResult | models.CreateMessageResult | Exception
"""One scripted answer.

To elicitation: the content of the form, which is then accepted; ``accept``, ``decline`` or ``cancel``; or an
`ElicitResult`. To sampling: the text of the model, or a `CreateMessageResult`. To both: an exception to raise.
"""

Question: TypeAlias = models.ElicitRequestFormParams | models.ElicitRequestURLParams | models.CreateMessageRequestParams


class UnscriptedRequest(RequestError, AssertionError):  # noqa: N818 (named as those of runtime/errors.py are)
    """The server asked more often than there are answers. The server gets this as an error, and the test fails."""

    def __init__(self, problem: str) -> None:
        super().__init__(ErrorCode.INTERNAL_ERROR, problem)


class Answers:
    """Answers to the requests of a server, in their order: ``connect_as(…, elicit=Answers({"size": 42}))``.

    Pass it as ``elicit``, ``elicit_url`` or ``sample``. `connect_as` fails the test if the server asks more often than
    there are answers, or if an answer is left.

    Args:
        *answers: The answers. `mcpgen.runtime.api.testing.answers.Answer` describes them.

    Attributes:
        questions: The params of the requests so far: `ElicitRequestFormParams`, `ElicitRequestURLParams` or
            `CreateMessageRequestParams`.
    """

    def __init__(self, *answers: Answer) -> None:
        for each in answers:
            if not _is_answer(each):
                raise UsageError(
                    "an answer must be the content of a form, such as {'size': 42}, a text, such as 'decline', an "
                    f"ElicitResult, a CreateMessageResult or an exception, not {each!r}"
                )
        self.questions: list[Any] = []  # of which a test knows the type
        self._answers = answers
        self._wrong = ""  # why an answer did not fit its request

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {len(self.questions)} of {len(self._answers)} used>"

    def __call__(self, params: Question, context: ClientContext) -> models.ElicitResult | models.CreateMessageResult:
        """Return the next answer. It does not depend on *context*.

        Raises:
            UnscriptedRequest: There is none.
            UsageError: The next answer does not fit the request.
        """
        del context
        position = len(self.questions)
        self.questions.append(params)
        if position >= len(self._answers):
            raise UnscriptedRequest(self.problem() or "")
        answer = self._answers[position]
        if isinstance(answer, Exception):
            raise answer
        try:
            if isinstance(params, models.CreateMessageRequestParams):
                return _sampled(answer)
            return _elicited(answer, is_form=isinstance(params, models.ElicitRequestFormParams))
        except UsageError as error:  # a server of a handshake revision gets it as an error, and may go on
            self._wrong = f"answer {position + 1} of the script: {error}"
            raise

    def problem(self) -> str | None:
        """Return what is wrong with the script so far; None if each answer was used, and fitted its request."""
        if self._wrong:
            return self._wrong
        asked, scripted = len(self.questions), len(self._answers)
        counts = f"the server asked {_times(asked, 'time')}, but the script has {_times(scripted, 'answer')}"
        if asked > scripted:
            shown = ", ".join(_shown(each) for each in self.questions[scripted:])
            return f"{counts}; without an answer: {shown}"
        if asked < scripted:
            rest = ", ".join(map(repr, self._answers[asked:]))
            return f"{counts}; unused: {rest}"
        return None


def _times(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


def _is_answer(value: object) -> bool:
    return isinstance(value, (str, Mapping, models.ElicitResult, models.CreateMessageResult, Exception))


def _sampled(answer: object) -> models.CreateMessageResult:
    if isinstance(answer, models.CreateMessageResult):
        return answer
    if isinstance(answer, str):
        content = models.TextContent(text=answer)
        return models.CreateMessageResult(role="assistant", content=content, model="scripted", stop_reason="endTurn")
    raise UsageError(f"the answer to sampling must be a text or a CreateMessageResult, not {answer!r}")


def _elicited(answer: object, *, is_form: bool) -> models.ElicitResult:
    if isinstance(answer, models.ElicitResult):
        return answer
    if isinstance(answer, Mapping) and is_form:
        return models.ElicitResult(action="accept", content=dict(cast("Mapping[str, Any]", answer)))
    if answer == "accept":
        return models.ElicitResult(action="accept", content={}) if is_form else models.ElicitResult(action="accept")
    if answer in ("decline", "cancel"):
        return models.ElicitResult(action="decline" if answer == "decline" else "cancel")
    content = "the content of the form, " if is_form else ""
    raise UsageError(
        f"the answer to elicitation must be {content}'accept', 'decline', 'cancel' or an ElicitResult, not {answer!r}"
    )


def _shown(question: Question) -> str:
    if isinstance(question, models.CreateMessageRequestParams):
        return f"sampling with {len(question.messages)} messages"
    return f"elicitation {question.message!r}"
