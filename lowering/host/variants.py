"""The programs of a model, one for each variant, and their entries in its descriptor."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import cast

from xdsl.dialects import func
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, IntegerAttr, ModuleOp
from xdsl.ir import Attribute

from braid.analysis.execution.inter_op_streams import inter_op_stream_count
from braid.analysis.storage.stored_weights import expansion_of_weight
from braid.analysis.storage.tensor_storage import storage_bytes
from braid.dialects.braid.attribute_names import (
    ARENA_BYTES,
    BUFFERS,
    EXPANDED_BYTES,
    HOST_STAGE,
    PHASE,
    STORED_BUFFER,
    STORED_TYPE,
    WEIGHTS_BYTES,
    WEIGHTS_OFFSET,
)
from braid.dialects.braid.base import AnyTensor
from braid.dialects.braid.buffer import ALIGNMENT, BufferAttr
from braid.dialects.braid.clusters import device_name, replicas_of
from braid.dialects.braid.constants import ConstantOp, ParameterOp
from braid.dialects.braid.decided_sizes import phase_outputs, phases_of
from braid.dialects.braid.ports import input_names, output_names
from braid.dialects.braid.sizes import extents_of_type, sizes_of_type, value_sizes
from braid.dialects.braid.state import state_of
from braid.dialects.braid.variants import (
    device_functions,
    padded_from,
    port_dims,
    program_functions,
    public_functions,
    specialized_sizes,
    variant_sizes,
)
from braid.lowering.host.descriptor import (
    UNBOUNDED,
    DeviceEntry,
    Dim,
    ExpandedWeight,
    Function,
    LoadedCode,
    ModelDescription,
    ModelPhase,
    ModelPhases,
    ModelPort,
    Specialization,
    Variant,
)
from braid.lowering.host.emit_program import ENTRY, emit_program
from braid.lowering.host.open_model import OpenModel, open_dims, open_model_of
from braid.lowering.host.stream_description import Launched, stream_of
from braid.support.errors import BraidError
from braid.support.sizes.expression import Symbol, atom_alone, symbol
from braid.support.sizes.text import print_size


@dataclass(frozen=True)
class Programs:
    """Modules that define the entries of a model, and the names of their profile counters.

    `open` is what the runtime has to know of each function of the model: of open sizes, else None.
    """

    modules: tuple[ModuleOp, ...]
    counters: tuple[str, ...]
    open: tuple[OpenModel | None, ...]


def model_functions(module: ModuleOp) -> list[func.FuncOp]:
    """Return the functions that are the model.

    They are the only public one, all its variants, or its phases.

    If there are specializations, the function for all sizes is the first. Raises BraidError if
    there is no such function, or more than one that is no variant, phase or specialization.
    """
    functions = public_functions(module)
    general = [each for each in functions if not specialized_sizes(each)]
    if len(general) == 1:
        return [*general, *(each for each in functions if each is not general[0])]
    if len(functions) == 1 or (functions and all(map(variant_sizes, functions))):
        return functions
    if functions and functions == phases_of(module):
        return functions
    names = ", ".join(op.sym_name.data for op in functions) or "none"
    raise BraidError(
        f"a model is a module with one public function, this one has {names}",
        hint="make the other functions private",
    )


@dataclass(frozen=True)
class DeviceFacts:
    """The facts about a device on which functions run.

    `on_host` says whether the host has code for them; `seconds` are those of one launch of each.
    """

    plugin: str
    on_host: bool
    codes: tuple[LoadedCode, ...] = ()
    seconds: Mapping[str, float] = field(default_factory=dict[str, float])


def emit_programs(
    module: ModuleOp, devices: Mapping[str, DeviceFacts], *, profile: bool = False
) -> Programs:
    """Return the programs of a module after `plan-memory`, and of its functions for `devices`.

    Raises BraidError as `emit_program`.
    """
    functions = model_functions(module)
    # The code of variants is for numbers.
    models = [None if variant_sizes(own) else open_model_of(own) for own in functions]
    sizes = {own: model.sizes for own, model in zip(functions, models, strict=True) if model}
    on_host = {name for name, facts in devices.items() if facts.on_host}
    counters: dict[str, int] | None = {} if profile else None
    modules = tuple(
        emit_program(
            module,
            function,
            symbol=_entry(function),
            counters=counters,
            sizes=sizes.get(function),
        )
        for function in program_functions(module)
        if function.sym_visibility is None or device_name(function) in on_host
    )
    return Programs(modules, tuple(counters or ()), tuple(models))


_Launches = tuple[tuple[DeviceEntry, ...], tuple[Function, ...]]
"""The devices of a model, and the functions that it launches on them."""


def _launches_of(module: ModuleOp, devices: Mapping[str, DeviceFacts]) -> _Launches:
    """Return the devices and functions of a model, which its phases and specializations share."""
    launched = launched_functions(module)
    names = list(dict.fromkeys(device for _, device in launched))
    return (
        tuple(_device_entry(name, devices[name], launched) for name in names),
        tuple(_function(*own, names, devices[own[1]]) for own in launched),
    )


def describe(
    module: ModuleOp,
    devices: Mapping[str, DeviceFacts],
    features: tuple[str, ...],
    programs: Programs,
) -> ModelDescription:
    """Return the description of a planned model that runs on the host and on `devices`.

    `programs` is the result of `emit_programs` for it.
    """
    functions = model_functions(module)
    launches = _launches_of(module, devices)
    if phases_of(module):
        return _describe_phases(module, features, programs, launches)
    launched = launched_functions(module)
    first = functions[0]
    least = padded_from(module)
    names, open_model = list(variant_sizes(first)), programs.open[0]
    if open_model is not None:
        names = open_dims(first, open_model)
    special = [function for function in functions if specialized_sizes(function)]
    general = [function for function in functions if function not in special]
    types = [function.function_type for function in general]
    inputs = _ports(input_names(first), [t.inputs.data for t in types], first.arg_attrs, names)
    told = value_sizes(first)
    return ModelDescription(
        tuple(replace(port, values=own) for port, own in zip(inputs, told, strict=True)),
        _ports(output_names(first), [t.outputs.data for t in types], first.res_attrs, names),
        max(_integer(function, ARENA_BYTES) for function in general),
        ALIGNMENT,
        features,
        programs.counters,
        max(_integer(function, WEIGHTS_BYTES) for function in functions),
        tuple(Dim(name, least.get(name, 0)) for name in names),
        tuple(_variant(function, names) for function in functions if variant_sizes(function)),
        max(map(inter_op_stream_count, functions)),
        *launches,
        *(stream_of(first, launched) if len(general) == 1 else (0, (), ())),
        open_model,
        _integer(first, EXPANDED_BYTES) if EXPANDED_BYTES in first.attributes else 0,
        expanded_weights(functions),
        output_sizes=_output_sizes(open_model),
        specializations=tuple(
            Specialization(
                tuple(specialized_sizes(function).get(name, -1) for name in names),
                _describe_phase(function, model, features, programs.counters, launches),
            )
            for function, model in zip(special, programs.open[1:], strict=True)
        )
        if special
        else (),
        states=() if variant_sizes(first) else state_of(first),
        size_checks=_size_checks(open_model),
    )


def _output_sizes(model: OpenModel | None) -> tuple[tuple[str, ...], ...]:
    """Return the texts of the sizes of outputs; empty where no size is open."""
    if model is None:
        return ()
    texts = [print_size(extent) for extent in model.sizes.extents]
    return tuple(tuple(texts[number] for number in shape) for shape in model.output_shapes)


def _size_checks(model: OpenModel | None) -> tuple[tuple[str, bool], ...]:
    """Return the texts of the sizes that are checked, and whether each must be 0."""
    if model is None:
        return ()
    extents = model.sizes.extents
    return tuple((print_size(extents[check.size]), check.is_zero) for check in model.checks)


def expanded_weights(functions: Sequence[func.FuncOp]) -> tuple[ExpandedWeight, ...]:
    """Return the weights that planned functions of the host have expanded, each once."""
    found: dict[int, ExpandedWeight] = {}
    for op in (op for function in functions for op in function.walk()):
        stored = op.attributes.get(STORED_BUFFER)
        if isinstance(op, ConstantOp | ParameterOp) and isinstance(stored, BufferAttr):
            (place,) = cast(ArrayAttr[BufferAttr], op.attributes[BUFFERS])
            expansion = expansion_of_weight(op, op.attributes.get(STORED_TYPE))
            assert expansion is not None
            weight = ExpandedWeight(stored.offset.data, place.offset.data, expansion)
            found.setdefault(weight.expanded, weight)
    return tuple(found.values())


# ---- Phases ----


def _describe_phases(
    module: ModuleOp, features: tuple[str, ...], programs: Programs, launches: _Launches
) -> ModelDescription:
    """Return the description of a model whose data decide sizes; phases have descriptions too."""
    functions = phases_of(module)
    first = functions[0]
    numbers = {name: number for number, name in enumerate(input_names(first))}
    types = dict(zip(input_names(first), first.function_type.inputs, strict=True))
    phases: list[ModelPhase] = []
    for function, model in zip(functions, programs.open, strict=True):
        inputs = tuple(numbers[name] for name in input_names(function))
        for name, type in zip(output_names(function), function.function_type.outputs, strict=True):
            numbers[name], types[name] = len(numbers), type
        outputs = tuple(numbers[name] for name in output_names(function))
        own = _describe_phase(function, model, features, programs.counters, launches)
        phases.append(ModelPhase(own, inputs, outputs))
    names = _symbols_of_inputs(first)
    results = phase_outputs(module)
    out_types = [types[value] for _, value in results]
    inputs = _ports(input_names(first), [first.function_type.inputs.data], None, names)
    outputs = _ports([name for name, _ in results], [out_types], None, names)
    return ModelDescription(
        inputs,
        outputs,
        0,
        ALIGNMENT,
        features,
        programs.counters,
        _integer(first, WEIGHTS_BYTES),
        tuple(Dim(name, 0) for name in names),
        devices=launches[0],
        functions=launches[1],
        expanded_bytes=_integer(first, EXPANDED_BYTES) if EXPANDED_BYTES in first.attributes else 0,
        expanded=expanded_weights(functions),
        phases=ModelPhases(
            tuple(phases), len(numbers), tuple(numbers[value] for _, value in results)
        ),
        output_sizes=tuple(
            tuple(print_size(extent) for extent in extents_of_type(cast(AnyTensor, type)))
            for type in out_types
        ),
        size_checks=_size_checks(programs.open[0]),
    )


def _describe_phase(
    function: func.FuncOp,
    model: OpenModel | None,
    features: tuple[str, ...],
    counters: tuple[str, ...],
    launches: _Launches,
) -> ModelDescription:
    names = [] if model is None else open_dims(function, model)
    types = function.function_type
    return ModelDescription(
        _ports(input_names(function), [types.inputs.data], None, names),
        _ports(output_names(function), [types.outputs.data], None, names),
        _integer(function, ARENA_BYTES),
        ALIGNMENT,
        features,
        counters,
        _integer(function, WEIGHTS_BYTES),
        tuple(Dim(name, 0) for name in names),
        devices=launches[0],
        functions=launches[1],
        open=model,
        entry=_entry(function),
    )


def _symbols_of_inputs(function: func.FuncOp) -> list[str]:
    """Return the symbols that dims of inputs are as they stand, in their order."""
    types = cast("Sequence[AnyTensor]", function.function_type.inputs.data)
    atoms = (atom_alone(extent) for type in types for extent in extents_of_type(type))
    return list(dict.fromkeys(atom.name for atom in atoms if isinstance(atom, Symbol)))


def _device(function: func.FuncOp) -> str:
    name = device_name(function)
    assert name is not None
    return name


def launched_functions(module: ModuleOp) -> list[Launched]:
    """Return the functions that a model launches, by number, and then the replicas in streams."""
    own = device_functions(module)
    replicas = [(function, name) for function in own for name in replicas_of(function)]
    return [*((function, _device(function)) for function in own), *replicas]


def _device_entry(name: str, facts: DeviceFacts, functions: Sequence[Launched]) -> DeviceEntry:
    first = next(function for function, device in functions if device == name)
    weights = _integer(first, WEIGHTS_OFFSET), _integer(first, WEIGHTS_BYTES)
    return DeviceEntry(name, facts.plugin, *weights, facts.codes)


def _function(
    function: func.FuncOp, device: str, devices: Sequence[str], facts: DeviceFacts
) -> Function:
    name, types = function.sym_name.data, function.function_type
    return Function(
        name,
        devices.index(device),
        len(types.inputs),
        tuple(storage_bytes(type) for type in (*types.inputs, *types.outputs)),
        _integer(function, ARENA_BYTES),
        facts.seconds.get(name, 0.0),
        _entry(function) if facts.on_host else None,
        HOST_STAGE in function.attributes,
    )


def _entry(function: func.FuncOp) -> str:
    alone = function.sym_visibility is None and not variant_sizes(function)
    alone = alone and PHASE not in function.attributes and not specialized_sizes(function)
    return ENTRY if alone else f"{ENTRY}_{function.sym_name.data}"


def _variant(function: func.FuncOp, names: Iterable[str]) -> Variant:
    sizes = variant_sizes(function)
    shapes = _shapes(function.function_type.outputs.data)
    return Variant(_entry(function), tuple(sizes[name] for name in names), tuple(shapes))


def _shapes(types: Sequence[Attribute]) -> list[tuple[int, ...]]:
    return [cast(AnyTensor, type).get_shape() for type in types]


def _ports(
    names: Sequence[str],
    types: Sequence[Sequence[Attribute]],
    attributes: ArrayAttr[DictionaryAttr] | None,
    dims: Sequence[str],
) -> tuple[ModelPort, ...]:
    """Return the ports of all variants together; `types` are those of each variant."""
    ports: list[ModelPort] = []
    for index, name in enumerate(names):
        if sizes_of_type(cast(AnyTensor, types[0][index])) is not None:
            ports.append(_open_port(name, cast(AnyTensor, types[0][index]), dims))
            continue
        shapes = _shapes([variant[index] for variant in types])
        sizes = [set(extents) for extents in zip(*shapes, strict=True)]
        own = port_dims(attributes, index) or ("",) * len(sizes)
        is_open = [len(s) > 1 or bool(dim) for s, dim in zip(sizes, own, strict=True)]
        ports.append(
            ModelPort(
                name,
                cast(AnyTensor, types[0][index]).element_type,
                tuple(-1 if o else min(s) for o, s in zip(is_open, sizes, strict=True)),
                tuple(max(s) for s in sizes),
                tuple(dims.index(dim) if dim else -1 for dim in own),
            )
        )
    return tuple(ports)


def _open_port(name: str, type: AnyTensor, dims: Sequence[str]) -> ModelPort:
    """Return the port of a tensor with open sizes: those that are symbols are dims of the model."""
    numbers = {symbol(dim): number for number, dim in enumerate(dims)}
    extents = extents_of_type(type)
    return ModelPort(
        name,
        type.element_type,
        tuple(extent if isinstance(extent, int) else -1 for extent in extents),
        tuple(extent if isinstance(extent, int) else UNBOUNDED for extent in extents),
        tuple(-1 if isinstance(e, int) else numbers.get(e, -1) for e in extents),
    )


def _integer(function: func.FuncOp, name: str) -> int:
    attribute = function.attributes[name]
    assert isinstance(attribute, IntegerAttr)
    return int(attribute.value.data)
