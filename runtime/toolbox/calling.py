"""Running a tool: at once where it is plain, in bounded time and with its key where it acts outside."""

from collections.abc import Mapping

from runtime.background import within
from runtime.records import Json
from runtime.types import Tool, World


def carried_out(tool: Tool, world: World, args: Mapping[str, Json], key: str) -> Json:
    """The tool's answer, unchecked. What the tool raises is raised.

    Args:
        tool: which.
        world: what it acts on.
        args: the agent's arguments, checked.
        key: the idempotency key; a tool that declares a parameter for it is given it.

    Raises:
        TimeoutError: it acts outside and did not answer in time. Its effect may still come.
    """
    outside = tool.outside
    if outside is None:
        return tool.run(world, **args)
    given = {**args, outside.key: key} if outside.key else args
    return within(outside.timeout_s, lambda: tool.run(world, **given), tool.name)
