"""The regression cases played once more, by the trained team: each by its name, beside what was recorded."""

from collections.abc import Iterable, Mapping
from itertools import takewhile

from assembly.build import REGRESSIONS, Build
from assembly.cases import Case
from assembly.paid import Compared, paid_in
from policies.playing import Playable
from runtime.types import AgentId
from telemetry.scalars import CaseReport
from trainers.evaluate import Purse, Tried
from trainers.play import Played, play
from trainers.rllib.algorithm import make_adapter


def played_again(build: Build, seats: Mapping[AgentId, Playable], purse: Purse) -> dict[str, CaseReport]:
    """How each regression case went, greedily, by name; those that the purse had nothing left for are left out.

    Args:
        build: the experiment.
        seats: who decides for each learning agent.
        purse: pays for the tools.
    """
    cases = build.playable_cases
    if not cases:
        return {}
    tried = Tried()
    wanted: Iterable[int] = takewhile(lambda _: not purse.empty(tried), range(len(cases)))
    found: dict[str, CaseReport] = {}
    for played in play(
        lambda: make_adapter(build, REGRESSIONS), seats, wanted, seed=build.experiment.seed, greedy=True
    ):
        tried.add(played)
        found[cases[played.episode].name] = _report(cases[played.episode], played)
    purse.pay(tried)
    return {case.name: found[case.name] for case in cases if case.name in found}


def _report(case: Case, played: Played) -> CaseReport:
    now = paid_in(played.records)
    compared = Compared(case.paid, now)
    worse = case.worse(compared, played.success)
    return CaseReport(
        passed=bool(played.success) and not worse,
        worse=worse,
        success=bool(played.success),
        return_now=compared.after,
        return_recorded=compared.before,
        terms=now,
        terms_recorded=dict(compared.was),
        why=case.why,
    )


def told(build: Build) -> str:
    """What is done with the regression cases, in words; empty: there are none."""
    if not build.cases:
        return ""
    skipped = len(build.cases) - len(build.playable_cases)
    rest = f", {skipped} of them only on record: their world cannot be made without their truth" if skipped else ""
    return f"regressions: {len(build.cases)} cases, {build.kept_out} training scenarios left out for them{rest}"
