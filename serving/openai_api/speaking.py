"""A version that is talked to: from a chat to what one of its language models says, piece by piece.

A role that is asked as it is in training (its own brief, or none; tools that are calls of its own) decides as in
training: from the same prompt, among the calls that are offered. Everything else is a conversation in the model's chat
template, and the model writes what it likes, or a call under the grammar of the tools that are offered.
"""

import json
import logging
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from assembly.versions import Version
from policies.lm.grammar import CallGrammar
from policies.lm.network import Network
from policies.lm.playing import LMPolicy, WritingPolicy
from policies.lm.prompt import call_text, system_text, tool_line
from policies.lm.sampling import Sampling
from policies.lm.talking import NotToBeRendered, Talker, UpTo
from policies.lm.tree import Tokens
from runtime.records import ToolCall
from runtime.tools import heading, parse_call
from serving.openai_api.asked import BadChat, Chat, Message, NoSuchModel, Offered, Piece

_log = logging.getLogger(__name__)
USUAL_TOKENS = 1024
"""Tokens of an answer where nobody says how many: enough for any call, and an end for a model that finds none."""
BLANK = " \n\t"


class Speaker:
    """The language models of a version.

    Args:
        version: who plays.
        greedy: the likeliest token or call where a chat says nothing of temperature.
    """

    def __init__(self, version: Version, *, greedy: bool = True) -> None:
        self._greedy = greedy
        self._briefs = {r.name: r.brief for r in version.team.roles}
        self._talkers = {
            agent: Talker(seat.network, seat.featurize.features)
            for agent, seat in version.seats.items()
            if isinstance(seat, LMPolicy | WritingPolicy)
        }

    def said(self, chat: Chat) -> Iterator[Piece]:
        """The answer, piece by piece. A fault is a piece, too: it travels, and nothing is retried for it."""
        try:
            yield from self._said(chat)
        except BadChat as error:
            yield {"kind": "refused", "code": error.code, "text": error.message, "param": error.param}
        except NotToBeRendered as error:
            yield {"kind": "refused", "code": "bad_messages", "text": str(error), "param": "messages"}
        except Exception as error:  # noqa: BLE001 - whatever a model or a library raises, the client hears of it
            _log.exception("a chat with %s failed", chat.role)
            yield {"kind": "refused", "code": "failed", "text": f"{type(error).__name__}: {error}", "param": ""}

    def _said(self, chat: Chat) -> Iterator[Piece]:
        talker = self._talkers.get(chat.role)
        if talker is None:
            raise NoSuchModel("model_not_found", f"no language model plays {chat.role}", "model")
        usual = 0.0 if self._greedy else 1.0
        temperature = usual if chat.temperature is None else chat.temperature
        sampling = Sampling(temperature=temperature, top_p=chat.top_p, seed=chat.seed)
        if not self._is_its_own(talker, chat):
            return self._freely(talker, chat, sampling)
        if isinstance(talker.network, Network):
            return _chosen(talker, chat, sampling)
        return _written_call(talker, chat, sampling)

    def _is_its_own(self, talker: Talker, chat: Chat) -> bool:
        """Whether the role is asked as in training."""
        names = {json.loads(call)["tool"] for call in talker.features.text.calls}
        brief = self._briefs[chat.role]
        own = {brief, f"You are {chat.role}. {brief}", talker.features.text.system}
        systems = {m.content for m in chat.messages if m.role == "system"}
        return bool(chat.tools) and {t.name for t in chat.tools} <= names and systems <= own

    def _freely(self, talker: Talker, chat: Chat, sampling: Sampling) -> Iterator[Piece]:
        """A conversation in the chat template."""
        prompt = talker.conversation(self._messages(talker, chat))
        limit = _room(talker, chat, prompt)
        if chat.must:
            held = _grammar_of(talker, chat.tools)
            return _call_of(talker, talker.write(prompt, sampling, limit, held), len(prompt))
        return _spoken(talker, chat, prompt, talker.write(prompt, sampling, limit))

    def _messages(self, talker: Talker, chat: Chat) -> list[Mapping[str, str]]:
        """The messages as a chat template takes them: one brief at the top, with the tools that are offered."""
        briefs = [m.content for m in chat.messages if m.role == "system"]
        brief = "\n".join(briefs)
        if chat.tools:
            lines = [tool_line(t.name, t.description, t.schema) for t in chat.tools]
            brief = system_text(brief or f"You are {chat.role}. {self._briefs[chat.role]}", lines)
        elif not briefs:
            brief = talker.features.text.system
        rest = [m for m in chat.messages if m.role != "system"]
        return [{"role": "system", "content": brief}, *({"role": _voice(m), "content": _content(m)} for m in rest)]


def _voice(message: Message) -> str:
    """Chat templates know no tools' answers: they come from outside, as everything that a user says does."""
    return "user" if message.role == "tool" else message.role


def _content(message: Message) -> str:
    """What was said. A tool's answer is the line that a role sees in training; a call is what a model writes."""
    if message.role == "tool":
        (call,) = message.calls
        return f"{heading(call)} {message.content}"
    return "\n".join(part for part in (message.content, *map(call_text, message.calls)) if part)


def _seen(chat: Chat) -> str:
    """What a role sees in training: lines of the case and of tools' answers. What it called stands in the answers."""
    return "\n".join(_content(m) for m in chat.messages if m.role in ("user", "tool"))


def _legal(talker: Talker, chat: Chat) -> list[bool]:
    """Which of a role's calls are offered."""
    offered = {t.name for t in chat.tools}
    return [json.loads(call)["tool"] in offered for call in talker.features.text.calls]


def _chosen(talker: Talker, chat: Chat, sampling: Sampling) -> Iterator[Piece]:
    """One of a role's calls, by their scores. A call is whole: one that is longer than may be is not chosen."""
    spec, seen = talker.network.spec, _seen(chat)
    limit = chat.limit or max(map(len, spec.calls))
    legal = [ok and len(call) <= limit for ok, call in zip(_legal(talker, chat), spec.calls, strict=True)]
    if not any(legal):
        raise BadChat(
            "no_call_fits", f"no call of the tools that are offered has {limit} tokens or fewer", "max_tokens"
        )
    yield {"kind": "begun", "tokens": len(talker.role_prompt(seen))}
    picked = sampling.pick(talker.scores(seen, legal), 0)
    yield _as_call(_own(talker.features.text.calls[picked]))
    yield {"kind": "end", "finish": "tool_calls", "tokens": len(spec.calls[picked])}


def _written_call(talker: Talker, chat: Chat, sampling: Sampling) -> Iterator[Piece]:
    """One of a role's calls, written under the grammar of those that are offered."""
    prompt, longest = talker.role_prompt(_seen(chat)), talker.network.spec.longest
    limit = min(chat.limit or longest, longest)
    held = talker.own_matcher(_legal(talker, chat))
    return _call_of(talker, talker.write(prompt, sampling, limit, held), len(prompt))


def _call_of(talker: Talker, written: Iterator[int], prompt: int) -> Iterator[Piece]:
    """A call that is written: passed on when it is complete; as text, when it did not become so."""
    yield {"kind": "begun", "tokens": prompt}
    tokens = list(written)
    text = talker.read(tokens)
    whole = bool(tokens) and tokens[-1] == talker.end
    yield _as_call(_own(text)) if whole else {"kind": "text", "text": text}
    yield {"kind": "end", "finish": "tool_calls" if whole else "length", "tokens": len(tokens)}


def _own(text: str) -> ToolCall:
    call = parse_call(text)
    assert isinstance(call, ToolCall), "the grammar lets nothing else be written"
    return call


def _as_call(call: ToolCall) -> Piece:
    return {"kind": "call", "name": call.tool, "arguments": json.dumps(dict(call.args), ensure_ascii=False)}


def _spoken(talker: Talker, chat: Chat, prompt: Tokens, written: Iterator[int]) -> Iterator[Piece]:
    """Text as it is written; where tools are offered and it is a call of one of them, that call."""
    yield {"kind": "begun", "tokens": len(prompt)}
    reader, until, count, last = talker.reader(), UpTo(chat.stop), 0, -1
    held, undecided = "", bool(chat.tools)
    for token in written:
        count, last = count + 1, token
        held += until.add(reader.add(token))
        undecided = undecided and held.lstrip(BLANK)[:1] in ("", "{")
        if held and not undecided:
            yield {"kind": "text", "text": held}
            held = ""
        if until.over:
            break
    held += until.rest()
    called = _call_among(held, chat.tools) if undecided else None
    if called is not None:
        yield called
    elif held:
        yield {"kind": "text", "text": held}
    done = "tool_calls" if called else "stop" if until.over or last == talker.end else "length"
    yield {"kind": "end", "finish": done, "tokens": count}


def _call_among(text: str, tools: Sequence[Offered]) -> Piece | None:
    call = parse_call(text)
    if not isinstance(call, ToolCall) or call.tool not in {t.name for t in tools}:
        return None
    return _as_call(call)


def _grammar_of(talker: Talker, tools: Sequence[Offered]) -> tuple[CallGrammar, Any]:
    """A grammar of calls of these tools, and where it stands."""
    calls = tuple(call_text(ToolCall(tool=t.name)) for t in tools)
    arguments = json.dumps({t.name: dict(t.schema) for t in tools if t.schema.get("properties")}, sort_keys=True)
    try:
        grammar = talker.grammar(calls, arguments)
        return grammar, grammar.matchers(np.ones((1, len(calls)), bool))[0]
    except ImportError:
        how = "a call of other tools than the role's own can be demanded only where xgrammar is installed"
        raise BadChat("unsupported", how, "tool_choice") from None
    except (RuntimeError, ValueError, KeyError) as error:
        raise BadChat("bad_schema", f"no grammar can be made of these tools: {error}", "tools") from None


def _room(talker: Talker, chat: Chat, prompt: Tokens) -> int:
    """Tokens that the answer may have. Raises BadChat where prompt and answer are too long for the model."""
    left = talker.context - len(prompt)
    if left < max(chat.limit or 1, 1):
        asked = f"{len(prompt)} in the messages" + (f", {chat.limit} for the answer" if chat.limit else "")
        raise BadChat(
            "context_length_exceeded", f"the model takes {talker.context} tokens; there are {asked}", "messages"
        )
    return chat.limit or min(left, USUAL_TOKENS)
