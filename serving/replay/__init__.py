"""Recorded sessions, run again under another version: where the two part, and what became of it."""
