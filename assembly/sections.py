"""Sections of the experiment file that say what is learnt: team, scenarios, policies, rewards."""

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, Strict

from assembly.fields import REFERENCE, Args, Count, Finite, Moment, Positive, Section, Share, Text
from assembly.lm_sections import CausalLM, Prompted
from runtime.seams import digest


class TeamRef(Section):
    """Who plays: a team of your own, or any PettingZoo environment. Give exactly one of `use` and `pettingzoo`."""

    use: str | None = Field(default=None, pattern=REFERENCE)
    """`package.module:attribute`: a team, or a function that makes one."""
    pettingzoo: str | None = Field(default=None, pattern=r"^\w+(\.\w+)+$")
    """The dotted name of an environment's module, such as `pettingzoo.classic.tictactoe_v3`."""
    args: Args = Field(default_factory=dict[str, Any])
    """Arguments for the function or environment. `./…` and `../…` are paths from the experiment file."""


class TrainCases(Section):
    """The scenarios that are learnt from."""

    seed: int = 1
    """Seed of the team's scenario generator."""
    count: Count | None = None
    """How many different scenarios there are at most, over and over again; null: a new one every episode."""
    file: Text | None = None
    """A JSONL file with one scenario a line, in place of `seed` and `count`: all of it is used."""


class EvalCases(Section):
    """The scenarios that are held out: never trained on."""

    seed: int = 2
    """Seed of the team's scenario generator; must not be the training seed."""
    count: Count = 10_000
    """How many scenarios the closing evaluation plays at most."""
    file: Text | None = None
    """A JSONL file with one scenario a line, in place of `seed` and `count`: all of it is used."""


class Scenarios(Section):
    """Where tasks come from: two seeds, two files, one file to be split, or what a team was asked live."""

    model_config = ConfigDict(serialize_by_alias=True)  # what is written must be read again

    train: TrainCases = Field(default_factory=TrainCases)
    eval: EvalCases = Field(default_factory=EvalCases)
    file: Text | None = None
    """One JSONL file for both, split by a hash of each scenario's id; takes the place of `train` and `eval`."""
    eval_fraction: Annotated[Finite, Field(gt=0, lt=1)] | None = None
    """The share of `file` that is held out; null: 0.2."""
    source: Literal["live"] | None = Field(default=None, alias="from")
    """`live`: train on recorded sessions' scenarios, in place of `train`; those that `eval` holds out are left out."""
    store: Text | None = None
    """Where `from: live` finds them: a store's URL, or a file that `python -m runtime.recorded` wrote."""
    team: Text | None = None
    """Whose sessions `from: live` takes; null: those of the experiment's own team."""
    since: Moment | None = None
    """`from: live` takes sessions that ended from this moment on (ISO 8601); null: all."""
    until: Moment | None = None
    """`from: live` takes sessions that ended before this moment; null: before the run began."""

    @property
    def held_out(self) -> float:
        """The share of ``file`` that is held out."""
        return 0.2 if self.eval_fraction is None else self.eval_fraction

    def holds_out(self, scenario: str) -> bool:
        """Whether the scenario of ``file`` with that id is held out: by a hash, so adding others changes nothing."""
        return digest("held out", scenario) / 2.0**64 < self.held_out


class _Seated(Section):
    roles: Annotated[tuple[Text, ...], Strict(False)] | None = None
    """Roles (or patterns such as `player_*`) that it decides for; null: those whose policy has its name."""


class Encoder(_Seated):
    """Learns: observations become features, features a choice among the legal actions."""

    kind: Literal["encoder"] = "encoder"
    """Kind of policy: it learns."""
    features: Literal["auto", "hashing", "tfidf", "minilm", "flat"] = "auto"
    """How an observation becomes numbers; `auto`: tfidf (words that random play showed) for text, flat for arrays."""
    feature_size: Count = 512
    """How many features text becomes (`tfidf`: at most); `minilm` and `flat` have a size of their own."""
    hidden: Annotated[tuple[Count, ...], Strict(False)] = (64, 64)
    """Units in each hidden layer."""
    activation: Literal["tanh", "relu"] = "tanh"
    """What stands between the layers."""
    critic: Literal["own", "central"] = "own"
    """What the value estimate sees: the agent's own features, or (in training only) those of the whole team."""


class Scripted(_Seated):
    """Decides by rule and never learns."""

    kind: Literal["scripted"] = "scripted"
    """Kind of policy: it follows rules."""
    use: Text
    """The name of one of the team's baselines, or `package.module:attribute`."""


Learning = Encoder | CausalLM
"""Kinds of policies that learn."""
Policy = Annotated[Encoder | CausalLM | Prompted | Scripted, Field(discriminator="kind")]


class TermRef(Section):
    """One reward term of the mix."""

    use: Text
    """The name of one of the team's terms or of the library's, or `package.module:attribute`."""
    weight: Finite = 1.0
    """What the term's value is multiplied with, dimensionless; 0 logs the term and pays nothing."""
    args: Args = Field(default_factory=dict[str, Any])
    """Arguments, where the term is made by a function."""


class Standardize(Section):
    """Online standardization of rewards before learning: z = (r - mean) / std, from what was known before the batch."""

    per: Literal["agent", "policy", "team", "none"] = "agent"
    """What shares one mean and one standard deviation; `none`: raw rewards."""
    center: bool = True
    """Subtract the mean. Say false where an agent can end the episode: a subtracted mean pays for its length."""
    clip: Positive = 10.0
    """Standardized rewards are held within plus and minus this many standard deviations."""


class Waiver(Section):
    """A finding of the reward audit that is known and accepted."""

    check: Text
    """The check's name, such as `future-in-reward`."""
    reason: Text
    """Why it is accepted; printed with the report."""


class Audit(Section):
    """The reward audit, before training or alone: `python -m rewards.audit EXPERIMENT.yaml`; see `docs/audit.md`."""

    waive: Annotated[tuple[Waiver, ...], Strict(False)] = ()
    """Checks whose errors do not make the audit fail."""
    checks: Annotated[tuple[Annotated[str, Field(pattern=REFERENCE)], ...], Strict(False)] = ()
    """Checks of your own, each `package.module:attribute`: a function from the audit's material to findings."""


class Rewards(Section):
    """What the team is paid for. A PettingZoo environment pays its own rewards: leave `terms` out."""

    terms: Annotated[tuple[TermRef, ...], Strict(False)] = ()
    standardize: Standardize = Field(default_factory=Standardize)
    audit: Audit = Field(default_factory=Audit)
    missing_limit: Share = 0.01
    """The share of episodes whose reward may be missing before the run is stopped; a missing reward is never a zero."""
