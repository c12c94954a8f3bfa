"""What a sampler in another process raised, brought here. RLlib would restart the process, and say nothing."""

from collections.abc import Callable
from typing import Any

from runtime.errors import RepertoryError, UserCodeError
from trainers.blame import told, whose
from trainers.rllib.runner import BatchedRunner


class Raised:
    """Stands for a result: whoever looks into it raises what the sampler raised."""

    def __init__(self, fault: RepertoryError) -> None:
        self.fault = fault

    def __getitem__(self, _: object) -> Any:
        raise self.fault


class TellingRunner(BatchedRunner):
    """A sampler whose failures come back as results. Only a process that dies is one that RLlib restarts."""

    def apply(self, func: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        try:
            return func(self, *args, **kwargs)
        except RepertoryError as error:
            return Raised(error)
        except Exception as error:  # noqa: BLE001 - it is raised where the run is
            theirs = whose(error)
            if theirs is not None:
                return Raised(UserCodeError("the team's own code raised", theirs))
            return Raised(RepertoryError(f"a sampler raised: {told(error)}"))
