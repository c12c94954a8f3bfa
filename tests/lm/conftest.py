"""A tiny model made once for all tests here, and its prompts."""

from pathlib import Path

import pytest

from tests.lm.small import TEXTS, small_shape


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Directory of a fresh model with a tokenizer that knows the desk's words."""
    from policies.lm.tiny import make_tiny

    directory: Path = tmp_path_factory.mktemp("lm") / "tiny"
    make_tiny(directory, small_shape(), TEXTS)
    return str(directory)
