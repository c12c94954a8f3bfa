"""A small role, what it sees, and its network."""

from typing import Any

from policies.lm.loading import load_tokenizer
from policies.lm.prompt import Prompter, RoleText
from policies.lm.spec import LMSpec
from policies.lm.tiny import TinyShape

ROLE = RoleText(
    system="You are triage. Find out why goods are missing.\nTools:\n- order_history: Read the orders.",
    calls=('{"tool": "order_history"}', '{"tool": "inventory_count"}', '{"tool": "hand_over"}'),
)
LINES = (
    'case {"sku": "SKU-1728", "site": "Gdansk"}',
    'order_history [{"week": "week 37", "units": 185, "demand": "as usual"}]',
    'inventory_count [{"bin": "bin 18", "counted": 489, "count": "matches the books"}]',
)
TEXTS = [*LINES, ROLE.system, *ROLE.calls] * 4


def small_shape(seed: int = 0) -> TinyShape:
    return TinyShape(hidden=32, layers=2, heads=2, vocabulary=400, seed=seed)


def prompter(path: str, max_tokens: int = 512, role: RoleText = ROLE) -> Prompter:
    return Prompter(load_tokenizer(path), role, max_tokens)


def spec_of(path: str, **changes: Any) -> LMSpec:
    made = prompter(path)
    return LMSpec(path=path, head=made.head, tail=made.tail, calls=made.calls, room=made.room, **changes)
