"""What serving refuses: the reason in a word that programs can read, and the HTTP status it is answered with."""

from typing import Literal

from runtime.errors import RepertoryError

ExportFault = Literal[
    "not_an_export",
    "truncated",
    "corrupt",
    "pickled",
    "foreign_architecture",
    "tool_mismatch",
    "other_team",
    "not_live",
]
"""Why an export is refused: no manifest, a listed file missing or too short, content that is not what was written, a
file that could run code when it is loaded, weights that do not fit, other tools, another team, a team that is not run
live."""


class ServingError(RepertoryError):
    """A request that is not carried out."""

    status = 400
    """The HTTP status it is answered with."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(code, message)
        self.code, self.message = code, message

    def __str__(self) -> str:
        return self.message


class RefusedExport(ServingError):
    """An export that will not be served. ``code`` is an ``ExportFault``."""

    status = 422


class UnknownVersion(ServingError):
    """There is no such team or version."""

    status = 404

    def __init__(self, message: str) -> None:
        super().__init__("unknown_version", message)

    def __reduce__(self) -> tuple[type["UnknownVersion"], tuple[str]]:
        return type(self), (self.message,)


class NotNow(ServingError):
    """The version, the session or the ratio does not allow it as things stand."""

    status = 409


class Unauthorized(ServingError):
    """No token, a wrong one, or one that may not do this."""

    status = 401


class NoSuchSession(ServingError):
    """No session of that id is open to whoever asks."""

    status = 404

    def __init__(self, message: str = "no session of this id is open to you") -> None:
        super().__init__("no_such_session", message)

    def __reduce__(self) -> tuple[type["NoSuchSession"], tuple[str]]:
        return type(self), (self.message,)


class Busy(ServingError):
    """As much is being done as may be, or the version is just not reachable: try again."""

    status = 503
    retry_after_s = 1
    """When (s)."""


class Late(ServingError):
    """It took longer than it may; what was committed is kept."""

    status = 504


class Impossible(ServingError):
    """The team cannot play this: there is nothing to decide, or its case is malformed."""

    status = 422


class Failed(ServingError):
    """The team's own code raised."""

    status = 500


class TooLarge(ServingError):
    """The body is larger than may be."""

    status = 413
