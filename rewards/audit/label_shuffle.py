"""Truths permuted among cases: the pay must drop, and a player that asks nothing must not know the answer."""

import dataclasses
import math
from collections.abc import Iterator, Mapping, Sequence
from random import Random
from statistics import fmean, stdev

from rewards.audit.findings import Evidence, Finding, Where, error, note
from rewards.audit.judging import in_training
from rewards.audit.material import Material
from rewards.audit.players import at_random, following
from rewards.audit.playing import Episode, Seats, Sitting, Table, played
from runtime.records import Json, ToolCall, ToolCalled
from runtime.types import AgentId, Observation, Scenario, ScriptedPolicy

FEWEST = 8
"""Cases from which a mean difference can be told."""
GOES_WITH = 0.9
"""Share of cases in which success must be paid more for an outcome to be about what success is about."""
SURE = 4.0
"""Standard errors from which a mean difference is none of chance's."""


def label_shuffle(material: Material) -> Iterator[Finding]:
    """Episodes replayed call by call under another case's truth, then players that hear no answer."""
    outcome = {w.term.name for w in material.mix.terms if w.term.kind == "outcome" and w.weight}
    cases = list(material.scenarios(4 * material.effort.examples))
    if not outcome or all(c.truth == cases[0].truth for c in cases):
        yield note("there is no outcome term, or the truth is the same in every case: nothing to shuffle")
        return
    yield from _reward_depends(material, cases, outcome)
    if not material.the_team.opening_reveals:
        yield from _nobody_knows(material, cases, outcome)


def _donor(cases: Sequence[Scenario], place: int) -> Scenario:
    """The next case with another truth; the case itself if there is none."""
    turned = (*cases[place + 1 :], *cases[:place])
    return next((c for c in turned if c.truth != cases[place].truth), cases[place])


def _shuffled(case: Scenario, donor: Scenario) -> Scenario:
    return dataclasses.replace(case, truth={**case.truth, **donor.truth})


def _outcome_of(material: Material, episode: Episode, terms: set[str]) -> float:
    return math.fsum(
        math.nan if p.value is None else p.value for p in in_training(material.mix, episode) if p.term in terms
    )


def _replayed(material: Material, episode: Episode, case: Scenario) -> Episode | None:
    """The same calls on another case; None where its world does not take them."""
    calls: dict[AgentId, list[int | ToolCall]] = {}
    for move in episode.moves:
        calls.setdefault(move.agent, []).append(move.action)
    seats: Seats = dict.fromkeys(material.agents, following(calls))
    try:
        return played(Sitting(material.opens(case, material.seed), seats, "replay", material.seed))
    except Exception:  # noqa: BLE001 - a world may refuse a truth that does not belong to its case
        return None


# -- does the reward depend on the truth?


def _reward_depends(material: Material, cases: Sequence[Scenario], outcome: set[str]) -> Iterator[Finding]:
    players = [n for n in dict.fromkeys((material.best, "random", "last_legal")) if n]
    drops = {n: _drops(material, n, cases, outcome) for n in players}
    everything = [d for found in drops.values() for d in found]
    if not everything:
        yield note("no world could be built with another case's truth: nothing was shuffled")
    elif all(d == 0 for _, d, _ in everything):
        case, _, paid = everything[0]
        if _known_by_success(material, outcome):
            yield note("what the outcome pays does not depend on the truth, and still goes with success")
            return
        yield error(
            f"the outcome terms ({', '.join(sorted(outcome))}) pay the same whatever the truth is",
            "let an outcome term compare what the team did with the truth",
            Where(term=min(outcome), episode=case.id),
            Evidence(numbers={"episodes": len(everything), "paid": paid}),
        )
    elif material.best:
        yield from _must_drop(material.best, [d for _, d, _ in drops[material.best]], outcome)


def _known_by_success(material: Material, outcome: set[str]) -> bool:
    """Whether in each case those who succeed are paid more than those who fail; or nobody knows, as all end alike."""
    by_case: dict[str, dict[bool, list[float]]] = {}
    for player in material.players:
        for episode in material.episodes(player, 4 * material.effort.examples):
            sides = by_case.setdefault(episode.name, {True: [], False: []})
            sides[episode.success].append(_outcome_of(material, episode, outcome))
    told = [fmean(sides[True]) > fmean(sides[False]) for sides in by_case.values() if sides[True] and sides[False]]
    return sum(told) >= GOES_WITH * len(told)


def _drops(
    material: Material, player: str, cases: Sequence[Scenario], outcome: set[str]
) -> list[tuple[Scenario, float, float]]:
    """By case: how much less the same calls earn under another truth, and what they earned."""
    found: list[tuple[Scenario, float, float]] = []
    for place, episode in enumerate(material.episodes(player, len(cases))):
        there = _replayed(material, episode, _shuffled(cases[place], _donor(cases, place)))
        if there is not None:
            here = _outcome_of(material, episode, outcome)
            drop = here - _outcome_of(material, there, outcome)
            if math.isfinite(drop):
                found.append((cases[place], drop, here))
    return found


def _must_drop(best: str, drops: list[float], outcome: set[str]) -> Iterator[Finding]:
    mean, sure = sureness(drops)
    if sure < -SURE:
        yield error(
            f"{best} play earns more when the truth is another: the outcome pays for being wrong",
            "turn the sign of the outcome term, or the comparison in it",
            Where(term=min(outcome), player=best),
            Evidence(numbers={"mean drop": mean, "standard errors": sure, "episodes": len(drops)}),
        )


def sureness(values: Sequence[float]) -> tuple[float, float]:
    """The mean, and how many standard errors it is from 0; none where the values are too few to be sure of anything."""
    if len(values) < FEWEST:
        return (fmean(values) if values else 0.0), 0.0
    mean, spread = fmean(values), stdev(values)
    if spread == 0:
        return mean, math.copysign(math.inf, mean) if mean else 0.0
    return mean, mean / (spread / math.sqrt(len(values)))


# -- does anybody know the answer without having asked?


def _nobody_knows(material: Material, cases: Sequence[Scenario], outcome: set[str]) -> Iterator[Finding]:
    """Players that hear no answer: under the true case they may not do better than under another."""
    playable = [n for n, b in material.the_team.baselines.items() if b.policies]
    for name in playable:
        gains: list[float] = []
        example: Episode | None = None
        for place, case in enumerate(cases):
            table = material.opens(case, material.seed)
            here = played(Sitting(table, _deaf(material.players[name], table), name, material.seed))
            there = _replayed(material, here, _shuffled(case, _donor(cases, place)))
            if there is not None:
                gain = _outcome_of(material, here, outcome) - _outcome_of(material, there, outcome)
                gains += [gain] if math.isfinite(gain) else []
                example = here if gain > 0 else example
        mean, sure = sureness(gains)
        if sure > SURE and example is not None:
            yield _knows(name, example, {"mean gain": mean, "standard errors": sure, "episodes": len(gains)})


def _deaf(seats: Seats, table: Table) -> dict[AgentId, ScriptedPolicy]:
    """The same players with every answer, note and error kept from them.

    So is what the world shows once a tool has been asked: it may show, by design, what the tool has found.
    """

    def deaf(rule: ScriptedPolicy) -> ScriptedPolicy:
        def choose(seen: Observation, chance: Random) -> int | ToolCall:
            kept = {"case"} if any(isinstance(r, ToolCalled) for r in table.records) else {"case", "world"}
            bare = dataclasses.replace(seen, seen=tuple(s for s in seen.seen if s.kind in kept))
            try:
                call = rule(bare, chance)
            except Exception:  # noqa: BLE001 - a rule may rely on answers
                return at_random(seen, chance)
            places = [i for i, ok in enumerate(seen.mask) if ok and (i == call or seen.candidates[i] == call)]
            return places[0] if places else at_random(seen, chance)

        return choose

    return {agent: deaf(rule) for agent, rule in seats.items()}


def _knows(name: str, example: Episode, numbers: Mapping[str, float]) -> Finding:
    last: Json = example.moves[-1].seen.seen[0].data
    call = example.moves[-1].action
    return error(
        f"{name} play knows the answer with every tool's answer kept from it: it has seen the truth",
        "keep the truth out of what is visible and out of what policies can reach, or name it in Team.opening_reveals",
        Where(episode=example.name, agent=example.moves[-1].agent, player=name),
        Evidence(
            numbers=numbers,
            saw=str(last)[:240],
            used=f"decided: {call if isinstance(call, int) else call.model_dump()}",
        ),
    )
