"""Text to vectors: scikit-learn's numbers, the same in every process."""

import json
import pickle
from random import Random

import numpy as np
import pytest
from sklearn.feature_extraction import FeatureHasher
from sklearn.feature_extraction.text import TfidfVectorizer

from policies.features import HashingFeatures, TextFeatures, TfidfFeatures, from_state
from policies.featurize import TextFeaturizer
from policies.tokens import tokens

STATES = ("late", "lost", "sent", "held")


def observations(count: int = 80) -> list[str]:
    """Texts with common words, words that always come together, and an id in each."""
    rng = Random(4)
    texts: list[str] = []
    for i in range(count):
        lines = [f'case {{"id": "PO-{i}", "region": "{rng.choice("ABC")}"}}']
        if rng.random() < 0.6:
            lines.append(f'get_order {{"status": "{rng.choice(STATES)}", "count": {rng.randint(1, 5000)}}}')
        if rng.random() < 0.3:
            lines.append('[triage] news "A storm has closed the port"')
        texts.append("\n".join(lines))
    return texts


TEXTS = observations()
KINDS: list[TextFeatures] = [TfidfFeatures.fit(TEXTS, 512), HashingFeatures(128)]


def test_tfidf_is_scikit_learns_on_the_columns_it_keeps() -> None:
    """Binary counts times smoothed idf, not normalized: each column is one of TfidfVectorizer's."""
    fitted = TfidfFeatures.fit(TEXTS, 512)
    theirs = TfidfVectorizer(analyzer=tokens, binary=True, norm=None, dtype=np.float32)
    dense = theirs.fit_transform(TEXTS).toarray()
    names = fitted.state()["vocabulary"]
    assert len(names) == fitted.size > 5
    places = [theirs.vocabulary_[n] for n in names]
    assert np.allclose(fitted(TEXTS), dense[:, places], rtol=1e-6)


def test_tfidf_keeps_what_varies_once() -> None:
    """A token of every text says nothing, and of tokens that come together one says it all."""
    fitted = TfidfFeatures.fit(TEXTS, 512)
    columns = fitted(TEXTS) > 0
    shares = columns.mean(0)
    assert ((shares > 0) & (shares < 1)).all()
    assert len({c.tobytes() for c in columns.T}) == fitted.size
    assert "case" not in fitted.state()["vocabulary"]


def test_a_limit_keeps_the_most_frequent_tokens() -> None:
    """Those are seen often enough to be learnt from."""
    whole, few = TfidfFeatures.fit(TEXTS, 512), TfidfFeatures.fit(TEXTS, 3)
    assert few.size == 3
    frequencies = np.sort((whole(TEXTS) > 0).sum(0))[::-1]
    assert sorted((few(TEXTS) > 0).sum(0), reverse=True) == frequencies[:3].tolist()


@pytest.mark.parametrize("texts", [[], [""], ["case"], ["case", "case", "case"]])
def test_where_nothing_varies_there_are_no_columns(texts: list[str]) -> None:
    """An agent that always sees the same needs none; and a vector of length 0 is still one."""
    fitted = TfidfFeatures.fit(texts, 10)
    assert fitted.size == 0
    assert fitted(["case", "anything"]).shape == (2, 0)


def test_unseen_tokens_change_nothing() -> None:
    """A new id, a new word or a new tool is left out, and the rest stays what it was."""
    fitted = TfidfFeatures.fit(TEXTS, 512)
    more = [t + '\nnever_seen {"status": "odd"}\nget_order {"status": "unheard-of"}' for t in TEXTS]
    known = fitted.state()["vocabulary"]
    changed = fitted(more) != fitted(TEXTS)
    assert {known[i] for i in np.flatnonzero(changed.any(0))} <= {"get_order"}
    assert not fitted(["never_seen anything"]).any()


def test_hashing_is_scikit_learns() -> None:
    """Presence by FeatureHasher's columns."""
    hasher = FeatureHasher(n_features=128, input_type="string", alternate_sign=False)
    theirs = hasher.transform([tokens(t) for t in TEXTS]).toarray() > 0
    assert ((HashingFeatures(128)(TEXTS) > 0) == theirs).all()
    assert set(np.unique(HashingFeatures(128)(TEXTS))) == {0.0, 1.0}


@pytest.mark.parametrize("features", KINDS, ids=["tfidf", "hashing"])
class TestEveryKind:
    def test_a_vector_does_not_depend_on_the_batch(self, features: TextFeatures) -> None:
        """Nor on what was read before, nor on the order."""
        whole = features(TEXTS)
        assert whole.dtype == np.float32
        assert whole.shape == (len(TEXTS), features.size)
        assert (np.stack([features([t])[0] for t in reversed(TEXTS)]) == whole[::-1]).all()

    def test_pickled_and_from_its_state_it_gives_equal_vectors(self, features: TextFeatures) -> None:
        """Samplers get a pickled copy, exports its state as JSON."""
        features(TEXTS)
        data = pickle.dumps(features)
        assert len(data) < 20_000, "what was remembered does not travel"
        state = json.loads(json.dumps(features.state()))
        for copy in (pickle.loads(data), from_state(state)):  # noqa: S301 - pickled above
            assert copy.size == features.size
            assert (copy(TEXTS) == features(TEXTS)).all()
            assert copy.state() == features.state()

    def test_an_observation_gives_features_and_its_mask(self, features: TextFeatures) -> None:
        """The arrays that a policy's network takes."""
        seen = [{"text": t, "action_mask": np.array([1, 0, i % 2], np.int8)} for i, t in enumerate(TEXTS)]
        arrays = TextFeaturizer(features)(seen)
        assert (arrays["features"] == features(TEXTS)).all()
        assert arrays["action_mask"].dtype == np.bool_
        assert arrays["action_mask"][:2].tolist() == [[True, False, False], [True, False, True]]
        assert TextFeaturizer(features).size == features.size

    def test_a_full_memory_is_emptied_and_nothing_changes(
        self, features: TextFeatures, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """What is remembered has a bound."""
        wanted = features(TEXTS)
        monkeypatch.setattr("policies.features.REMEMBERED_LINES", 3)
        fresh = from_state(features.state())
        assert (fresh(TEXTS) == wanted).all()
        assert len(fresh._known) <= 3  # type: ignore[attr-defined]


def test_an_unknown_kind_is_refused() -> None:
    """An export of a later version is not guessed at."""
    with pytest.raises(ValueError, match="unknown kind of text features: 'words'"):
        from_state({"kind": "words"})
