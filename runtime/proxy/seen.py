"""What a role has before it, as lines: those that it would see in training, so that a policy reads what was recorded.

case {"order": 1042}
track {"order": 1042} {"status": "lost"}
[triage] track {"order": 1042} {"status": "lost"}      a call of another role
[user] "and hurry"                                     what a user says later
"""

from collections.abc import Iterator

from runtime.proxy.asked import Asked, Called, case_of, value_of
from runtime.proxy.conversations import Conversation
from runtime.proxy.settings import Roles
from runtime.records import ToolCall
from runtime.tools import canonical, heading

UNKNOWN = ToolCall(tool="tool")
"""The call of an answer to which no call is known."""


def seen_by(role: str, asked: Asked, found: Conversation, known: Roles) -> str:
    """What the role sees, line by line."""
    return "\n".join(_lines(role, asked, found, known))


def _lines(role: str, asked: Asked, found: Conversation, known: Roles) -> Iterator[str]:
    calls: dict[str, Called] = {}
    yield f"case {canonical(case_of(asked.spoken))}"
    told = False
    for point, message in zip(asked.beginnings, asked.spoken, strict=True):
        if message.role == "assistant":
            calls |= {c.id: c for c in message.calls}
            yield from _words(role, found.authors.get(point, role), message.text, known)
        elif message.role == "tool":
            called = calls.get(message.answers, Called(message.answers, UNKNOWN))
            author = found.authors.get(called.id, role)
            line = f"{heading(called.call)} {canonical(value_of(message.text))}"
            yield line if author == role else f"[{author}] {line}"
        elif message.role == "user" and told:
            yield f"[user] {canonical(message.text)}"
        told = told or message.role == "user"


def _words(role: str, author: str, text: str, known: Roles) -> Iterator[str]:
    """What another role said. Words that stand for one of the team's calls are that call, and no line."""
    hint = known.roles.get(author)
    if author != role and text and not (hint and hint.text):
        yield f"[{author}] {canonical(text)}"
