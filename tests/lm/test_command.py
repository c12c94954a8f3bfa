"""A team of language models through the command: warm-started, trained, evaluated, exported, resumed."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from assembly.training import Resources
from assembly.versions import load_version
from policies.lm.prompt import call_text
from policies.playing import Turn
from runtime.records import ToolCall
from tests.lm.shop import LORA, WARMUP, overrides
from tests.trainers.commands import Ran, in_process
from trainers.ray_cluster import ray_running

pytestmark = [
    # Ray leaves its processes to themselves, and RLlib calls what it has deprecated.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    # peft asks transformers by a name that is going away
    pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing`:FutureWarning"),
    pytest.mark.slow,
]
QUICK = ("stop.iterations=2", "evaluation.every=2", "checkpoints.every=1", "ppo.num_epochs=1", "telemetry.port=0")


@pytest.fixture(scope="module")
def ray_local() -> Iterator[None]:
    """Ray as the command starts it."""
    with ray_running(Resources()):
        yield


@pytest.fixture(scope="module", params=["full", "lora"])
def ran(request: Any, tmp_path_factory: pytest.TempPathFactory, ray_local: None) -> Ran:
    """A short run, all of the models or adapters on one."""
    keys = {"warmup": WARMUP, **({"lora": LORA} if request.param == "lora" else {})}
    return in_process(tmp_path_factory.mktemp(request.param), *overrides(*QUICK, **keys))


def test_a_run_ends_with_a_version_that_decides_as_it_was_evaluated(ran: Ran) -> None:
    """Loaded from its files alone."""
    assert ran.code == 0, ran.err
    assert ran.directory
    assert ran.result["status"] == "done"
    version = load_version(ran.directory / "version")
    assert version.golden
    assert version.proves_itself() == ""
    report = json.loads((ran.directory / "models" / "warmup.json").read_text())
    assert report["clerk"]["agreement"] > 0.5
    assert report.keys() == {"buyer", "clerk"}


def test_plain_transformers_and_peft_open_what_was_exported(ran: Ran) -> None:
    """And score calls as the version does."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    assert ran.directory
    place = ran.directory / "version"
    about = json.loads((place / "policies" / "clerk.json").read_text())
    own = place / "policies" / "clerk"
    if about["base"] is None:
        model, home = AutoModelForCausalLM.from_pretrained(own), own
    else:
        from peft import PeftModel

        home = place / about["base"]["place"]
        model = PeftModel.from_pretrained(AutoModelForCausalLM.from_pretrained(home), own)
    tokenizer = AutoTokenizer.from_pretrained(home)
    text = 'case {"case": 3}\n[buyer] look "the list says tea"'
    turns = [{"role": "system", "content": about["features"]["system"]}, {"role": "user", "content": text + "\n"}]
    prompt: str = tokenizer.apply_chat_template(turns, tokenize=False, add_generation_prompt=True)
    scores = []
    for ware in ("tea", "salt"):
        call = call_text(ToolCall(tool="sell", args={"ware": ware}))
        asked = tokenizer(prompt, add_special_tokens=False)["input_ids"]
        said = [*tokenizer(call, add_special_tokens=False)["input_ids"], tokenizer.eos_token_id]
        with torch.no_grad():
            logp = torch.log_softmax(model(torch.tensor([asked + said])).logits[0], -1)
        scores.append(float(logp[-len(said) - 1 : -1].gather(1, torch.tensor(said)[:, None]).sum()))
    seat = load_version(place).seats["clerk"]
    mask = np.ones(2, np.int8)
    (choice,) = seat.decide([Turn("clerk", {"text": text, "action_mask": mask}, (0, ""), 0)], True)
    odds = np.exp(scores) / np.exp(scores).sum()
    assert choice.probabilities == pytest.approx(odds.tolist(), abs=1e-3)


def test_a_run_goes_on_from_its_checkpoint_without_another_warm_start(ran: Ran, ray_local: None) -> None:
    """The models lie in the run directory."""
    assert ran.directory
    starts = {p: p.stat().st_mtime_ns for p in (ran.directory / "models").glob("*.safetensors")}
    assert len(starts) == 2
    more = in_process(ran.directory, "stop.iterations=3", resume=ran.directory)
    assert more.code == 0, more.err
    assert more.result["iterations"] == 3
    assert {p: p.stat().st_mtime_ns for p in starts} == starts


def test_missing_weights_are_exit_3_with_the_way_to_get_them(tmp_path: Path, ray_local: None) -> None:
    """Nothing is downloaded."""
    ended = in_process(tmp_path, *overrides(model="someone/no-such-model", tiny="{}"))
    assert ended.code == 3
    assert "hf download someone/no-such-model" in ended.err


def test_a_team_with_a_prompted_teammate_is_trained_exported_and_loaded(
    tmp_path: Path, ray_local: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The version names the model that is asked, and holds no key."""
    from policies.prompted import PromptedPolicy
    from tests.llm.providers import provider
    from tests.lm.test_prompted import KEY, clerk

    monkeypatch.setenv(KEY, "secret")
    with provider(clerk) as server:
        asked = f"{{kind: prompted, model: gpt-x, base_url: '{server.url}', key_variable: {KEY}}}"
        ended = in_process(tmp_path, f"policies.clerk={asked}", *QUICK, "ppo.train_batch_size=64")
    assert ended.code == 0, ended.err
    assert ended.directory
    assert ended.metrics[-1]["return_mean"] is not None
    place = ended.directory / "version"
    assert not [f for f in place.rglob("*") if f.is_file() and b"secret" in f.read_bytes()]
    version = load_version(place)
    assert isinstance(version.seats["clerk"], PromptedPolicy)
    assert version.proves_itself() == "", "nobody was asked: the server is gone"
