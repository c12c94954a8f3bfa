"""An exported version, ready to play: its team, who decides in it, what it is paid."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from assembly.build import attribute, load_team, reward_term
from assembly.experiment import TeamRef
from assembly.sources import source_hash
from policies.export import BadExport, encoder_policy, read
from policies.playing import EncoderPolicy, Playable, RulePolicy
from rewards.mix import Mix, Weighted
from runtime.types import AgentId, ScriptedPolicy, Team

ABOUT = "team.json"


@dataclass(frozen=True, kw_only=True)
class Version:
    """A team as it was exported."""

    name: str
    """The hash of its content."""
    team: Team
    seats: Mapping[AgentId, Playable]
    """Who decides for each role."""
    judge: Mix
    """The reward terms that it was trained with, weighted."""
    statistics: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """The standardizer's frozen state."""


def load_version(directory: Path) -> Version:
    """Load an export and the team that it plays.

    Raises:
        BadExport: the export is damaged, or the team's tools are not those that it was exported with.
    """
    name, files = read(directory)
    try:
        about: dict[str, Any] = json.loads(files[ABOUT])
        ref = TeamRef(use=about["use"], args=about["args"])
        policies: Mapping[str, str] = about["policies"]
        scripted: Mapping[str, str] = about["scripted"]
        terms: list[dict[str, Any]] = about.get("rewards", [])
        statistics = json.loads(files["standardizer.json"])
    except (KeyError, ValueError, TypeError) as error:
        raise BadExport(f"{directory}: {ABOUT} lacks or misnames a field: {error!r}") from None
    if ref.use is None:
        raise BadExport(f"{directory} plays a PettingZoo environment: it has no tools, so it is not run live")
    team = load_team(ref)
    if about["source"] != source_hash(team):
        raise BadExport(f"{directory}: the tools of {ref.use} are not those it was exported with; export it again")
    learned = {p for a, p in policies.items() if a not in scripted}
    played: dict[str, EncoderPolicy] = {p: encoder_policy(p, files) for p in learned}
    return Version(
        name=name,
        team=team,
        seats={a: _rule(team, a, scripted[a]) if a in scripted else played[p] for a, p in policies.items()},
        judge=Mix([Weighted(reward_term(t["use"], t["args"], team.terms), t["weight"]) for t in terms]),
        statistics=statistics,
    )


def _rule(team: Team, agent: AgentId, use: str) -> RulePolicy:
    baseline = team.baselines.get(use)
    found: Any = baseline.policies if baseline and baseline.policies else attribute(use)
    rule: ScriptedPolicy = found[agent] if isinstance(found, Mapping) else found
    return RulePolicy(rule)
