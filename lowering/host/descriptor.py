"""The descriptor `braid_model` that compiled code exports; see the runtime's header."""

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from onnx import helper
from xdsl.ir import Attribute

from braid.dialects.braid.dtypes import to_numpy
from braid.dialects.braid.expansion import Expansion
from braid.dialects.braid.state import StatePort
from braid.lowering.host.emit_program import ENTRY
from braid.lowering.host.open_model import OpenModel

ir: Any = import_module("llvmlite.ir")
"""llvmlite comes without types."""

ABI_VERSION = 13
COUNTED_ABI_VERSION = 14
"""The version that code with profile counters needs, which calls `clock` and `record`."""
SPECIALIZED_ABI_VERSION = 15
"""The version that a model with specializations needs, whose descriptor is longer."""
STATE_ABI_VERSION = 16
"""The version that a model with a state needs, whose descriptor is longer still."""
DEVICES_ABI_VERSION = 17
"""The version that a model of open sizes with devices needs: its parts launch their functions."""
UNBOUNDED = (1 << 63) - 1
"""The bound of an open dim of which nothing is assumed."""
SYMBOL = "braid_model"

_I64 = ir.IntType(64)
_POINTER = ir.PointerType()
_TENSOR = ir.LiteralStructType([_POINTER, _I64, _I64, _POINTER, _POINTER, _POINTER])
_DIM = ir.LiteralStructType([_POINTER, _I64])
_VARIANT = ir.LiteralStructType([_POINTER, _POINTER, _POINTER])
_CODE = ir.LiteralStructType([_POINTER, _POINTER, _I64])
_DEVICE = ir.LiteralStructType([_POINTER, _POINTER, _I64, _I64, _I64, _POINTER])
_FUNCTION = ir.LiteralStructType(
    [_POINTER, _I64, _I64, _I64, _POINTER, _I64, _I64, _POINTER, _I64],
)
_STAGE = ir.LiteralStructType([_I64, _POINTER, _POINTER, _I64, _I64, _POINTER])
_CHANNEL = ir.LiteralStructType([_I64, _I64])
_OPEN_BUFFER = ir.LiteralStructType([_I64, _I64, _I64])
_EXPANSION = ir.LiteralStructType([*[_I64] * 7, _POINTER])
_PHASE = ir.LiteralStructType([_POINTER, _POINTER, _POINTER])
_SPECIALIZATION = ir.LiteralStructType([_POINTER, _POINTER])
_STATE = ir.LiteralStructType([_I64, _I64, _I64, _POINTER])
_VALUE_SIZE = ir.LiteralStructType([_I64, _I64, _I64])
_SIZE_CHECK = ir.LiteralStructType([_I64, _I64, _POINTER])
_ENTRY = ir.FunctionType(ir.IntType(32), [_POINTER] * 5)
_NULL = ir.Constant(_POINTER, None)


def _struct(fields: Sequence[Any]) -> Any:
    """Return the constant struct of these constants."""
    return ir.Constant(ir.LiteralStructType([field.type for field in fields]), list(fields))


@dataclass(frozen=True)
class ModelPort:
    """An input or output of a model: `shape` has -1 for open dims, `bound` their upper bounds.

    `dims` are the numbers of the open dims among the model's, -1 elsewhere, and `values` the names
    of the sizes that the elements of an input are.
    """

    name: str
    element_type: Attribute
    shape: tuple[int, ...]
    bound: tuple[int, ...]
    dims: tuple[int, ...]
    values: tuple[str, ...] = ()


@dataclass(frozen=True)
class Dim:
    """An open dim of a model; `padded_from` is 0 where nothing may be padded."""

    name: str
    padded_from: int


@dataclass(frozen=True)
class Variant:
    """The program `entry`, for these sizes of the open dims."""

    entry: str
    sizes: tuple[int, ...]
    output_shapes: tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class LoadedCode:
    """Code that a device loads for itself, of a kind such as `ptx`."""

    kind: str
    data: bytes


@dataclass(frozen=True)
class DeviceEntry:
    """A device, its plugin, its part of the weights, and the code that it loads."""

    name: str
    plugin: str
    weights_offset: int
    weights_bytes: int
    codes: tuple[LoadedCode, ...] = ()


@dataclass(frozen=True)
class Function:
    """A function that the model launches on the device of this number.

    `buffers` are the bytes of its inputs and outputs, `seconds` is what one launch takes as far as
    it was simulated, `entry` the program of the host that computes the same, None for none.
    One `on_caller` runs on the thread that launches it.
    """

    name: str
    device: int
    inputs: int
    buffers: tuple[int, ...]
    arena_bytes: int
    seconds: float
    entry: str | None
    on_caller: bool = False


@dataclass(frozen=True)
class StreamStage:
    """The launch of a function, by number, in a stream; `seconds` is what it is expected to take.

    `inputs` and `outputs` are numbers of buffers: the model's inputs, its outputs, its channels.
    `replicas` are the same functions on other devices, which take turns.
    """

    function: int
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    seconds: float
    replicas: tuple[int, ...] = ()


@dataclass(frozen=True)
class ChannelEntry:
    """A channel for what a stage hands on: `slots` buffers of `nbytes` bytes each."""

    nbytes: int
    slots: int


@dataclass(frozen=True)
class ExpandedWeight:
    """A weight that is expanded at load: bytes into the weights, and into the expanded ones."""

    stored: int
    expanded: int
    expansion: Expansion


@dataclass(frozen=True)
class ModelPhase:
    """A phase of a model, and which values its inputs and outputs are, by number."""

    description: "ModelDescription"
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]


@dataclass(frozen=True)
class ModelPhases:
    """The phases of a model whose data decide sizes, and which value each of its outputs is.

    The first values are the inputs of the model.
    """

    phases: tuple[ModelPhase, ...]
    value_count: int
    outputs: tuple[int, ...]


@dataclass(frozen=True)
class Specialization:
    """The code of an open model for some sizes of its dims; -1 stands for any size of a dim."""

    sizes: tuple[int, ...]
    description: "ModelDescription"


@dataclass(frozen=True)
class ModelDescription:
    """The contents of a descriptor; without variants and phases, a model is the program `entry`.

    `output_sizes` are the texts of the sizes of each output where sizes are open, else empty;
    `size_checks` those of the sizes that runs check, and whether each must be 0.
    """

    inputs: tuple[ModelPort, ...]
    outputs: tuple[ModelPort, ...]
    arena_bytes: int
    arena_alignment: int
    features: tuple[str, ...]
    counters: tuple[str, ...]
    weights_bytes: int
    dims: tuple[Dim, ...] = ()
    variants: tuple[Variant, ...] = ()
    inter_op_streams: int = 1
    devices: tuple[DeviceEntry, ...] = ()
    functions: tuple[Function, ...] = ()
    requests: int = 0
    stages: tuple[StreamStage, ...] = ()
    channels: tuple[ChannelEntry, ...] = ()
    open: OpenModel | None = None
    expanded_bytes: int = 0
    expanded: tuple[ExpandedWeight, ...] = ()
    phases: ModelPhases | None = None
    output_sizes: tuple[tuple[str, ...], ...] = ()
    entry: str = ENTRY
    specializations: tuple[Specialization, ...] = ()
    states: tuple[StatePort, ...] = ()
    size_checks: tuple[tuple[str, bool], ...] = ()


def descriptor_module(description: ModelDescription) -> str:
    """Return LLVM IR that defines `braid_model` and refers to the program's entry."""
    return str(_Descriptor(description).module)


def _needed_version(description: ModelDescription) -> int:
    if description.devices and (description.open or description.phases):
        return DEVICES_ABI_VERSION
    if description.states:
        return STATE_ABI_VERSION
    if description.specializations:
        return SPECIALIZED_ABI_VERSION
    return COUNTED_ABI_VERSION if description.counters else ABI_VERSION


_Launched = tuple[tuple[DeviceEntry, ...], tuple[Function, ...]]


class _Descriptor:
    def __init__(self, description: ModelDescription) -> None:
        self.module = ir.Module()
        self._globals = 0
        self._matrices: dict[tuple[float, ...], Any] = {}
        self._shared: dict[_Launched, list[Any]] = {}
        initializer = self._model(description)
        model = ir.GlobalVariable(self.module, initializer.type, SYMBOL)
        model.global_constant = True
        model.initializer = initializer

    def _model(self, description: ModelDescription) -> Any:
        """Return the descriptor of a model, or of a phase or a specialization of one."""
        has_code = not description.variants and description.phases is None
        run = self._entry(description.entry) if has_code else _NULL
        fields = [
            _I64(_needed_version(description)),
            *self._list([self._port(port) for port in description.inputs], _TENSOR),
            *self._list([self._port(port) for port in description.outputs], _TENSOR),
            _I64(description.arena_bytes),
            _I64(description.arena_alignment),
            *self._list([self._text(name) for name in description.features], _POINTER),
            *self._list([self._text(name) for name in description.counters], _POINTER),
            run,
            *self._list([self._dim(dim) for dim in description.dims], _DIM),
            *self._list([self._variant(variant) for variant in description.variants], _VARIANT),
            _I64(description.weights_bytes),
            *self._launches(description),
            _I64(description.requests),
            *self._list([self._stage(stage) for stage in description.stages], _STAGE),
            *self._list([self._channel(own) for own in description.channels], _CHANNEL),
            self._open(description.open, [dim.name for dim in description.dims]),
            _I64(description.expanded_bytes),
            *self._list([self._expansion(own) for own in description.expanded], _EXPANSION),
            _NULL if description.phases is None else self._phases(description.phases),
        ]
        version = _needed_version(description)
        if version >= SPECIALIZED_ABI_VERSION:
            own = [self._specialization(each) for each in description.specializations]
            fields += self._list(own, _SPECIALIZATION)
        if version >= STATE_ABI_VERSION:
            fields += self._list([self._state(each) for each in description.states], _STATE)
        return _struct(fields)

    def _launches(self, description: ModelDescription) -> list[Any]:
        """Return the lists of devices and functions, which parts of a model have in common."""
        key = description.devices, description.functions
        if key not in self._shared:
            self._shared[key] = [
                *self._list([self._device(device) for device in description.devices], _DEVICE),
                *self._list([self._function(own) for own in description.functions], _FUNCTION),
            ]
        return self._shared[key]

    def _specialization(self, special: Specialization) -> Any:
        fields = [self._integers(special.sizes), self._global(self._model(special.description))]
        return ir.Constant(_SPECIALIZATION, fields)

    def _state(self, port: StatePort) -> Any:
        order = self._integers(port.order) if port.order else _NULL
        fields = [_I64(port.input), _I64(port.output), _I64(int(port.appended)), order]
        return ir.Constant(_STATE, fields)

    def _phases(self, phases: ModelPhases) -> Any:
        own = [
            ir.Constant(
                _PHASE,
                [
                    self._global(self._model(phase.description)),
                    self._integers(phase.inputs),
                    self._integers(phase.outputs),
                ],
            )
            for phase in phases.phases
        ]
        fields = [
            *self._list(own, _PHASE),
            _I64(phases.value_count),
            self._integers(phases.outputs),
        ]
        return self._global(_struct(fields))

    def _port(self, port: ModelPort) -> Any:
        dtype = helper.np_dtype_to_tensor_dtype(to_numpy(port.element_type))
        return ir.Constant(
            _TENSOR,
            [
                self._text(port.name),
                _I64(int(dtype)),
                _I64(len(port.shape)),
                self._integers(port.shape),
                self._integers(port.bound),
                self._integers(port.dims),
            ],
        )

    def _dim(self, dim: Dim) -> Any:
        return ir.Constant(_DIM, [self._text(dim.name), _I64(dim.padded_from)])

    def _variant(self, variant: Variant) -> Any:
        shapes = [self._integers(shape) for shape in variant.output_shapes]
        fields = [self._integers(variant.sizes), self._list(shapes, _POINTER)[1]]
        return ir.Constant(_VARIANT, [*fields, self._entry(variant.entry)])

    def _device(self, device: DeviceEntry) -> Any:
        codes = [
            ir.Constant(
                _CODE, [self._text(code.kind), self._bytes(code.data), _I64(len(code.data))]
            )
            for code in device.codes
        ]
        fields = [
            self._text(device.name),
            self._text(device.plugin),
            _I64(device.weights_offset),
            _I64(device.weights_bytes),
            *self._list(codes, _CODE),
        ]
        return ir.Constant(_DEVICE, fields)

    def _function(self, function: Function) -> Any:
        fields = [
            self._text(function.name),
            _I64(function.device),
            _I64(function.inputs),
            _I64(len(function.buffers) - function.inputs),
            self._integers(function.buffers),
            _I64(function.arena_bytes),
            _I64(round(1e9 * function.seconds)),
            ir.Constant(_POINTER, None) if function.entry is None else self._entry(function.entry),
            _I64(int(function.on_caller)),
        ]
        return ir.Constant(_FUNCTION, fields)

    def _stage(self, stage: StreamStage) -> Any:
        buffers = [self._integers(stage.inputs), self._integers(stage.outputs)]
        time = _I64(round(1e9 * stage.seconds))
        replicas = self._list([_I64(number) for number in stage.replicas], _I64)
        return ir.Constant(_STAGE, [_I64(stage.function), *buffers, time, *replicas])

    def _channel(self, channel: ChannelEntry) -> Any:
        return ir.Constant(_CHANNEL, [_I64(channel.nbytes), _I64(channel.slots)])

    def _open(self, model: OpenModel | None, dims: Sequence[str]) -> Any:
        if model is None:
            return _NULL
        program = model.program()
        buffers = [
            ir.Constant(_OPEN_BUFFER, [_I64(b.bytes), _I64(b.first), _I64(b.last)])
            for b in model.buffers
        ]
        checks = [
            ir.Constant(
                _SIZE_CHECK, [_I64(c.size), _I64(0 if c.is_zero else 1), self._text(c.message)]
            )
            for c in model.checks
        ]
        values = [
            ir.Constant(_VALUE_SIZE, [_I64(v.input), _I64(v.element), _I64(dims.index(v.symbol))])
            for v in model.values
        ]
        fields = [
            _I64(len(program.steps)),
            self._integers(program.words()),
            *self._list([_I64(number) for number in program.results], _I64),
            *self._list(buffers, _OPEN_BUFFER),
            self._list([self._integers(shape) for shape in model.output_shapes], _POINTER)[1],
            *self._list(checks, _SIZE_CHECK),
            *self._list(values, _VALUE_SIZE),
            self._list([self._integers(own) for own in model.input_shapes], _POINTER)[1],
        ]
        return self._global(_struct(fields))

    def _expansion(self, weight: ExpandedWeight) -> Any:
        own = weight.expansion
        dtype = int(helper.np_dtype_to_tensor_dtype(own.stored))
        counts = (weight.stored, weight.expanded, dtype)
        counts += (own.outer, own.inputs, own.outputs, own.inner)
        matrix = self._matrix(tuple(own.matrix.ravel().tolist()))
        return ir.Constant(_EXPANSION, [*map(_I64, counts), matrix])

    def _matrix(self, values: tuple[float, ...]) -> Any:
        """Return the address of these numbers; weights of one kind share them."""
        if values not in self._matrices:
            array = ir.ArrayType(ir.DoubleType(), len(values))
            self._matrices[values] = self._global(ir.Constant(array, list(values)))
        return self._matrices[values]

    def _entry(self, symbol: str) -> Any:
        known = self.module.globals.get(symbol)
        return ir.Function(self.module, _ENTRY, symbol) if known is None else known

    def _text(self, text: str) -> Any:
        return self._bytes(text.encode() + b"\0")

    def _bytes(self, data: bytes) -> Any:
        array = ir.ArrayType(ir.IntType(8), len(data))
        return self._global(ir.Constant(array, bytearray(data)))

    def _integers(self, values: Sequence[int]) -> Any:
        return self._list([_I64(value) for value in values], _I64)[1]

    def _list(self, elements: Sequence[Any], type: Any) -> tuple[Any, Any]:
        """Return the length, and the address of a constant array of the elements."""
        if not elements:
            return _I64(0), ir.Constant(_POINTER, None)
        array = ir.Constant(ir.ArrayType(type, len(elements)), list(elements))
        return _I64(len(elements)), self._global(array)

    def _global(self, initializer: Any) -> Any:
        variable = ir.GlobalVariable(self.module, initializer.type, f"constant.{self._globals}")
        self._globals += 1
        variable.global_constant = True
        variable.linkage = "private"
        variable.initializer = initializer
        return variable
