"""The kinds of values that an experiment file holds."""

from typing import Annotated, Any, Literal, cast

from pydantic import AfterValidator, BeforeValidator, Field, PlainSerializer, Strict, WithJsonSchema
from pydantic_core import PydanticCustomError

from runtime.moments import unix_time
from runtime.records import Closed


class Section(Closed, strict=True):
    """A part of the file: frozen, refuses unknown keys, and takes a value of the wrong type for what it is."""


def _pair(value: Any) -> Any:
    return cast("Any", value) if isinstance(value, list | tuple) else (value, value)


def _brief(value: tuple[float, float]) -> float | list[float]:
    return value[0] if value[0] == value[1] else list(value)


SCHEDULE_TITLE = "number, or [start, end]"
"""What a schedule is called in the reference."""

Finite = Annotated[float, Field(allow_inf_nan=False)]
Rate = Annotated[Finite, Field(ge=0)]
Schedule = Annotated[
    tuple[Rate, Rate],
    Strict(False),
    BeforeValidator(_pair),
    PlainSerializer(_brief),
    WithJsonSchema({"title": SCHEDULE_TITLE}),
]
"""Where a value starts and ends; a single number in the file means both."""
Share = Annotated[Finite, Field(ge=0, le=1)]
Positive = Annotated[Finite, Field(gt=0)]
MOST = 2**31 - 1
"""The largest whole number that every library below takes: sizes and counts are held in 32 bits by some."""
Count = Annotated[int, Field(ge=1, le=MOST)]
REFERENCE = r"^\w+(\.\w+)*:\w+$"
"""``package.module:attribute``."""
Port = Annotated[int, Field(ge=0, le=65535)]
Args = dict[str, Any]
"""Arguments for the user's own function."""
Text = Annotated[str, Field(min_length=1)]


def _moment(value: str) -> str:
    try:
        unix_time(value)
    except ValueError:
        raise PydanticCustomError("moment", "wants a moment such as 2026-05-01 or 2026-05-01T12:00:00+02:00") from None
    return value


Moment = Annotated[str, AfterValidator(_moment)]
"""A point in time in ISO 8601; without a zone, UTC."""


MOST_GPUS = 1024
"""A learner is one process: far more than any machine has."""


def _gpus(value: object) -> object:
    if value == "auto" or (type(value) is int and 0 <= value <= MOST_GPUS):
        return value
    message = "wants auto, or how many GPUs (0 for none, at most {most})"
    raise PydanticCustomError("gpus", message, {"most": MOST_GPUS})


Gpus = Annotated[int | Literal["auto"], BeforeValidator(_gpus), WithJsonSchema({"title": "auto, or a whole number"})]
