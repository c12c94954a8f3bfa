"""What a world file is worth: the exact figures, and that real play earns them."""

from collections.abc import Mapping
from pathlib import Path
from random import Random

import pytest

from envs.supply_chain import team
from envs.supply_chain.baselines import Handoff
from envs.supply_chain.optimum import plan_for, random_play
from envs.supply_chain.world_file import WorldFile, read_world
from runtime.types import Baseline, ScriptedPolicy
from tests.supply_chain.toys import at_random, drawn_world, play, within, written

CASES, FEWER = 2000, 600


def exact(baseline: Baseline) -> float:
    assert baseline.exact is not None
    return baseline.exact()


def policies(baseline: Baseline) -> Mapping[str, ScriptedPolicy]:
    assert baseline.policies is not None
    return baseline.policies


@pytest.mark.parametrize(
    ("name", "usd"), [("optimal", 54.9758), ("random", -45.69), ("ask_everything", 40.61), ("ask_nothing", 8.0)]
)
def test_the_shipped_world_is_worth_what_is_known_of_it(name: str, usd: float) -> None:
    """The four figures of the shipped world, in USD a case."""
    assert exact(team().baselines[name]) == pytest.approx(usd, abs=0.005)


@pytest.mark.parametrize("name", ["ask_nothing", "ask_everything", "optimal"])
def test_a_baseline_earns_in_play_what_is_computed_for_it(name: str) -> None:
    """Played through tools, notes and reward terms, the mean return is the exact one, within chance."""
    shipped = team()
    played = policies(shipped.baselines[name])
    cases = CASES if name == "optimal" else FEWER
    assert within(play(shipped, played.__getitem__, cases), exact(shipped.baselines[name]))


@pytest.mark.parametrize("handoff", ["notes", "verdict"])
def test_random_play_earns_the_exact_figure(handoff: Handoff) -> None:
    """Uniform over legal calls; where a verdict travels each suspicion is a call of its own."""
    shipped = team(handoff=handoff)
    assert within(play(shipped, lambda agent: at_random, CASES), exact(shipped.baselines["random"]))


def test_the_expert_is_between_asking_nothing_and_the_optimum() -> None:
    """A person's checklist is worth something, and leaves room: at most 0.80 of the way from random to optimal."""
    shipped = team()
    returns = play(shipped, policies(shipped.baselines["expert"]).__getitem__, FEWER)
    mean, low, high = sum(returns) / FEWER, exact(shipped.baselines["random"]), exact(shipped.baselines["optimal"])
    assert mean > exact(shipped.baselines["ask_nothing"])
    assert (mean - low) / (high - low) <= 0.80


def by_hand(file: WorldFile, place: int, seen: dict[str, str]) -> float:
    """Expected return from here on, by looking at every continuation (USD)."""
    belief = dict(file.prior)
    for tool, finding in seen.items():
        entry = file.tools[tool]
        belief = {c: p * entry.likelihood[c][entry.findings.index(finding)] for c, p in belief.items()}
    mass = sum(belief.values())
    belief = {c: p / mass for c, p in belief.items()}
    if place == len(file.agents) - 1:
        return max(sum(belief[c] * file.payoff[r][c] for c in belief) for r in file.remedies)
    worth = [by_hand(file, place + 1, seen) - file.handoff_cost]
    for tool in file.owned(file.agents[place]):
        if tool not in seen:
            entry = file.tools[tool]
            chances = [sum(belief[c] * entry.likelihood[c][i] for c in belief) for i in range(len(entry.findings))]
            after = [by_hand(file, place, {**seen, tool: f}) for f in entry.findings]
            worth.append(sum(p * v for p, v in zip(chances, after, strict=True)) - entry.cost)
    return max(worth)


@pytest.mark.parametrize("seed", range(6))
def test_the_optimum_is_that_of_trying_everything(seed: int) -> None:
    """On worlds with other numbers and names, dynamic programming and plain recursion agree."""
    file = WorldFile.model_validate(drawn_world(seed))
    assert plan_for(file).value == pytest.approx(by_hand(file, 0, {}), abs=1e-9)


@pytest.mark.parametrize("seed", [1, 3])
def test_another_world_plays_and_earns_what_is_computed(seed: int, tmp_path: Path) -> None:
    """A team read from a file that nobody tuned for: every baseline earns its figure, none more than the optimum."""
    other = team(world=written(drawn_world(seed), tmp_path))
    best = exact(other.baselines["optimal"])
    assert within(play(other, lambda agent: at_random, FEWER), exact(other.baselines["random"]))
    for name in ("ask_nothing", "ask_everything", "optimal"):
        played = policies(other.baselines[name])
        assert within(play(other, played.__getitem__, FEWER), exact(other.baselines[name]))
        assert exact(other.baselines[name]) <= best + 1e-9


def test_a_verdict_can_be_played_and_is_measured_against_lossless_notes() -> None:
    """Asking everything and naming the likeliest cause earns its figure; the optimum is that of notes, out of reach."""
    verdict, notes = team(handoff="verdict"), team()
    played = policies(verdict.baselines["ask_everything"])
    assert within(play(verdict, played.__getitem__, FEWER), exact(verdict.baselines["ask_everything"]))
    assert exact(verdict.baselines["ask_everything"]) < exact(notes.baselines["ask_everything"])
    assert exact(verdict.baselines["optimal"]) == exact(notes.baselines["optimal"])
    assert verdict.baselines["optimal"].policies is None
    assert len(play(verdict, policies(verdict.baselines["expert"]).__getitem__, 20)) == 20


def test_random_play_of_one_tool_by_hand() -> None:
    """One tool asked with probability 1/2 before the hand-over, then any remedy."""
    world = drawn_world(0)
    world["agents"] = ["scout", "boss"]
    world["tools"] = {"scout_look-0": world["tools"]["scout_look-0"]}
    file = WorldFile.model_validate(world)
    remedies = [sum(p * file.payoff[r][c] for c, p in file.prior.items()) for r in file.remedies]
    expected = sum(remedies) / 4 - file.tools["scout_look-0"].cost / 2 - file.handoff_cost
    assert random_play(file) == pytest.approx(expected)


@pytest.mark.parametrize("handoff", ["notes", "verdict"])
def test_a_world_too_large_to_solve_plays_without_an_optimum(handoff: Handoff, tmp_path: Path) -> None:
    """Two dozen tools: random, nothing and the expert remain; asking everything needs notes to be played."""
    world = drawn_world(0)
    world["tools"] = {f"look-{i}": world["tools"]["scout_look-0"] for i in range(24)}
    large = team(world=written(world, tmp_path), handoff=handoff)
    assert "optimal" not in large.baselines
    for name in ("ask_nothing", "expert", *(["ask_everything"] if handoff == "notes" else [])):
        assert len(play(large, policies(large.baselines[name]).__getitem__, 5)) == 5


def test_the_plan_asks_only_what_is_worth_its_price() -> None:
    """At prices above any payoff nothing is asked; at the shipped world's, triage does ask."""
    world = drawn_world(2)
    chance = Random(1)
    for tool in world["tools"].values():
        tool["cost"] = chance.uniform(500, 600)
    assert plan_for(WorldFile.model_validate(world)).ask("scout", {}) is None
    assert plan_for(read_world("supply_chain_v1")).ask("triage", {}) is not None
