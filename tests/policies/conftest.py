"""Properties have no deadline: a machine that is busy with something else is not a fault."""

from hypothesis import settings

settings.register_profile("no deadline", deadline=None)
settings.load_profile("no deadline")
