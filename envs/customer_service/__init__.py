"""Answer customers of a shop: name what they want, fetch what the shop knows about it, reply within the room left."""

from envs.customer_service.chain import team

__all__ = ["team"]
