"""Generator of invalid models: ONNX's node tests, each with one mutation."""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import onnx
from onnx import AttributeProto, ModelProto, TensorProto, helper, numpy_helper

from benchmarks.conformance.cases import load_cases
from benchmarks.conformance.expectations import read_expected
from braid.support.errors import UnsupportedError

Arrays = list[Any]

SMALL = 64
"""Elements of inputs that become initializers: axes, shapes, indices."""

LARGE = 4096
"""Elements of models that are left out, since they take long."""

NUMBERS = (-(2**63), -(2**31), -1000, -2, -1, 0, 1, 2, 3, 7, 1000, 2**31 - 1, 2**40, 2**63 - 1)
KINDS = (1, 2, 3, 4, 5, 6, 7, 9, 10, 11, 12, 13, 16)


@dataclass(frozen=True)
class Seed:
    """A valid model of one op with its inputs."""

    name: str
    model: ModelProto
    inputs: Arrays


@cache
def seeds() -> tuple[Seed, ...]:
    """Return the node tests that are supported, small, and of static shapes."""
    unsupported = read_expected()
    found: list[Seed] = []
    for name, case in load_cases().items():
        if name in unsupported or "_expanded" in name or not case.is_static:
            continue
        try:
            inputs, _ = next(iter(case.data_sets))
        except UnsupportedError:
            continue
        if sum(array.size for array in inputs) <= LARGE:
            found.append(_seed(name, case.model, inputs))
    return tuple(found)


def _seed(name: str, model: ModelProto, inputs: Arrays) -> Seed:
    """Return a seed with small integer inputs, except the first, as initializers."""
    copy = ModelProto()
    copy.CopyFrom(model)
    values = dict(zip([value.name for value in copy.graph.input], inputs, strict=False))
    fixed = [n for n, a in list(values.items())[1:] if a.dtype.kind in "iu" and a.size <= SMALL]
    for known in fixed:
        copy.graph.initializer.append(numpy_helper.from_array(values.pop(known), known))
    kept = [value for value in copy.graph.input if value.name in values]
    del copy.graph.input[:]
    copy.graph.input.extend(kept)
    for output in copy.graph.output:  # what it declares would hide what else is wrong
        output.type.tensor_type.ClearField("shape")
    return Seed(name, copy, list(values.values()))


@dataclass(frozen=True)
class Mutant:
    """A mutated model, inputs of its shapes, and a description of the mutation."""

    seed: str
    change: str
    model: ModelProto
    inputs: Arrays


def mutant(seed: Seed, choice: random.Random) -> Mutant:
    """Return the seed with one mutation that applies to it."""
    while True:
        model = ModelProto()
        model.CopyFrom(seed.model)
        change = choice.choice(CHANGES)
        said = change(model, choice)
        if said is not None:
            return Mutant(seed.name, f"{change.__name__}: {said}", model, _inputs(model, seed))


def _inputs(model: ModelProto, seed: Seed) -> Arrays:
    """Return the seed's inputs if shapes and types are unchanged, else random ones."""
    values = {v.name: a for v, a in zip(seed.model.graph.input, seed.inputs, strict=True)}
    numbers = np.random.default_rng(0)
    made: Arrays = []
    for value in model.graph.input:
        tensor = value.type.tensor_type
        shape = tuple(dim.dim_value for dim in tensor.shape.dim)
        dtype = helper.tensor_dtype_to_np_dtype(tensor.elem_type)
        given = values.get(value.name)
        if given is None or given.shape != shape or given.dtype != dtype:
            given = numbers.integers(0, 3, shape).astype(dtype)
        made.append(given)
    return made


Change = Callable[[ModelProto, random.Random], str | None]


def input_extent(model: ModelProto, choice: random.Random) -> str | None:
    dims = [dim for value in model.graph.input for dim in value.type.tensor_type.shape.dim]
    if not dims:
        return None
    dim = choice.choice(dims)
    before = dim.dim_value
    dim.dim_value = max(0, choice.choice([before - 1, before + 1, 2 * before, 0, 1]))
    return f"{before} to {dim.dim_value}" if dim.dim_value != before else None


def input_rank(model: ModelProto, choice: random.Random) -> str | None:
    shapes = [value.type.tensor_type.shape for value in model.graph.input]
    if not shapes:
        return None
    shape = choice.choice(shapes)
    before = len(shape.dim)
    if before and choice.random() < 0.6:
        del shape.dim[choice.randrange(before)]
    else:
        shape.dim.add(dim_value=choice.choice([1, 2]))
    return f"{before} to {len(shape.dim)}"


def input_type(model: ModelProto, choice: random.Random) -> str | None:
    if not model.graph.input:
        return None
    value = choice.choice(model.graph.input)
    before, after = value.type.tensor_type.elem_type, choice.choice(KINDS)
    same = choice.random() < 0.5  # all inputs and outputs of the type, or this input alone
    for other in (*model.graph.input, *model.graph.output):
        if other is value or (same and other.type.tensor_type.elem_type == before):
            other.type.tensor_type.elem_type = after
    return f"{before} to {after}" if before != after else None


def _attribute(model: ModelProto, choice: random.Random) -> AttributeProto | None:
    found = [a for node in model.graph.node for a in node.attribute]
    return choice.choice(found) if found else None


def _near(number: int, choice: random.Random) -> int:
    after = choice.choice([number - 1, number + 1, -number, *NUMBERS])
    return min(max(after, -(2**63)), 2**63 - 1)


def attribute_value(model: ModelProto, choice: random.Random) -> str | None:
    attribute = _attribute(model, choice)
    if attribute is None:
        return None
    before = str(attribute)
    if attribute.type == AttributeProto.INT:
        attribute.i = _near(attribute.i, choice)
    elif attribute.type == AttributeProto.INTS and attribute.ints:
        at = choice.randrange(len(attribute.ints))
        attribute.ints[at] = _near(attribute.ints[at], choice)
    elif attribute.type == AttributeProto.FLOAT:
        attribute.f = choice.choice([0.0, -1.0, 1e30, float("inf"), float("nan")])
    elif attribute.type == AttributeProto.STRING:
        attribute.s = choice.choice([b"", b"none", attribute.s.lower() + b"x", b"\xff"])
    return _difference(before, attribute)


def _difference(before: str, attribute: AttributeProto) -> str | None:
    after = str(attribute)
    return f"{before!r} to {after!r}"[:300] if before != after else None


def attribute_length(model: ModelProto, choice: random.Random) -> str | None:
    attribute = _attribute(model, choice)
    if attribute is None or not (attribute.ints or attribute.floats or attribute.strings):
        return None
    before = str(attribute)
    lists: Any = (attribute.ints, attribute.floats, attribute.strings)
    for values in lists:
        if values and choice.random() < 0.5:
            del values[choice.randrange(len(values))]
        elif values:
            values.append(values[0])
    return _difference(before, attribute)


def attribute_missing(model: ModelProto, choice: random.Random) -> str | None:
    nodes = [node for node in model.graph.node if node.attribute]
    if not nodes:
        return None
    node = choice.choice(nodes)
    at = choice.randrange(len(node.attribute))
    name = node.attribute[at].name
    del node.attribute[at]
    return name


def attribute_kind(model: ModelProto, choice: random.Random) -> str | None:
    attribute = _attribute(model, choice)
    if attribute is None:
        return None
    values = [1, 1.0, "text", [1, 2], [1.0], ["text"], helper.make_tensor("t", 1, [1], [1.0])]
    before = str(attribute)
    attribute.CopyFrom(helper.make_attribute(attribute.name, choice.choice(values)))
    return _difference(before, attribute)


def attribute_added(model: ModelProto, choice: random.Random) -> str | None:
    """Add an attribute that the node lacks, of its own op or of another one, valid or not."""
    node = choice.choice(model.graph.node)
    versions = {opset.domain: opset.version for opset in model.opset_import}
    try:
        schema: Any = onnx.defs.get_schema(node.op_type, versions[node.domain], node.domain)
    except (KeyError, onnx.defs.SchemaError):
        return None
    names = sorted(set(schema.attributes) - {a.name for a in node.attribute})
    name = choice.choice([*names, "axis", "alpha", "unheard_of"])
    kind = schema.attributes[name].type.value if name in names else AttributeProto.INT
    values: dict[int, Any] = {
        AttributeProto.INT: choice.choice(NUMBERS),
        AttributeProto.INTS: [choice.choice(NUMBERS) for _ in range(choice.randint(1, 4))],
        AttributeProto.FLOAT: choice.choice([0.0, -1.0, float("nan")]),
        AttributeProto.STRING: choice.choice(["", "SAME_UPPER", "unheard_of"]),
    }
    if kind not in values or any(a.name == name for a in node.attribute):
        return None
    node.attribute.append(helper.make_attribute(name, values[kind]))
    return f"{name} = {values[kind]}"


def _initializer(model: ModelProto, choice: random.Random) -> TensorProto | None:
    return choice.choice(model.graph.initializer) if model.graph.initializer else None


def initializer_value(model: ModelProto, choice: random.Random) -> str | None:
    tensor = _initializer(model, choice)
    if tensor is None:
        return None
    array = numpy_helper.to_array(tensor).copy()
    if not array.size or array.dtype.kind not in "iu":
        return None
    at, limits = choice.randrange(array.size), np.iinfo(array.dtype)
    before = int(array.reshape(-1)[at])
    after = min(max(_near(before, choice), int(limits.min)), int(limits.max))
    array.reshape(-1)[at] = after
    tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))
    return f"{before} to {after}" if before != after else None


def initializer_shape(model: ModelProto, choice: random.Random) -> str | None:
    tensor = _initializer(model, choice)
    if tensor is None:
        return None
    array = numpy_helper.to_array(tensor)
    flat = array.reshape(-1)
    shapes = [flat, array[None], flat[:0]]
    shapes += [flat[:-1], np.append(flat, flat[-1:]), flat[-1:].reshape([])] if flat.size else []
    changed = choice.choice(shapes)
    tensor.CopyFrom(numpy_helper.from_array(changed, tensor.name))
    return f"{array.shape} to {changed.shape}" if changed.shape != array.shape else None


def initializer_bytes(model: ModelProto, choice: random.Random) -> str | None:
    tensor = _initializer(model, choice)
    if tensor is None or not tensor.raw_data:
        return None
    data = tensor.raw_data
    tensor.raw_data = choice.choice([data[:-1], data + b"\0", data * 2, b""])
    return f"{len(data)} to {len(tensor.raw_data)}" if data != tensor.raw_data else None


def initializer_type(model: ModelProto, choice: random.Random) -> str | None:
    tensor = _initializer(model, choice)
    if tensor is None:
        return None
    dtype = helper.tensor_dtype_to_np_dtype(choice.choice([1, 2, 3, 6, 7, 9, 11]))
    array = numpy_helper.to_array(tensor)
    tensor.CopyFrom(numpy_helper.from_array(array.astype(dtype), tensor.name))
    return f"{array.dtype} to {dtype}" if array.dtype != dtype else None


def input_missing(model: ModelProto, choice: random.Random) -> str | None:
    nodes = [node for node in model.graph.node if node.input]
    if not nodes:
        return None
    node = choice.choice(nodes)
    at = choice.randrange(len(node.input))
    if choice.random() < 0.5:
        del node.input[at]
    else:
        node.input[at] = ""
    return str(at)


def input_added(model: ModelProto, choice: random.Random) -> str | None:
    node = choice.choice(model.graph.node)
    names = [v.name for v in (*model.graph.input, *model.graph.initializer)]
    if not names:
        return None
    node.input.append(choice.choice(names))
    return node.input[-1]


def input_exchanged(model: ModelProto, choice: random.Random) -> str | None:
    node = choice.choice(model.graph.node)
    if len(node.input) < 2:
        return None
    one, other = choice.sample(range(len(node.input)), 2)
    if node.input[one] == node.input[other]:
        return None
    node.input[one], node.input[other] = node.input[other], node.input[one]
    return f"{one} and {other}"


def output_added(model: ModelProto, choice: random.Random) -> str | None:
    node = choice.choice(model.graph.node)
    node.output.append("added")
    if choice.random() < 0.5:
        kind = model.graph.output[0].type.tensor_type.elem_type
        model.graph.output.append(helper.make_tensor_value_info("added", kind, None))
        model.graph.output[-1].type.tensor_type.ClearField("shape")
    return str(len(node.output))


def output_type(model: ModelProto, choice: random.Random) -> str | None:
    output = choice.choice(model.graph.output)
    before = output.type.tensor_type.elem_type
    output.type.tensor_type.elem_type = choice.choice(KINDS)
    after = output.type.tensor_type.elem_type
    return f"{before} to {after}" if before != after else None


def output_shape(model: ModelProto, choice: random.Random) -> str | None:
    output = choice.choice(model.graph.output)
    shape = [choice.randint(0, 5) for _ in range(choice.randint(0, 5))]
    for extent in shape:
        output.type.tensor_type.shape.dim.add(dim_value=extent)
    return str(shape)


def opset(model: ModelProto, choice: random.Random) -> str | None:
    entry = choice.choice(model.opset_import)
    before = entry.version
    entry.version = choice.choice([1, 6, 9, 11, 13, before - 1, before + 1])
    return f"{before} to {entry.version}" if before != entry.version else None


CHANGES: Sequence[Change] = (
    input_extent,
    input_rank,
    input_type,
    attribute_value,
    attribute_length,
    attribute_missing,
    attribute_kind,
    attribute_added,
    initializer_value,
    initializer_shape,
    initializer_bytes,
    initializer_type,
    input_missing,
    input_added,
    input_exchanged,
    output_added,
    output_type,
    output_shape,
    opset,
)
