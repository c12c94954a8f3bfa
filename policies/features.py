"""Text to numbers: what the encoder policy sees of an observation."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from policies.tokens import line_tokens, tokens

Floats = NDArray[np.float32]

RAREST = 0.003
"""Share of the fitted texts below which a token is taken for noise, such as an id."""
REMEMBERED_LINES = 4_096
"""Lines whose columns are remembered, until the memory is emptied: those of the open episodes, a few times over."""


class TextFeatures(Protocol):
    """Turns texts into vectors of a fixed size, the same in every process."""

    @property
    def size(self) -> int:
        """Length of a vector."""
        ...

    def __call__(self, texts: Sequence[str]) -> Floats:
        """``(B, size)`` for B texts."""
        ...

    def state(self) -> dict[str, Any]:
        """All of it as JSON, with its ``kind``."""
        ...


class _Lines:
    """Column numbers and weights of a line, remembered."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._known: dict[str, tuple[NDArray[np.intp], Floats]] = {}

    def columns(self, line: str) -> tuple[NDArray[np.intp], Floats]:
        raise NotImplementedError

    def __call__(self, texts: Sequence[str]) -> Floats:
        """``(B, size)``: a column holds its token's weight if the token occurs in the text, else 0."""
        out = np.zeros((len(texts), self.size), np.float32)
        known = self._known
        for row, text in zip(out, texts, strict=True):
            for line in text.split("\n"):
                found = known.get(line)
                if found is None:
                    found = self._remember(line)
                row[found[0]] = found[1]
        return out

    def _remember(self, line: str) -> tuple[NDArray[np.intp], Floats]:
        if len(self._known) >= REMEMBERED_LINES:
            self._known.clear()
        found = self._known[line] = self.columns(line)
        return found

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_known": {}}


class TfidfFeatures(_Lines):
    """Presence of tokens seen when it was fitted, weighted by inverse document frequency (scikit-learn's).

    Tokens in no fitted text, in fewer than RAREST of them, or in all of them have no column; of tokens that always come
    together, one has.
    """

    def __init__(self, vocabulary: Mapping[str, int], idf: Sequence[float]) -> None:
        super().__init__(len(idf))
        self._vocabulary = dict(vocabulary)
        self._idf = np.asarray(idf, np.float32)

    @classmethod
    def fit(cls, texts: Sequence[str], limit: int) -> "TfidfFeatures":
        """Learn from texts which tokens there are.

        Args:
            texts: observations of varied play.
            limit: the most columns; the most frequent tokens have precedence.
        """
        if len(texts) < 2:
            return cls({}, [])
        counter = _vectorizer()(
            analyzer=tokens,
            binary=True,
            norm=None,
            min_df=RAREST,
            max_df=len(texts) - 1,
            dtype=np.float32,
        )
        try:
            weights = counter.fit_transform(texts)
        except ValueError:  # scikit-learn's word for: no token varies over the texts
            return cls({}, [])
        chosen = _distinct(weights)[:limit]
        names = counter.get_feature_names_out()
        kept = sorted(chosen, key=lambda i: str(names[i]))
        return cls({str(names[i]): place for place, i in enumerate(kept)}, [float(counter.idf_[i]) for i in kept])

    def columns(self, line: str) -> tuple[NDArray[np.intp], Floats]:
        """The line's columns and their weights."""
        places = np.array([self._vocabulary[t] for t in line_tokens(line) if t in self._vocabulary], np.intp)
        return places, self._idf[places]

    def state(self) -> dict[str, Any]:
        """The vocabulary, in column order, and the weights."""
        return {
            "kind": "tfidf",
            "vocabulary": sorted(self._vocabulary, key=self._vocabulary.__getitem__),
            "idf": self._idf.tolist(),
        }


def _vectorizer() -> Any:
    """scikit-learn's, loaded where it is used: whoever only plays does without, and is ready two CPU seconds sooner."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    return TfidfVectorizer


def _hasher() -> Any:
    """scikit-learn's, loaded with the same care."""
    from sklearn.feature_extraction import FeatureHasher

    return FeatureHasher


def _distinct(weights: Any) -> list[int]:
    """The columns of a sparse matrix, the most frequent first; of equal ones only the first."""
    columns = weights.tocsc()
    found: dict[bytes, int] = {}
    for i in range(columns.shape[1]):
        rows = columns.indices[columns.indptr[i] : columns.indptr[i + 1]]
        found.setdefault(np.sort(rows).tobytes(), i)
    return sorted(found.values(), key=lambda i: -int(columns.indptr[i + 1] - columns.indptr[i]))


class HashingFeatures(_Lines):
    """Presence of tokens by hash (scikit-learn's FeatureHasher): nothing to fit, and a few tokens share columns."""

    def __init__(self, size: int) -> None:
        super().__init__(size)
        self._hasher = _hasher()(n_features=size, input_type="string", alternate_sign=False, dtype=np.float32)

    def columns(self, line: str) -> tuple[NDArray[np.intp], Floats]:
        """The line's columns; all weights are 1."""
        places = self._hasher.transform([line_tokens(line)]).indices.astype(np.intp)
        return places, np.ones(len(places), np.float32)

    def state(self) -> dict[str, Any]:
        """Its size."""
        return {"kind": "hashing", "size": self.size}


def from_state(state: Mapping[str, Any]) -> TextFeatures:
    """The features that ``state`` was taken from. Raises ValueError if the kind is unknown."""
    if state["kind"] == "tfidf":
        names: list[str] = state["vocabulary"]
        return TfidfFeatures({n: i for i, n in enumerate(names)}, state["idf"])
    if state["kind"] == "hashing":
        return HashingFeatures(int(state["size"]))
    if state["kind"] == "minilm":
        from policies.sentence import SentenceFeatures

        return SentenceFeatures()
    raise ValueError(f"unknown kind of text features: {state['kind']!r}")
