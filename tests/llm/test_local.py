"""Models of this machine, on a tiny random Llama."""

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from runtime.llm import Answered, Limits, Message, ModelSettings, Request, Unavailable, build
from runtime.llm.calling import Caller
from runtime.llm.limits import Seams
from runtime.llm.local import Transformers
from runtime.llm.model import Model, Priced
from runtime.llm.shared import InMemory
from runtime.llm.types import Happening
from tests.llm.providers import streamed

pytest.importorskip("transformers")
WORDS = ["<eos>", "<unk>", *(f"w{i}" for i in range(60))]
LONG = 100_000


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with a Llama of 62 words and 20,000 weights, and its tokenizer."""
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    path = tmp_path_factory.mktemp("models") / "tiny"
    tokenizer = Tokenizer(models.WordLevel({w: i for i, w in enumerate(WORDS)}, unk_token="<unk>"))  # noqa: S106
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<eos>", unk_token="<unk>").save_pretrained(path)  # noqa: S106
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=len(WORDS),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=2,
        max_position_embeddings=LONG,
        eos_token_id=0,
        bos_token_id=0,
    )
    LlamaForCausalLM(config).save_pretrained(path)
    return path


@pytest.fixture(scope="module")
def source(folder: Path) -> Iterator[Transformers]:
    made = Transformers(folder)
    made.warm_up()
    yield made
    made.close()


def asking(source: Transformers, limits: Limits | None = None) -> Model:
    seams = Seams(rng=Random(0))
    return Model([Priced(Caller(source, limits or Limits(), InMemory(), seams))], limits or Limits(), seams)


def say(text: str = "w1 w2 w3", **options: float) -> Request:
    return Request(messages=(Message("user", text),), **{"max_tokens": 6, **options})


def test_greedy_is_the_same_again(source: Transformers) -> None:
    """At temperature 0 the same question has the same answer, with its tokens counted."""
    model = asking(source)
    first, second = model.ask(say()), model.ask(say())
    assert isinstance(first, Answered)
    assert isinstance(second, Answered)
    assert first.text == second.text != ""
    assert (first.spent.tokens_in, first.spent.counted) == (3, "reported")
    assert first.reason == "length"
    assert first.spent.tokens_out == 6


def test_seeded_draws(source: Transformers) -> None:
    """Above temperature 0 the seed decides, and nobody else's chance is used."""
    import torch

    model = asking(source)
    torch.manual_seed(5)
    before = torch.random.get_rng_state()
    texts = [model.ask(say(temperature=2.0, seed=s)).text for s in (1, 1, 2, 3)]
    assert texts[0] == texts[1]
    assert len(set(texts)) > 1
    assert torch.equal(before, torch.random.get_rng_state())


def test_the_pieces_make_the_text(source: Transformers) -> None:
    """What is streamed is, put together, the answer."""
    pieces, answer = streamed(asking(source), say())
    assert isinstance(answer, Answered)
    assert "".join(pieces) == answer.text
    assert len(pieces) > 1


def test_a_long_answer_is_cut_by_the_budget(source: Transformers) -> None:
    """An answer that would take minutes is left at the end of the budget, and the model is free for the next one."""
    model = asking(source)
    began = time.monotonic()
    answer = model.ask(say(max_tokens=LONG - 10), budget_s=0.5)
    assert isinstance(answer, Unavailable)
    assert time.monotonic() - began < 2.0
    assert isinstance(model.ask(say(), budget_s=10.0), Answered)


def test_a_prompt_that_does_not_fit(source: Transformers) -> None:
    """A prompt longer than the model's context is refused with its length, not cut in silence."""
    done = threading.Event()
    came: list[Happening] = []
    source.start(say("w1 " * (LONG + 1)), lambda h: (came.append(h), done.set())[0])
    assert done.wait(30)
    assert f"{LONG + 1} tokens" in came[0].message


def test_by_settings(folder: Path) -> None:
    """A directory in the settings is all it takes; a wrong one is a failure with the reason."""
    for path, kind in ((folder, Answered), (folder / "nothing", Unavailable)):
        model = build(ModelSettings.model_validate({"model": {"kind": "transformers", "path": path}}))
        answer = model.ask(say())
        model.close()
        assert isinstance(answer, kind)
    assert answer.failures[0].kind == "failed"
