"""A run beside a frozen model, and the same again: nobody is asked, nobody is paid, and what is learnt is the same."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from runtime.llm.replies import VARIABLE
from tests.llm.providers import Provider, provider
from tests.lm.test_prompted import clerk
from tests.trainers.commands import SHOP, Command, started

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600), pytest.mark.xdist_group("ray")]
KEY = "SHOP_MODEL_KEY"
FEW = ("stop.iterations=1", "ppo.train_batch_size=64", "evaluation.every=9")


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Provider]:
    monkeypatch.setenv(KEY, "secret")
    monkeypatch.setenv(VARIABLE, str(tmp_path / "replies"))
    with provider(clerk) as running:
        yield running


def beside(model: Provider, *more: str) -> list[str]:
    price = "usd_per_million_in: 1000.0, usd_per_million_out: 0.0"
    asked = f"{{kind: prompted, model: gpt-x, base_url: '{model.url}', key_variable: {KEY}, {price}}}"
    return [f"policies.clerk={asked}", *FEW, *more]


def test_a_run_is_paid_once(model: Provider, command: Command) -> None:
    """The second run's figures are those of the first, at no cost."""
    first = command(*beside(model))
    assert first.code == 0, first.err
    asked = len(model.asked)
    again = command(*beside(model))
    assert again.code == 0, again.err
    assert len(model.asked) == asked > 0
    assert "replies of models had been given before, and cost nothing" in again.out
    assert again.result["eval"]["return_mean"] == first.result["eval"]["return_mean"]


def test_everybody_is_asked_anew_where_that_is_wanted(model: Provider, command: Command, tmp_path: Path) -> None:
    """`--no-cache`, in a process of its own and those that it starts: nothing is read and nothing is kept."""
    assert command(*beside(model)).code == 0
    kept, asked = len(list((tmp_path / "replies").iterdir())), len(model.asked)
    sets = [part for each in beside(model) for part in ("--set", each)]
    run = started(SHOP, "--no-cache", "--out", tmp_path / "anew", *sets)
    out, err = run.communicate(timeout=400)
    assert run.returncode == 0, err
    assert "had been given before" not in out
    assert len(model.asked) - asked >= kept
    assert len(list((tmp_path / "replies").iterdir())) == kept
