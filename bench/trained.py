"""The policies of a finished run, ready to play, also those that see arrays: an export has no features for them."""

import json
from pathlib import Path

from safetensors.torch import load

from assembly.build import Build
from assembly.team_check import Known, accept
from policies import export
from policies.encoder import Actor
from policies.playing import EncoderPolicy
from rewards.terms import TERMS
from runtime.types import AgentId


def seats_of(directory: Path) -> tuple[Build, dict[AgentId, EncoderPolicy]]:
    """The build of a run on a PettingZoo environment, and who decides for each agent."""
    from trainers.rllib.algorithm import seats

    build = Build(accept(directory / "experiment.yaml", (), Known(TERMS)).experiment, directory)
    _, files = export.read(directory / "version")
    made: dict[str, EncoderPolicy] = {}
    for name, seat in seats(build, dict.fromkeys(build.learned)).items():
        about = json.loads(files[f"policies/{name}.json"])
        assert about["spec"] == json.loads(json.dumps(seat.spec.as_json())), "the environment has changed since"
        actor = Actor(seat.spec)
        actor.load_state_dict(load(files[f"policies/{name}.safetensors"]))
        made[name] = EncoderPolicy(actor, seat.featurize, seat.to_action)
    return build, {a: made[build.policy_of[a]] for a in build.learners}
