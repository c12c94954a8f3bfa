"""The little shop with a tiny language model in both seats: its sampler and its learner, without Ray."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from assembly.build import Build
from assembly.loading import load
from policies.lm.featurize import PromptFeaturizer
from trainers.lm_prepare import prompts
from trainers.measure import measure
from trainers.rllib.algorithm import algorithm_config, seats
from trainers.warmup import warm_up

FILE = Path(__file__).parents[1] / "trainers" / "little_shop.yaml"
TINY = "{hidden: 32, layers: 2, heads: 2, vocabulary: 600}"
LORA = "{r: 4, alpha: 8}"
WARMUP = "{from: by_the_list, episodes: 60, epochs: 4, lr: 5.0e-3, minibatch: 16}"


def overrides(*more: str, **keys: str) -> list[str]:
    """Both policies as language models, with those keys; then whatever is given besides."""
    inner = ", ".join(f"{k}: {v}" for k, v in {"kind": "causal_lm", "tiny": TINY, "max_tokens": "400", **keys}.items())
    return [f"policies={{buyer: {{{inner}}}, clerk: {{{inner}}}}}", *more]


@dataclass
class Shop:
    """What a run of it is made of."""

    build: Build
    seats: dict[str, Any]
    runner: Any
    learner: Any

    def sync(self) -> None:
        """Give the sampler the learner's weights, as RLlib does."""
        self.runner.set_state(
            {"rl_module": self.learner.get_state(components="rl_module", inference_only=True)["rl_module"]}
        )


def shop(directory: Path, *more: str, warm: bool = False, **keys: str) -> Shop:
    """A shop, its sampler in step with its learner."""
    build = built(*more, **keys)
    seated = seats(build, sight(build, directory))
    if warm:
        warm_up(build, seated)
    config: Any = algorithm_config(build, seated, build.standardizer())
    runner = config.env_runner_cls(config=config)
    learner = config.build_learner(spaces=runner.get_spaces())
    made = Shop(build, seated, runner, learner)
    made.sync()
    return made


def built(*more: str, **keys: str) -> Build:
    """The experiment's parts."""
    return Build(load(FILE, overrides(*more, **keys)), FILE.parent)


def sight(build: Build, directory: Path) -> dict[str, PromptFeaturizer]:
    """How its policies see."""
    return prompts(build, measure(build, 20).texts, directory)
