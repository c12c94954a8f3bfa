"""What roles say to each other: refused at both ends with path and value, and a team that does not fit never starts."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.bus import Agreement, Agreements, ContractBroken, EventBus, Misfit, check_fit
from runtime.bus.schemas import misfits
from runtime.tools import Contract
from tests.bus.conftest import MakeBus
from tests.bus.helpers import noted, said, writes_down
from tests.conftest import WaitUntil

HEARD = {
    "type": "object",
    "properties": {"heard": {"type": "string"}, "loud": {"type": "integer", "minimum": 0}},
    "required": ["heard", "loud"],
    "additionalProperties": False,
}


def agreement(schema: dict[str, Any], sender: str = "caller", to: str = "ear", version: int = 1) -> Agreement:
    return Agreement(sender=sender, to=to, schema=schema, version=version)


def schema(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": [*properties], "additionalProperties": False}


def test_a_broken_promise_is_refused_where_it_is_made(make_bus: MakeBus) -> None:
    """The publisher hears the path and the value, and the event is a dead letter that says the same."""
    bus = make_bus(agreed=Agreements(sends=[agreement(HEARD)]))
    with pytest.raises(
        ContractBroken, match=r'^caller -> ear: \$\.loud: "much" is not of type "integer" \(payload {'
    ) as e:
        bus.publish(said({"heard": "bonjour", "loud": "much"}))
    (letter,) = bus.dead_letters()
    assert letter.reason == str(e.value)
    assert letter.fields["payload"] == '{"heard":"bonjour","loud":"much"}'


def test_a_promise_broken_by_a_handler_makes_the_event_it_handled_a_dead_letter(
    make_bus: MakeBus, wait_until: WaitUntil
) -> None:
    """At once, without further tries, naming both roles, path and value."""
    bus = make_bus(agreed=Agreements(sends=[agreement(HEARD, "ear", "voice")]))
    bus.start()
    bus.consumer("role", "ear", "ear-0", lambda d: d.send("voice", {"heard": 1, "loud": -1}) and None).start()
    bus.publish(said("x"))
    wait_until(bus.dead_letters, "the dead letter")
    (letter,) = bus.dead_letters()
    assert letter.reason.startswith("ear -> voice: $.heard: 1 is not of type")
    assert letter.attempts == 1


def test_what_a_reader_cannot_take_is_a_dead_letter_there(make_bus: MakeBus, redis: Any, wait_until: WaitUntil) -> None:
    """An event made by hand, or by a program of another version, does not reach the handler."""
    bus = make_bus(agreed=Agreements(takes=[agreement(HEARD, sender="*", version=2)]))
    bus.start()
    bus.consumer("role", "ear", "ear-0", writes_down).start()
    for fields in ({"payload": '{"heard": "x"}'}, {"payload": '{"heard": "x", "loud": 1}', "contract": 1}):
        redis.xadd("agent_events:shop:ear", {"from": "caller", "to": "ear", **fields})
    wait_until(lambda: len(bus.dead_letters()) == 2, "two dead letters")
    assert [x.reason.partition(" (payload")[0] for x in bus.dead_letters()] == [
        'caller -> ear: $: "loud" is a required property',
        "caller -> ear: $: version 1 was sent, version 2 is taken",
    ]
    bus.publish(said({"heard": "y", "loud": 0}, contract=2))
    wait_until(lambda: len(noted(bus)) == 1, "the good one")


@pytest.mark.parametrize(
    ("sent", "taken", "told"),
    [
        (schema(why={"type": "string"}), schema(reason={"type": "string"}), "voice reads it, ear does not send it"),
        (
            schema(reasons={"type": "string"}),
            schema(reason={"type": "string"}),
            r"\$\.reason: voice reads it, ear does not send it \(is it 'reasons' now\?\)",
        ),
        (schema(n={"type": "number"}), schema(n={"type": "integer"}), r"\$\.n: ear sends number, voice takes integer"),
        (
            schema(n={"type": ["string", "null"]}),
            schema(n={"type": "string"}),
            "ear sends null/string, voice takes string",
        ),
        (schema(n={"enum": ["a", "b"]}), schema(n={"enum": ["a"]}), r"ear sends \['b'\], voice takes only \['a'\]"),
        (schema(n={"type": "string"}), schema(n={"enum": ["a"]}), "ear sends any value, voice takes only"),
        (
            schema(n={"type": "number", "minimum": 0}),
            schema(n={"type": "number", "minimum": 1}),
            "ear sends minimum 0, voice takes minimum 1",
        ),
        (
            schema(rows={"type": "array", "items": schema(id={"type": "string"})}),
            schema(rows={"type": "array", "items": schema(id={"type": "integer"})}),
            r"\$\.rows\[\]\.id: ear sends string, voice takes integer",
        ),
        (
            {**schema(n={"type": "string"}), "required": []},
            schema(n={"type": "string"}),
            r"\$\.n: ear may leave it out, voice needs it",
        ),
        (
            schema(n={"anyOf": [{"type": "integer"}, {"type": "null"}]}),
            schema(n={"type": "integer"}),
            r"\$\.n: ear sends null, voice takes integer",
        ),
        (
            {"$defs": {"N": {"type": "string"}}, **schema(n={"$ref": "#/$defs/N"})},
            {"$defs": {"N": {"type": "integer"}}, **schema(n={"$ref": "#/$defs/N"})},
            "ear sends string, voice takes integer",
        ),
        (schema(n={"type": "string"}), schema(n={"type": "string", "pattern": "^a"}), "voice takes pattern"),
        (
            schema(n={"type": "string"}, m={}),
            schema(n={"type": "string"}),
            r"\$\.m: ear may send it, voice takes no such",
        ),
    ],
)
def test_roles_that_do_not_fit_are_refused_before_anything_runs(
    make_bus: MakeBus, sent: dict[str, Any], taken: dict[str, Any], told: str
) -> None:
    """A field renamed, a type narrowed, a bound tightened: both roles are named, and the bus does not start."""
    agreed = Agreements(sends=[agreement(sent, "ear", "voice")], takes=[agreement(taken, "ear", "voice")])
    with pytest.raises(Misfit, match=told) as error:
        make_bus(agreed=agreed)
    assert "ear -> voice" in str(error.value)


def test_every_misfit_is_told_at_once() -> None:
    """Versions apart, and a sender that promises nothing, too."""
    agreed = Agreements(
        sends=[agreement(HEARD, "ear", "voice", 2)],
        takes=[agreement(HEARD, "ear", "voice", 1), agreement(HEARD, "nose", "voice")],
    )
    with pytest.raises(Misfit) as error:
        check_fit("shop", agreed)
    assert str(error.value).splitlines() == [
        "the roles of team shop do not fit together:",
        "  ear -> voice: ear sends version 2, voice takes version 1",
        "  voice takes something from nose, but nose says nothing about what it sends",
    ]


SCALARS = st.sampled_from(
    [
        {"type": "integer"},
        {"type": "number"},
        {"type": "string"},
        {"type": ["string", "null"]},
        {"type": "integer", "minimum": 0},
        {"type": "integer", "minimum": 1, "maximum": 2},
        {"enum": ["a", "b"]},
        {"enum": ["a", 1]},
        {"const": "a"},
        {"anyOf": [{"type": "string", "maxLength": 1}, {"type": "null"}]},
        {},
    ]
)
FIELDS = st.dictionaries(st.sampled_from(["x", "y"]), SCALARS, max_size=2)
OBJECTS = st.builds(
    lambda f, needed, more: {
        "type": "object",
        "properties": f,
        "required": [k for k in f if k in needed],
        "additionalProperties": more,
    },
    FIELDS,
    st.sets(st.sampled_from(["x", "y"])),
    st.booleans(),
)
SCHEMAS = SCALARS | OBJECTS | st.builds(lambda s: {"type": "array", "items": s}, SCALARS)
ATOMS = st.sampled_from([None, True, 0, 1, 2, 1.5, "a", "b", "long"])
VALUES = ATOMS | st.dictionaries(st.sampled_from(["x", "y", "z"]), ATOMS, max_size=2) | st.lists(ATOMS, max_size=2)


@given(sent=SCHEMAS, taken=SCHEMAS, values=st.lists(VALUES, min_size=20, max_size=20))
def test_where_roles_fit_no_payload_breaks_at_the_receiver(sent: Any, taken: Any, values: list[Any]) -> None:
    """Whatever the sender's schema lets through, the receiver's does; but fields that neither of them names."""
    if misfits(sent, taken, ("ear", "voice")):
        return
    known = sent.get("properties", {})
    for value in values:
        unnamed = isinstance(value, dict) and set(value) - set(known)
        if not unnamed and Contract(sent).problem(value) is None:
            assert Contract(taken).problem(value) is None


@given(sent=SCHEMAS)
def test_a_role_fits_what_takes_the_same(sent: Any) -> None:
    """Nothing is refused that is the same on both sides."""
    assert misfits(sent, dict(sent), ("ear", "voice")) == []


def test_agreements_travel_to_other_processes(bus: EventBus) -> None:
    """Actors get them by pickling, also after they were used."""
    import pickle

    agreed = Agreements(sends=[agreement(HEARD)])
    agreed.checked(said({"heard": "x", "loud": 1}))
    assert pickle.loads(pickle.dumps(agreed)).checked(said({"heard": "x", "loud": 1})).contract == 1  # noqa: S301
