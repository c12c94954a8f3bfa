"""Agents as Ray actors: one mailbox, state that survives, deadlines, and an owner's epoch that fences zombies."""

from runtime.actor.agent import Agent, Reply
from runtime.actor.behaviour import Behaviour, Outcome, Send
from runtime.actor.errors import AgentLost, DeadlinePassed, NotStarted, SnapshotRefused
from runtime.actor.hosted import AgentActor, named
from runtime.actor.hosting import hosting
from runtime.actor.process import Health
from runtime.actor.spec import AgentSpec, BusSpec, Fault

__all__ = [
    "Agent",
    "AgentActor",
    "AgentLost",
    "AgentSpec",
    "Behaviour",
    "BusSpec",
    "DeadlinePassed",
    "Fault",
    "Health",
    "NotStarted",
    "Outcome",
    "Reply",
    "Send",
    "SnapshotRefused",
    "hosting",
    "named",
]
