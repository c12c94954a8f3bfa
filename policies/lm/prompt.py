"""A role's prompt: what it is told once, what it has seen, and the beginning of its answer, as tokens.

A prompt is ``head + lines + tail``: the head is the same in all of a role's prompts, lines are tokenized one by one, so
that an agent's prompt at one turn goes on where the one before ended. What is scored, generated and trained on are
these tokens; nothing is ever decoded and tokenized again.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from policies.lm.tree import Tokens
from runtime.errors import RepertoryError
from runtime.records import ToolCall
from runtime.tools import canonical
from runtime.types import HAND_BACK, HAND_OVER, PASS_TURN, Role, Team

PASSES = {
    HAND_OVER: "Pass the case on.",
    HAND_BACK: "Return the case to the role before you.",
    PASS_TURN: "Let this turn go by.",
}
"""What a model is told of the calls that are no tool's."""
ASK = 'Answer with one call as JSON: {"tool": NAME}, or {"tool": NAME, "args": {...}}.'
LEAST_ROOM = 32
"""Tokens that what an agent has seen needs at the least: fewer would not even hold a case."""
SHORTEST = 8
"""Tokens that are left of a line when it is shortened."""
CACHED_LINES = 16_384
"""Lines whose tokens are remembered: those of the open episodes come back at every turn."""
SEEN = "\u2063seen\u2063"
"""Stands for what an agent has seen while the chat template is rendered; no brief contains it."""
PLAIN = "{% for m in messages %}{{ '### ' + m.role + '\n' + m.content + '\n' }}{% endfor %}{{ '### assistant\n' }}"
"""The chat template for a model that has none."""


class PromptTooLong(RepertoryError):
    """A role's brief and tools leave no room for what it sees."""


@dataclass(frozen=True, slots=True)
class RoleText:
    """What a model is told of a role, and the calls it chooses among, as text."""

    system: str
    calls: tuple[str, ...]
    arguments: str = "{}"
    """JSON: the schema of the arguments, of each tool that takes some."""


def role_text(team: Team, role: Role, calls: Sequence[ToolCall]) -> RoleText:
    """The text for a role of a team. ``calls`` are its candidates, in their order."""
    passes = tuple(dict.fromkeys(c.tool for c in calls if c.tool in PASSES))
    tools = [_tool_line(team, n) for n in role.tools] + [f"- {p}: {PASSES[p]}" for p in passes]
    system = system_text(f"You are {role.name}. {role.brief}", tools)
    taking = {n: dict(team.tools[n].input_schema) for n in role.tools if team.tools[n].input_schema.get("properties")}
    return RoleText(system, tuple(call_text(c) for c in calls), json.dumps(taking, sort_keys=True))


def _tool_line(team: Team, name: str) -> str:
    return tool_line(name, team.tools[name].description, team.tools[name].input_schema)


def tool_line(name: str, description: str, schema: Mapping[str, Any]) -> str:
    """What a model is told of a tool."""
    fields: Mapping[str, Any] = schema.get("properties", {})
    about = " ".join(description.split())
    return f"- {name}: {about}" + (f" Arguments: {canonical(dict(fields))}" if fields else "")


def system_text(brief: str, tools: Sequence[str]) -> str:
    """The brief, the tools (a line each) and how to answer."""
    return "\n".join([brief, "Tools:", *tools, ASK])


def call_text(call: ToolCall) -> str:
    """A call as a model writes it, and as ``runtime.tools.parse_call`` reads it."""
    fields = {"tool": call.tool, "args": dict(call.args)} if call.args else {"tool": call.tool}
    return json.dumps(fields, ensure_ascii=False)


class Prompter:
    """From what an agent has seen to tokens.

    Args:
        tokenizer: the model's (transformers).
        text: of the role.
        max_tokens: tokens that prompt and call may have together.

    Raises:
        PromptTooLong: brief and tools alone leave no room.
    """

    def __init__(self, tokenizer: Any, text: RoleText, max_tokens: int) -> None:
        self._tokenizer = tokenizer
        head, tail = _around(tokenizer, text.system)
        self.head, self.tail = self._encode(head), self._encode(tail)
        end = (int(tokenizer.eos_token_id),)
        self.calls: tuple[Tokens, ...] = tuple(self._encode(c) + end for c in text.calls)
        used = len(self.head) + len(self.tail) + max(map(len, self.calls))
        self.room = max_tokens - used
        if self.room < LEAST_ROOM:
            raise PromptTooLong(
                f"brief, tools and the longest call take {used} tokens, which leaves {self.room} of max_tokens "
                f"{max_tokens} for what the role sees; raise max_tokens to {used + 4 * LEAST_ROOM} or more"
            )
        self._line = lru_cache(maxsize=CACHED_LINES)(self._plain)

    def __call__(self, text: str) -> Tokens:
        """The lines' tokens, at most ``room``: the prompt is ``head``, these, ``tail``."""
        lines = text.split("\n")
        encoded = [self._line(line + "\n") for line in lines]
        if sum(map(len, encoded)) > self.room:
            encoded = self._cut(lines, encoded)
        return tuple(t for line in encoded for t in line)

    def _encode(self, text: str) -> Tokens:
        return tuple(self._tokenizer.encode(text, add_special_tokens=False))

    def _plain(self, text: str) -> Tokens:
        """Text that comes from outside: a mark of the chat template in it means nothing."""
        return tuple(self._tokenizer.encode(text, add_special_tokens=False, split_special_tokens=True))

    def _cut(self, lines: Sequence[str], encoded: Sequence[Tokens]) -> list[Tokens]:
        """Leave out results, the oldest first, then errors; then shorten what is longest."""
        kept = list(range(len(lines)))
        kinds = [kind_of(line) for line in lines]
        for kind in ("result", "error"):
            of_kind = [i for i in kept if kinds[i] == kind]
            while len(of_kind) > 1 and self._size(encoded, kept, len(lines)) > self.room:
                kept.remove(of_kind.pop(0))
        left = {i: encoded[i] for i in kept}
        over = self._size(encoded, kept, len(lines)) - self.room
        while over > 0:
            longest = max(left, key=lambda i: len(left[i]))
            take = min(over, max(1, len(left[longest]) - SHORTEST))
            left[longest] = left[longest][: len(left[longest]) - take]
            over -= take
        first = next((i for i in range(len(lines)) if i not in left), None)
        gone = len(lines) - len(left)
        return [self._gone(gone) if i == first else left.get(i, ()) for i in range(len(lines))]

    def _size(self, encoded: Sequence[Tokens], kept: Sequence[int], count: int) -> int:
        gone = count - len(kept)
        return sum(len(encoded[i]) for i in kept) + (len(self._gone(gone)) if gone else 0)

    def _gone(self, count: int) -> Tokens:
        return self._line(f"({count} earlier lines left out)\n")

    def __getstate__(self) -> dict[str, Any]:
        return {k: v for k, v in self.__dict__.items() if k != "_line"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._line = lru_cache(maxsize=CACHED_LINES)(self._plain)


def kind_of(line: str) -> str:
    """``case``, ``world``, ``error`` or ``result`` (a tool's answer or a note), by the word a line begins with."""
    word = line.partition(" ")[0]
    return word if word in ("case", "world", "error") else "result"


def _around(tokenizer: Any, system: str) -> tuple[str, str]:
    """The chat template's text before and after what the agent has seen."""
    template = tokenizer.chat_template or PLAIN
    turns = [{"role": "system", "content": system}, {"role": "user", "content": SEEN}]
    asked: dict[str, Any] = {"tokenize": False, "add_generation_prompt": True, "chat_template": template}
    try:
        whole: str = tokenizer.apply_chat_template(turns, **asked)
    except Exception:  # noqa: BLE001 - a template that knows no system role raises whatever it likes
        whole = tokenizer.apply_chat_template([{"role": "user", "content": f"{system}\n{SEEN}"}], **asked)
    head, _, tail = whole.partition(SEEN)
    return head, tail or "\n"
