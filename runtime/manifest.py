"""Describe an artifact, for people and for Python, by the JSON in its first section."""

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple, NoReturn, TypeVar, cast

from braid.support.errors import BraidError
from braid.support.memory_report import MemoryReport, TensorMemory

_T = TypeVar("_T")
_LARGEST = 2**63
UNBOUNDED = _LARGEST - 1
"""The upper bound of an open dim without a declared one."""
_KINDS: dict[type, str] = {
    str: "text",
    float: "a number",
    int: "a whole number of 63 bits",
    list: "a list",
    dict: "an object",
    bool: "a truth value",
}


@dataclass(frozen=True)
class TensorSpec:
    """An input or output: row-major, with numpy's (or ml_dtypes') name for its element type.

    `shape` has -1 for an open dim; `bound` is the upper bound of each dim, equal to `shape` where
    the dim is not open, and `UNBOUNDED` where an open one may have any size. `dims` has the model's
    name of each open dim, "" for the other dims; it is empty if no dim is open. `values` names the
    sizes that an input's elements are: these values decide shapes.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    bound: tuple[int, ...]
    dims: tuple[str, ...] = ()
    values: tuple[str, ...] = ()

    @classmethod
    def static(cls, name: str, dtype: str, shape: tuple[int, ...]) -> "TensorSpec":
        """Return the spec of a tensor without open dims."""
        return cls(name, dtype, shape, shape)


@dataclass(frozen=True)
class PortKind:
    """The kind of an input or output that is no array of numbers from the caller.

    It is text, a mapping with these keys from each row, or random numbers if a call omits it.
    """

    is_text: bool = False
    keys: tuple[str | int, ...] = ()
    is_random: bool = False


@dataclass(frozen=True)
class Boundary:
    """The inputs and outputs of a model, by name, that are not numeric arrays.

    `texts` are those that the model holds, each at the place of the number that stands for it.
    """

    texts: tuple[str, ...] = ()
    inputs: Mapping[str, PortKind] = field(default_factory=dict[str, PortKind])
    outputs: Mapping[str, PortKind] = field(default_factory=dict[str, PortKind])

    def __bool__(self) -> bool:
        """Return whether there is any that calls give or get: text or a mapping."""
        return bool(self.outputs) or any(not kind.is_random for kind in self.inputs.values())


NUMBERS_ALONE = Boundary()


@dataclass(frozen=True)
class StateSpec:
    """An input of the state, by its name, and the output that is its next value.

    Dim i of both, as code has them, is dim `order[i]` of the model; an empty order leaves all in
    place. If it is `appended` to, the output begins with the elements of the input, so that both
    may be one buffer.
    """

    input: str
    output: str
    order: tuple[int, ...] = ()
    appended: bool = False


@dataclass(frozen=True)
class SizeCheckSpec:
    """A size by those of the dims, such as `past + new - total`, that each run checks: it is 0, or
    else not negative.
    """

    size: str
    is_zero: bool


@dataclass(frozen=True)
class DimSpec:
    """A dim that inputs and outputs share, and the sizes of it for which there is code.

    It is empty if the same code runs at all sizes. Sizes from `padded_from` on are padded up to
    the next of these; 0 means that none are.
    """

    name: str
    sizes: tuple[int, ...]
    padded_from: int


@dataclass(frozen=True)
class WeightSpec:
    """A weight, which lies `offset` bytes into the weights section, a multiple of 64."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    offset: int
    nbytes: int


@dataclass(frozen=True)
class DeviceSpec:
    """A device that functions of the model run on, and the runtime's plugin for it."""

    name: str
    plugin: str


@dataclass(frozen=True)
class ResourceSpec:
    """A resource of a device: the amount that code uses, and the amount available."""

    name: str
    used: float
    available: float


@dataclass(frozen=True)
class DeviceCodeSpec:
    """Code that a device beside the host loads: `nbytes` from `offset` of the devices section.

    `kind` is the kind of code, such as `stream`. `seconds` is how long it takes of a run of the
    model, as estimated when it was compiled; negative where nothing is known. Code that functions
    are launched with lies in the shared object, and nowhere else: `in_code` says that the offset is
    in the code. `interval` is the time in seconds from one input of a stream to the next, negative
    where nothing is known, and `resources` what the code takes of the device.
    """

    device: str
    kind: str
    offset: int
    nbytes: int
    seconds: float
    in_code: bool = False
    interval: float = -1.0
    resources: tuple[ResourceSpec, ...] = ()


class RecordCount(NamedTuple):
    """The numbers of a model's kernels (`total`), and of those with a record of a search
    (`recorded`).

    The schedules of `searched` of these were searched during compilation.
    """

    recorded: int = 0
    total: int = 0
    searched: int = 0

    def __str__(self) -> str:
        now = f", {self.searched} kernels searched now" if self.searched else ""
        return f"{self.recorded} of {self.total} kernels have a record of a search{now}"


NO_KERNELS = RecordCount()
_OPTIONAL: dict[str, Any] = {
    "devices": [],
    "runs_on": [],
    "libraries": [],
    "inter_op_streams": 1,
    "memory": [],
    "kernels": list(NO_KERNELS),
    "output_shapes": [],
    "expanded_bytes": 0,
    "boundary": asdict(NUMBERS_ALONE),
    "phases": 0,
    "state": [],
    "size_checks": [],
}
"""The values of the fields that older manifests lack."""


@dataclass(frozen=True)
class Manifest:
    """An artifact's description.

    `target` is the name of the target description that it was compiled for, `triple` LLVM's name of
    the code's machine; `cpu_features` are LLVM's names of the features that the CPU must have.
    `arena_bytes` is the memory that each context takes for intermediates. `builder` names the
    program and version that wrote the artifact. `dims` are the dims for whose sizes there are
    variants of the code, every combination of these. `devices` is the code of other devices than
    the host, in the order in which it runs; `runs_on` are the devices that functions are launched
    on, all of which are there when the artifact is loaded. `libraries` names the vendors' shared
    libraries that the code calls; the system's loader must find them. `inter_op_streams` is on how
    many threads kernels run side by side, `memory` what was planned for each function, and
    `kernels` how many kernels are made by records of searches. `output_shapes` gives, for a model
    with open dims, each output's sizes as expressions of the dims, such as `2 * batch`; its
    `arena_bytes` are 0, since the arena depends on them. `expanded_bytes` counts the weights that
    loading expands from stored ones. `phases` is how many functions run one after the other where
    data decide sizes, 0 for other models. `boundary` says which inputs and outputs are text or
    mappings, and `state` which inputs take the values of outputs in the next run. `size_checks` is
    what each run checks of open sizes.
    """

    model: str
    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    arena_bytes: int
    target: str
    triple: str
    cpu_features: tuple[str, ...]
    builder: str
    weights: tuple[WeightSpec, ...] = ()
    dims: tuple[DimSpec, ...] = ()
    devices: tuple[DeviceCodeSpec, ...] = ()
    runs_on: tuple[DeviceSpec, ...] = ()
    libraries: tuple[str, ...] = ()
    inter_op_streams: int = 1
    memory: tuple[MemoryReport, ...] = ()
    kernels: RecordCount = NO_KERNELS
    output_shapes: tuple[tuple[str, ...], ...] = ()
    expanded_bytes: int = 0
    boundary: Boundary = NUMBERS_ALONE
    phases: int = 0
    state: tuple[StateSpec, ...] = ()
    size_checks: tuple[SizeCheckSpec, ...] = ()

    def to_json(self) -> str:
        """Return the manifest as indented JSON."""
        return json.dumps(asdict(self), indent=1)

    @classmethod
    def from_json(cls, text: str | bytes) -> "Manifest":
        """Read a manifest; fields that this version does not know are ignored.

        Raises:
            BraidError: the text is not JSON, or a field is missing or of the wrong kind.

        """
        try:
            fields = json.loads(text)
            if isinstance(fields, dict):
                fields = {**_OPTIONAL, **cast(dict[str, Any], fields)}
            manifest = cls(
                model=_read(fields, "model", str),
                inputs=_read_all(fields, "inputs", _read_tensor),
                outputs=_read_all(fields, "outputs", _read_tensor),
                arena_bytes=_read(fields, "arena_bytes", int),
                target=_read(fields, "target", str),
                triple=_read(fields, "triple", str),
                cpu_features=_read_list(fields, "cpu_features", str),
                builder=_read(fields, "builder", str),
                weights=_read_all(fields, "weights", _read_weight),
                dims=_read_all(fields, "dims", _read_dim),
                devices=_read_all(fields, "devices", _read_device),
                runs_on=_read_all(fields, "runs_on", _read_spec),
                libraries=_read_list(fields, "libraries", str),
                inter_op_streams=_read(fields, "inter_op_streams", int),
                memory=_read_all(fields, "memory", _read_memory),
                kernels=_read_count(_read_list(fields, "kernels", int)),
                output_shapes=_read_all(fields, "output_shapes", _read_texts),
                expanded_bytes=_read(fields, "expanded_bytes", int),
                boundary=_read_boundary(_read_object(fields, "boundary")),
                phases=_read(fields, "phases", int),
                state=_read_all(fields, "state", _read_state),
                size_checks=_read_all(fields, "size_checks", _read_size_check),
            )
            _check_state(manifest)
            return manifest
        except (ValueError, RecursionError) as error:
            raise BraidError(f"its manifest is malformed: {error}") from error


def _read(fields: Any, name: str, kind: type[_T]) -> _T:
    """Return the field of an object; raises ValueError unless it is exactly of this kind."""
    try:
        value = fields[name]
    except (KeyError, TypeError):
        raise ValueError(f"expected an object with '{name}'") from None
    return value if _is(value, kind) else _wrong(value, name, kind)


def _read_list(fields: Any, name: str, kind: type[_T]) -> tuple[_T, ...]:
    elements = cast(list[_T], _read(fields, name, list))
    for element in elements:
        if not _is(element, kind):
            _wrong(element, name, kind)
    return tuple(elements)


def _read_all(fields: Any, name: str, read: Callable[[Any], _T]) -> tuple[_T, ...]:
    return tuple(map(read, cast(list[Any], _read(fields, name, list))))


def _is(value: Any, kind: type) -> bool:
    # A bool is an int to isinstance; and what is larger than 63 bits is not a size of anything.
    return type(value) is kind and (kind is not int or -1 <= value < _LARGEST)


def _wrong(value: object, name: str, kind: type) -> NoReturn:
    raise ValueError(f"'{name}' holds {value!r:.80}, expected {_KINDS[kind]}")


def _read_tensor(fields: Any) -> TensorSpec:
    return TensorSpec(
        _read(fields, "name", str),
        _read(fields, "dtype", str),
        _read_list(fields, "shape", int),
        _read_list(fields, "bound", int),
        _read_list(fields, "dims", str),
        _read_list(fields, "values", str) if "values" in fields else (),
    )


def _read_object(fields: Any, name: str) -> Any:
    return _read(fields, name, dict)  # pyright: ignore[reportUnknownVariableType]


def _read_boundary(fields: Any) -> Boundary:
    return Boundary(
        _read_list(fields, "texts", str),
        _read_ports(_read_object(fields, "inputs")),
        _read_ports(_read_object(fields, "outputs")),
    )


def _read_ports(fields: Any) -> dict[str, PortKind]:
    return {
        name: PortKind(_read(own, "is_text", bool), _read_keys(own), bool(own.get("is_random")))
        for name, own in cast(dict[str, Any], fields).items()
    }


def _read_keys(fields: Any) -> tuple[str | int, ...]:
    keys = cast(list[Any], _read(fields, "keys", list))
    for key in keys:
        if type(key) not in (str, int):
            _wrong(key, "keys", str)
    return tuple(keys)


def _read_state(fields: Any) -> StateSpec:
    order = _read_list(fields, "order", int)
    if sorted(order) != list(range(len(order))):
        _wrong(order, "order", list)
    return StateSpec(
        _read(fields, "input", str),
        _read(fields, "output", str),
        order,
        _read(fields, "appended", bool),
    )


def _read_size_check(fields: Any) -> SizeCheckSpec:
    return SizeCheckSpec(_read(fields, "size", str), _read(fields, "is_zero", bool))


def _check_state(manifest: Manifest) -> None:
    """Raise ValueError for a state of unknown ports, or of ports that cannot be a state."""
    inputs = {spec.name: spec for spec in manifest.inputs}
    outputs = {spec.name: spec for spec in manifest.outputs}
    known: set[str] = set()
    orders: dict[str, tuple[int, ...]] = {}
    for own in manifest.state:
        given, taken = inputs.get(own.input), outputs.get(own.output)
        if given is None or taken is None:
            raise ValueError(f"it has no state '{own.input}' of output '{own.output}'")
        ranks = {len(given.shape), len(taken.shape), len(own.order or given.shape)}
        if given.dtype != taken.dtype or len(ranks) > 1:
            raise ValueError(f"state '{own.input}' cannot take the value of '{own.output}'")
        if own.input in known:
            raise ValueError(f"state '{own.input}' is there twice")
        if own.order and orders.setdefault(own.output, own.order) != own.order:
            raise ValueError(f"output '{own.output}' has its dims in two orders")
        known.add(own.input)


def _read_dim(fields: Any) -> DimSpec:
    return DimSpec(
        _read(fields, "name", str),
        _read_list(fields, "sizes", int),
        _read(fields, "padded_from", int),
    )


def _read_weight(fields: Any) -> WeightSpec:
    return WeightSpec(
        _read(fields, "name", str),
        _read(fields, "dtype", str),
        _read_list(fields, "shape", int),
        _read(fields, "offset", int),
        _read(fields, "nbytes", int),
    )


def _read_spec(fields: Any) -> DeviceSpec:
    return DeviceSpec(_read(fields, "name", str), _read(fields, "plugin", str))


def _read_device(fields: Any) -> DeviceCodeSpec:
    return DeviceCodeSpec(
        _read(fields, "device", str),
        _read(fields, "kind", str),
        _read(fields, "offset", int),
        _read(fields, "nbytes", int),
        _read(fields, "seconds", float),
        fields.get("in_code") is True,
        _read(fields, "interval", float) if "interval" in fields else -1.0,
        _read_all(fields, "resources", _read_resource) if "resources" in fields else (),
    )


def _read_resource(fields: Any) -> ResourceSpec:
    return ResourceSpec(
        _read(fields, "name", str),
        _read(fields, "used", float),
        _read(fields, "available", float),
    )


def _read_memory(fields: Any) -> MemoryReport:
    return MemoryReport(
        _read(fields, "function", str),
        _read(fields, "arena_bytes", int),
        _read(fields, "lower_bound", int),
        _read(fields, "output_bytes", int),
        _read(fields, "weights_bytes", int),
        _read(fields, "peak_op", str),
        _read_all(fields, "live", _read_tensor_memory),
        _read_all(fields, "largest", _read_tensor_memory),
        _read(fields, "slot_bytes", int),
        _read(fields, "expanded_bytes", int),
    )


def _read_tensor_memory(fields: Any) -> TensorMemory:
    return TensorMemory(
        _read(fields, "name", str),
        _read(fields, "type", str),
        _read(fields, "bytes", int),
        _read(fields, "space", str),
        _read(fields, "offset", int),
    )


def _read_texts(texts: Any) -> tuple[str, ...]:
    return _read_list({"output_shapes": texts}, "output_shapes", str)


def _read_count(numbers: tuple[int, ...]) -> RecordCount:
    if len(numbers) != len(NO_KERNELS):
        raise ValueError(f"'kernels' holds {len(numbers)} numbers, expected {len(NO_KERNELS)}")
    return RecordCount(*numbers)
