"""What one agent found, or was paid, is seen by the others only when it has been sent to them."""

from collections.abc import Iterator

from rewards.audit.findings import Evidence, Finding, Where, error
from rewards.audit.markers import normalized
from rewards.audit.material import Material
from rewards.audit.playing import Episode, Move, Sitting, seen_by
from runtime.leaves import leaves
from runtime.records import Observed, Sent, ToolAnswered
from runtime.types import AgentId, Pipeline

DISTINCT = 6
"""Letters and digits from which a finding is recognized when others see it."""


def cross_agent(material: Material) -> Iterator[Finding]:
    """Rewards: the same run judged and not judged must look the same. Findings: searched in what others see."""
    if material.has("terms"):
        yield from _one_each(_rewards(material))
    if isinstance(material.the_team.turns, Pipeline):
        yield from _one_each(_findings(material))


def _one_each(found: Iterator[Finding]) -> Iterator[Finding]:
    told: set[AgentId] = set()
    for finding in found:
        if finding.where.agent not in told:
            told.add(finding.where.agent)
            yield finding


# -- rewards


def _rewards(material: Material) -> Iterator[Finding]:
    for player in dict.fromkeys(n for n in ("random", "ask_everything", material.best) if n):
        for case in material.scenarios(max(2, material.effort.examples // 3)):
            unpaid, paid = (_run(material.sit(player, case, paid=p)) for p in (False, True))
            pairs = zip(unpaid.moves, paid.moves, strict=False)
            for one, two in pairs:
                if seen_by([one]) != seen_by([two]):
                    yield _pay_seen(one, two, paid)
                    break


def _run(sitting: Sitting) -> Episode:
    while not sitting.over:
        sitting.step()
    return sitting.episode()


def _pay_seen(one: Move, two: Move, episode: Episode) -> Finding:
    lines = [(a, b) for a, b in zip(one.seen.text.splitlines(), two.seen.text.splitlines(), strict=False) if a != b]
    without, with_pay = lines[0] if lines else (str(one.seen.mask), str(two.seen.mask))
    return error(
        "what the agent sees changes when rewards are computed: it is shown what somebody was paid",
        "let reward terms only read: nothing that a world, tool or case can reach may be written by a term",
        Where(agent=two.agent, step=two.step, episode=episode.name, player=episode.player),
        Evidence(saw=with_pay[:300], used=f"without rewards: {without[:300]}"),
    )


# -- findings


def _findings(material: Material) -> Iterator[Finding]:
    for player in ("random", "ask_everything"):
        for episode in material.episodes(player, material.effort.examples):
            yield from _overheard(episode)


def _overheard(episode: Episode) -> Iterator[Finding]:
    """Walks through a run: who has found what, and who has been told of it."""
    common = normalized(str(dict(episode.scenario.visible)))
    found: dict[AgentId, dict[str, str]] = {}
    told: dict[AgentId, str] = {}
    for record in episode.records:
        if isinstance(record, Observed):
            yield from _search(episode, record, found, f"{common}{told.get(record.agent, '')}")
        elif isinstance(record, ToolAnswered):
            told[record.agent] = told.get(record.agent, "") + normalized(str(record.value))
            own = found.setdefault(record.agent, {})
            for _, leaf in leaves(record.value):
                if len(normalized(str(leaf))) >= DISTINCT and not isinstance(leaf, bool):
                    own.setdefault(normalized(str(leaf)), record.tool)
        elif isinstance(record, Sent):
            told[record.to] = told.get(record.to, "") + normalized(str(record.payload))


def _search(episode: Episode, record: Observed, found: dict[AgentId, dict[str, str]], known: str) -> Iterator[Finding]:
    text = normalized(record.text)
    for agent, findings in found.items():
        if agent == record.agent:
            continue
        for finding, tool in findings.items():
            if finding in text and finding not in known:
                line = next((s for s in record.text.splitlines() if finding in normalized(s)), record.text)
                yield error(
                    f"the agent sees what {agent} found with {tool}, though nobody sent it",
                    "let findings travel by hand-over only: keep one agent's out of World.look and of others' answers",
                    Where(agent=record.agent, step=record.turn, episode=episode.name, player=episode.player),
                    Evidence(saw=line[:300], used=f"{agent}'s answer of {tool}: {finding[:120]}"),
                )
                return
