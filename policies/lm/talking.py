"""A trained language model that is talked to: its role's own prompt, or any conversation in its chat template.

Everything here reads one prompt as one plain sequence, so that what a role decides when it is asked with its own brief
and tools is what it decides in training.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import torch

from policies.lm.featurize import PromptFeatures
from policies.lm.grammar import CallGrammar
from policies.lm.loading import load_tokenizer
from policies.lm.network import Network
from policies.lm.prompt import PLAIN
from policies.lm.sampling import Sampling
from policies.lm.tree import Tokens
from policies.lm.writing import Writer
from runtime.errors import RepertoryError

HOLD = "\u2063held\u2063"
"""Stands for a message's content while the chat template is rendered."""
TOOLSETS = 32
"""Grammars of other tools than the role's own that are remembered."""


class NotToBeRendered(RepertoryError):
    """The model's chat template does not take these messages."""


class Talker:
    """A role's language model, with frozen weights, to be talked to.

    Args:
        network: the role's, which chooses or writes.
        features: the role's prompts.
    """

    def __init__(self, network: Network | Writer, features: PromptFeatures) -> None:
        self.network, self.features = network, features
        self._tokenizer = load_tokenizer(network.spec.path)
        self.end = int(self._tokenizer.eos_token_id)
        with network.weights.used() as model:
            self.context = int(model.config.max_position_embeddings)
            self._size = int(model.get_output_embeddings().weight.shape[0])
        self.grammar = lru_cache(maxsize=TOOLSETS)(self._grammar)

    # -- prompts

    def role_prompt(self, seen: str) -> Tokens:
        """The prompt of training for what a role has seen, cut as it was cut there."""
        made = self.features.prompter
        return (*made.head, *made(seen), *made.tail)

    def conversation(self, messages: Sequence[Mapping[str, str]]) -> Tokens:
        """Messages in the chat template. A mark of the template in what somebody says is plain text.

        Raises:
            NotToBeRendered: the template refuses them.
        """
        rendered = self._rendered(messages)
        parts = rendered.split(HOLD)
        if len(parts) != len(messages) + 1:
            raise NotToBeRendered("the model's chat template does not show each message once")
        tokens = list(self._encode(parts[0], plain=False))
        for message, after in zip(messages, parts[1:], strict=True):
            tokens += self._encode(message["content"], plain=True)
            tokens += self._encode(after, plain=False)
        return tuple(tokens)

    def _rendered(self, messages: Sequence[Mapping[str, str]]) -> str:
        template = self._tokenizer.chat_template or PLAIN
        held = [{"role": m["role"], "content": HOLD} for m in messages]
        try:
            return self._tokenizer.apply_chat_template(
                held, tokenize=False, add_generation_prompt=True, chat_template=template
            )
        except Exception as error:  # noqa: BLE001 - a template raises whatever it likes
            raise NotToBeRendered(f"the model's chat template does not take these messages: {error}") from None

    def _encode(self, text: str, *, plain: bool) -> Sequence[int]:
        return self._tokenizer.encode(text, add_special_tokens=False, split_special_tokens=plain)

    # -- deciding and writing

    @torch.no_grad()
    def scores(self, seen: str, legal: Sequence[bool]) -> np.ndarray[Any, np.dtype[np.float32]]:
        """``(K,)`` the scores of a role's calls, nat, of a network that chooses."""
        assert isinstance(self.network, Network), "only such a network scores calls"
        device = next(self.network.parameters()).device
        tokens = torch.from_numpy(self.features([seen])).to(device)
        return self.network.scores(tokens, torch.tensor([list(legal)], device=device))[0][0].float().cpu().numpy()

    def own_matcher(self, legal: Sequence[bool]) -> tuple[CallGrammar, Any]:
        """The grammar of a role's legal calls, of a network that writes, and where it stands."""
        assert isinstance(self.network, Writer), "only such a network writes calls"
        grammar = self.network.grammar
        return grammar, grammar.matchers(np.array([legal]))[0]

    def _grammar(self, calls: tuple[str, ...], arguments: str) -> CallGrammar:
        return CallGrammar(self.network.spec.path, calls, arguments, self._size)

    def write(
        self, prompt: Tokens, sampling: Sampling, limit: int, held: tuple[CallGrammar, Any] | None = None
    ) -> Iterator[int]:
        """Tokens one after the other, the end mark among them; at most ``limit``.

        Args:
            prompt: what was said so far.
            sampling: how each is taken.
            limit: how many.
            held: a grammar, and where it stands.
        """
        from transformers import DynamicCache

        cache, more = DynamicCache(), prompt
        for place in range(limit):
            scores = self._next(more, cache)
            if held is not None:
                scores = np.where(held[0].allowed([held[1]])[0], scores, -np.inf)
            token = sampling.pick(scores, place)
            if held is not None:
                held[1].accept_token(token)
            yield token
            if token == self.end:
                return
            more = (token,)

    @torch.no_grad()
    def _next(self, more: Tokens, cache: Any) -> np.ndarray[Any, np.dtype[np.float32]]:
        """``(V,)`` logits of the token after these, which the cache then holds."""
        before = int(cache.get_seq_length())
        with self.network.weights.used() as model:
            decoder = model.get_decoder()
            ids = torch.tensor([more], device=decoder.device)
            places = torch.arange(before, before + len(more), device=decoder.device)[None]
            out = decoder(input_ids=ids, position_ids=places, cache=cache, use_cache=True)
            return model.get_output_embeddings()(out.last_hidden_state[:, -1])[0].float().cpu().numpy()

    def read(self, tokens: Sequence[int]) -> str:
        """Tokens as text, without marks."""
        return self._tokenizer.decode(tokens, skip_special_tokens=True)

    def reader(self) -> "Unrolled":
        """Reads tokens one by one."""
        return Unrolled(self._tokenizer.backend_tokenizer)


class Unrolled:
    """Text from tokens that come one by one; a character of several tokens comes when it is whole."""

    def __init__(self, tokenizer: Any) -> None:
        from tokenizers.decoders import DecodeStream

        self._tokenizer, self._stream = tokenizer, DecodeStream(skip_special_tokens=True)

    def add(self, token: int) -> str:
        """What one more token adds."""
        return self._stream.step(self._tokenizer, token) or ""


class UpTo:
    """Text up to the first of some words, passed on as soon as it cannot be the beginning of one."""

    def __init__(self, words: Sequence[str]) -> None:
        self._words, self._held, self.over = tuple(w for w in words if w), "", False

    def add(self, text: str) -> str:
        """What may be passed on now."""
        self._held += text
        found = [at for w in self._words if (at := self._held.find(w)) >= 0]
        if found:
            self.over = True
            return self._take(min(found), drop=True)
        begun = [n for w in self._words for n in range(1, len(w)) if self._held.endswith(w[:n])]
        return self._take(len(self._held) - max(begun, default=0))

    def rest(self) -> str:
        """What was held back, once nothing more comes."""
        return self._take(len(self._held))

    def _take(self, end: int, *, drop: bool = False) -> str:
        taken, left = self._held[:end], self._held[end:]
        self._held = "" if drop else left
        return taken
