"""Inspect a machine: read sensors, look into their past, and write the work order that fits the fault."""

from envs.equipment_inspection.inspection import team

__all__ = ["team"]
