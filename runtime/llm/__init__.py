"""Asking language models, in bounded time and with one retry authority (see docs/models-and-tools.md)."""

from runtime.llm.limits import Limits, Seams
from runtime.llm.model import Model, Price
from runtime.llm.settings import ModelSettings, build
from runtime.llm.types import Answer, Answered, Message, Request, Unavailable

__all__ = [
    "Answer",
    "Answered",
    "Limits",
    "Message",
    "Model",
    "ModelSettings",
    "Price",
    "Request",
    "Seams",
    "Unavailable",
    "build",
]
