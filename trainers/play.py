"""Playing episodes with given policies, many side by side: evaluation, baselines and measuring before training."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from envs.session import Sampled, Session
from policies.playing import Choice, Playable, Turn
from runtime.records import Decided, Record, ToolAnswered, billed
from runtime.types import AgentId
from trainers.rllib.adapter import Adapter


@dataclass(frozen=True, slots=True)
class Played:
    """How one episode went."""

    episode: int
    team_return: float
    """In the reward terms' unit; NaN when a reward was missing."""
    returns: Mapping[AgentId, float]
    steps: int
    """Decisions, all agents together."""
    success: bool | None
    """None where the environment does not say."""
    rewards: Mapping[AgentId, Sequence[float]]
    """What each decision of an agent was paid: what falls between two of its turns counts for the earlier one."""
    records: Sequence[Record]
    """Empty for an environment that keeps none."""

    def calls(self) -> Counter[tuple[AgentId, str]]:
        """How often each agent called each tool."""
        return Counter((r.agent, r.call.tool) for r in self.records if isinstance(r, Decided))

    def invalid(self) -> Counter[AgentId]:
        """Calls that were answered with an error, by agent."""
        return Counter(r.agent for r in self.records if isinstance(r, ToolAnswered) and not r.ok)

    def cost_usd(self) -> float:
        """What tools and models were billed, in US dollars."""
        return sum(billed(r)[0] for r in self.records)


@dataclass(slots=True)
class Table:
    """One environment with the episode that is open in it."""

    env: Adapter
    episode: int
    observations: dict[AgentId, Any]
    infos: dict[AgentId, dict[str, Any]]
    returns: dict[AgentId, float] = field(default_factory=lambda: defaultdict(float))
    rewards: dict[AgentId, list[float]] = field(default_factory=lambda: defaultdict(list[float]))
    steps: int = 0

    def turns(self) -> list[Turn]:
        """Who acts now."""
        session = session_of(self.env)
        return [
            Turn(
                a,
                seen,
                tuple(self.infos[a]["key"]),
                self.infos[a]["turn"],
                None if session is None else partial(session.observe, a),
            )
            for a, seen in self.observations.items()
        ]


def session_of(env: Adapter) -> Session | None:
    """The session an environment is playing; None for one that is not a team's."""
    return getattr(env.env.unwrapped, "session", None)


def play(
    make_env: Callable[[], Adapter],
    seats: Mapping[AgentId, Playable],
    episodes: Iterable[int],
    *,
    seed: int,
    greedy: bool,
    width: int = 64,
) -> Iterator[Played]:
    """Play the numbered episodes, ``width`` at a time, and yield each as it ends.

    Args:
        make_env: makes an environment; as many are made as are played side by side.
        seats: who decides for each agent.
        episodes: numbers of the episodes of the environment's split.
        seed: the run's seed.
        greedy: the likeliest candidate, in place of one drawn.
    """
    waiting = iter(episodes)
    tables = [t for _ in range(width) if (t := _open(make_env, waiting, seed)) is not None]
    while tables:
        by_seat: dict[int, list[tuple[Table, Turn]]] = defaultdict(list)
        for table in tables:
            for turn in table.turns():
                by_seat[id(seats[turn.agent])].append((table, turn))
        chosen: dict[int, dict[AgentId, Choice]] = defaultdict(dict)
        for asked in by_seat.values():
            policy = seats[asked[0][1].agent]
            for (table, turn), choice in zip(asked, policy.decide([t for _, t in asked], greedy), strict=True):
                chosen[id(table)][turn.agent] = choice
        still: list[Table] = []
        for table in tables:
            ended = advance(table, chosen[id(table)])
            if ended is not None:
                yield ended
                following = _reopen(table, waiting, seed)
                if following is not None:
                    still.append(following)
            else:
                still.append(table)
        tables = still


def _open(make_env: Callable[[], Adapter], waiting: Iterator[int], seed: int) -> Table | None:
    episode = next(waiting, None)
    return None if episode is None else begin(make_env(), episode, seed)


def _reopen(table: Table, waiting: Iterator[int], seed: int) -> Table | None:
    episode = next(waiting, None)
    return None if episode is None else begin(table.env, episode, seed)


def begin(env: Adapter, episode: int, seed: int) -> Table:
    """Open an episode of the environment's split."""
    observations, infos = env.reset(seed=seed, options={"episode": episode})
    return Table(env, episode, observations, infos)


def advance(table: Table, choices: Mapping[AgentId, Choice]) -> Played | None:
    """Carry out everybody's choices; the episode, if it is over."""
    inner = table.env.env
    tell = getattr(inner, "sampled_as", None)
    for choice in choices.values():
        if tell is not None:
            tell(Sampled(choice.logp, choice.probabilities))
    observations, rewards, terminated, truncated, infos = table.env.step({a: c.action for a, c in choices.items()})
    table.steps += len(choices)
    for agent in choices:
        table.rewards[agent].append(0.0)
    for agent, reward in rewards.items():
        table.returns[agent] += reward
        if table.rewards[agent]:
            table.rewards[agent][-1] += reward
    if not (terminated["__all__"] or truncated["__all__"]):
        table.observations, table.infos = observations, infos
        return None
    session = session_of(table.env)
    team_return = table.env.team_return
    return Played(
        episode=table.episode,
        team_return=sum(table.returns.values()) if team_return is None else team_return,
        returns=dict(table.returns),
        steps=table.steps,
        success=session.success if session else None,
        rewards=dict(table.rewards),
        records=session.records if session else (),
    )
