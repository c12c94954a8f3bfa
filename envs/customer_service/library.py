"""The shop's knowledge base, and how it is searched."""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray
from pydantic import TypeAdapter

from runtime.records import Closed

Intent = Literal[
    "delivery_late",
    "return_item",
    "refund",
    "damaged_item",
    "change_address",
    "cancel_order",
    "payment_failed",
    "warranty",
    "account_access",
    "invoice",
]
"""What a customer can want; also the sections of the knowledge base."""

Floats = NDArray[np.float64]

INTENTS: tuple[Intent, ...] = get_args(Intent)
KEPT_SEARCHES = 16_384
"""Answers remembered: the same question in an episode, or in its repetition, is not worked out twice."""


class Article(Closed):
    """What the shop tells its customers about one thing."""

    id: str
    title: str
    text: str
    promises_refund: bool = False
    """Tells the customer that money is coming."""

    @property
    def tokens(self) -> int:
        """Length of title and text."""
        return count_tokens(f"{self.title}. {self.text}")


@lru_cache(maxsize=1024)
def count_tokens(text: str) -> int:
    """Words and punctuation marks."""
    return len(re.findall(r"\w+|[^\w\s]", text))


def read_articles() -> dict[Intent, list[Article]]:
    """The articles that are shipped, by section."""
    text = Path(__file__).with_name("articles.json").read_bytes()
    return TypeAdapter(dict[Intent, list[Article]]).validate_json(text)


class Library:
    """Articles by section, searched by TF-IDF and cosine."""

    def __init__(self, sections: dict[Intent, list[Article]]) -> None:
        from sklearn.feature_extraction.text import TfidfVectorizer

        self.articles: dict[str, Article] = {a.id: a for articles in sections.values() for a in articles}
        self.section_of: dict[str, Intent] = {a.id: s for s, articles in sections.items() for a in articles}
        self._order = tuple(self.articles.values())
        ids = {s: {a.id for a in articles} for s, articles in sections.items()}
        self._places = {s: np.array([a.id in ids[s] for a in self._order]) for s in sections}
        vectorizer: Any = TfidfVectorizer(stop_words="english")
        matrix: Any = vectorizer.fit_transform([f"{a.title}. {a.text}" for a in self._order])
        self._weights_ta: Floats = np.ascontiguousarray(matrix.toarray().T)
        self._words: dict[str, int] = vectorizer.vocabulary_
        self._idf_t: Floats = vectorizer.idf_
        self._split: Callable[[str], list[str]] = vectorizer.build_analyzer()
        self.find = lru_cache(maxsize=KEPT_SEARCHES)(self._find)
        """``find(query, section, count)``: the best articles with their likeness, best first."""

    def likeness(self, query: str) -> Floats:
        """Cosine between the query and each article, ``(A,)``: as by the vectorizer, without its detour by matrices."""
        counts = Counter(w for w in self._split(query) if w in self._words)
        if not counts:
            return np.zeros(len(self._order))
        words = np.fromiter((self._words[w] for w in counts), int)
        query_t = np.fromiter(counts.values(), float) * self._idf_t[words]
        return query_t @ self._weights_ta[words] / float(np.linalg.norm(query_t))

    def _find(self, query: str, section: Intent | None, count: int) -> Sequence[tuple[Article, float]]:
        likeness_a = self.likeness(query)
        if section is not None:
            likeness_a = np.where(self._places[section], likeness_a, -1.0)
        best: list[int] = np.argsort(-likeness_a, kind="stable")[:count].tolist()
        return tuple((self._order[i], round(float(likeness_a[i]), 4)) for i in best if likeness_a[i] >= 0)


@cache
def library() -> Library:
    """The shipped knowledge base, read and indexed once a process."""
    return Library(read_articles())
