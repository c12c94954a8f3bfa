"""Ray on a machine that is busy: started again where its own processes were too slow."""

from typing import Any

import pytest

from runtime.actor.starting import TRIES, start_ray
from runtime.errors import ServiceUnavailable


def test_a_start_that_timed_out_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever else goes wrong is raised as it is, and patience ends."""
    tried: list[dict[str, Any]] = []
    slow = [True, True, False]

    def init(**arguments: Any) -> None:
        tried.append(arguments)
        if slow.pop(0) if slow else True:
            raise Exception("The current node timed out during startup.")  # noqa: TRY002 - what Ray raises

    monkeypatch.setattr("ray.init", init)
    start_ray(num_cpus=1)
    assert tried == [{"num_cpus": 1}] * 3
    with pytest.raises(ServiceUnavailable, match="busy"):
        start_ray()
    assert len(tried) == 3 + TRIES

    def broken(**_: Any) -> None:
        raise ValueError("no such argument")

    monkeypatch.setattr("ray.init", broken)
    with pytest.raises(ValueError, match="no such argument"):
        start_ray(num_cpu=1)
