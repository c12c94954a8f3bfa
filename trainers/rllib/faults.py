"""What a sampler in another process raised, brought here. RLlib would restart the process, and say nothing."""

from collections.abc import Callable
from typing import Any

from assembly.blame import told, whose
from runtime.errors import RepertoryError, UserCodeError
from trainers.rllib.runner import BatchedRunner


class Raised:
    """Stands for a result: whoever looks into it raises what the sampler raised."""

    def __init__(self, fault: RepertoryError) -> None:
        self.fault = fault

    def __getitem__(self, _: object) -> Any:
        raise self.fault


class SamplerDied(RepertoryError):
    """No sampler's process is left. While one lives the run goes on, and RLlib starts those that died again.

    How often is bounded (``algorithm.RESTARTS``); where all die in one iteration, none is waited for.
    """

    def __init__(self, how: str) -> None:
        super().__init__(how)
        self.how = how

    def __str__(self) -> str:
        why = "the team's code may have ended it (os._exit, a crash in a library), or memory was short"
        return f"{self.how}; {why}. Go on from the last checkpoint with --resume RUN_DIR"


class TellingRunner(BatchedRunner):
    """A sampler whose failures come back as results."""

    def apply(self, func: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        try:
            return func(self, *args, **kwargs)
        except RepertoryError as error:
            return Raised(error)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - it is raised where the run is
            theirs = whose(error)
            if theirs is not None:
                return Raised(UserCodeError("the team's own code raised", theirs))
            return Raised(RepertoryError(f"a sampler raised: {told(error)}"))
