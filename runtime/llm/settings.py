"""Which model an agent asks, as settings; and the model made of them."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from runtime.llm.calling import Caller
from runtime.llm.chat import Chat, key_from
from runtime.llm.limits import Limits, Seams
from runtime.llm.model import Model, Price, Priced
from runtime.llm.scripted import Scripted
from runtime.llm.shared import InMemory, InRedis, Shared
from runtime.llm.types import LocalPolicy, Source
from runtime.records import Closed
from runtime.seams import digest

if TYPE_CHECKING:
    from redis import Redis


class OpenAICompatible(Closed):
    """A model behind an OpenAI-compatible endpoint."""

    kind: Literal["openai"] = "openai"
    model: str
    base_url: str = Field(default="https://api.openai.com/v1")
    key_variable: str = Field(default="OPENAI_API_KEY")
    """The environment variable that holds the key."""
    provider: str = Field(default="")
    """Its name in records and metrics; the host by default."""
    tokenizer: Path | None = Field(default=None)
    """A directory with the model's tokenizer, to count with where the provider does not report tokens."""
    price: Price | None = Field(default=None)


class LocalTransformers(Closed):
    """A model of this machine."""

    kind: Literal["transformers"] = "transformers"
    path: Path
    """A directory with the model and its tokenizer."""
    gguf_file: str | None = Field(default=None)
    """The file in it, where the weights are in GGUF."""
    device: str = Field(default="cpu")
    price: Price | None = Field(default=Price(usd_per_million_in=0.0, usd_per_million_out=0.0))


class ScriptedReplies(Closed):
    """Fixed replies, one after the other and then from the start."""

    kind: Literal["scripted"] = "scripted"
    replies: tuple[str, ...] = Field(min_length=1)
    price: Price | None = Field(default=Price(usd_per_million_in=0.0, usd_per_million_out=0.0))


SourceSettings = Annotated[OpenAICompatible | LocalTransformers | ScriptedReplies, Field(discriminator="kind")]


class ModelSettings(Closed):
    """A model and what stands in for it."""

    model: SourceSettings
    fallbacks: tuple[SourceSettings, ...] = Field(default=())
    """Asked in this order when the model gives no answer; their answers are marked as degraded."""
    limits: Limits = Field(default=Limits())


def build(
    settings: ModelSettings,
    *,
    redis: "Redis | None" = None,
    local: LocalPolicy | None = None,
    seams: Seams | None = None,
) -> Model:
    """The model of the settings.

    Args:
        settings: which.
        redis: where breakers and rate limits are shared with other processes; None keeps them in this one.
        local: answers where no model does.
        seams: clock, sleep and chance.
    """
    shared: Shared = InMemory() if redis is None else InRedis(redis)
    through = seams or Seams()
    chain = [
        Priced(Caller(source(s, settings.limits), settings.limits, shared, through), s.price)
        for s in (settings.model, *settings.fallbacks)
    ]
    return Model(chain, settings.limits, through, local)


def identity(settings: OpenAICompatible | LocalTransformers | ScriptedReplies) -> str:
    """What tells a model from any other. One of this machine is known by its files, as they were last written."""
    if isinstance(settings, OpenAICompatible):
        return f"{settings.base_url} {settings.model}"
    if isinstance(settings, ScriptedReplies):
        return f"scripted {settings.replies}"
    files = sorted(f for f in settings.path.rglob("*") if f.is_file())
    about = [(f.relative_to(settings.path).as_posix(), f.stat().st_size, f.stat().st_mtime_ns) for f in files]
    return f"{settings.path.resolve()} {settings.gguf_file} {digest(about):016x}"


def source(settings: OpenAICompatible | LocalTransformers | ScriptedReplies, limits: Limits) -> Source:
    """The model itself, without retries or fallback."""
    if isinstance(settings, ScriptedReplies):
        return Scripted(settings.replies)
    if isinstance(settings, LocalTransformers):
        from runtime.llm.local import Transformers

        return Transformers(settings.path, gguf_file=settings.gguf_file, device=settings.device)
    return Chat(
        settings.model,
        settings.base_url,
        key=key_from(settings.key_variable),
        limits=limits,
        provider=settings.provider,
        count=_counter(settings.tokenizer) if settings.tokenizer else None,
    )


def _counter(path: Path) -> Callable[[str], int]:
    """Counts tokens; the tokenizer is loaded when it is first needed."""
    loaded: list[Any] = []

    def count(text: str) -> int:
        if not loaded:
            import transformers

            library: Any = transformers
            loaded.append(library.AutoTokenizer.from_pretrained(path, local_files_only=True))
        return len(loaded[0](text)["input_ids"])

    return count
