"""A small role, what it sees, and its network."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from policies.lm.featurize import PromptFeatures
from policies.lm.loading import load_tokenizer
from policies.lm.network import Network
from policies.lm.playing import network_of
from policies.lm.prompt import Prompter, RoleText
from policies.lm.spec import LMSpec, Lora
from policies.lm.tiny import TinyShape

LORA = Lora(r=4, alpha=8, targets=("q_proj", "v_proj"))

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


def network(path: str, lora: bool = False, **changes: Any) -> Network:
    """One with a mind of its own: fresh weights, enlarged."""
    made: Any = network_of(spec_of(path, lora=LORA if lora else None, **changes))
    chance: Any = torch
    chance.manual_seed(1)
    with torch.no_grad():
        for p in made.parameters():
            p.add_(0.1 * torch.randn_like(p))
    return made


def seen(path: str, texts: Sequence[str]) -> Tensor:
    return torch.from_numpy(PromptFeatures(path, ROLE, 512)(texts))


def turns() -> list[str]:
    """What three turns of one episode see, and two turns of another."""
    other = [line.replace("1728", "99").replace("185", "7") for line in LINES]
    return ["\n".join(lines[:n]) for lines, n in ((LINES, 1), (other, 1), (LINES, 2), (LINES, 3), (other, 3))]


def by_hand(net: Network, texts: Sequence[str]) -> Tensor:
    """(B, K) the calls' scores, each prompt and call read as one plain sequence."""
    made = prompter(net.spec.path)
    rows: list[list[Tensor]] = []
    for text in texts:
        rows.append([])
        for call in made.calls:
            ids = torch.tensor([made.head + made(text) + made.tail + call])
            with net.weights.used() as model:
                logp = torch.log_softmax(model(ids).logits[0], -1)
            taken = logp[-len(call) - 1 : -1].gather(1, torch.tensor(call)[:, None])
            rows[-1].append(taken.mean() if net.spec.score == "mean" else taken.sum())
    return torch.stack([torch.stack(r) for r in rows])
