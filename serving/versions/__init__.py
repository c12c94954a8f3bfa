"""Versions of teams: registered, deployed, shared between, promoted, rolled back, retired; every change on record."""

from serving.versions.ledger import Change, Known
from serving.versions.steer import Versions

__all__ = ["Change", "Known", "Versions"]
