"""The help desk: what the tools act on, and the law of the reply's room."""

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import WithJsonSchema

from envs.customer_service.library import Article, Intent, library
from runtime.records import Closed, Json
from runtime.types import AgentId, Scenario

Status = Literal[
    "being_prepared",
    "in_transit",
    "delivered_this_week",
    "delivered_months_ago",
    "return_received",
    "payment_declined",
    "no_open_order",
]
Scope = Literal["everywhere", "everywhere_with_intent", "section"]
Rank = Literal["1", "2", "3", "4", "5"]
Length = Literal["short", "medium", "full"]

SHARE: Mapping[Length, float] = {"short": 1 / 3, "medium": 2 / 3, "full": 1.0}
"""The share of the article that a reply of this length gives."""
SETTLES: Mapping[Length, float] = {"short": 0.6, "medium": 0.85, "full": 1.0}
"""How far the right article, at this length, settles the customer's question, 0 to 1."""
CUT_FACTOR = 0.5
"""A reply that breaks off settles at most this share of what it would have settled in full."""
PERSON_SETTLES = 0.25
"""What a case that is left to a person counts: it is settled, but days later and not by this team."""
GREETING_TOKENS = 12
"""What every reply spends on greeting and signature."""
RANKS = 5
"""Articles that the replier chooses among: the most alike of all that were fetched."""


class OrderFound(Closed):
    """The shop's record of an order."""

    order: str
    status: Status


class Classified(Closed):
    """The intent that was put down."""

    intent: Intent


class Passage(Closed):
    """An article that was fetched."""

    article: str
    title: str
    text: str
    tokens: int
    """Words and punctuation marks: what the passage takes from the reply's room."""


class Replied(Closed):
    """A reply that went out."""

    article: str
    tokens: int
    cut: bool
    """It was longer than its room and breaks off."""


OrderAnswer = Annotated[dict[str, Json], WithJsonSchema(OrderFound.model_json_schema())]
IntentAnswer = Annotated[dict[str, Json], WithJsonSchema(Classified.model_json_schema())]
SearchAnswer = list[Annotated[dict[str, Json], WithJsonSchema(Passage.model_json_schema())]]
ReplyAnswer = Annotated[dict[str, Json], WithJsonSchema(Replied.model_json_schema())]


def reply_tokens(article: Article, length: Length) -> int:
    """Tokens that a reply of this length wants."""
    return GREETING_TOKENS + round(SHARE[length] * article.tokens)


def settled(length: Length, wanted: int, room: int) -> float:
    """How far the right article settles the question, 0 to 1: less where the reply has to be cut to its room."""
    if wanted <= room:
        return SETTLES[length]
    return CUT_FACTOR * SETTLES[length] * max(room, 0) / wanted


class Desk:
    """One customer's case on the desk.

    Args:
        scenario: the case.
        context_tokens: what fits in one reading: all that is fetched, and the reply.
    """

    def __init__(self, scenario: Scenario, context_tokens: int) -> None:
        self.message: str = scenario.visible["message"]
        self.order: str = scenario.visible["order"]
        self.status: str = scenario.truth["status"]
        self._right: str = scenario.truth["article"]
        self.intent: Intent | None = None
        self.room = context_tokens
        """Tokens left for the reply."""
        self._likeness: dict[str, float] = {}
        self._ranked: list[Article] | None = None
        self._outcome: dict[str, Json] = {"answered": None, "settled": 0.0, "cut": False, "wrong_promise": False}

    def fetch(self, scope: Scope, count: int) -> list[Article]:
        """Search the knowledge base. What is brought takes from the room, and once more when it is brought again."""
        section = None if scope == "everywhere" else self._named_intent()
        query = f"{self.message} {section.replace('_', ' ')}" if section and scope != "section" else self.message
        found = library().find(query, section if scope == "section" else None, count)
        for article, likeness in found:
            self._likeness[article.id] = max(likeness, self._likeness.get(article.id, 0.0))
            self.room -= article.tokens
        self._ranked = None
        return [article for article, _ in found]

    def _named_intent(self) -> Intent:
        if self.intent is None:
            raise LookupError("nobody has named the intent: only scope 'everywhere' can be searched")
        return self.intent

    @property
    def ranked(self) -> list[Article]:
        """The fetched articles that the replier chooses among, most alike first."""
        if self._ranked is None:
            ids = sorted(self._likeness, key=lambda a: -self._likeness[a])[:RANKS]
            self._ranked = [library().articles[a] for a in ids]
        return self._ranked

    def send(self, rank: int, length: Length) -> Replied:
        """Answer with an article."""
        if rank > len(self.ranked):
            raise LookupError(f"there is no article of rank {rank}: {len(self.ranked)} were fetched")
        article = self.ranked[rank - 1]
        wanted, right = reply_tokens(article, length), article.id == self._right
        cut = wanted > self.room
        self._outcome = {
            "answered": article.id,
            "settled": settled(length, wanted, self.room) if right else 0.0,
            "cut": cut,
            "wrong_promise": article.promises_refund and not right,
        }
        return Replied(article=article.id, tokens=max(0, min(wanted, self.room)), cut=cut)

    def leave_to_person(self) -> None:
        """Give the case to a person."""
        self._outcome |= {"answered": "person", "settled": PERSON_SETTLES}

    def look(self, agent: AgentId) -> Json:
        """The room left; for the replier also, for each rank, the article and the longest reply that fits."""
        if agent == "intent":
            return None
        if agent == "retriever":
            return {"room": self.room}
        return {"room": self.room, **{f"rank {i}": self._choice(a) for i, a in enumerate(self.ranked, 1)}}

    def _choice(self, article: Article) -> str:
        fitting = [x for x in SHARE if reply_tokens(article, x) <= self.room]
        return f"{article.id}, fits: {fitting[-1] if fitting else 'nothing'}"

    def outcome(self) -> tuple[Mapping[str, Json], bool]:
        """What the customer got; a success when the right article answered without being cut."""
        return self._outcome, self._outcome["settled"] >= min(SETTLES.values())


def lookup_order(desk: Desk) -> OrderAnswer:
    """Read the order's status in the shop's records."""
    return {"order": desk.order, "status": desk.status}


def classify(desk: Desk, intent: Intent) -> IntentAnswer:
    """Put down what the customer wants. The retriever reads it; a later call replaces it."""
    desk.intent = intent
    return {"intent": intent}


def search(desk: Desk, scope: Scope, count: Literal[1, 3, 5]) -> SearchAnswer:
    """Fetch the articles most like the message: everywhere, there with the intent's words added, or in its section."""
    return [{"article": a.id, "title": a.title, "text": a.text, "tokens": a.tokens} for a in desk.fetch(scope, count)]


def reply(desk: Desk, article: Rank, length: Length) -> ReplyAnswer:
    """Answer the customer with the fetched article of that rank, at that length. Ends the case."""
    return desk.send(int(article), length).model_dump()


def leave_to_person(desk: Desk) -> str:
    """Leave the case to a person, who will see to it in some days. Ends the case."""
    desk.leave_to_person()
    return "a person will see to it"
