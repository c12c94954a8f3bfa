"""A good file loads, whatever way its values come in, and is written down so that it loads again."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from assembly.experiment import Experiment
from assembly.loading import draft, load, resolved
from assembly.problems import Refused
from assembly.reference import TARGET, reference
from assembly.team_check import Known, accept
from rewards.terms import TERMS

ROOT = Path(__file__).parents[2]
GOOD = """
name: good
team: {use: two_seats:team, args: {pace: fast}}
policies: {asker: {kind: encoder}, teller: {kind: encoder}}
rewards: {terms: [{use: paid}, {use: solved, weight: 2}]}
"""


@pytest.fixture
def good(tmp_path: Path) -> Path:
    file = tmp_path / "good.yaml"
    file.write_text(GOOD)
    (tmp_path / "two_seats.py").write_text((Path(__file__).parent / "broken" / "two_seats.py").read_text())
    return file


@pytest.mark.parametrize("file", sorted((ROOT / "experiments").glob("*.yaml")), ids=lambda f: f.stem)
def test_every_experiment_of_ours_loads(file: Path) -> None:
    """What stands in experiments/ is accepted, and its resolved form is the same experiment."""
    experiment = load(file)
    assert experiment.name == file.stem


def test_the_reference_is_current() -> None:
    """docs/experiment-file.md is what `python -m assembly.reference` writes."""
    assert TARGET.read_text(encoding="utf-8") == reference()


def test_every_key_is_explained() -> None:
    """No row of the reference is without a meaning."""
    rows = [line for line in reference().splitlines() if line.startswith("| `")]
    assert len(rows) > 60
    assert not [row for row in rows if row.rstrip().endswith("|  |")]


def test_a_good_file_gives_experiment_team_and_seats(good: Path) -> None:
    """What is accepted comes with the team, and with who decides for whom; modules beside the file are found."""
    accepted = accept(good, [], Known(TERMS))
    assert accepted.team is not None
    assert accepted.team.name == "two_seats"
    assert accepted.seats == {"asker": "asker", "teller": "teller"}
    assert accepted.experiment.stop.iterations == 200


def test_a_shared_policy_is_seated_by_pattern(good: Path) -> None:
    """One policy may decide for all roles that a pattern names."""
    accepted = accept(good, ["policies={all: {kind: encoder, roles: ['*er']}}"], Known(TERMS))
    assert accepted.seats == {"asker": "all", "teller": "all"}


def test_overrides_write_single_keys(good: Path) -> None:
    """--set reaches into sections and lists, makes sections, and types values as the file does."""
    sets = ["ppo.lr=1e-4", "rewards.terms.1.weight=3", "seed=7", "stop.minutes=2.5", "stop.iterations=", "name=on"]
    experiment = load(good, sets)
    assert experiment.ppo.lr == (1e-4, 1e-4)
    assert experiment.rewards.terms[1].weight == 3
    assert (experiment.seed, experiment.stop.minutes, experiment.stop.iterations) == (7, 2.5, None)
    assert experiment.name == "on"


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("ppo.clip_parm=1", "--set ppo.clip_parm   ppo.clip_parm: unknown key; did you mean 'clip_param'?"),
        ("ppo.minibatch_size=9999", "--set ppo.minibatch_size   ppo.minibatch_size: 9999 is larger than"),
        ("seed", "wants dotted.key=value"),
        ("name.first=x", "name is a single value; it has no 'first' in it"),
        ("rewards.terms.9.use=x", "rewards.terms is a list of 2; '9' is no place in it"),
        ("seed=[1", "--set seed   seed: is not YAML"),
        ("seed=${NO_SUCH_SEED_SET}", "--set seed   seed: ${NO_SUCH_SEED_SET} is not set"),
    ],
)
def test_a_bad_override_is_refused_as_such(good: Path, override: str, said: str) -> None:
    """What --set wrote is named by its --set, not by a line."""
    with pytest.raises(Refused) as caught:
        load(good, [override])
    assert said in str(caught.value)
    assert len(caught.value.problems) == 1


def test_an_override_mends_what_the_file_has_wrong(good: Path) -> None:
    """A key that --set writes is judged by what it writes."""
    good.write_text(GOOD + "seed: ${NO_SUCH_SEED_SET}\n")
    assert load(good, ["seed=3"]).seed == 3


def test_variables_are_filled_in_and_typed(good: Path) -> None:
    """A variable's value is typed like any other; in single quotes it stays text; $${ is no variable."""
    good.write_text(
        GOOD.replace("good", '"${RUN}"', 1)
        + 'seed: ${SEED:-12}\nstop: {iterations: "${STEPS}"}\ngates: ${NOTHING:-{}}\n'
        + "scenarios: {file: '$${x}/${SEED:-5}'}\n"
    )
    work = draft(good, [], {"RUN": "night", "STEPS": "30"})
    experiment = work.experiment
    assert experiment is not None
    assert (experiment.name, experiment.seed, experiment.stop.iterations) == ("night", 12, 30)
    assert experiment.scenarios.file == str(good.parent / "${x}" / "5")
    assert [p.key for p in work.problems] == ["gates"]


def test_paths_are_from_the_experiment_file(good: Path) -> None:
    """A relative path means the same wherever the command is started."""
    (good.parent / "map.json").write_text("{}")
    work = draft(good, ["scenarios.train.file=a/cases.jsonl", "team.args.pace=./map.json", "team.args.size=../no.json"])
    assert work.experiment is not None
    assert work.experiment.scenarios.train.file == str(good.parent / "a" / "cases.jsonl")
    assert work.experiment.team.args["pace"] == str(good.parent / "map.json")
    assert [str(p) for p in work.problems] == ["team.args.size: no such file: ../no.json"]


def test_scenarios_in_training_are_not_held_out(good: Path) -> None:
    """Two files may not share a scenario."""
    case = '{{"visible": {{"n": {0}}}, "truth": {{}}}}\n'
    (good.parent / "a.jsonl").write_text(case.format(1) + case.format(2))
    (good.parent / "b.jsonl").write_text(case.format(2) + case.format(3))
    with pytest.raises(Refused, match="1 of its 2 scenarios stand in the training file too"):
        accept(good, ["scenarios.train.file=a.jsonl", "scenarios.eval.file=b.jsonl"], Known(TERMS))


def test_a_file_too_small_to_split_is_refused(good: Path) -> None:
    """One scenario cannot be both trained on and held out."""
    (good.parent / "one.jsonl").write_text('{"visible": {}, "truth": {}}\n')
    with pytest.raises(Refused, match="too few scenarios to split"):
        accept(good, ["scenarios.file=one.jsonl"], Known(TERMS))


def test_yaml_is_read_by_its_newer_version(good: Path) -> None:
    """1e-3 is a number; off, yes and 12:30 are words; dates are words."""
    args = load(good, ["team.args={a: 1e-3, b: off, c: 12:30, d: 2024-01-01, e: 0x1F, f: 012, g: ~, h: .5}"]).team.args
    assert args == {"a": 0.001, "b": "off", "c": "12:30", "d": "2024-01-01", "e": 31, "f": 12, "g": None, "h": 0.5}


def test_an_experiment_in_python_obeys_the_same_rules() -> None:
    """The model itself refuses what breaks a rule."""
    data = yaml.safe_load(GOOD)
    assert Experiment.model_validate(data).name == "good"
    with pytest.raises(ValueError, match=r"ppo\.minibatch_size: 512 is larger"):
        Experiment.model_validate({**data, "ppo": {"train_batch_size": 100}})


words = st.text(st.characters(codec="utf-8"), max_size=12)
odd = st.sampled_from(["${A}", "$${", "1e3", ".inf", "012", "<<", "=", "~", "null", "#", "2024-01-01"])
scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | words | odd
finite = st.recursive(scalars, lambda v: st.lists(v, max_size=3) | st.dictionaries(words, v, max_size=3), max_leaves=6)
values = finite | st.floats()
KEYS = [
    "name", "seed", "team", "team.use", "team.args", "scenarios", "scenarios.train.seed", "scenarios.eval.file",
    "policies", "policies.asker", "policies.asker.kind", "policies.asker.roles", "policies.asker.hidden", "rewards",
    "rewards.terms", "rewards.terms.0", "rewards.terms.0.use", "rewards.standardize", "rewards.audit.waive", "ppo",
    "ppo.lr", "ppo.minibatch_size", "resources.gpus", "resources.dashboard", "redis", "telemetry.otlp", "gates",
    "stop", "stop.score", "collapse", "limits.usd", "limits.tokens", "nothing",
]  # fmt: skip
quiet = settings(deadline=None, max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])


def _says_something(refused: Refused) -> None:
    assert refused.problems
    assert all(problem.message for problem in refused.problems)


@quiet
@given(st.dictionaries(st.sampled_from(KEYS), values, min_size=1, max_size=3))
def test_whatever_stands_at_a_key_it_is_accepted_or_refused(good: Path, written: dict[str, Any]) -> None:
    """Nothing but an Experiment or a Refused ever comes out, and what is accepted loads again."""
    try:
        experiment = load(good, [f"{key}={json.dumps(value)}" for key, value in written.items()])
    except Refused as refused:
        _says_something(refused)
        return
    again = good.with_name("again.yaml")
    again.write_text(resolved(experiment), encoding="utf-8")
    assert load(again) == experiment


@quiet
@given(st.text(max_size=80) | st.text("{}[]:,&*!|>'\"%@`#-?~ \n\ta1$", max_size=80))
def test_whatever_the_text_is_it_is_accepted_or_refused(good: Path, text: str) -> None:
    """No text brings anything but an Experiment or a Refused, in the file or in --set."""
    raw = text.encode("utf-8", "surrogatepass")
    good.write_bytes(raw)
    with pytest.raises(Refused):
        load(good)
    good.write_text(GOOD)
    try:
        load(good, [text, f"name={text}", f"team.args={text}"])
    except Refused as refused:
        _says_something(refused)


@quiet
@given(st.dictionaries(words, finite, max_size=3))
def test_what_is_resolved_loads_again_to_the_same(good: Path, args: dict[str, Any]) -> None:
    """The run directory's experiment.yaml is the experiment, whatever the team's arguments are."""
    experiment = Experiment.model_validate({**yaml.safe_load(GOOD), "team": {"use": "a:b", "args": args}})
    good.write_text(resolved(experiment), encoding="utf-8")
    assert load(good) == experiment
