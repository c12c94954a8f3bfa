"""How commands end: each kind of error has its exit code, and none a traceback."""

import pytest

from runtime.errors import RepertoryError, ServiceUnavailable, TeamError
from runtime.exits import ended


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (ServiceUnavailable("redis://x", "does not answer", "start it"), 3, "redis://x: does not answer; start it\n"),
        (RepertoryError("it broke"), 1, "RepertoryError: it broke\n"),
        (TeamError("no roles"), 2, "no roles\n"),
        (
            FileNotFoundError(2, "No such file or directory", "cases.jsonl"),
            2,
            "cases.jsonl: No such file or directory\n",
        ),
    ],
)
def test_what_is_raised_is_an_exit_code(
    error: Exception, code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Printed in one line, by kind; what is refused is the command's to say."""

    def work() -> int:
        raise error

    assert ended(work, TeamError, OSError) == code
    assert capsys.readouterr().err == said


def test_the_commands_own_code_and_faults_go_through() -> None:
    """Also those that nobody foresaw."""
    assert ended(lambda: 4) == 4
    with pytest.raises(ZeroDivisionError):
        ended(lambda: 1 // 0)
