"""Customers' messages: what they want, in words of their own, with the order's status behind it."""

from functools import cache
from pathlib import Path
from random import Random

from envs.customer_service.library import Intent, library
from runtime.records import Closed
from runtime.seams import digest
from runtime.types import Scenario

TYPO_RATE = 0.02
"""The share of words in which two letters change places."""


class Unclear(Closed):
    """Wordings that fit several intents: only the order's status tells which is meant."""

    phrases: tuple[str, ...]
    articles: dict[Intent, str]
    """The article that answers each of the intents."""


class Wordings(Closed):
    """What messages are made of."""

    openings: tuple[str, ...]
    closings: tuple[str, ...]
    asides: tuple[str, ...]
    items: tuple[str, ...]
    clear: dict[str, tuple[str, ...]]
    """Wordings that fit one article, by the article's id."""
    unclear: tuple[Unclear, ...]
    statuses: dict[Intent, tuple[str, ...]]
    """The statuses that an order can have when its customer wants this."""
    statuses_of_articles: dict[str, tuple[str, ...]]
    """The same for single articles, where it differs."""


@cache
def wordings() -> Wordings:
    """The wordings that are shipped."""
    return Wordings.model_validate_json(Path(__file__).with_name("messages.json").read_bytes())


def make_case(split: str, seed: int, index: int, unclear: float) -> Scenario:
    """One customer's message.

    Args:
        split: ``train`` or ``eval``.
        seed: the source's seed.
        index: the case's place in the source.
        unclear: the share of messages that fit several intents.
    """
    key = digest("customer_service", split, seed, index)
    chance = Random(key)
    phrase, intent, article = _wish(chance, unclear)
    item = chance.choice(wordings().items)
    order = f"B-{chance.randrange(10_000, 100_000)}"
    return Scenario(
        id=f"{split}-{seed}-{index}",
        visible={"message": _message(phrase.format(item=item), chance), "order": order},
        truth={"intent": intent, "article": article, "status": _status(intent, article, chance)},
        seed=key % 2**31,
    )


def _wish(chance: Random, unclear: float) -> tuple[str, Intent, str]:
    words = wordings()
    if chance.random() < unclear:
        group = chance.choice(words.unclear)
        phrase = chance.choice(group.phrases)
        intent = chance.choice(list(group.articles))
        return phrase, intent, group.articles[intent]
    article = chance.choice(list(words.clear))
    return chance.choice(words.clear[article]), library().section_of[article], article


def _status(intent: Intent, article: str, chance: Random) -> str:
    words = wordings()
    return chance.choice(words.statuses_of_articles.get(article) or words.statuses[intent])


def _message(wish: str, chance: Random) -> str:
    words = wordings()
    opening, aside, closing = (chance.choice(x) for x in (words.openings, words.asides, words.closings))
    sentence = wish[0].upper() + wish[1:] if not opening.endswith(",") else wish
    parts = (opening, f"{sentence}{chance.choice(('.', '.', '?', '!'))}", aside, closing)
    return " ".join(_typed(word, chance) for part in parts for word in part.split())


def _typed(word: str, chance: Random) -> str:
    """The word, now and then with two inner letters swapped."""
    if chance.random() >= TYPO_RATE or len(word) < 5:
        return word
    i = chance.randrange(1, len(word) - 3)
    return word[:i] + word[i + 1] + word[i] + word[i + 2 :]
