"""What a task is: a model, what is to be done with it, and how far that is."""

from enum import StrEnum
from typing import Annotated, Any, Literal, cast

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

THRESHOLDS = (0.7, 1.0, 1.1)

Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]

SpaceFormat = Literal["toml", "json"]


def _split(value: object) -> object:
    """Split numbers that are given one by one or, as on the command line, with commas."""
    values = cast("list[object]", value) if isinstance(value, list) else [value]
    parts = (each.split(",") if isinstance(each, str) else [each] for each in values)
    return [part for each in parts for part in each]


class State(StrEnum):
    """Where a task stands; the last three are final."""

    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def is_final(self) -> bool:
        """Whether nothing more happens."""
        return self not in (State.QUEUED, State.RUNNING)


class TaskOptions(BaseModel):
    """How kernels get their schedules: the options of `braid tune` and `braid compile`."""

    model_config = ConfigDict(extra="forbid")

    name: str = Field(
        pattern=r"^[^\x00-\x1f\x7f/\\<>&\"']{1,200}\.(onnx|mlir)$",
        description="Name of the model's file; its end says what the body is.",
    )
    target: str | None = Field(
        None,
        pattern=r"^[A-Za-z0-9_-]{1,64}$",
        description="Name of a machine that the server knows; by default its own.",
    )
    on_miss: Literal["default", "library", "probe", "tune"] = Field(
        "tune", description="What a kernel gets of which no search is recorded."
    )
    seconds: float = Field(
        600.0, ge=0, le=86400, description="Budget of the search: no further kernel after so long."
    )
    threshold: Annotated[list[Positive], BeforeValidator(_split)] = Field(
        list(THRESHOLDS),
        min_length=1,
        max_length=16,
        description="Ratios of the baseline's time to the best one below which a search stops, "
        "one for each level.",
    )
    levels: int = Field(3, ge=1, le=16, description="Levels of the space that are looked at.")
    least_gain: float = Field(
        0.01,
        ge=0,
        allow_inf_nan=False,
        description="Part of the time that the rest of a level is expected to gain over the "
        "library, below which the level ends.",
    )
    trials: int | None = Field(
        None, ge=1, le=1_000_000, description="Schedules of a kernel that are measured at most."
    )
    final: Literal["fastest", "threshold"] = "fastest"
    search: Literal["levels", "model"] = "levels"
    model_class: Literal["cnn", "transformer", "rnn", "mlp", "auto"] = "auto"
    again: bool = Field(False, description="Search kernels that were searched before, too.")
    whole_model: bool = Field(
        True, description="Run the model as found and as before, and take back what is not faster."
    )
    space: str | None = Field(
        None, max_length=1 << 16, description="What is searched: the text of a file of spaces."
    )
    space_format: SpaceFormat = "toml"
    interactive: bool = Field(
        False, description="Ask between levels; POST /tasks/{id}/orders answers."
    )


class Kernel(BaseModel):
    """A kernel of the model and its times in seconds, None where it was not measured."""

    what: str
    schedule: str | None = None
    library: float | None = None
    default: float | None = None
    searched: float | None = None
    keeps_library: bool = False


class Task(BaseModel):
    """A task as clients see it; times are seconds, UNIX."""

    id: str
    options: TaskOptions
    state: State
    step: str = Field("", description="What is being done, for people.")
    error: str | None = None
    asks: bool = Field(False, description="The search waits for an order.")
    created: float
    started: float | None = None
    finished: float | None = None
    kernels: list[Kernel] = Field(default_factory=list[Kernel])
    report: str = ""
    has_artifact: bool = False
    has_explanation: bool = False


class TaskEvent(BaseModel):
    """Something that happened: `number` grows, `data` depends on the kind."""

    number: int
    kind: Literal["state", "step", "line", "asks", "kernels", "report", "error"]
    data: dict[str, Any]
