"""What the batched runner and its learner do not support, refused before anything runs."""

from typing import TYPE_CHECKING, Any

from ray.rllib.callbacks.callbacks import RLlibCallback

from runtime.errors import RepertoryError
from runtime.types import AgentId
from trainers.rllib.adapter import Adapter
from trainers.rllib.fragment import ModuleID

if TYPE_CHECKING:
    from ray.rllib.algorithms.algorithm_config import AlgorithmConfig

EPISODE_CALLBACKS = ("on_episode_created", "on_episode_start", "on_episode_step", "on_episode_end")


class Unsupported(RepertoryError):
    """Something was asked for that would otherwise silently not happen."""


class _NoEpisode:
    """Stands for the episode when a policy mapping is asked: agents are mapped once, not per episode."""

    def __getattr__(self, name: str) -> Any:
        raise Unsupported(
            f"policy_mapping_fn reads the episode ({name}); agents are mapped to policies once and for all"
        )


def refuse(config: "AlgorithmConfig") -> None:
    """Raise Unsupported with everything in the configuration that the batched runner would ignore."""
    problems = [
        f"{what}: {remedy}"
        for what, asked, remedy in (
            ("env_to_module_connector", config._env_to_module_connector, "use a featurizer"),
            ("module_to_env_connector", config._module_to_env_connector, "use an environment wrapper"),
            ("use_env_runner_state_server", config.use_env_runner_state_server, "weights are pushed"),
            ("count_steps_by", config.count_steps_by != "env_steps", "only 'env_steps'"),
            ("num_learners", config.num_learners > 1, "at most one learner"),
            ("gym_env_vectorize_mode", _mode(config) != "sync", "only 'sync'"),
            *((name, _overridden(config, name), "episodes are not objects here") for name in EPISODE_CALLBACKS),
        )
        if asked
    ]
    if problems:
        raise Unsupported("the batched runner does not support " + "; ".join(problems))


def _mode(config: "AlgorithmConfig") -> str:
    return str(getattr(config.gym_env_vectorize_mode, "value", config.gym_env_vectorize_mode)).lower()


def _overridden(config: "AlgorithmConfig", name: str) -> bool:
    classes = config.callbacks_class if isinstance(config.callbacks_class, list | tuple) else [config.callbacks_class]
    mine = any(getattr(c, name, None) is not getattr(RLlibCallback, name) for c in classes if isinstance(c, type))
    return mine or bool(getattr(config, f"callbacks_{name}"))


def adapters(envs: list[Any]) -> list[Adapter]:
    """The environments themselves, which must be adapted ones."""
    found = [e.unwrapped for e in envs]
    strangers = {type(e).__name__ for e in found if not isinstance(e, Adapter)}
    if strangers:
        raise Unsupported(f"{', '.join(strangers)}: the environment must be an AECAdapter or a ParallelAdapter")
    return found


def mapped(config: "AlgorithmConfig", agents: list[AgentId]) -> dict[AgentId, ModuleID]:
    """The policy of each agent. Raises Unsupported where the mapping depends on the episode or on chance."""
    policy_of: Any = config.policy_mapping_fn
    once, again = ({a: policy_of(a, _NoEpisode()) for a in agents} for _ in range(2))
    if once != again:
        raise Unsupported(
            "policy_mapping_fn gives an agent another policy each time; agents are mapped once and for all"
        )
    return once


def refuse_modules(modules: dict[ModuleID, Any]) -> None:
    """Raise Unsupported for policies with a memory."""
    stateful = [mid for mid, m in modules.items() if m.is_stateful()]
    if stateful:
        raise Unsupported(f"recurrent policies are not supported: {', '.join(stateful)}")
