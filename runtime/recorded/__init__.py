"""Recorded sessions: what a team did live, as it lies in the store or in a Parquet file, ready to be trained on.

python -m runtime.recorded TEAM --store sqlite:///run/store.db --to sessions.parquet
"""

from runtime.recorded.parquet import NotRecorded, read_sessions, write_sessions
from runtime.recorded.sessions import RecordedSession, recorded_session, recorded_sessions

__all__ = ["NotRecorded", "RecordedSession", "read_sessions", "recorded_session", "recorded_sessions", "write_sessions"]
