"""The zoo: every animal by name, with the check that must find it, or none."""

from rewards.audit.hacking import TrainingFigures
from rewards.audit.material import Material
from rewards.audit.sheet import Label
from rewards.mix import Weighted
from runtime.seams import uniform
from runtime.types import RewardTerm
from tests.audit.tiny import asked, right, tiny
from tests.audit.zoo import games, graded, hints, honest, leaks, teams, telling
from tests.audit.zoo.animals import Animal, Makes, faulty
from tests.audit.zoo.animals import honest as without_fault
from tests.audit.zoo.hints import end, step
from tests.audit.zoo.teams import clerk, lift, of


def planted(*terms: RewardTerm) -> Makes:
    """The tiny team with its outcome and cost, and these terms too."""
    return lambda seed: of(terms=(right, asked, *terms), seed=seed)


def instead(*terms: RewardTerm | Weighted) -> Makes:
    """The tiny team with these terms only."""
    return lambda seed: of(terms=terms, seed=seed)


def fresh(make) -> Makes:
    """A term with a memory is made anew for every audit."""
    return lambda seed: of(terms=(right, asked, make()), seed=seed)


def team(found) -> Makes:
    return lambda seed: of(found, seed=seed)


def gap(grades: graded.Grades, value: hints.Value) -> Makes:
    """A world that grades, and an outcome that reads the grade."""
    return lambda seed: of(graded.graded(grades), (end(value), asked), seed)


def labelled(value) -> Makes:
    """Labels for every third decision: what somebody says who sees the pay, and the place."""

    def make(seed: int) -> Material:
        from rewards.audit.decisions import decisions

        made = of(seed=seed)
        found = decisions(made)[::3][:120]
        made.own = {"labels": [Label(i, d.id, value(d.pay, i)) for i, d in enumerate(found, 2)]}
        return made

    return make


def trained(**shapes) -> Makes:
    """A training of 80 iterations whose figures follow these shapes."""

    def make(seed: int) -> Material:
        made = of(seed=seed)
        figures = [
            TrainingFigures(iteration=i, env_steps=i, **{n: shape(i / 80, seed) for n, shape in shapes.items()})
            for i in range(80)
        ]
        made.own = {"training": figures}
        return made

    return make


def shape(start: float, end: float, noise: float = 0.0):
    """From here to there in a straight line, with noise."""
    return lambda t, seed: start + (end - start) * t + noise * (uniform("noise", seed, t, start, end) - 0.5)


def clipped(seed: int) -> Material:
    made = of(seed=seed)
    made.own = {"standardize": {"per": "agent", "center": True, "clip": 0.1}}
    return made


def raw(seed: int) -> Material:
    made = of(terms=(Weighted(right, 5_000.0), Weighted(asked, 100_000.0)), seed=seed)
    made.own = {"standardize": {"per": "none", "center": True, "clip": 10.0}}
    return made


SPREAD = shape(10.0, 10.0, 1.0)

FAULTY: dict[str, dict[str, Makes]] = {
    "future-in-reward": {
        "reads the last record": fresh(hints.last_record),
        "remembers how it ended": fresh(hints.remembers),
        "keeps the records": fresh(hints.keeps_records),
        "knows the truth undeclared": fresh(hints.undeclared_truth),
        "reads ahead in a tenth of the cases": fresh(hints.now_and_then_ahead),
        "looks the truth up by the name": fresh(hints.looked_up),
        "pays by the name": fresh(hints.by_the_name),
        "asks for the outcome on the way": planted(step(lambda v: float(v.success))),
    },
    "truth-in-observation": {name: team(found) for name, found in (leaks.SHOWN | telling.TOLD).items()},
    "truth-predictable-at-start": {name: team(found) for name, found in leaks.PREDICTABLE.items()},
    "label-shuffle": {
        "paid for having finished": instead(end(lambda v: float(bool(v.outcome["named"])))),
        "paid for a favourite": instead(end(lambda v: float(v.outcome["named"] == "emerald"))),
        "paid for being wrong": instead(end(hints.wrong)),
        "a judge who knows": team(leaks.KNOWING),
    },
    "train-eval-overlap": {name: team(found) for name, found in leaks.OVERLAPPING.items()},
    "statistics-touched-by-eval": {
        name: lambda seed, name=name: leaks.evaluated(name, seed) for name in ("standardizer", "observations")
    },
    "cross-agent": {
        "pay on a board": leaks.told_pay,
        "overheard in capitals": team(leaks.overheard(str.upper)),
        "overheard with gaps": team(leaks.overheard(lambda x: x.replace(" ", "  "))),
    },
    "cross-session": {name: lambda seed, make=make: of(make(), seed=seed) for name, make in leaks.SHARING.items()},
    "reference-policies": {
        "time is dearer than being right": planted(step(lambda v: -4.0, kind="cost")),
        "answers are dear": instead(right, Weighted(asked, 40.0)),
        "anything that was named": lambda seed: of(
            tiny(baselines={"gold": tiny().baselines["careful"]}),
            (end(lambda v: 1.0 + 0.02 * v.success), Weighted(asked, 0.1)),
            seed,
        ),
        "any town": lambda seed: of(clerk(), (end(lambda v: (v.outcome["said"] != "12") + 0.05 * v.success),), seed),
    },
    "failure-as-zero": {
        "except Exception": planted(end(hints.swallows_all)),
        "except": planted(end(hints.swallows_bare)),
        "except TimeoutError": planted(end(hints.swallows_a_timeout)),
        "a typing error": planted(end(hints.swallows_a_typo)),
        "not a number": planted(end(hints.is_nan)),
        "nothing": planted(end(hints.is_none)),
        "the empty text is in every text": lambda seed: of(clerk(), (end(hints.empty_is_in_everything),), seed),
        "no word is wrong": lambda seed: of(clerk(), (end(hints.nothing_is_wrong_in_nothing),), seed),
        "every text starts with it": lambda seed: of(clerk(), (end(hints.starts_with_nothing),), seed),
        **{name: gap(*parts) for name, parts in graded.GAPS.items()},
        **{name: instead(planted_term, asked) for name, planted_term in graded.SWALLOWING.items()},
    },
    "constant": {
        "one for everything": planted(step(hints.one)),
        "each agent its share": planted(step(hints.by_agent, scope="agent")),
        "one at the end": planted(step(hints.at_the_end)),
        "any answer": planted(end(hints.any_answer)),
        "nothing for everything": planted(end(lambda v: 0.0)),
    },
    "nearly-constant": {
        "nearly every case": planted(end(hints.nearly_every_case)),
        "nearly every number": planted(end(hints.nearly_every_seed)),
        "nearly every step": planted(step(hints.nearly_every_step)),
        "as the case is": planted(end(hints.by_the_case)),
        "for the class of the case": instead(end(hints.by_the_truth), asked),
        "for where the case stands": planted(end(hints.by_the_shelf, kind="shaping")),
    },
    "out-of-range": {
        "a thousand either way": planted(step(hints.a_thousand_either_way)),
        "a thousand for an oddity": planted(step(hints.a_thousand_for_an_oddity)),
        "the more the more": lambda seed: of(lift(), (teams.height, step(hints.grows_by_squares)), seed),
    },
    "dominated": {
        "an outcome of another kind": planted(
            end(lambda v: 300.0 * uniform("mood", len(v.history), v.visible["label"]))
        ),
        "questions are paid": planted(step(hints.pays_for_questions)),
        "a favourite colour": planted(end(hints.favourite_colour, kind="shaping")),
        "the same again": planted(end(hints.right_again)),
        "the same in other words": planted(end(hints.right_otherwise)),
    },
    "sign": {
        "minus success": planted(end(hints.wrong)),
        "a weight below zero": instead(Weighted(right, -1.0), asked),
        "distance is paid": lambda seed: of(lift(), (end(hints.distance_is_paid),), seed),
        "paid for spending": planted(step(hints.paid_for_spending, kind="cost")),
        "paid for time": planted(step(hints.paid_for_time, kind="cost")),
        "against looking": planted(step(hints.against_peeking)),
    },
    "scale": {
        "a price a thousand times too high": instead(right, Weighted(asked, 2_000.0)),
        "a hint as large as a house": planted(step(lambda v: 50.0 * len(hints.answers(v)))),
        "hardly any room": clipped,
        "large and raw": raw,
        "one in a hundred million": planted(step(lambda v: 1e7 + 1e-3 * len(hints.answers(v)))),
    },
    "human-agreement": {
        "people say the opposite": labelled(lambda pay, place: -pay),
        "people say anything": labelled(lambda pay, place: place * 7 % 10),
        "people say good and bad the other way": labelled(lambda pay, place: float(pay < 0)),
    },
    "hacking": {
        "success falls": trained(
            return_mean=shape(0, 80, 2), return_std=SPREAD, success_rate=shape(0.9, 0.2, 0.1)
        ),
        "the held-out score falls": trained(
            return_mean=shape(0, 80, 2), return_std=SPREAD, held_out=shape(0.9, 0.1, 0.05)
        ),
        "people agree less": trained(return_mean=shape(0, 80, 2), return_std=SPREAD, agreement=shape(0.8, -0.2, 0.05)),
        "calls swell": trained(
            return_mean=shape(0, 80, 2), return_std=SPREAD, success_rate=shape(0.4, 0.4, 0.1),
            tool_calls=shape(3, 40, 1),
        ),
        "one thing only": trained(
            return_mean=shape(5, 5), return_std=lambda t, seed: 10 * 0.5 ** (20 * t), success_rate=shape(0.3, 0.3, 0.05)
        ),
    },
}  # fmt: skip

FRIENDLY: dict[str, Makes] = {
    "people agree": labelled(lambda pay, place: pay + 0.3 * (place % 3)),
    "learning": trained(
        return_mean=shape(0, 80, 4), return_std=SPREAD, success_rate=shape(0.2, 0.9, 0.2), tool_calls=shape(2, 12, 1)
    ),
    "learning nothing": trained(return_mean=shape(5, 5, 4), return_std=SPREAD, success_rate=shape(0.3, 0.3, 0.2)),
    **{name: team(found) for name, found in telling.BY_DESIGN.items()},
    **{name: gap(*parts) for name, parts in graded.GRADED.items()},
    **{name: instead(end(value), asked) for name, value in graded.TRYING.items()},
    "a record of another kind": planted(graded.tried_on_the_way),
    "an evaluation that only looks": lambda seed: leaks.evaluated("nothing", seed),
}


def game(make) -> Makes:
    return lambda seed: make()


ZOO: list[Animal] = [
    *(a for check, animals in FAULTY.items() for a in faulty(check, animals)),
    *(
        a
        for check, animals in games.FAULTY.items()
        for a in faulty(check, {f"game: {n}": game(m) for n, m in animals.items()})
    ),
    *without_fault(honest.HONEST),
    *without_fault(FRIENDLY),
    *without_fault({f"game: {n}": game(m) for n, m in games.HONEST.items()}),
]
