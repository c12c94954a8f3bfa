"""From an experiment to its parts: the only place that wires them."""

import fnmatch
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from assembly.experiment import Experiment, Learning, Prompted, Scripted
from assembly.named import attribute, load_team, reward_term
from envs.candidates import candidates
from envs.scenarios import Generated, Listed, Source, read_scenarios
from rewards.mix import Mix, Weighted
from rewards.standardize import RewardStandardizer
from runtime.errors import TeamError
from runtime.types import AgentId, Baseline, RewardTerm, ScriptedPolicy, Team

if TYPE_CHECKING:
    from assembly.cases import Case, Kept
    from assembly.recorded import Recorded
    from policies.playing import Playable

REGRESSIONS = "regressions"
"""The split of the regression cases."""


@dataclass(frozen=True)
class Build:
    """An experiment's parts, made when they are asked for."""

    experiment: Experiment
    folder: Path = Path()
    """The experiment file's folder: the user's modules may lie there."""

    @cached_property
    def team(self) -> Team | None:
        """The team; None where a PettingZoo environment plays."""
        near = str(self.folder.resolve())
        if near not in sys.path:
            sys.path.append(near)
        return load_team(self.experiment.team) if self.experiment.team.use else None

    @cached_property
    def judge(self) -> Mix:
        """The reward terms of the file, weighted. A PettingZoo environment pays its own rewards."""
        own: Mapping[str, RewardTerm] = self.team.terms if self.team else {}
        refs = self.experiment.rewards.terms
        return Mix([Weighted(reward_term(r.use, r.args, own), r.weight) for r in refs])

    @property
    def exact_holds(self) -> bool:
        """Whether cases, pay and players are those that the team's exact baselines were computed for."""
        alone = len(self.learners) == len(self.agents)
        if self.team is None or not alone or not isinstance(self.source("eval"), Generated):
            return False
        asked = {w.term.name for w in self.judge.terms}
        return asked == (self.team.exact_for or set(self.team.terms)) and all(w.weight == 1.0 for w in self.judge.terms)

    def source(self, split: str) -> Source:
        """The scenarios of a split, ``train``, ``eval`` or ``regressions``.

        Raises:
            TeamError: for a PettingZoo environment, or where regression cases leave nothing to train on.
        """
        if self.team is None:
            raise TeamError("a PettingZoo environment has no scenarios: its episodes come from its own seeds")
        if split == REGRESSIONS:
            return Listed([case.scenario for case in self.playable_cases], 0, shuffle=False)
        return self._kept.source if split == "train" else self._sources[split]

    @cached_property
    def cases(self) -> "tuple[Case, ...]":
        """The regression cases; none where the file names none."""
        if self.experiment.evaluation.regressions is None:
            return ()
        from assembly.cases import read_cases

        return tuple(read_cases(Path(self.experiment.evaluation.regressions)))

    @cached_property
    def playable_cases(self) -> "tuple[Case, ...]":
        """Those that the team's world can be made of."""
        if self.team is None or not self.cases:
            return ()
        from assembly.recorded import playable

        return tuple(case for case in self.cases if playable(case.scenario, self.team))

    @property
    def kept_out(self) -> int:
        """How many of the training scenarios were regression cases and are not trained on; of an endless stream, among
        the first ones."""
        return self._kept.dropped

    @cached_property
    def _kept(self) -> "Kept":
        """The training scenarios without the regression cases."""
        from assembly.cases import without

        return without(self._sources["train"], self.cases)

    @cached_property
    def _sources(self) -> dict[str, Source]:
        assert self.team is not None
        cases, team = self.experiment.scenarios, self.team
        if cases.file:
            found = read_scenarios(Path(cases.file))
            held_out = [s for s in found if cases.holds_out(s.id)]
            train = [s for s in found if not cases.holds_out(s.id)]
            if not train or not held_out:
                raise TeamError(f"{cases.file}: too few scenarios to hold out {cases.held_out:.0%} of them")
            return {"train": Listed(train, self.experiment.seed), "eval": Listed(held_out, 0, shuffle=False)}
        made: dict[str, Source] = {}
        for split, part in (("train", cases.train), ("eval", cases.eval)):
            if split == "train" and self.recorded is not None:
                made[split] = Listed(self.recorded.scenarios, self.experiment.seed)
            elif part.file:
                made[split] = Listed(read_scenarios(Path(part.file)), self.experiment.seed, shuffle=split == "train")
            else:
                made[split] = Generated(team, split, part.seed, part.count)
        return made

    @cached_property
    def recorded(self) -> "Recorded | None":
        """The recorded sessions that are trained on, without those held out; None where scenarios come otherwise."""
        if self.team is None or self.experiment.scenarios.source is None:
            return None
        from assembly.recorded import recorded

        return recorded(self.experiment.scenarios, self.team)

    @property
    def held_out(self) -> int | None:
        """How many held-out scenarios there are; for a PettingZoo environment, how many episodes evaluation plays."""
        if self.team is None:
            return self.experiment.scenarios.eval.count
        source = self.source("eval")
        return source.count if isinstance(source, Generated) else len(source.scenarios)

    def env(self, split: str) -> Any:
        """A PettingZoo environment that plays the split's scenarios, AEC or parallel as turns are."""
        if self.team is None:
            name = self.experiment.team.pettingzoo
            assert name is not None
            from envs.pettingzoo_env import make

            return make(name, self.experiment.team.args)
        from envs.team_env import team_env

        return team_env(self.team, self.source(split), self.judge, self.experiment.seed)

    @cached_property
    def parallel(self) -> bool:
        """Whether everybody acts at once."""
        if self.team is not None:
            return self.team.turns.kind == "simultaneous"
        return not hasattr(self.env("train"), "agent_iter")

    @cached_property
    def agents(self) -> tuple[AgentId, ...]:
        """All agents, learning or not."""
        if self.team is not None:
            return tuple(r.name for r in self.team.roles)
        return tuple(self.env("train").possible_agents)

    @cached_property
    def policy_of(self) -> dict[AgentId, str]:
        """Which policy decides for each agent. Raises TeamError for an agent with none or two."""
        return {a: self._policy_for(a) for a in self.agents}

    def _policy_for(self, agent: AgentId) -> str:
        wanted = (self.team.role(agent).policy or agent) if self.team else agent
        policies = self.experiment.policies
        found = [n for n, p in policies.items() if _seats(p.roles, n, agent, wanted)]
        idle = self.team is not None and not self.team.role(agent).learns
        if idle and any(isinstance(policies[n], Learning) for n in found):
            raise TeamError(f"role {agent} does not learn (learns=False): give it a policy of kind scripted")
        if len(found) != 1:
            have = f"policies {', '.join(found)} all claim it" if found else "no policy decides for it"
            raise TeamError(f"role {agent}: {have}")
        return found[0]

    @cached_property
    def learned(self) -> dict[str, Learning]:
        """Policies that learn, by name."""
        used = set(self.policy_of.values())
        return {n: p for n, p in self.experiment.policies.items() if isinstance(p, Learning) and n in used}

    @cached_property
    def scripted(self) -> dict[AgentId, ScriptedPolicy]:
        """Agents that decide by rule."""
        return {
            a: self._rule(a, p)
            for a, n in self.policy_of.items()
            if isinstance(p := self.experiment.policies[n], Scripted)
        }

    def _rule(self, agent: AgentId, policy: Scripted) -> ScriptedPolicy:
        baselines: Mapping[str, Baseline] = self.team.baselines if self.team else {}
        if ":" in policy.use:
            found: Any = attribute(policy.use)
        elif policy.use in baselines and baselines[policy.use].policies is not None:
            found = baselines[policy.use].policies
        else:
            playable = [n for n, b in baselines.items() if b.policies]
            raise TeamError(
                f"policy {policy.use!r} for {agent} is no playable baseline of the team: {', '.join(playable)}"
            )
        return cast("Mapping[AgentId, ScriptedPolicy]", found)[agent] if isinstance(found, Mapping) else found

    @cached_property
    def learners(self) -> tuple[AgentId, ...]:
        """Agents whose policy learns."""
        return tuple(a for a, n in self.policy_of.items() if isinstance(self.experiment.policies[n], Learning))

    @cached_property
    def teammates(self) -> "dict[AgentId, Playable]":
        """Who decides for each agent that does not learn."""
        from policies.playing import RulePolicy

        rules = {a: RulePolicy(r) for a, r in self.scripted.items()}
        return {**rules, **{a: self._asked(a, p) for a, p in self.prompted.items()}}

    @cached_property
    def prompted(self) -> dict[AgentId, Prompted]:
        """Agents that a frozen language model decides for."""
        return {a: p for a, n in self.policy_of.items() if isinstance(p := self.experiment.policies[n], Prompted)}

    def _asked(self, agent: AgentId, policy: Prompted) -> "Playable":
        from policies.lm.prompt import role_text
        from policies.prompted import Asking, PromptedPolicy

        if self.team is None:
            raise TeamError(f"{agent} is prompted, and a PettingZoo environment has nothing to tell a language model")
        role = self.team.role(agent)
        asking = Asking(**policy.model_dump(exclude={"kind", "roles"}), folder=str(self.folder))
        return PromptedPolicy(asking, role_text(self.team, role, candidates(self.team, role)))

    def standardizer(self) -> "KeyedStandardizer | None":
        """A fresh standardizer as the file asks for; None for raw rewards."""
        asked = self.experiment.rewards.standardize
        if asked.per == "none":
            return None
        keys = {
            "agent": {a: a for a in self.agents},
            "policy": self.policy_of,
            "team": dict.fromkeys(self.agents, "team"),
        }
        return KeyedStandardizer(keys[asked.per], center=asked.center, clip=asked.clip)


class KeyedStandardizer(RewardStandardizer):
    """A standardizer that is updated and asked by agent, though several agents may share statistics."""

    def __init__(self, key_of: Mapping[AgentId, str], *, center: bool, clip: float) -> None:
        super().__init__(center=center, clip=clip)
        self.key_of = dict(key_of)

    def update(self, key: str, rewards: Any) -> None:
        """Count an agent's rewards in."""
        super().update(self.key_of.get(key, key), rewards)

    def transform(self, key: str, rewards: Any) -> Any:
        """Standardize an agent's rewards."""
        return super().transform(self.key_of.get(key, key), rewards)


def _seats(roles: tuple[str, ...] | None, policy: str, agent: AgentId, wanted: str) -> bool:
    if roles is None:
        return policy == wanted
    return any(fnmatch.fnmatchcase(agent, r) for r in roles)
