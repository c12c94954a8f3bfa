"""Prompted teammates: a frozen model over HTTP plays beside a policy that learns, and what it took is counted."""

import pickle
from pathlib import Path
from typing import Any

import pytest

from assembly.build import Build
from assembly.loading import load
from assembly.problems import Refused
from policies.prompted import Asking, PromptedPolicy, TeammateUnavailable, call_in, prompted_from, prompted_state
from runtime.llm.chat import KeyMissing
from runtime.llm.replies import VARIABLE
from runtime.records import Decided, ModelCalled, ToolAnswered
from tests.llm.providers import Handler, provider
from tests.lm.shop import FILE
from trainers.measure import featurizers, measure
from trainers.play import play
from trainers.rllib.algorithm import algorithm_config, make_adapter, seats

KEY = "SHOP_MODEL_KEY"


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY, "secret")


def clerk(handler: Handler) -> None:
    """Sells what the list says, and talks about it."""
    seen = handler.body["messages"][-1]["content"]
    ware = "salt" if "list says salt" in seen else "tea"
    handler.head()
    handler.piece(f'Certainly! ```{{"tool": "sell", "args": {{"ware": "{ware}"}}}}```')
    handler.piece(None, "stop")
    handler.event({"id": "x", "choices": [], "usage": {"prompt_tokens": 90, "completion_tokens": 10}})
    handler.event("[DONE]")


def silent(handler: Handler) -> None:
    handler.head(401, "application/json")
    handler.wfile.write(b'{"error": {"message": "no"}}')


def babbling(handler: Handler) -> None:
    handler.head()
    handler.piece("I would rather not.", "stop")
    handler.event("[DONE]")


def built(url: str, *more: str) -> Build:
    price = "usd_per_million_in: 1.0, usd_per_million_out: 10.0"
    asked = f"{{kind: prompted, model: gpt-x, base_url: '{url}', key_variable: {KEY}, {price}}}"
    return Build(load(FILE, [f"policies.clerk={asked}", *more]), FILE.parent)


def test_a_policy_learns_beside_a_model_over_http() -> None:
    """The model is told its brief, its tools and what it may call; its tokens and dollars are counted."""
    with provider(clerk) as server:
        build = built(server.url)
        assert build.learners == ("buyer",)
        assert not build.exact_holds
        seated = seats(build, featurizers(build, measure(build, 10)))
        config: Any = algorithm_config(build, seated, build.standardizer())
        runner = config.env_runner_cls(config=config)
        learner = config.build_learner(spaces=runner.get_spaces())
        before = learner.policy_hashes()
        learner.update(episodes=runner.sample(num_timesteps=40), num_epochs=1, minibatch_size=32, timesteps={})
        assert learner.policy_hashes()["buyer"] != before["buyer"]
        tally = [t for a in runner.env.envs for t in [a.unwrapped.env.unwrapped.drain()]]
    asked = server.asked[0]
    assert asked["messages"][0]["content"].startswith("You are clerk. Sell it.")
    assert sum(t.tokens for t in tally) == 100 * sum(t.episodes for t in tally) > 0
    usd = sum(t.cost_usd for t in tally) - 0.25 * sum(t.calls["buyer", "look"] for t in tally)
    assert usd == pytest.approx(190e-6 * sum(t.episodes for t in tally))


def test_what_it_took_stands_in_the_records_before_its_decision() -> None:
    """And what is said around a call is no part of it."""
    with provider(clerk) as server:
        build = built(server.url)
        policies = {"buyer": _looking()}
        (played,) = play(lambda: make_adapter(build, "eval"), policies, range(1), seed=0, greedy=True)
    kinds = [type(r) for r in played.records if isinstance(r, ModelCalled | Decided)]
    assert kinds == [Decided, Decided, ModelCalled, Decided]
    assert played.success
    called = next(r for r in played.records if isinstance(r, ModelCalled))
    assert (called.tokens_in, called.tokens_out, called.agent) == (90, 10, "clerk")
    assert called.model.endswith("/gpt-x")


def test_a_teammate_is_not_asked_the_same_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where replies are kept: another run plays the same episodes, asks nobody, and is billed nothing for it."""
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    with provider(clerk) as server:
        runs = [
            list(
                play(
                    lambda: make_adapter(built(server.url), "eval"),
                    {"buyer": _looking()},
                    range(6),
                    seed=0,
                    greedy=True,
                )
            )
            for _ in range(2)
        ]
        assert 0 < len(server.asked) == len(list(tmp_path.iterdir())) <= 6
    first, again = ([r for p in run for r in p.records if isinstance(r, ModelCalled)] for run in runs)
    assert {r.cached for r in again} == {True}
    assert [(r.tokens_in, r.cost_usd) for r in first] == [(r.tokens_in, r.cost_usd) for r in again]
    assert [[r.call for r in p.records if isinstance(r, Decided)] for p in runs[0]] == [
        [r.call for r in p.records if isinstance(r, Decided)] for p in runs[1]
    ]
    tools = 0.25 * 6
    assert [sum(p.cost_usd() for p in run) for run in runs] == [
        pytest.approx(tools + 190e-6 * len(server.asked)),
        tools,
    ]


def _looking() -> Any:
    from policies.playing import RulePolicy
    from tests.trainers.little_shop import by_the_list

    return RulePolicy(by_the_list)


def test_an_answer_that_is_no_call_is_answered_with_an_error() -> None:
    """The session goes on until it is cut; nothing is made up in its place."""
    with provider(babbling) as server:
        build = built(server.url)
        (played,) = play(lambda: make_adapter(build, "eval"), {"buyer": _looking()}, range(1), seed=0, greedy=True)
    faults = [r for r in played.records if isinstance(r, ToolAnswered) and r.agent == "clerk" and not r.ok]
    assert faults
    assert not played.success


def test_a_model_that_gives_no_answer_stops_the_run_by_name() -> None:
    """With the reason; so does a key that is not there."""
    with provider(silent) as server:
        build = built(server.url)
        with pytest.raises(TeammateUnavailable, match=r"clerk \(gpt-x\): refused"):
            list(play(lambda: make_adapter(build, "eval"), {"buyer": _looking()}, range(1), seed=0, greedy=True))
    build = built("http://127.0.0.1:9/v1", "policies.clerk.key_variable=NOBODY_SET_THIS")
    with pytest.raises(KeyMissing, match="NOBODY_SET_THIS"):
        list(play(lambda: make_adapter(build, "eval"), {"buyer": _looking()}, range(1), seed=0, greedy=True))


def test_it_travels_and_is_kept_without_its_key() -> None:
    """To other processes, and in a version."""
    policy: Any = built("http://127.0.0.1:9/v1").teammates["clerk"]
    kept = prompted_state(policy)
    assert "secret" not in str(kept)
    for other in (pickle.loads(pickle.dumps(policy)), prompted_from(kept)):  # noqa: S301 - our own
        assert isinstance(other, PromptedPolicy)
        assert other.text == policy.text
        assert other.asking.base_url == "http://127.0.0.1:9/v1"


def test_the_first_json_object_of_an_answer_is_the_call() -> None:
    """Whatever stands around it."""
    assert call_in('{"tool": "look"}') == '{"tool": "look"}'
    assert (
        call_in('Well {then}: {"tool": "sell", "args": {"ware": "tea"}} }')
        == '{"tool": "sell", "args": {"ware": "tea"}}'
    )
    assert call_in("no") == "no"


def test_a_model_of_this_machine_can_be_asked(tiny: str) -> None:
    """By its directory; and what would have no effect is refused."""
    settings = Asking(model=tiny).settings()
    assert settings.model.kind == "transformers"
    assert settings.model.path == Path(tiny)
    for wrong in ("{kind: prompted, model: smollm2, key_variable: X}", "{kind: prompted, model: tiny}"):
        with pytest.raises(Refused, match=r"has no effect without base_url|would only answer noise"):
            load(FILE, [f"policies.clerk={wrong}"])
    alone = "{buyer: {kind: prompted, model: smollm2}, clerk: {kind: prompted, model: smollm2}}"
    with pytest.raises(Refused, match="are all prompted, so there is nothing to train"):
        load(FILE, [f"policies={alone}"])


def test_what_models_took_counts_against_the_budget_also_in_a_restored_session() -> None:
    """Over it, only calls that end the role's part are legal."""
    from dataclasses import replace

    from envs.restore import restored
    from envs.session import Session
    from runtime.types import Budget
    from tests.trainers.little_shop import generate, team

    shop = team()
    frugal = replace(shop, repeats=True, roles=(replace(shop.roles[0], budget=Budget(tokens=100)), shop.roles[1]))
    session = Session(frugal, generate("train", 1, 0))
    session.asked("buyer", {"tokens_in": 60, "tokens_out": 10, "ms": 5.0})
    session.act("buyer", 0)
    assert session.observe("buyer").mask == (True, True)
    session.asked("buyer", {"tokens_in": 60, "tokens_out": 10, "ms": 5.0})
    session.act("buyer", 0)
    assert session.observe("buyer").mask == (False, True)
    whole = restored(frugal, generate("train", 1, 0), session.records)
    assert whole.observe("buyer").mask == (False, True)
    assert [type(r) for r in whole.records] == [type(r) for r in session.records]
