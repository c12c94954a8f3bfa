"""A tiny Llama made on the spot, with a byte-level BPE tokenizer learned from the team's own texts."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from policies.lm.loading import quiet

PAD, END = "<|pad|>", "<|end|>"
ROLES = ("system", "user", "assistant")
TEMPLATE = (
    "{% for m in messages %}{{ '<|' + m.role + '|>' + m.content + '<|end|>' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|assistant|>' }}{% endif %}"
)
"""The chat template that the tokenizer is saved with."""
CONTEXT = 4096
"""Positions the model knows; rotary ones cost nothing."""

LONGEST = 48
"""Characters of a token at most. Tokens go over words: what always stands together in a team's texts becomes one."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TinyShape:
    """How large the model is."""

    hidden: int = 128
    layers: int = 3
    heads: int = 4
    vocabulary: int = 1024
    """Tokens at most: 256 bytes, five marks, and what is frequent."""
    seed: int = 0


def make_tiny(directory: Path, shape: TinyShape, texts: Iterable[str]) -> None:
    """Write a fresh model and its tokenizer as a directory that plain transformers opens."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    quiet()
    tokenizer = byte_pairs(texts, shape.vocabulary)
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=shape.hidden,
        intermediate_size=2 * shape.hidden,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads,
        num_key_value_heads=shape.heads,
        max_position_embeddings=CONTEXT,
        tie_word_embeddings=True,
        pad_token_id=tokenizer.pad_token_id,
        eos_token_id=tokenizer.eos_token_id,
        bos_token_id=None,
    )
    with torch.random.fork_rng():
        chance: Any = torch
        chance.manual_seed(shape.seed)
        model = LlamaForCausalLM(config)
    directory.mkdir(parents=True, exist_ok=True)
    model.save_pretrained(directory)
    tokenizer.save_pretrained(directory)


def byte_pairs(texts: Iterable[str], size: int) -> Any:
    """A byte-level BPE tokenizer with a chat template; any text can be written with it."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    marks = [PAD, END, *(f"<|{r}|>" for r in ROLES)]
    made: Any = Tokenizer(models.BPE())
    parts = [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(False, use_regex=False)]
    made.pre_tokenizer = pre_tokenizers.Sequence(parts)
    made.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=size,
        special_tokens=[AddedToken(m, special=True, normalized=False) for m in marks],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
        max_token_length=LONGEST,
    )
    made.train_from_iterator(texts, trainer)
    wrapped = PreTrainedTokenizerFast(tokenizer_object=made, pad_token=PAD, eos_token=END)
    wrapped.chat_template = TEMPLATE
    return wrapped
