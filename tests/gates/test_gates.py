"""What must hold before training, and that each gate closes for its own reason."""

import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
import yaml

from assembly.gates.chains import l2
from assembly.gates.measured import Gate
from assembly.gates.scraped import l3
from assembly.gates.steps import StepLimits, l1
from assembly.gates.table import TeamTables
from policies.playing import RandomPolicy
from runtime.records import Json
from runtime.terms import term
from runtime.types import Scenario, View
from telemetry.metrics.alerts import alert_rules
from telemetry.metrics.port import MetricsPort
from tests.gates.small import ROUNDS, Failing, Pipe, reported, tables, team

AGENTS = ("reader", "clerk")


def limits(ms: float = 200.0, success: float = 1.0, steps: int = 30) -> StepLimits:
    return StepLimits(steps=steps, success=success, mean_ms=dict.fromkeys(AGENTS, ms))


def closed(gate: Gate) -> list[str]:
    return [m.what for m in gate.measures if not m.ok]


@pytest.fixture
def port() -> Iterator[MetricsPort]:
    with MetricsPort(0, "gates") as opened:
        yield opened


class TestSteps:
    def test_a_sound_team_passes(self) -> None:
        """Every agent, alone and beside others, killed and brought back."""
        gate, played = l1(tables(team()), AGENTS, limits())
        assert gate.ok, closed(gate)
        assert [m.value for m in gate.measures if m.unit == "%"] == [100.0, 100.0]
        assert {m.what for m in gate.measures} >= {"two sessions share no state", "a killed agent comes back"}
        assert all(t.over for t in played)

    def test_a_step_that_raises_is_named(self) -> None:
        """Which agent, and what it said."""
        gate, _ = l1(tables(team(), {"reader": RandomPolicy(), "clerk": Failing(5)}), AGENTS, limits())
        assert not gate.ok
        assert closed(gate) == ["clerk: 30 steps in a row"]
        assert "the model's file is gone" in next(m.note for m in gate.measures if not m.ok)

    def test_one_failure_may_be_allowed(self) -> None:
        """The threshold is the file's."""
        gate, _ = l1(tables(team(), {"reader": RandomPolicy(), "clerk": Failing(5)}), AGENTS, limits(success=0.9))
        assert gate.ok, closed(gate)

    def test_slow_agents(self) -> None:
        """A mean above the limit closes the gate, and says what it was."""
        gate, _ = l1(tables(team()), AGENTS, limits(ms=1e-6))
        assert closed(gate) == ["reader: mean time of a step", "clerk: mean time of a step"]

    def test_an_agent_that_never_has_a_turn(self) -> None:
        """Nothing measured is not a pass."""
        gate, _ = l1(tables(team()), (*AGENTS, "ghost"), StepLimits(
            steps=2, success=1.0, mean_ms=dict.fromkeys((*AGENTS, "ghost"), 200.0)
        ))  # fmt: skip
        assert closed(gate) == ["ghost: 0 steps in a row"]

    def test_shared_state(self) -> None:
        """Two sessions on one world are found out."""
        shared: list[int] = []

        class Counting(Pipe):
            def look(self, agent: str) -> Json:
                shared.append(1)
                return len(shared)

        gate, _ = l1(tables(team(Counting)), AGENTS, limits())
        assert "two sessions share no state" in closed(gate)

    def test_a_world_that_cannot_be_rebuilt(self) -> None:
        """An agent whose world draws chance of its own does not come back as it was."""
        made: dict[int, int] = {}

        class Moody(Pipe):
            def __init__(self, scenario: Scenario) -> None:
                super().__init__(scenario)
                made[scenario.seed] = made.get(scenario.seed, 0) + 1
                self.mood = "fresh" if made[scenario.seed] <= 3 else "used"

            def look(self, agent: str) -> Json:
                return self.mood

        gate, _ = l1(tables(team(Moody)), AGENTS, limits(steps=5))
        assert "a killed agent comes back" in closed(gate)


class TestChains:
    def test_all_complete(self) -> None:
        """A hundred of a hundred, and nothing lost."""
        gate = l2(tables(team()), team(), 100, 1.0)
        assert gate.ok
        assert [m.value for m in gate.measures] == [100.0, 0.0]

    def test_turns_that_go_round(self) -> None:
        """A team without hand-overs has chains too: everybody acts, and it ends."""
        assert l2(tables(team(turns=ROUNDS)), team(turns=ROUNDS), 20, 1.0).ok

    def test_cut_chains(self) -> None:
        """Cases that a limit cut are not complete."""
        short = team(max_turns=1)
        gate = l2(tables(short), short, 20, 0.99)
        assert closed(gate) == ["complete chains reader -> clerk"]
        assert "cut" in gate.measures[0].note

    def test_a_lost_answer(self) -> None:
        """A call whose answer is on no record counts as a lost event."""
        good = tables(team())

        def losing(episode: int) -> object:
            table = good(episode)
            note = table.session.asking

            def ask(world, tool, call, stamp):
                return note(world, tool, call, {**stamp, "turn": stamp["turn"] + 7})

            table.session.asking = ask
            return table

        gate = l2(losing, team(), 10, 0.5)
        assert "events lost" in closed(gate)

    def test_a_game_has_none(self) -> None:
        """Not applicable, and that is printed."""
        gate = l2(tables(team()), None, 10, 1.0)
        assert gate.ok
        assert "PettingZoo" in gate.not_applicable


class TestScraped:
    def run(
        self, port: MetricsPort, opens: TeamTables, expected: Mapping[str, tuple[float, float]], outside: float = 0.05
    ) -> Gate:
        _, played = l1(opens, AGENTS, limits(steps=10))
        timed = {a: [ms for t in played for b, ms in t.took if b == a] for a in AGENTS}
        return l3(port, timed, played, expected, outside)

    def test_series_are_read_back(self, port: MetricsPort) -> None:
        """What was fed is what the port shows, over HTTP."""
        gate = self.run(port, tables(team()), {"reader": (-0.5, 1.5), "clerk": (-0.5, 1.5)})
        assert gate.ok, closed(gate)
        assert len(gate.measures) == 6

    def test_twice_on_one_port(self, port: MetricsPort) -> None:
        """A second trial is not confused by what the first one counted."""
        expected = {"reader": (-0.5, 1.5), "clerk": (-0.5, 1.5)}
        assert self.run(port, tables(team()), expected).ok
        assert self.run(port, tables(team()), expected).ok

    def test_rewards_out_of_range(self, port: MetricsPort) -> None:
        """A reward that rules and chance never earned closes the gate."""
        gate = self.run(port, tables(team()), {"reader": (-0.5, 1.5), "clerk": (-0.5, 0.5)})
        assert len(closed(gate)) == 1
        assert closed(gate)[0].startswith("clerk: rewards beyond [-0.5, 0.5]")

    def test_missing_rewards(self, port: MetricsPort) -> None:
        """A reward that is always missing has no series, and is not taken for zero."""

        @term(kind="cost", scope="agent")
        def broken(view: View) -> float:
            raise ValueError("no price")

        gate = self.run(port, tables(team(), None, reported, broken), {})
        assert [c for c in closed(gate) if "agent_reward_value" in c]
        assert {m.note for m in gate.measures if not m.ok} == {"every reward is missing"}


def test_alert_rules_hold_the_ranges(tmp_path: Path) -> None:
    """Prometheus takes the rules, and an alert fires for a reward out of the measured range only."""
    rules = tmp_path / "alerts.yaml"
    rules.write_text(alert_rules({"clerk": (-1.0, 2.0)}, {"clerk": 200.0}))
    checked = subprocess.run(["promtool", "check", "rules", str(rules)], capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    series = 'agent_reward_value{agent_id="clerk"}'
    trial = {
        "rule_files": [str(rules)],
        "evaluation_interval": "30s",
        "tests": [
            {
                "interval": "30s",
                "input_series": [{"series": series, "values": "1x20 5x20"}],
                "alert_rule_test": [
                    {"eval_time": "9m", "alertname": "RewardOutOfRange", "exp_alerts": []},
                    {
                        "eval_time": "15m",
                        "alertname": "RewardOutOfRange",
                        "exp_alerts": [
                            {
                                "exp_labels": {"agent_id": "clerk"},
                                "exp_annotations": {"summary": "clerk: mean reward is outside [-1, 2]"},
                            }
                        ],
                    },
                ],
            }
        ],
    }
    file = tmp_path / "trial.yaml"
    file.write_text(yaml.safe_dump(trial))
    tried = subprocess.run(["promtool", "test", "rules", str(file)], capture_output=True, text=True, check=False)
    assert tried.returncode == 0, tried.stdout + tried.stderr
