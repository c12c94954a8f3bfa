"""Honest rewards and teams, of the kinds that are most easily accused."""

import math
from random import Random

from rewards.terms import hand_overs, invalid_calls, solved, tool_cost
from runtime.errors import RewardFault
from runtime.records import Json, Sent, ToolAnswered, ToolCalled
from runtime.seams import digest, uniform
from runtime.types import Baseline, RewardTerm, Scenario, View
from tests.audit.tiny import COLOURS, asked, cases, right, tiny
from tests.audit.zoo import teams
from tests.audit.zoo.animals import Makes
from tests.audit.zoo.hints import answers, calls, end, step
from tests.audit.zoo.teams import clerk, height, lift, listed, lottery, of


def noisy_judge(view: View) -> float:
    """As a model would grade: mostly right, never twice the same."""
    noise = uniform("judge", view.history[-1].correlation_id, len(view.history), view.truth["colour"]) - 0.5
    return min(1.0, max(0.0, float(view.success) * 0.8 + 0.1 + 0.4 * noise))


def grades_numbers(view: View) -> float:
    """An answer that is no number is a wrong one."""
    try:
        return -1.0 if math.isfinite(float(str(view.outcome["said"]))) else 0.0
    except ValueError:
        return float(view.success)


def last_answer(view: View) -> float:
    """A hint for a look into the box; nothing where nothing was answered yet."""
    try:
        return 0.1 * (answers(view)[-1].tool == "peek")
    except IndexError:
        return 0.0


def potential(view: View) -> float:
    """Difference of a potential: adds up to the same whatever is done in between (Ng et al. 1999)."""
    now, before = (sum(isinstance(r, ToolAnswered) for r in part) for part in (view.history, view.step))
    ended = view.history[-1].kind == "episode_ended"
    return (0.0 if ended else 0.2 * now) - 0.2 * (now - before)


def seldom_judged(view: View) -> float:
    """Nothing to judge, now and then."""
    if uniform("outage", view.history[0].correlation_id) < 0.003:
        raise RewardFault("the judge is away")
    return float(view.success)


def mean_of_answers(view: View) -> float:
    """A share with nothing to divide by is no share."""
    found = [r.ok for r in view.history if isinstance(r, ToolAnswered)]
    if not found:
        raise RewardFault("nobody asked anything")
    return sum(found) / len(found) * (1.0 + float(view.success))


def money(view: View) -> float:
    """US dollars, and sometimes many."""
    if view.success:
        return 1200.0
    return -4000.0 if uniform("claim", view.history[0].correlation_id) < 0.02 else -300.0


def no_repeats(view: View) -> float:
    """A penalty that hardly anybody earns."""
    named = [(c.agent, c.tool) for c in calls(view)]
    return -0.5 * (len(named) - len(set(named)))


def words_of(view: View) -> float:
    return -0.001 * sum(len(str(r.payload)) for r in view.step if isinstance(r, Sent))


def growing(view: View) -> float:
    return -0.01 * view.turn


def quick(view: View) -> float:
    """A little for being quick, where it was right."""
    return float(view.success) / (1.0 + len(calls(view)))


def arms(split: str, seed: int, index: int) -> Scenario:
    """A bandit: there are no more than six cases."""
    chance = Random(digest("arms", split, seed, index))
    truth: dict[str, Json] = {"colour": chance.choice(COLOURS), "remark": "none"}
    return Scenario(id=f"{split}-{seed}-{index}", visible={"level": chance.randrange(2)}, truth=truth, seed=index)


def without_baselines() -> dict[str, Baseline]:
    return {}


def terms(*planted: RewardTerm) -> Makes:
    """The tiny team with its outcome and cost, and these terms too."""
    return lambda seed: of(terms=(right, asked, *planted), seed=seed)


HONEST: dict[str, Makes] = {
    "right and asked": terms(),
    "the library's terms": lambda seed: of(terms=(solved, tool_cost, invalid_calls, hand_overs), seed=seed),
    "nobody knows how": lambda seed: of(tiny(baselines={}), seed=seed),
    "sparse, and nobody knows how": lambda seed: of(lottery(), (solved,), seed),
    "sparse, and failure costs": lambda seed: of(lottery(), (end(lambda v: -1.0 + 11.0 * v.success),), seed),
    "costs only": lambda seed: of(terms=(asked, hand_overs), seed=seed),
    "two cases": lambda seed: listed(clerk(), (solved,), 2, seed),
    "twelve cases": lambda seed: listed(tiny(), (right, asked), 12, seed),
    "a clerk who knows how": lambda seed: of(clerk(), (solved, tool_cost), seed),
    "numbers are graded": lambda seed: of(clerk(), (end(grades_numbers), tool_cost), seed),
    "a lift in the wind": lambda seed: of(lift(), (height, tool_cost), seed),
    "a lift that says only whether": lambda seed: of(lift(), (teams.solved,), seed),
    "always cut": lambda seed: of(lift(max_turns=4), (height, tool_cost), seed),
    "always negative": lambda seed: of(lift(), (end(lambda v: min(0.0, v.outcome["height"] - 6.0)),), seed),
    "a noisy judge": lambda seed: of(terms=(end(noisy_judge), asked), seed=seed),
    "a hint for looking": terms(step(last_answer)),
    "a hint for every question": terms(step(lambda v: 0.05 * len(answers(v)))),
    "a price in the guise of a hint": terms(step(lambda v: -0.05 * len(answers(v)))),
    "a potential": terms(step(potential)),
    "a judge who is seldom away": lambda seed: of(terms=(end(seldom_judged), asked), seed=seed),
    "money": lambda seed: of(terms=(end(money), tool_cost), seed=seed),
    "a penalty that nobody earns": terms(step(no_repeats, scope="agent")),
    "a price for words": terms(step(words_of, kind="cost", scope="agent")),
    "a price that grows": terms(step(growing, kind="cost", scope="agent")),
    "a bonus for being quick and right": terms(end(quick)),
    "rank by the past": terms(step(lambda v: 0.1 * math.log1p(sum(isinstance(r, ToolCalled) for r in v.step)))),
    "six cases in all": lambda seed: of(tiny(generate=arms), seed=seed),
    "an opening that may tell": lambda seed: of(
        tiny(
            generate=cases(lambda c: {"smell": f"like {c.truth['colour']}"}), opening_reveals=frozenset({"colour"})
        ),
        seed=seed,
    ),
}  # fmt: skip
