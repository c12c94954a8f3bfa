"""Small games with known answers, each a module with ``env()`` or ``parallel_env()`` as PettingZoo's own have."""
