"""PPO written by hand in PyTorch: no library between the environment and the optimizer. What ours is compared with."""

import time
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from bench.settings import Contest, Lap
from policies.encoder import Actor, Critic

Floats = np.ndarray[Any, np.dtype[np.float32]]
TINY = 1e-20
"""Its logarithm is finite, and far from that of an illegal action's probability."""


@dataclass
class Rows:
    """One policy's decisions in the order in which they were taken."""

    features: list[Floats] = field(default_factory=list)
    masks: list[Any] = field(default_factory=list)
    actions: list[Tensor] = field(default_factory=list)
    logp: list[Tensor] = field(default_factory=list)
    rewards: list[float] = field(default_factory=list)
    trajectories: list[list[int]] = field(default_factory=list)


class Handwritten:
    """PPO on an AEC environment whose agents all end together: environments side by side, a forward a policy and step.

    Args:
        contest: the environment, features, networks and sizes.
        envs: environments side by side.
    """

    def __init__(self, contest: Contest, envs: int) -> None:
        build, self.ppo, self.seats = contest.build, contest.ppo, contest.seats
        torch.manual_seed(build.experiment.seed)
        self.envs = [build.env("train") for _ in range(envs)]
        self.policy_of = build.policy_of
        self.actors = {n: Actor(s.spec) for n, s in self.seats.items()}
        self.critics = {n: Critic(s.spec) for n, s in self.seats.items()}
        self.parameters = {n: [*self.actors[n].parameters(), *self.critics[n].parameters()] for n in self.seats}
        self.adams = {n: torch.optim.Adam(p, self.ppo.lr[0], fused=True) for n, p in self.parameters.items()}
        self.opened = 0

    def lap(self) -> Lap:
        """One iteration: whole episodes until there are enough env steps, then the update."""
        began = time.perf_counter()
        rows, steps = self._sample()
        sampled = time.perf_counter()
        for name, found in rows.items():
            self._learn(name, found)
        ended = time.perf_counter()
        return Lap(steps, sampled - began, ended - sampled, ended - began)

    def close(self) -> None:
        """Nothing to release."""

    def _open(self, env: Any) -> dict[str, list[int]]:
        env.reset(seed=self.opened, options={"episode": self.opened})
        self.opened += 1
        return {}

    def _sample(self) -> tuple[dict[str, Rows], int]:
        rows: dict[str, Rows] = defaultdict(Rows)
        live = [(env, self._open(env)) for env in self.envs]
        steps = 0
        while live:
            groups: dict[str, list[int]] = defaultdict(list)
            for i, (env, _) in enumerate(live):
                groups[self.policy_of[env.agent_selection]].append(i)
            actions = [0] * len(live)
            for name, places in groups.items():
                self._decide(name, rows[name], [live[i] for i in places], places, actions)
            steps += len(live)
            still: list[Any] = []
            for (env, played), action in zip(live, actions, strict=True):
                if not self._step(env, played, action, rows):
                    still.append((env, played))
                elif steps < self.ppo.train_batch_size:
                    still.append((env, self._open(env)))
            live = still
        return rows, steps

    @torch.no_grad()
    def _decide(self, name: str, rows: Rows, group: list[Any], places: list[int], actions: list[int]) -> None:
        agents = [env.agent_selection for env, _ in group]
        seen = self.seats[name].featurize([env.observe(a) for (env, _), a in zip(group, agents, strict=True)])
        legal = torch.from_numpy(seen["action_mask"])
        log_bk = self.actors[name](torch.from_numpy(seen["features"]), legal).log_softmax(-1)
        chosen = (log_bk - torch.empty_like(log_bk).exponential_().clamp_min_(TINY).log()).argmax(-1)  # Gumbel-max
        rows.features.append(seen["features"])
        rows.masks.append(seen["action_mask"])
        rows.actions.append(chosen)
        rows.logp.append(log_bk.gather(-1, chosen[:, None])[:, 0])
        for (_, played), agent, place, action in zip(group, agents, places, chosen.tolist(), strict=True):
            actions[place] = action
            played.setdefault(agent, []).append(len(rows.rewards))
            rows.rewards.append(0.0)

    def _step(self, env: Any, played: dict[str, list[int]], action: int, rows: dict[str, Rows]) -> bool:
        env.step(action)
        for agent, reward in env.rewards.items():
            if reward and agent in played:
                rows[self.policy_of[agent]].rewards[played[agent][-1]] += reward
        over = env.terminations[env.agent_selection] or env.truncations[env.agent_selection]
        if over:
            for agent, trajectory in played.items():
                rows[self.policy_of[agent]].trajectories.append(trajectory)
        return over

    def _learn(self, name: str, rows: Rows) -> None:
        actor, critic, ppo = self.actors[name], self.critics[name], self.ppo
        features = torch.from_numpy(np.concatenate(rows.features))
        masks = torch.from_numpy(np.concatenate(rows.masks))
        actions, before = torch.cat(rows.actions), torch.cat(rows.logp)
        with torch.no_grad():
            values = critic(features).numpy()
        advantages = gae(np.asarray(rows.rewards, np.float32), values, rows.trajectories, ppo.gamma, ppo.lambda_)
        targets = torch.from_numpy(advantages + values)
        gains = torch.from_numpy((advantages - advantages.mean()) / (advantages.std() + 1e-8))
        columns = (features, masks, actions, before, gains, targets)
        parts = -(-len(actions) // ppo.minibatch_size)
        for _ in range(ppo.num_epochs):
            order = torch.randperm(len(actions))
            for f, m, a, b, g, t in zip(*(torch.tensor_split(c[order], parts) for c in columns), strict=True):
                log_bk = actor(f, m).log_softmax(-1)
                ratio = (log_bk.gather(-1, a[:, None])[:, 0] - b).exp()
                clipped = ratio.clamp(1 - ppo.clip_param, 1 + ppo.clip_param)
                entropy = -(log_bk.exp() * log_bk).sum(-1)
                loss = -torch.min(g * ratio, g * clipped) + ppo.vf_loss_coeff * (critic(f) - t).square()
                (loss - ppo.entropy_coeff[0] * entropy).mean().backward()
                if ppo.grad_clip is not None:
                    torch.nn.utils.clip_grad_norm_(self.parameters[name], ppo.grad_clip)
                self.adams[name].step()
                self.adams[name].zero_grad(set_to_none=True)


def gae(rewards: Floats, values: Floats, trajectories: list[list[int]], gamma: float, lambda_: float) -> Floats:
    """Generalized advantage estimates (Schulman et al. 2016, eq. 16) of terminated trajectories, all at once.

    Args:
        rewards: ``(N,)`` by row.
        values: ``(N,)`` critic values by row.
        trajectories: the rows of each.
        gamma: discount a turn.
        lambda_: decay a turn.

    Returns:
        ``(N,)`` advantages by row.
    """
    longest = max(map(len, trajectories))
    rows_nt = np.full((len(trajectories), longest), len(rewards))
    for line, rows in zip(rows_nt, trajectories, strict=True):
        line[: len(rows)] = rows
    padded_r, padded_v = (np.append(x, np.float32(0.0)) for x in (rewards, values))
    advantages = np.zeros(len(rewards) + 1, np.float32)
    ahead_v = ahead_a = np.zeros(len(trajectories), np.float32)
    for t in reversed(range(longest)):
        at = rows_nt[:, t]
        here = at < len(rewards)
        ahead_a = np.where(here, padded_r[at] + gamma * ahead_v - padded_v[at] + gamma * lambda_ * ahead_a, 0.0)
        ahead_v = padded_v[at]
        advantages[at] = ahead_a
    return advantages[:-1]
