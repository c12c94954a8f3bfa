"""What was recorded is what a team can begin with: its roles and tools have the same names."""

import json
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from assembly.build import Build
from envs.candidates import candidates
from runtime.proxy.settings import Roles
from runtime.recorded import recorded_sessions, write_sessions
from runtime.store import open_store
from tests.llm.providers import Handler, provider
from tests.lm.shop import built, sight
from tests.proxy.house import KEY, by_role, calls, recording, words
from trainers.demonstrations import demonstrations
from trainers.rllib.algorithm import seats
from trainers.warmup import NothingToImitate, warm_up

SHOP = Roles.model_validate(
    {
        "team": "little_shop",
        "roles": {"buyer": {"prompt": "Buy.", "text": "hand_over"}, "clerk": {"prompt": "Sell."}},
    }
)
WARES = ("tea", "salt")


def answer(handler: Handler) -> None:
    """The buyer looks once and hands over in words; the clerk sells what the list says, and once sells what is none."""
    messages: list[Mapping[str, Any]] = handler.body["messages"]
    tools = [m for m in messages if m["role"] == "tool"]
    sells = "milk" if messages[1]["content"] == '{"case": 3}' else next((w for w in WARES if w in str(tools)), "")
    looked = words("It is on the list.") if tools else calls((f"look-{messages[1]['content']}", "look", {}))
    by_role({"Buy.": looked, "Sell.": calls(("sell-1", "sell", {"ware": sells}))})(handler)


def shopping(url: str, case: int) -> None:
    """A program of two loops, as anybody writes it."""
    import openai

    client = openai.OpenAI(base_url=f"{url}/v1", api_key=KEY, default_headers={"x-session-id": f"case-{case}"})
    said: list[Any] = [{"role": "user", "content": json.dumps({"case": case})}]
    for brief in ("Buy.", "Buy.", "Sell."):
        message = client.chat.completions.create(model="m", messages=[{"role": "system", "content": brief}, *said])
        said.append(message.choices[0].message.model_dump(exclude_none=True))
        for call in message.choices[0].message.tool_calls or ():
            list_says = f"the list says {WARES[case % 2]}"
            said.append({"role": "tool", "tool_call_id": call.id, "content": list_says})


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twenty conversations of a program whose roles and tools are those of the little shop."""
    place = tmp_path_factory.mktemp("recorded") / "s.db"
    with provider(answer) as upstream, recording(place, upstream.url, roles=SHOP) as recorded:
        for case in range(20):
            shopping(recorded.url, case)
    return place


def test_recorded_decisions_are_the_teams_own(store: Path, tmp_path: Path) -> None:
    """Words are the call that the file says; what is no legal call is counted, and nothing is guessed for it."""
    build = built(warmup=f"{{from: 'sqlite:///{store}'}}")
    found = demonstrations(build, seats(build, sight(build, tmp_path)), build.learned["buyer"].warmup)
    assert build.team is not None
    looks, hands_over = candidates(build.team, build.team.role("buyer"))
    assert (looks.tool, hands_over.tool) == ("look", "hand_over")
    assert found.shown["buyer"].calls.tolist() == [0, 1] * 20
    assert found.shown["clerk"].calls.tolist() == [0, 1, 0] + [0, 1] * 8
    assert found.left_out == {"clerk": {"sell": 1}}
    assert found.told() == ["clerk: 1 × sell are no legal calls of it"]


def test_what_was_recorded_reads_as_in_training(store: Path, tmp_path: Path) -> None:
    """Token by token: the prompts of a recorded conversation are those of the same case when the team plays it."""
    build = built(warmup=f"{{from: 'sqlite:///{store}', episodes: 1}}")
    made = seats(build, sight(build, tmp_path))
    recorded = demonstrations(build, made, build.learned["buyer"].warmup).shown
    for name, lines in played(build).items():
        seen = [{"text": text, "action_mask": [True] * made[name].spec.outputs} for text in lines]
        assert made[name].featurize(seen)["tokens"].tolist() == recorded[name].tokens.tolist()


def played(build: Build) -> dict[str, list[str]]:
    """What each role sees when the team plays the first recorded case, with the recorded calls."""
    from envs.session import Session
    from runtime.types import Scenario

    assert build.team is not None
    session = Session(build.team, Scenario(id="0", visible={"case": 0}, truth={"wanted": "tea"}))
    seen: dict[str, list[str]] = {"buyer": [], "clerk": []}
    for action in (0, 1, 0):
        (agent,) = session.to_act
        seen[agent].append(session.observe(agent).text)
        session.act(agent, action)
    return seen


def test_a_warm_start_imitates_them(store: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """From the store or an exported file; how many there were and what was left out is said and written down."""
    opened = open_store(f"sqlite:///{store}")
    write_sessions(tmp_path / "traces.parquet", recorded_sessions(opened, "little_shop"))
    opened.close()
    build = built(warmup=f"{{from: '{tmp_path / 'traces.parquet'}', epochs: 30, lr: 5.0e-3, minibatch: 16}}")
    with caplog.at_level(logging.WARNING):
        done = warm_up(build, seats(build, sight(build, tmp_path)))
    assert done["buyer"].decisions == 40
    assert done["buyer"].agreement > 0.9
    assert done["clerk"].left_out == {"sell": 1}
    assert "leaves out clerk: 1 × sell" in caplog.text
    report = json.loads((tmp_path / "models" / "warmup.json").read_text())
    assert report["clerk"]["left_out"] == {"sell": 1}


def test_roles_of_other_names_are_counted_and_not_guessed(tmp_path: Path) -> None:
    """A program whose roles the file does not tell apart shows nothing, and the refusal says what there was."""
    with provider(answer) as upstream, recording(tmp_path / "s.db", upstream.url, roles=Roles(team="little_shop")) as r:
        shopping(r.url, 0)
    build = built(warmup=f"{{from: 'sqlite:///{tmp_path / 's.db'}'}}")
    with pytest.raises(
        NothingToImitate, match=r"for buyer, clerk; 2 × role-\w+, 1 × role-\w+ are no roles of the team"
    ):
        warm_up(build, seats(build, sight(build, tmp_path)))


def test_candidates_of_another_order_are_the_same_calls(tmp_path: Path) -> None:
    """What a version had before it is read as the team's own candidates of today, and what was not legal is not."""
    from envs.session import Session
    from runtime.records import Observed

    build = built()
    assert build.team is not None
    session = Session(build.team, build.source("train")(0), correlation_id="s")
    for action in (0, 1, 1):
        session.act(session.to_act[0], action)
    told: list[Any] = [*session.records]
    turned = [
        r.model_copy(update={"candidates": r.candidates[::-1], "mask": (False, True)}) if isinstance(r, Observed) else r
        for r in told
    ]
    found = list[Any]()
    for name, records in (("told", told), ("turned", turned)):
        file = tmp_path / f"{name}.jsonl"
        file.write_text("\n".join(r.model_dump_json() for r in records))
        warm = built(warmup=f"{{from: '{file}'}}")
        found.append(demonstrations(warm, seats(warm, sight(warm, tmp_path)), warm.learned["buyer"].warmup))
    first, second = found
    assert (first.shown["buyer"].calls.tolist(), first.shown["clerk"].calls.tolist()) == ([0, 1], [1])
    assert (second.shown["buyer"].calls.tolist(), second.shown["buyer"].legal.tolist()) == ([0], [[True, False]])
    assert "clerk" not in second.shown
    assert second.left_out == {"buyer": {"hand_over": 1}, "clerk": {"sell": 1}}
