"""Traces: one a session, built from its records, so that they are complete whatever was killed."""
