"""The customer service team: retrieval, the law of the reply's room, and what messages give away."""

from collections import Counter, defaultdict
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from envs.customer_service import team as make
from envs.customer_service.cases import make_case, wordings
from envs.customer_service.desk import CUT_FACTOR, GREETING_TOKENS, SETTLES, Length, reply_tokens, settled
from envs.customer_service.library import INTENTS, library
from envs.scenarios import Generated
from envs.session import Session
from runtime.records import ToolAnswered, ToolCall
from runtime.types import HAND_OVER, Scenario

TEAM = make()
CASE = Scenario(
    id="case",
    visible={"message": "The payment for the tent failed, my card was declined.", "order": "B-12345"},
    truth={"intent": "payment_failed", "article": "payment-declined", "status": "payment_declined"},
)


def answered(session: Session, agent: str, tool: str, **args: object) -> ToolAnswered:
    found = session.act(agent, ToolCall(tool=tool, args=args))
    return next(r for r in found if isinstance(r, ToolAnswered))


def at_replier(*searches: tuple[str, int], intent: str = "payment_failed", context_tokens: int = 260) -> Session:
    session = Session(make(context_tokens=context_tokens), CASE)
    answered(session, "intent", "classify", intent=intent)
    session.act("intent", ToolCall(tool=HAND_OVER))
    for scope, count in searches:
        assert answered(session, "retriever", "search", scope=scope, count=count).ok
    session.act("retriever", ToolCall(tool=HAND_OVER))
    return session


def test_the_knowledge_base_is_a_real_one() -> None:
    """At least 60 articles over ten intents, each with wordings of customers that lead to it."""
    assert len(library().articles) >= 60
    assert set(library().section_of.values()) == set(INTENTS)
    assert set(wordings().clear) == set(library().articles)
    assert {a for u in wordings().unclear for a in u.articles.values()} <= set(library().articles)
    assert all(library().section_of[a] == i for u in wordings().unclear for i, a in u.articles.items())


def test_search_is_tf_idf() -> None:
    """The short way to the cosine gives what scikit-learn's own transform gives."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    articles = list(library().articles.values())
    vectorizer: Any = TfidfVectorizer(stop_words="english")
    matrix: Any = vectorizer.fit_transform([f"{a.title}. {a.text}" for a in articles])
    for k in range(50):
        message = Generated(TEAM, "train", 1)(k).visible["message"]
        query: Any = vectorizer.transform([message])
        expected = (matrix @ query.T).toarray()[:, 0]
        np.testing.assert_allclose(library().likeness(message), expected, atol=1e-12)


def test_a_section_search_stays_in_its_section() -> None:
    """With the intent named, the search brings articles of that section only, and knows what it cost in tokens."""
    session = Session(TEAM, CASE)
    answered(session, "intent", "classify", intent="invoice")
    session.act("intent", ToolCall(tool=HAND_OVER))
    passages = answered(session, "retriever", "search", scope="section", count=3).value
    assert {library().section_of[p["article"]] for p in passages} == {"invoice"}
    assert f'"room": {260 - sum(p["tokens"] for p in passages)}' in session.observe("retriever").text


def test_a_section_search_needs_a_named_intent() -> None:
    """Where nobody named the intent, the retriever is told so, and the case goes on."""
    session = Session(TEAM, CASE)
    session.act("intent", ToolCall(tool=HAND_OVER))
    answer = answered(session, "retriever", "search", scope="section", count=1)
    assert answer.fault is not None
    assert answer.fault.code == "tool_failed"
    assert "nobody has named the intent" in answer.fault.message
    assert session.to_act == ("retriever",)


def test_the_classification_travels_as_a_note() -> None:
    """The retriever and the replier read what the intent role put down."""
    session = at_replier(("section", 1))
    assert '[intent] classify {"intent": "payment_failed"}' in session.observe("replier").text


def test_a_short_search_leaves_room_for_the_full_reply() -> None:
    """The right article, answered in full, settles the question."""
    session = at_replier(("section", 1))
    assert "payment-declined, fits: full" in session.observe("replier").text
    assert answered(session, "replier", "reply", article="1", length="full").ok
    assert session.ended
    assert session.success
    assert session.outcome["settled"] == SETTLES["full"]


def test_fetching_too_much_cuts_the_reply() -> None:
    """The same reply to the same case fails when five more articles were fetched before."""
    session = at_replier(("section", 1), ("everywhere", 5))
    answer = answered(session, "replier", "reply", article="1", length="full")
    assert answer.value["article"] == "payment-declined"
    assert answer.value["cut"]
    assert not session.success
    assert session.outcome["settled"] < CUT_FACTOR


@given(st.sampled_from(list(SETTLES)), st.integers(1, 400), st.integers(-300, 400))
def test_the_law_of_the_room(length: Length, wanted: int, room: int) -> None:
    """More room never settles less, a cut reply settles less than any that fits, and nothing exceeds the full reply."""
    now = settled(length, wanted, room)
    assert 0 <= now <= settled(length, wanted, room + 1) <= SETTLES[length]
    if wanted > room:
        assert now <= CUT_FACTOR * SETTLES[length] < min(SETTLES.values())


def test_longer_replies_want_more_room() -> None:
    """For every article: short, medium, full, and the greeting on top."""
    for article in library().articles.values():
        short, medium, full = (reply_tokens(article, x) for x in SETTLES)
        assert GREETING_TOKENS < short < medium < full == GREETING_TOKENS + article.tokens


def test_a_rank_that_was_not_fetched_is_an_error_to_the_agent() -> None:
    """The replier can try again: the case goes on."""
    session = at_replier(("section", 1))
    assert not answered(session, "replier", "reply", article="4", length="full").ok
    assert not session.ended
    assert session.invalid["replier"] == 1


def test_a_promise_of_money_counts_where_it_is_wrong() -> None:
    """An article that promises money is a wrong promise unless it is the answer."""
    session = at_replier(("section", 1), intent="refund", context_tokens=500)
    article = answered(session, "replier", "reply", article="1", length="full").value["article"]
    assert session.outcome["wrong_promise"] is library().articles[article].promises_refund
    assert session.outcome["settled"] == 0


def test_a_person_settles_a_little() -> None:
    """Leaving the case to a person ends it without a success."""
    session = at_replier()
    assert answered(session, "replier", "leave_to_person").ok
    assert session.ended
    assert not session.success
    assert 0 < session.outcome["settled"] < min(SETTLES.values())


def test_an_unclear_message_does_not_tell_its_intent() -> None:
    """Each wording of an unclear message comes with each of its intents equally often."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    group_of = {p: g for g in wordings().unclear for p in g.phrases}
    for k in range(4000):
        case = make_case("train", 1, k, unclear=1.0)
        for phrase in group_of:
            if all(part.lower() in case.visible["message"].lower() for part in phrase.split("{item}")):
                counts[phrase][case.truth["intent"]] += 1
    assert set(counts) == set(group_of)
    for phrase, seen in counts.items():
        share = 1 / len(group_of[phrase].articles)
        total = seen.total()
        assert all(
            abs(seen[i] / total - share) < 5 * (share * (1 - share) / total) ** 0.5 for i in group_of[phrase].articles
        )


def test_the_status_decides_every_unclear_message() -> None:
    """Within a group of intents that share a wording, no status belongs to two of them."""
    words = wordings()
    for group in words.unclear:
        found = [s for i, a in group.articles.items() for s in words.statuses_of_articles.get(a, words.statuses[i])]
        assert len(found) == len(set(found))


def test_the_rest_of_the_case_is_independent_of_the_truth() -> None:
    """Order numbers, and the words around the wish, say nothing about the intent: they are drawn alike for all."""
    lengths: dict[str, list[int]] = defaultdict(list)
    openings: dict[str, list[bool]] = defaultdict(list)
    for k in range(4000):
        case = make_case("train", 1, k, unclear=0.4)
        lengths[case.truth["intent"]].append(int(case.visible["order"][2:]))
        openings[case.truth["intent"]].append(case.visible["message"].startswith("Hi there"))
    for values in (lengths, openings):
        everything = np.concatenate([np.array(v, float) for v in values.values()])
        for v in values.values():
            error = everything.std() / len(v) ** 0.5
            assert abs(np.mean(v) - everything.mean()) < 4.5 * error


def test_the_status_is_not_shown_before_it_is_looked_up() -> None:
    """What the agents see without lookup_order names no status."""
    statuses = {s for found in wordings().statuses.values() for s in found}
    for k in range(100):
        text = Session(TEAM, Generated(TEAM, "train", 1)(k)).observe("intent").text
        assert not any(s in text for s in statuses)


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_the_share_of_unclear_messages_can_be_set(share: float) -> None:
    """The argument does what it says."""
    unclear = {a for g in wordings().unclear for a in g.articles.values()}
    articles = {make_case("train", 1, k, share).truth["article"] for k in range(600)}
    assert (articles <= unclear) is bool(share)
