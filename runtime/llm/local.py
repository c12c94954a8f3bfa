"""Language models of this machine, from a directory, by transformers. Nothing is ever downloaded."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from typing import Any

from runtime.llm.types import Failure, Finished, Happening, Piece, Request

Deliver = Callable[[Happening], None]


class Transformers:
    """A causal language model. One answer at a time: the machine would not give two any sooner."""

    provider = "transformers"

    def __init__(self, path: Path, *, gguf_file: str | None = None, device: str = "cpu") -> None:
        self.model = path.name
        self._path, self._gguf, self._device = path, gguf_file, device
        self._worker = ThreadPoolExecutor(1, thread_name_prefix="transformers")
        self._loaded: tuple[Any, Any] | None = None

    def start(self, request: Request, deliver: Deliver) -> Callable[[], None]:
        """Begin to answer. The first question also loads the model."""
        cancelled = Event()
        self._worker.submit(self._answer, request, deliver, cancelled)
        return cancelled.set

    def count(self, text: str) -> int | None:
        """Tokens in the text; None before the model is loaded."""
        return len(self._loaded[1](text)["input_ids"]) if self._loaded else None

    def close(self) -> None:
        """Let go of the model once the answer under way has seen that nobody waits for it."""
        self._worker.shutdown(wait=True, cancel_futures=True)
        self._loaded = None

    def warm_up(self) -> None:
        """Load the model now, so that no question has to wait for it."""
        self._worker.submit(self._load).result()

    def _load(self) -> tuple[Any, Any]:
        if self._loaded is None:
            import transformers

            library: Any = transformers
            found: dict[str, Any] = {"local_files_only": True}
            if self._gguf:
                found["gguf_file"] = self._gguf
            tokenizer = library.AutoTokenizer.from_pretrained(self._path, **found)
            model = library.AutoModelForCausalLM.from_pretrained(self._path, **found)
            self._loaded = model.to(self._device).eval(), tokenizer
        return self._loaded

    def _answer(self, request: Request, deliver: Deliver, cancelled: Event) -> None:
        try:
            if not cancelled.is_set():
                self._generate(request, deliver, cancelled)
        except Exception as error:  # noqa: BLE001 - whatever the library raises, the caller is told
            deliver(Failure(kind="failed", message=f"{type(error).__name__}: {error}"))

    def _generate(self, request: Request, deliver: Deliver, cancelled: Event) -> None:
        model, tokenizer = self._load()
        asked = _encoded(tokenizer, request).to(self._device)
        room = _room(model, asked.shape[1])
        if room < 1:
            deliver(Failure(kind="refused", message=f"{asked.shape[1]} tokens do not fit into the model's context"))
            return
        listener = _Listener(tokenizer, deliver)
        limit = min(request.max_tokens, room)
        model.generate(
            asked,
            attention_mask=asked.new_ones(asked.shape),
            max_new_tokens=limit,
            do_sample=False,
            logits_processor=_draws(request),
            stopping_criteria=[_Cancelled(cancelled)],
            streamer=listener,
            pad_token_id=tokenizer.pad_token_id if tokenizer.pad_token_id is not None else tokenizer.eos_token_id,
        )
        out = len(listener.ids)
        reason = "length" if out >= limit and listener.ids[-1] != tokenizer.eos_token_id else "stop"
        deliver(Finished(tokens_in=asked.shape[1], tokens_out=out, reason=reason))


class _Cancelled:
    """Tells ``generate`` to stop when nobody waits for the answer any more."""

    def __init__(self, event: Event) -> None:
        self._event = event

    def __call__(self, ids: Any, *_: Any, **__: Any) -> Any:
        """For each sequence, whether to stop now."""
        return ids.new_full((ids.shape[0],), int(self._event.is_set())).bool()


def _encoded(tokenizer: Any, request: Request) -> Any:
    """The prompt's tokens, ``(1, T)``."""
    if tokenizer.chat_template:
        turns = [{"role": m.role, "content": m.text} for m in request.messages]
        made = tokenizer.apply_chat_template(turns, add_generation_prompt=True, return_tensors="pt", return_dict=True)
        return made["input_ids"]
    return tokenizer(request.text, return_tensors="pt")["input_ids"]


def _room(model: Any, used: int) -> int:
    """Tokens that still fit into the model's context."""
    return int(getattr(model.config, "max_position_embeddings", used + 1_000_000)) - used


class _Listener:
    """What ``generate`` tells tokens to. Text is handed on as far as it can no longer change."""

    def __init__(self, tokenizer: Any, deliver: Deliver) -> None:
        self.ids: list[int] = []
        self._tokenizer, self._deliver = tokenizer, deliver
        self._said, self._prompt_seen = "", False

    def put(self, value: Any) -> None:
        """Tokens have come; the first ones are the prompt."""
        if not self._prompt_seen:
            self._prompt_seen = True
            return
        self.ids += value.reshape(-1).tolist()
        text: str = self._tokenizer.decode(self.ids, skip_special_tokens=True)
        # A character of several tokens is shown as U+FFFD until its last one is there.
        self._say("" if text.endswith("\ufffd") else text)

    def end(self) -> None:
        """No more will come."""
        self._say(self._tokenizer.decode(self.ids, skip_special_tokens=True))

    def _say(self, text: str) -> None:
        new = text[len(self._said) :]
        self._said = text or self._said
        self._deliver(Piece(new))


def _draws(request: Request) -> list[Any]:
    """What makes greedy search take a drawn token: chance of its own, so that nobody else's is disturbed."""
    if request.temperature <= 0:
        return []
    import numpy as np

    rng = np.random.default_rng(request.seed)

    def draw(_ids: Any, scores: Any) -> Any:
        logits = np.asarray(scores[0].float().cpu().numpy(), dtype=np.float64) / request.temperature
        chosen = int(np.argmax(logits + rng.gumbel(size=logits.shape)))  # Gumbel-max: a draw from the softmax
        only = scores.new_full(scores.shape, float("-inf"))
        only[0, chosen] = 0.0
        return only

    return [draw]
