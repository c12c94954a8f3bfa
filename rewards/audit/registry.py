"""Every check by name. A check of your own needs no entry: name it ``module:check`` in the experiment file."""

from rewards.audit.check import Check
from rewards.audit.constant import constant
from rewards.audit.cross_agent import cross_agent
from rewards.audit.cross_session import cross_session
from rewards.audit.dominated import dominated
from rewards.audit.failure_as_zero import failure_as_zero
from rewards.audit.future_in_reward import future_in_reward
from rewards.audit.hacking import hacking
from rewards.audit.human_agreement import human_agreement
from rewards.audit.label_shuffle import label_shuffle
from rewards.audit.nearly_constant import nearly_constant
from rewards.audit.out_of_range import out_of_range
from rewards.audit.reference_policies import reference_policies
from rewards.audit.scale import scale
from rewards.audit.sign import sign
from rewards.audit.statistics_touched_by_eval import statistics_touched_by_eval
from rewards.audit.train_eval_overlap import train_eval_overlap
from rewards.audit.truth_in_observation import truth_in_observation
from rewards.audit.truth_predictable_at_start import truth_predictable_at_start

_PAYS = ("terms|game",)

CHECKS: dict[str, Check] = {
    "future-in-reward": Check(
        future_in_reward, "the reward of a step depends on nothing that came after it", ("team", "train", "terms")
    ),
    "truth-in-observation": Check(
        truth_in_observation, "nobody sees the hidden truth before a tool has been asked", ("team", "train")
    ),
    "truth-predictable-at-start": Check(
        truth_predictable_at_start,
        "the first observation tells no more of the truth than the team declares",
        ("train|game",),
    ),
    "label-shuffle": Check(
        label_shuffle,
        "with another case's truth the reward drops, and nobody still knows the answer",
        ("team", "train", "terms"),
    ),
    "train-eval-overlap": Check(train_eval_overlap, "no held-out case is trained on", ("train", "eval")),
    "statistics-touched-by-eval": Check(
        statistics_touched_by_eval, "an evaluation leaves every statistic as it was", ("evaluating",)
    ),
    "cross-agent": Check(
        cross_agent, "what one agent found, or was paid, is seen by others only when it is sent", ("team", "train")
    ),
    "cross-session": Check(cross_session, "runs side by side, and one after another, share nothing", ("team|game",)),
    "reference-policies": Check(
        reference_policies,
        "good play earns the most, and who does nothing, or always the same, does not come near it",
        ("team", "train", "terms"),
    ),
    "failure-as-zero": Check(
        failure_as_zero, "what fails is missing and never a number, and an empty answer is no right one", _PAYS
    ),
    "constant": Check(constant, "outcomes and hints depend on what is done", _PAYS),
    "nearly-constant": Check(nearly_constant, "no bonus is paid nearly always, whatever is done", _PAYS),
    "out-of-range": Check(out_of_range, "pay stays in the range that varied play has shown", _PAYS),
    "dominated": Check(dominated, "no hint decides against the outcome, and no two terms say the same", _PAYS),
    "sign": Check(sign, "success is paid better than failure, and spending is not paid", _PAYS),
    "human-agreement": Check(human_agreement, "pay agrees with what people say of the same decisions", ("labels",)),
    "hacking": Check(hacking, "while the reward rises, what it stands for does not fall", ("training",), when="during"),
    "scale": Check(scale, "pay is neither clipped away nor drowned by one term", _PAYS),
}
"""The order is that of the report."""
