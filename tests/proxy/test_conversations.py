"""Which conversation a request belongs to, and who asks."""

import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.proxy.asked import Asked, asked_of, case_of
from runtime.proxy.conversations import Conversation, Conversations
from runtime.proxy.roles import role_of
from runtime.proxy.said import Said, said_of
from runtime.proxy.settings import Roles

HELLO = {"role": "user", "content": "hello"}


def request(*messages: Any, brief: str = "", **more: Any) -> Asked:
    system = [{"role": "system", "content": brief}] if brief else []
    found = asked_of(json.dumps({"model": "m", "messages": [*system, *messages], **more}).encode())
    assert found is not None
    return found


def said(text: str) -> Said:
    return Said(text=text, calls=(), finish="stop")


class Program:
    """Asks in turn, and is answered."""

    def __init__(self, most: int = 100) -> None:
        self.open = Conversations(most)

    def asks(self, role: str, *messages: Any) -> Conversation:
        asked = request(*messages)
        found = self.open.of(asked, role) or self.open.begin(0.0)
        self.open.go_on(found, asked, role, 0.0)
        return found

    def answers(self, found: Conversation, role: str, text: str | None, *messages: Any) -> dict[str, Any]:
        spoken = None if text is None else said(text).spoken()
        self.open.answered(found, role, request(*messages).point, spoken)
        return {"role": "assistant", "content": text}


def test_a_longer_transcript_goes_on_with_the_conversation() -> None:
    """By what was answered in it, whoever asks."""
    program = Program()
    found = program.asks("a", HELLO)
    hi = program.answers(found, "a", "hi", HELLO)
    more = [HELLO, hi, {"role": "user", "content": "and?"}]
    assert program.asks("a", *more) is found
    assert program.asks("b", HELLO, hi) is found


def test_another_role_that_is_asked_the_same_is_in_it_too() -> None:
    """Roles side by side read one case; the same role asked the same again is somebody else's."""
    program = Program()
    found = program.asks("a", HELLO)
    assert program.asks("b", HELLO) is found
    program.answers(found, "a", "hi", HELLO)
    other = program.asks("a", HELLO)
    assert other is not found
    assert program.asks("b", HELLO) is other


def test_what_came_to_nothing_is_asked_again() -> None:
    """A retry is the same conversation; the same question while the first is open is another one."""
    program = Program()
    found = program.asks("a", HELLO)
    twin = program.asks("a", HELLO)
    assert twin is not found
    program.answers(found, "a", None, HELLO)
    assert program.asks("a", HELLO) is found


def test_examples_at_the_beginning_are_no_conversation() -> None:
    """Programs that begin every question with the same examples have as many conversations as questions."""
    program = Program()
    examples = [HELLO, {"role": "assistant", "content": "hi"}]
    first = [*examples, {"role": "user", "content": "one"}]
    program.answers(program.asks("a", *first), "a", "1", *first)
    second = [*examples, {"role": "user", "content": "two"}]
    assert program.asks("a", *second) is not program.open.all()[0]
    assert len(program.open) == 2


def test_an_answer_that_the_program_changed_still_goes_on() -> None:
    """What follows a known question is an answer, though not word for word."""
    program = Program()
    found = program.asks("a", HELLO)
    program.answers(found, "a", "hi  ", HELLO)
    assert program.asks("a", HELLO, {"role": "assistant", "content": "hi"}, HELLO) is found


def test_there_is_room_for_so_many() -> None:
    """The one that was silent longest is forgotten, unless it is being answered; nothing of it stays behind."""
    program = Program(most=2)
    asks = [{"role": "user", "content": str(n)} for n in range(4)]
    first, second, *_ = found = [program.asks("a", ask) for ask in asks]
    program.answers(second, "a", "yes", asks[1])
    program.answers(found[2], "a", "yes", asks[2])
    assert program.open.forgotten() == [second, found[2]]
    assert program.open.all() == [first, found[3]]
    for left in program.open.all():
        program.answers(left, "a", "yes", asks[found.index(left)])
    assert program.open.silent(1.0) == [first, found[3]]
    assert not program.open._at


@given(st.lists(st.sampled_from(["a", "b", "c"]), min_size=1, max_size=6))
def test_beginnings_have_names_that_tell_them_apart(texts: Sequence[str]) -> None:
    """The name of a beginning depends on all of it, and on nothing behind it."""
    messages = [{"role": "user", "content": t} for t in texts]
    names = request(*messages).beginnings
    assert len(set(names)) == len(texts)
    assert request(*messages[:-1], {"role": "user", "content": "other"}).beginnings[:-1] == names[:-1]


def test_ids_and_spacing_are_no_part_of_what_was_said() -> None:
    """A program may number calls anew and write arguments as it likes."""

    def calling(name: str, arguments: str) -> Asked:
        call = {"id": name, "type": "function", "function": {"name": "f", "arguments": arguments}}
        return request(HELLO, {"role": "assistant", "content": None, "tool_calls": [call]})

    assert calling("1", '{"a":1, "b":2}').point == calling("2", '{"b": 2,"a": 1}').point
    assert calling("1", '{"a":1}').point != calling("1", '{"a":2}').point


ROLES = Roles.model_validate(
    {
        "roles": {
            "general": {"prompt": "You are"},
            "special": {"prompt": "You are special"},
            "tracker": {"tools": ["track", "look"]},
        }
    }
)


def test_roles_are_told_apart() -> None:
    """By what they call themselves, by the longest known beginning of their prompt, by their tools, by its hash."""
    tools = [{"type": "function", "function": {"name": n}} for n in ("look", "track")]
    assert role_of(request(brief="You are special today"), "mine", ROLES) == "mine"
    assert role_of(request(brief="You are special today"), "no name!", ROLES) == "special"
    assert role_of(request(brief="You are it"), "", ROLES) == "general"
    assert role_of(request(brief="Track.", tools=tools), "", ROLES) == "tracker"
    other, same, third = (role_of(request(brief=b), "", ROLES) for b in ("Help.", "Help.", "Help!"))
    assert other == same != third
    assert other.startswith("role-")
    assert role_of(request(HELLO), "", ROLES) == "agent"


PARTS = [{"type": "text", "text": "a"}, {"type": "image_url", "image_url": {"url": "data:"}}]


@pytest.mark.parametrize(
    ("first", "case"),
    [
        ("Where is it?", {"request": "Where is it?"}),
        ('{"order": 7}', {"order": 7}),
        ('case {"order": 7}', {"order": 7}),
        ("[1, 2]", {"request": "[1, 2]"}),
        (PARTS, {"request": "a\n[image_url]"}),
    ],
)
def test_what_a_conversation_is_about(first: Any, case: dict[str, Any]) -> None:
    """The first thing that a user says; what is no text is named and not kept."""
    assert case_of(request({"role": "user", "content": first}).spoken) == case


KEYS = st.sampled_from(
    ["messages", "choices", "message", "role", "content", "tool_calls", "function", "tools", "delta", "index", "usage"]
)
BODIES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=15,
)


@given(st.binary(max_size=200) | BODIES.map(lambda value: json.dumps(value).encode()))
def test_whatever_comes_is_read_or_left_alone(body: bytes) -> None:
    """No body of a request or an answer raises."""
    asked_of(body)
    said_of(body, "application/json")
    said_of(b"data: " + body, "text/event-stream")
