"""What holds for either team."""

import json
import time
import warnings

import pytest
from jsonschema_rs import Draft202012Validator
from pettingzoo.test import api_test, seed_test

import envs.customer_service
import envs.equipment_inspection
from assembly.experiment import Experiment
from envs.scenarios import Generated
from envs.session import Session
from envs.team_env import TeamEnv
from runtime.errors import TeamError
from runtime.types import Team
from tests.teams.playing import interval, play, returns

TEAMS = {"customer_service": envs.customer_service.team(), "equipment_inspection": envs.equipment_inspection.team()}
WEIGHTS = {
    "customer_service": {"answered": 10.0, "tokens": 2.0, "tool_cost": 1.0, "wrong_promise": 5.0},
    "equipment_inspection": {"payoff": 1.0, "downtime": 1.0, "tool_cost": 1.0},
}


@pytest.fixture(params=list(TEAMS))
def team(request: pytest.FixtureRequest) -> Team:
    return TEAMS[request.param]


def test_petting_zoo_accepts_it(team: Team) -> None:
    """PettingZoo's own checks pass."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", module=r"pettingzoo|gymnasium")
        api_test(TeamEnv(team, Generated(team, "train", 1)), num_cycles=60)
        seed_test(lambda: TeamEnv(team, Generated(team, "train", 1)), num_cycles=40)


@pytest.mark.parametrize("by", ["random", "expert"])
def test_the_same_scenario_goes_the_same_way(team: Team, by: str) -> None:
    """Same scenario, same decisions: the same records, whatever the clock says."""
    for k in range(20):
        runs = [Session(team, Generated(team, "eval", 2)(k), clock=lambda: 0.0) for _ in range(2)]
        for run in runs:
            play(run, team.baselines[by].policies)
        assert runs[0].records == runs[1].records


def test_training_and_evaluation_share_no_case(team: Team) -> None:
    """The split is part of what a case is drawn from, and of its name."""
    train, held_out = ([Generated(team, split, 1)(k) for k in range(200)] for split in ("train", "eval"))
    assert not {s.id for s in train} & {s.id for s in held_out}
    assert not {(json.dumps(s.visible), s.seed) for s in train} & {(json.dumps(s.visible), s.seed) for s in held_out}


def test_cases_keep_their_types(team: Team) -> None:
    """Generated cases are what the team says that cases from a file must be."""
    for part in ("visible", "truth"):
        contract = Draft202012Validator(team.case_types[part])
        for k in range(200):
            contract.validate(getattr(Generated(team, "train", 1)(k), part))


def test_tools_have_contracts(team: Team) -> None:
    """Every tool has a schema of what goes in and what comes out, and its answers keep it."""
    for tool in team.tools.values():
        Draft202012Validator(dict(tool.input_schema))
        Draft202012Validator(dict(tool.output_schema))
        assert tool.input_schema["additionalProperties"] is False
    for k in range(50):
        session = Session(team, Generated(team, "eval", 2)(k))
        play(session, None)
        faults = [r.fault.code for r in session.records if r.kind == "tool_answered" and r.fault]  # pyright: ignore
        assert set(faults) <= {"tool_failed"}


def test_the_expert_beats_chance(team: Team) -> None:
    """Rules of a person earn more than chance: the 95% interval of the difference lies above 0."""
    weights = WEIGHTS[team.name]
    expert = returns(team, team.baselines["expert"].policies, weights, 500)
    assert interval(expert - returns(team, None, weights, 500))[0] > 0


def test_a_step_is_quick(team: Team) -> None:
    """The engine itself takes some hundred microseconds of processor time a step: a generous bound, for any machine."""
    source = Generated(team, "train", 1)
    play(Session(team, source(0)), None)  # reads the team's data, once a process
    steps, start = 0, time.process_time()
    for k in range(1, 100):
        session = Session(team, source(k))
        play(session, team.baselines["expert"].policies)
        steps += sum(r.kind == "decided" for r in session.records)  # pyright: ignore
    assert (time.process_time() - start) / steps < 2e-3


@pytest.mark.parametrize(
    ("make", "args"),
    [
        (envs.customer_service.team, {"context_tokens": 0}),
        (envs.customer_service.team, {"unclear": 1.5}),
        (envs.equipment_inspection.team, {"offline": -0.1}),
        (envs.equipment_inspection.team, {"mistyped": 2.0}),
    ],
)
def test_arguments_out_of_range_are_refused(make: type[Team], args: dict[str, float]) -> None:
    """A knob that makes no sense is an error that names it."""
    with pytest.raises(TeamError, match=next(iter(args))):
        make(**args)  # pyright: ignore


@pytest.mark.parametrize("name", list(TEAMS))
def test_its_experiment_file_names_what_exists(name: str) -> None:
    """Every role has a policy, and every reward term is the team's or the library's."""
    from pathlib import Path

    import yaml

    from rewards.terms import TERMS

    team = TEAMS[name]
    file = Path(__file__).parents[2] / "experiments" / f"{name}.yaml"
    model = Experiment.model_validate(yaml.safe_load(file.read_text(encoding="utf-8")))
    assert set(model.policies) == {r.name for r in team.roles}
    assert {t.use for t in model.rewards.terms} <= {*TERMS, *team.terms}
    assert {t.use: t.weight for t in model.rewards.terms} == WEIGHTS[name]
