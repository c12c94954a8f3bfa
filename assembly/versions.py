"""An exported version, ready to play: its team, who decides in it, what it is paid."""

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import numpy as np

from assembly.named import attribute, load_team, reward_term
from assembly.sections import TeamRef
from assembly.sources import source_hash
from policies.export import BadExport, encoder_policy, kind_of, read
from policies.playing import Playable, RulePolicy, Turn
from rewards.mix import Mix, Weighted
from runtime.types import AgentId, ScriptedPolicy, Team

ABOUT, GOLDEN, STATISTICS = "team.json", "golden.json", "standardizer.json"
TIE = 1e-4
"""Nat: likelihoods nearer than this are one and the same."""


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
    golden: Sequence[Mapping[str, Any]] = ()
    """What was seen and decided at export: ``agent``, ``text``, ``mask``, ``action``, ``logp``."""

    def proves_itself(self) -> str:
        """Whether it still decides as it did at export; what is different, or nothing.

        Likelihoods that another machine rounds otherwise are let pass, up to 1e-4.
        """
        for place, each in enumerate(self.golden):
            seen = {"text": each["text"], "action_mask": np.asarray(each["mask"], np.int8)}
            seat = self.seats[each["agent"]]
            if each["logp"] is None:  # by rule, or by a model that is asked and paid for
                continue
            (choice,) = seat.decide([Turn(each["agent"], seen, (0, ""), 0)], True)
            drift = abs((choice.logp or 0.0) - (each["logp"] or 0.0))
            if choice.action != each["action"] and drift > TIE:
                return f"golden input {place}: {each['agent']} chose {choice.action}, at export {each['action']}"
            if drift > TIE:
                return f"golden input {place}: {each['agent']} is off by {drift:.2g} nat"
        return ""


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
        statistics = json.loads(files[STATISTICS])
        golden = json.loads(files.get(GOLDEN, b"[]"))
    except (KeyError, ValueError, TypeError) as error:
        raise BadExport(f"{directory}: {ABOUT} lacks or misnames a field: {error!r}") from None
    if ref.use is None:
        raise BadExport(f"{directory} plays a PettingZoo environment: it has no tools, so it is not run live")
    _near(directory)
    team = load_team(ref)
    if about.get("source") != source_hash(team):
        raise BadExport(f"{directory}: the tools of {ref.use} are not those it was exported with; export it again")
    learned = {p for a, p in policies.items() if a not in scripted}
    played = {p: _learned(p, files, directory) for p in learned}
    return Version(
        name=name,
        team=team,
        seats={a: _rule(team, a, scripted[a]) if a in scripted else played[p] for a, p in policies.items()},
        judge=Mix([Weighted(reward_term(t["use"], t["args"], team.terms), t["weight"]) for t in terms]),
        statistics=statistics,
        golden=golden,
    )


def _near(directory: Path) -> None:
    """Let the modules that lay beside the experiment file be found."""
    lineage = directory / "lineage.json"
    folder = json.loads(lineage.read_text()).get("folder") if lineage.is_file() else None
    if folder and folder not in sys.path:
        sys.path.append(folder)


def _learned(name: str, files: Mapping[str, bytes], directory: Path) -> Playable:
    kind = kind_of(name, files)
    if kind == "prompted":
        from policies.prompted import prompted_from

        return prompted_from(json.loads(files[f"policies/{name}.json"]))
    if kind == "causal_lm":
        from policies.lm.saving import lm_policy

        return lm_policy(name, files, directory)
    return encoder_policy(name, files)


def _rule(team: Team, agent: AgentId, use: str) -> RulePolicy:
    baseline = team.baselines.get(use)
    found: Any = baseline.policies if baseline and baseline.policies else attribute(use)
    return RulePolicy(cast("Mapping[AgentId, ScriptedPolicy]", found)[agent] if isinstance(found, Mapping) else found)
