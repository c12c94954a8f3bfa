"""Where scenarios come from."""

import os
from pathlib import Path

import pytest

from envs.scenarios import Generated, Listed, read_scenarios
from runtime.errors import TeamError
from runtime.types import Scenario
from tests.envs.toys import clinic


def listed(count: int, seed: int = 0) -> Listed:
    return Listed([Scenario(id=str(k), visible={}, truth={}) for k in range(count)], seed=seed)


def test_a_generator_makes_the_same_scenario_for_the_same_place() -> None:
    """Split, seed and index are all there is to it; training and evaluation never meet."""
    source = Generated(clinic(), "train", seed=1)
    assert source(3) == source(3)
    assert source(3) != source(4)
    assert {source(k).id for k in range(50)}.isdisjoint({Generated(clinic(), "eval", seed=1)(k).id for k in range(50)})


def test_a_count_repeats_the_stream_and_counts_its_epochs() -> None:
    """Scenario 7 of 5 is scenario 2, for the second time."""
    source = Generated(clinic(), "train", seed=1, count=5)
    assert source(7) == source(2)
    assert (source.epoch(4), source.epoch(7)) == (0, 1)
    assert Generated(clinic(), "train", seed=1).epoch(10**9) == 0


def test_a_team_without_a_generator_says_what_to_do() -> None:
    """No scenarios is a refusal that names the remedy."""
    with pytest.raises(TeamError, match="generates no scenarios: give it a file"):
        Generated(clinic(generate=None), "train", seed=1)(0)


def test_every_scenario_of_a_file_is_played_once_an_epoch() -> None:
    """The order is drawn anew each time round, by the seed."""
    source = listed(7, seed=3)
    epochs = [[source(e * 7 + k).id for k in range(7)] for e in range(4)]
    assert all(sorted(e) == [str(k) for k in range(7)] for e in epochs)
    assert len({tuple(e) for e in epochs}) > 1
    assert epochs == [[listed(7, seed=3)(e * 7 + k).id for k in range(7)] for e in range(4)]
    assert epochs[0] != [listed(7, seed=4)(k).id for k in range(7)]
    assert source.epoch(13) == 1


def test_a_file_can_be_played_in_its_own_order() -> None:
    """Without shuffling, line by line."""
    source = Listed(listed(3).scenarios, seed=0, shuffle=False)
    assert [source(k).id for k in range(6)] == ["0", "1", "2", "0", "1", "2"]


def test_scenarios_are_read_from_jsonl(tmp_path: Path) -> None:
    """An object a line; id and seed are optional; empty lines do not count."""
    file = tmp_path / "cases.jsonl"
    file.write_text('{"visible": {"a": 1}, "truth": {}}\n\n{"id": "x", "visible": {}, "truth": {"b": 2}, "seed": 9}\n')
    first, second = read_scenarios(file)
    assert (first.id, dict(first.visible)) == ("cases:1", {"a": 1})
    assert (second.id, dict(second.truth), second.seed) == ("x", {"b": 2}, 9)
    assert read_scenarios(file)[0].seed == first.seed


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "holds no scenario"),
        ("{", "line 1"),
        ("[]", "line 1: a scenario is"),
        ('{"visible": {}}', "line 1: a scenario is"),
        ('{"visible": {}, "truth": {}}\n{"visible": {}, "truth": {}, "sed": 1}', "line 2: unknown field 'sed'"),
        (
            '{"id": "a", "visible": {}, "truth": {}}\n{"id": "a", "visible": {}, "truth": {}}',
            "line 2: has the id .a., as line 1",
        ),
        ('{"visible": {}, "truth": {}, "seed": "x"}', "line 1"),
        ("{\n" * 9, "and 4 more"),
    ],
)
def test_a_bad_file_is_refused_with_line_numbers(tmp_path: Path, text: str, said: str) -> None:
    """Every problem at once, where it stands."""
    file = tmp_path / "cases.jsonl"
    file.write_text(text)
    with pytest.raises(TeamError, match=said):
        read_scenarios(file)


GOOD = '{"visible": {"a": 1}, "truth": {"b": 2}}'


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (
            '{"visible": {"a": ' + "[" * 100_000 + "]" * 100_000 + '}, "truth": {}}',
            "line 2: is nested more than 64 deep",
        ),
        ('{"visible": {"a": NaN}, "truth": {}}', "line 2: NaN is no number that JSON can say"),
        ('{"visible": {"a": 1e999}, "truth": {}}', "line 2: 1e999 is no number that JSON can say"),
        ('{"visible": {}, "visible": {}, "truth": {}}', "line 2: the key 'visible' is written twice"),
        ('{"visible": {"a": {"x": 1, "x": 2}}, "truth": {}}', "line 2: the key 'x' is written twice"),
        ('{"truth": {"b": 2}, "visible": {"a": 1}}', "line 2: is the same case as line 1"),
        ('{"id": 5, "visible": {}, "truth": {}}', "line 2: id is 5; give a text"),
        ('{"id": "", "visible": {}, "truth": {}}', 'line 2: id is ""; give a text'),
        ('{"id": "cases:1", "visible": {}, "truth": {}}', "line 2: has the id 'cases:1', as line 1"),
        ('{"visible": {}, "truth": {}, "seed": "x"}', 'line 2: seed is "x"; give a whole number'),
        ('{"visible": {}, "truth": {}, "seed": true}', "line 2: seed is true; give a whole number"),
        ('{"visible": {}, "truth": {}, "seed": 1.0}', "line 2: seed is 1.0; give a whole number"),
        ('{"visible": {"a": "' + "x" * 1_000_000 + '"}, "truth": {}}', "a case has 1,000,000 at most"),
    ],
    ids=lambda text: text[:40],
)
def test_a_line_that_is_no_case_is_told_by_its_number(tmp_path: Path, line: str, said: str) -> None:
    """What JSON cannot say, or says twice, or what stands there already, is refused in words."""
    file = tmp_path / "cases.jsonl"
    file.write_text(f"{GOOD}\n{line}\n")
    with pytest.raises(TeamError) as refused:
        read_scenarios(file)
    assert said in str(refused.value)


def test_equal_cases_with_seeds_of_their_own_are_two(tmp_path: Path) -> None:
    """What chance does in them differs, and brackets within a text nest nothing."""
    file = tmp_path / "cases.jsonl"
    file.write_text("\n".join(f'{{"visible": {{"a": "{"[" * 99}"}}, "truth": {{}}, "seed": {n}}}' for n in (1, 2)))
    assert [s.seed for s in read_scenarios(file)] == [1, 2]


def test_a_mark_at_the_beginning_is_no_part_of_the_first_line(tmp_path: Path) -> None:
    """Some editors write it; experiment files may have it too."""
    file = tmp_path / "cases.jsonl"
    file.write_text(GOOD, encoding="utf-8-sig")
    assert len(read_scenarios(file)) == 1


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    """Nobody may ever write into it."""
    pipe = tmp_path / "pipe.jsonl"
    os.mkfifo(pipe)
    with pytest.raises(TeamError, match="no file but a pipe or a device"):
        read_scenarios(pipe)
