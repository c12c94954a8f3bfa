"""Who asks: a role that names itself, one that the file knows by its prompt or tools, or one by its prompt's hash."""

import re
from hashlib import blake2b

from runtime.proxy.asked import Asked
from runtime.proxy.settings import RoleHint, Roles

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:-]{0,99}")
"""What a role or conversation may call itself."""
NOBODY = "agent"
"""A role that neither names itself nor is told anything."""
UNHINTED = RoleHint()


def role_of(asked: Asked, header: str, known: Roles) -> str:
    """The role that asks."""
    if NAME.fullmatch(header):
        return header
    told = [name for name, hint in known.roles.items() if hint.prompt and asked.brief.startswith(hint.prompt)]
    if told:
        return max(told, key=lambda name: len(known.roles[name].prompt))
    offered = frozenset(asked.offered)
    by_tools = [name for name, hint in known.roles.items() if hint.tools and offered == frozenset(hint.tools)]
    if len(by_tools) == 1:
        return by_tools[0]
    return f"role-{blake2b(asked.brief.encode(), digest_size=4).hexdigest()}" if asked.brief else NOBODY


def hint_of(role: str, known: Roles) -> RoleHint:
    """What the file says of a role."""
    return known.roles.get(role, UNHINTED)
