"""How a node asks its model, seen by running it up to the moment in which it would."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, cast

from envs.adapters.graph_parts import runner


@dataclass(frozen=True, slots=True)
class Asked:
    """What a model was about to be asked."""

    system: str
    """The system prompt; empty: there is none."""
    tools: tuple[str, ...]
    """The names of the tools that are bound to it."""


class _Stopped(BaseException):
    """Goes through a node's own ``except Exception``: nothing in it is to run any further."""

    def __init__(self, asked: Asked) -> None:
        super().__init__(asked)
        self.asked = asked


def asked(graph: Any, state: Mapping[str, Any], context: Any) -> Asked | None:
    """Run a graph on a state until a chat model is asked. None: none was. What it raises before is raised."""
    from langchain_core.callbacks import BaseCallbackHandler

    class Probe(BaseCallbackHandler):
        """Stops at the first chat model."""

        raise_error = True
        run_inline = True

        def on_chat_model_start(
            self, serialized: dict[str, Any] | None, messages: list[list[Any]], **more: Any
        ) -> None:
            """A model is about to be asked."""
            del serialized
            raise _Stopped(_told(messages[0], more.get("invocation_params") or {}))

    config: Any = {"callbacks": [Probe()], "configurable": {}}
    try:
        runner(graph)(dict(state), config, context=context)
    except _Stopped as stopped:
        return stopped.asked
    return None


def _told(messages: Iterable[Any], params: Mapping[str, Any]) -> Asked:
    system = "\n".join(str(m.content) for m in messages if m.type == "system")
    return Asked(system, tuple(dict.fromkeys(filter(None, map(_name, params.get("tools") or ())))))


def _name(spec: Any) -> str:
    """A tool's name in whatever form a provider is given it."""
    fields = cast("Mapping[str, Any]", spec if isinstance(spec, Mapping) else {})
    inner: Any = fields.get("function", fields)
    return str(cast("Mapping[str, Any]", inner).get("name", "")) if isinstance(inner, Mapping) else ""
