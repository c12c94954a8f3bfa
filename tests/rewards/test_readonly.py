"""What a term is handed can be read like any JSON, and not written into."""

import copy
import json
import pickle
from typing import Any

import pytest

from envs.session import Session
from rewards.mix import Mix, Weighted
from rewards.readonly import NotThere, readonly
from runtime.terms import term
from runtime.types import View
from tests.audit.tiny import generate, tiny

PLAIN = {"a": [1, {"b": "x"}], "c": {"d": None}, "e": (1, [2])}


def test_it_reads_like_what_it_was_made_of() -> None:
    """Equal, of the same types, as JSON, and copied into plain values that can be changed."""
    sealed = readonly(PLAIN)
    assert sealed == PLAIN
    assert isinstance(sealed["a"], list)
    assert json.dumps(sealed) == json.dumps(PLAIN)
    for copied in (copy.deepcopy(sealed), pickle.loads(pickle.dumps(sealed))):  # noqa: S301 - pickled a line before
        copied["a"][1]["b"] = "y"
        assert copied != PLAIN


CHANGES = {
    "a key": lambda d: d.__setitem__("z", 1),
    "a key is taken": lambda d: d.pop("a"),
    "joined": lambda d: d.update(z=1),
    "or-ed": lambda d: d.__ior__({"z": 1}),
    "an inner key": lambda d: d["c"].setdefault("z", 1),
    "an item": lambda d: d["a"].append(1),
    "sorted": lambda d: d["a"].sort(),
    "an item in a tuple": lambda d: d["e"][1].clear(),
}


@pytest.mark.parametrize("change", CHANGES)
def test_it_cannot_be_changed(change: str) -> None:
    """At no depth, by no method."""
    before = copy.deepcopy(PLAIN)
    with pytest.raises(TypeError, match="copy it first"):
        CHANGES[change](readonly(PLAIN))
    assert before == PLAIN


def test_a_key_that_is_not_there_is_named_beside_those_that_are() -> None:
    """A misspelt key is found in the message."""
    with pytest.raises(NotThere, match="'colour' is not there, but a, c, e"):
        readonly(PLAIN)["colour"]
    assert readonly(PLAIN).get("colour", 1) == 1


def _paid(function: Any) -> tuple[Session, Any]:
    made = term(kind="shaping", reads=["truth"], name="planted")(function)
    session = Session(tiny(), generate("train", 1, 0))
    since = len(session.records)
    session.act("scout", 0)
    return session, Mix([Weighted(made)])(session, since).records[0]


def test_a_term_cannot_tell_the_next_episode() -> None:
    """What it writes into the case is refused and makes the reward missing: the case stays as it was."""

    def tells(view: View) -> float:
        view.visible["note"] = view.truth["colour"]  # pyright: ignore
        return 1.0

    session, record = _paid(tells)
    assert record.value is None
    assert "cannot be changed" in record.missing
    assert session.scenario == generate("train", 1, 0)


@pytest.mark.parametrize("text", ["1.0", "0", b"1"])
def test_a_text_is_no_pay(text: Any) -> None:
    """Even if it spells a number: the reward is missing, and the record shows the text."""
    _, record = _paid(lambda view: text)
    assert record.value is None
    assert repr(text) in record.missing
