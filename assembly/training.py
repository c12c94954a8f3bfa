"""Sections of the experiment file that say how it is learnt: PPO, resources, where figures go, when to stop."""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from assembly.fields import MOST, Count, Finite, Gpus, Port, Positive, Rate, Schedule, Section, Share, Text


def _otlp(value: str) -> str:
    if value.startswith(("http://", "https://")):
        return value
    raise PydanticCustomError("otlp", "wants an address that starts with http:// or https://")


class PPO(Section):
    """Proximal policy optimization (Schulman et al. 2017), a learner for each policy."""

    lr: Schedule = (1e-3, 1e-3)
    """Adam's step size; with [start, end] linear over the run."""
    gamma: Share = 1.0
    """Discount for each of an agent's own turns."""
    lambda_: Share = 0.95
    """Decay of generalized advantage estimates, for each of an agent's own turns."""
    clip_param: Positive = 0.2
    """How far the probability ratio may go from 1."""
    vf_clip_param: Positive | None = None
    """Bound on the squared error of the value estimate; null: none."""
    vf_loss_coeff: Rate = 0.5
    """Weight of the value loss."""
    entropy_coeff: Schedule = (0.01, 0.01)
    """Weight of the entropy bonus; with [start, end] it falls quadratically over the run."""
    grad_clip: Positive | None = 0.5
    """Bound on each policy's gradient norm; null: none."""
    train_batch_size: Count = 4000
    """Environment steps an iteration; with complete episodes, a few more."""
    minibatch_size: Count = 512
    """Decisions in a gradient step."""
    num_epochs: Count = 4
    """How often each batch is gone through."""
    batch_mode: Literal["complete_episodes", "truncate_episodes"] = "complete_episodes"
    """Whether batches end with whole episodes, or cut and bootstrap them."""
    rollout_fragment_length: Count | None = None
    """Steps of each environment in a fragment (`truncate_episodes` only); null: what fills the batch."""
    normalize_advantages: bool = True
    """Shift and scale advantages to mean 0 and standard deviation 1 in each batch."""


class Dashboard(Section):
    """Ray's own dashboard. Left out: it is not served."""

    host: Text = "127.0.0.1"
    """The address it listens on."""
    port: Port = 8265
    """The port it listens on."""


class Resources(Section):
    """What the run may use."""

    env_runners: Annotated[int, Field(ge=0, le=MOST)] = 0
    """Processes that play episodes; 0: the main process plays."""
    envs_per_runner: Count = 32
    """Episodes that each of them plays side by side."""
    learners: Annotated[int, Field(ge=0)] = 0
    """Processes that learn; 0: the main process learns."""
    gpus: Gpus = "auto"
    """GPUs for learning; `auto`: one if there is one."""
    autocast: Literal["auto", "bf16", "off"] = "auto"
    """Mixed precision; `auto`: bf16 on a GPU that has it, off elsewhere."""
    ray_address: Text | None = None
    """A running Ray cluster; null: Ray on this machine."""
    dashboard: Dashboard | None = None
    """Serve Ray's dashboard; null: do not."""


class Telemetry(Section):
    """Where figures go."""

    port: Port = 9464
    """Where Prometheus reads the main process' metrics (the next free port if taken); 0: any free port."""
    otlp: Annotated[str, AfterValidator(_otlp)] | None = None
    """Address of an OpenTelemetry collector; null: none."""
    tensorboard: bool = True
    """Write `tensorboard/` into the run directory."""


class Gates(Section):
    """What must hold before anything is trained; what each gate measured stands in `gates.json`."""

    steps: Count = 100
    """Steps that every agent takes in a row."""
    step_success: Share = 1.0
    """The share of them that must succeed."""
    step_ms: Positive | None = None
    """What a step may take on average, ms; null: by kind of policy (encoder and scripted 200, causal_lm 5,000)."""
    chains: Count = 100
    """Cases that go through the whole team."""
    chains_complete: Share = 0.99
    """The share of them that must be complete, each under one correlation id."""
    live: bool = True
    """Run the chains, and kill each agent once, on real actors and a real event bus; false: in this process only."""
    reward_outside: Share = 0.05
    """The share of rewards that may lie more than 20% beyond the range that rules and chance play earned."""


class Stop(Section):
    """When training is over, whichever comes first. Left out: after 200 iterations."""

    iterations: Count | None = None
    """Training iterations."""
    minutes: Positive | None = None
    """Wall-clock minutes of training."""
    score: Finite | None = None
    """Held-out score, where 0 is random play and 1 the optimum or best baseline."""


class Evaluation(Section):
    """Play on held-out scenarios, with frozen policies."""

    every: Count = 10
    """Iterations between evaluations."""
    episodes: Count = 1000
    """Episodes of an evaluation during training, at most; the closing one plays every held-out scenario."""
    role_swap: bool = True
    """At the end, also measure what is lost when two roles exchange their policies."""
    regressions: Text | None = None
    """A file of sessions that went badly (`python -m serving.regressions`): played at the end, reported by name, and
    never trained on."""


class Checkpoints(Section):
    """What can be resumed from."""

    every: Count = 10
    """Iterations between checkpoints."""
    keep: Count = 3
    """How many of the last are kept; the best by held-out score is kept beside them."""


class Collapse(Section):
    """The collapse alarm: when a policy has stopped learning, or diverged. NaN always raises it."""

    action: Literal["stop", "rollback"] = "stop"
    """Stop with exit 6, or go back to the last good checkpoint with a smaller step."""
    entropy: Rate = 0.001
    """Alarm when a policy's mean entropy is below this, in nat, while its entropy bonus still stands; 0: never."""
    kl: Positive = 1.0
    """Alarm when the mean KL divergence of an update is above this, in nat."""
    reward_std: Rate = 1e-6
    """Alarm when the standard deviation of episode returns is below this, in the return's unit; 0: never."""
    patience: Count = 5
    """Iterations in a row that must be out of bounds."""
    rollback_lr: Annotated[Finite, Field(gt=0, lt=1)] = 0.5
    """What the step size is multiplied with at a rollback."""
    rollbacks: Count = 3
    """Rollbacks after which the run stops all the same."""


class Limits(Section):
    """What the whole run may spend; at a limit it stops cleanly, with a checkpoint."""

    usd: Positive | None = None
    """US dollars for tools and models; null: no limit."""
    tokens: Count | None = None
    """Tokens read and written by language models; null: no limit."""
