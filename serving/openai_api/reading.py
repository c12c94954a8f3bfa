"""From a request's body to what a version is asked."""

import json
import secrets

from runtime.records import ToolCall
from serving.openai_api.asked import BadChat, Chat, Message, Offered
from serving.openai_api.bodies import Answered, Called, Completion, Content, Named, ToolSaid


def chat_of(body: Completion, role: str) -> Chat:
    """What the role is asked. Raises BadChat."""
    tools, must = _offered(body)
    drawn = body.seed if body.seed is not None else secrets.randbits(48)
    stop = (body.stop,) if isinstance(body.stop, str) else tuple(body.stop or ())
    return Chat(
        role=role,
        messages=_messages(body),
        tools=tools,
        must=must,
        temperature=body.temperature,
        top_p=body.top_p or 1.0,
        seed=drawn,
        limit=body.max_completion_tokens or body.max_tokens,
        stop=stop,
    )


def _offered(body: Completion) -> tuple[tuple[Offered, ...], bool]:
    """The tools that may be called, and whether one must be."""
    listed = [t.function for t in body.tools or ()]
    offered = [Offered(f.name, f.description or "", f.parameters or {}) for f in listed]
    if len({o.name for o in offered}) < len(offered):
        raise BadChat("bad_tools", "two tools have the same name", "tools")
    choice = body.tool_choice or "auto"
    if isinstance(choice, Named):
        offered = [o for o in offered if o.name == choice.function.name]
        if not offered:
            raise BadChat("bad_tool_choice", f"{choice.function.name} is not among the tools", "tool_choice")
        return tuple(offered), True
    if choice == "required" and not offered:
        raise BadChat("bad_tool_choice", "a call is demanded, and no tool is offered", "tool_choice")
    return (() if choice == "none" else tuple(offered)), choice == "required"


def _messages(body: Completion) -> tuple[Message, ...]:
    made: list[Message] = []
    calls: dict[str, Called] = {}
    for said in body.messages:
        if isinstance(said, Answered):
            calls |= {c.id: c for c in said.tool_calls or ()}
            made.append(Message("assistant", _text(said.content), tuple(map(_call, said.tool_calls or ()))))
        elif isinstance(said, ToolSaid):
            made.append(Message("tool", _text(said.content), (_call(_answer_to(said, calls)),)))
        else:
            made.append(Message("user" if said.role == "user" else "system", _text(said.content)))
    return tuple(made)


def _text(content: Content | None) -> str:
    if content is None or isinstance(content, str):
        return content or ""
    return "\n".join(part.text for part in content)


def _answer_to(said: ToolSaid, calls: dict[str, Called]) -> Called:
    called = calls.get(said.tool_call_id)
    if called is None:
        raise BadChat("bad_messages", f"no call {said.tool_call_id!r} comes before its answer", "messages")
    return called


def _call(called: Called) -> ToolCall:
    try:
        arguments = json.loads(called.function.arguments or "{}")
    except ValueError:
        arguments = None
    if not isinstance(arguments, dict):
        raise BadChat("bad_messages", f"the arguments of call {called.id!r} are no JSON object", "messages")
    return ToolCall(tool=called.function.name, args=arguments)
