"""The task: a model, the work to do on it, and its progress."""

import re
from collections.abc import Callable
from enum import StrEnum
from typing import Annotated, Any, Literal, cast

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationInfo,
    field_validator,
)

from braid.driver.options import CompileOptions
from braid.support.errors import BraidError
from braid.support.option_names import naming_flags
from braid.tools.terminal.option_values import (
    parse_at,
    parse_bounds,
    parse_buckets,
    parse_constants,
    parse_dims,
    parse_shapes,
)

THRESHOLDS = (0.7, 1.0, 1.1)

Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]

SpaceFormat = Literal["toml", "json"]

SizeTexts = Annotated[list[Annotated[str, Field(max_length=200)]], Field(max_length=64)]
"""Values as they stand on the command line, `NAME=VALUE` each: as many as an address may hold."""

_ANY_NAME, _NAME = r"[^\x00-\x1f\x7f]+", r"[^\s\x00-\x1f\x7f=;,]+"
_SIZE = r"(0|[1-9][0-9]{0,17})"
_SIZE_LIST = rf"{_SIZE}(,{_SIZE})*"
_NUMBER = r"(-?(0|[1-9][0-9]{0,17})(\.[0-9]{1,17})?([eE][+-]?[0-9]{1,2})?|true|false)"
_ROW = rf"({_NUMBER}|\[{_NUMBER}(, ?{_NUMBER})*\])"
_VALUE = rf"({_ROW}|\[{_ROW}(, ?{_ROW})*\])"
_PATTERNS = {
    "shapes": rf"^{_ANY_NAME}=({_SIZE_LIST})?$",
    "dims": rf"^{_ANY_NAME}=({_SIZE}|[A-Za-z_][^\x00-\x1f\x7f=]*)$",
    "constants": rf"^{_ANY_NAME}={_VALUE}(, ?{_VALUE})*$",
    "shape_buckets": rf"^{_NAME}={_SIZE_LIST}$",
    "shape_bounds": rf"^{_NAME}={_SIZE}$",
    "at": rf"^{_NAME}={_SIZE}$",
}
"""The patterns of texts in the schema; the message about an error is written in plain words."""


def _texts(option: str, description: str) -> Any:
    """Return the field of an option that has such texts."""

    def with_pattern(schema: dict[str, Any]) -> None:
        schema["items"]["pattern"] = _PATTERNS[option]
        schema["uniqueItems"] = True  # and each name once, which a schema cannot express

    return Field([], description=description, json_schema_extra=with_pattern)


_SIZES = ("shapes", "dims", "constants", "shape_buckets", "shape_bounds")
_READERS: dict[str, Callable[[list[str]], Any]] = {
    "shapes": parse_shapes,
    "dims": parse_dims,
    "constants": parse_constants,
    "shape_buckets": parse_buckets,
    "shape_bounds": parse_bounds,
    "at": parse_at,
}
_LONGEST_NAME = 255
"""Bytes of a file's name, as file systems have it."""


def _split(value: object) -> object:
    """Split numbers that are given one by one or, as on the command line, with commas."""
    values = cast("list[object]", value) if isinstance(value, list) else [value]
    parts = (each.split(",") if isinstance(each, str) else [each] for each in values)
    return [part for each in parts for part in each]


class State(StrEnum):
    """The state of a task; the last three are final."""

    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def is_final(self) -> bool:
        """Return whether nothing more happens."""
        return self not in (State.QUEUED, State.RUNNING)


class TaskOptions(BaseModel):
    """The options by which kernels get schedules: those of `braid tune` and `braid compile`."""

    model_config = ConfigDict(extra="forbid")

    name: str = Field(
        pattern=r"^[^\x00-\x1f\x7f/\\<>&\"']{1,200}\.(onnx|mlir)$",
        description="Name of the model's file; its suffix says what the body is.",
    )
    target: str | None = Field(
        None,
        pattern=r"^[A-Za-z0-9_-]{1,64}$",
        description="Name of a machine that the server knows; by default its own.",
    )
    on_miss: Literal["default", "library", "probe", "tune"] = Field(
        "tune", description="The policy for kernels without a recorded search."
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
        None, max_length=1 << 16, description="The spaces to search: the text of a file of spaces."
    )
    space_format: SpaceFormat = "toml"
    shapes: SizeTexts = _texts("shapes", "Shapes of inputs with open dims: x=1,3,224,224.")
    dims: SizeTexts = _texts("dims", "Sizes of open dims by name: batch=4.")
    constants: SizeTexts = _texts("constants", "Values of inputs that never change: rate=16000.")
    shape_buckets: SizeTexts = _texts(
        "shape_buckets", "Sizes of open dims to compile for: batch=1,2,4."
    )
    shape_bounds: SizeTexts = _texts("shape_bounds", "Largest sizes of open dims: batch=8.")
    at: SizeTexts = _texts(
        "at", "Sizes of open dims at which the page shows the plan of memory: batch=3."
    )
    numerics: Literal["fast", "strict"] | None = None
    precision: Literal["bf16", "model"] | None = None
    names: Literal["keywords", "flags"] = Field(
        "keywords", description="How messages name options: as in Python, or on a command line."
    )
    interactive: bool = Field(
        False, description="Ask between levels; POST /tasks/{id}/orders answers."
    )

    @field_validator(
        *("shapes", "dims", "constants", "shape_buckets", "shape_bounds", "at"), mode="after"
    )
    @classmethod
    def _check_sizes(cls, texts: list[str], field: ValidationInfo) -> list[str]:
        with naming_flags(False):
            try:
                _READERS[str(field.field_name)](texts)
            except BraidError as error:
                raise ValueError(error.message) from error
        for text in texts:
            if re.search(_PATTERNS[str(field.field_name)], text) is None:
                raise ValueError(f"'{text}' has other values or characters than the schema says")
        return texts

    @field_validator("name", mode="after")
    @classmethod
    def _check_name(cls, name: str) -> str:
        if len(name.encode()) > _LONGEST_NAME:
            raise ValueError(f"the name has more than {_LONGEST_NAME} bytes")
        return name

    def compile_options(self) -> CompileOptions:
        """Return those options that describe the compilation."""
        sizes: dict[str, Any] = {
            name: _READERS[name](getattr(self, name)) or None for name in _SIZES
        }
        return CompileOptions(
            **sizes,
            target=self.target,
            numerics=self.numerics,
            precision=self.precision,
        )

    def sizes_of_page(self) -> dict[str, int]:
        """Return the sizes at which the page shows the plan of memory."""
        return parse_at(self.at)


class TaskDiagnostic(BaseModel):
    """A problem of a model, or something worth saying: as in the document of `--json`."""

    severity: Literal["error", "warning", "remark", "note"]
    message: str
    hint: str | None = None
    file: str | None = None
    line: int | None = None
    column: int | None = None
    notes: list["TaskNote"] = Field(default_factory=list["TaskNote"])


class TaskNote(BaseModel):
    """A place that helps to understand a diagnostic."""

    message: str
    file: str | None = None
    line: int | None = None
    column: int | None = None


class Kernel(BaseModel):
    """A kernel of the model and its times in seconds, None where it was not measured."""

    what: str
    ops: list[str] = Field(
        default_factory=list[str], description="The model's ops in it, with the place of each."
    )
    schedule: str | None = None
    library: float | None = None
    default: float | None = None
    searched: float | None = None
    keeps_library: bool = False


class Task(BaseModel):
    """A task as clients see it; times are seconds, UNIX."""

    id: str
    options: TaskOptions
    given: dict[str, Any] = Field(
        default_factory=dict[str, Any], description="Options that differ from their defaults."
    )
    state: State
    step: str = Field("", description="The present step, for people.")
    error: str | None = None
    diagnostics: list[TaskDiagnostic] = Field(
        default_factory=list[TaskDiagnostic],
        description="Warnings of passes and, for a failed task, the reason.",
    )
    asks: bool = Field(False, description="The search waits for an order.")
    created: float
    started: float | None = None
    finished: float | None = None
    kernels: list[Kernel] = Field(default_factory=list[Kernel])
    report: str = ""
    has_artifact: bool = False
    has_explanation: bool = False
    owner: str = Field("", description="The name of the token that queued it.")
    done: int = Field(0, description="Kernels of this step that are over.")
    total: int = Field(0, description="Kernels of this step; 0 if it has none.")
    ends: float | None = Field(None, description="When the search ends at the latest.")


class TaskEvent(BaseModel):
    """Something that happened: `number` grows, `data` depends on the kind."""

    number: int
    kind: Literal["state", "step", "line", "asks", "kernels", "report", "diagnostics", "error"]
    data: dict[str, Any]
