"""The cases that the adapted teams of these tests work on, and what is given beside a framework's team."""

from typing import Any

from envs import Beside, Scene
from runtime.records import Json, ToolCall
from runtime.seams import digest
from runtime.terms import term
from runtime.types import Scenario, View

ORDERS = {"A1": "lost", "B2": "on its way", "C3": "delivered"}


def case(order: str, seed: int = 0, name: str = "") -> Scenario:
    """Somebody asks for that order."""
    how = "refund" if ORDERS.get(order) == "lost" else "explain"
    visible = {"order": order, "messages": f"Where is my order {order}?"}
    return Scenario(id=name or f"case-{order}", visible=visible, truth={"how": how}, seed=seed)


def generate(split: str, seed: int, index: int) -> Scenario:
    """A case drawn from its arguments."""
    drawn = digest(split, seed, index)
    return case(list(ORDERS)[drawn % len(ORDERS)], drawn % 2**31, f"{split}-{seed}/{index}")


@term(kind="outcome", reads=["outcome"], at_end=True)
def settled(view: View) -> float:
    """1 for the right settlement, minus 1 for the wrong one."""
    return 1.0 if view.success else -1.0


def beside(succeeded: Any, **more: Any) -> Beside:
    """What is given beside."""
    usual: dict[str, Any] = {
        "name": "desk",
        "terms": {"settled": settled},
        "generate": generate,
        "filled": {"look_up": {"order": "order"}},
    }
    return Beside(succeeded=succeeded, **{**usual, **more})


def call(name: str, **args: Json) -> ToolCall:
    return ToolCall(tool=name, args=args)


def truly(scene: Scene) -> str:
    """What would be right in a scene."""
    return str(scene.scenario.truth["how"])
