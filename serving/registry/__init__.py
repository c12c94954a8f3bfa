"""The registry: exports under the hash of their content, in a directory or an object store, and nothing else there."""

from serving.registry.objects import Objects
from serving.registry.vetting import vetted

__all__ = ["Objects", "vetted"]
