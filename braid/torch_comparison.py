"""Check that an exported model computes PyTorch's results, or find the first op that differs."""

import contextlib
import copy
from collections.abc import Generator, Iterable, Mapping, Sequence
from importlib import import_module
from operator import getitem
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray

from braid.interpreted import interpret
from braid.runtime.torch_tensors import array_of, is_tensor
from braid.support.errors import BraidError, UnsupportedError
from braid.torch_exporter import evaluating, first_line

torch: Any = import_module("torch")  # by name, since checks of types run without it
Array = NDArray[Any]

_TOLERANCES = {"float16": 2e-2, "bfloat16": 6e-2, "float64": 1e-6, "complex128": 1e-6}
_MOST_NAMED = 4
_TOLERANCE = 1e-3
"""The tolerance for f32, relative to an element; a tenth of it is relative to the largest element
of the tensor."""


class DifferenceError(BraidError):
    """An exported model computes something else than PyTorch."""


_WRITTEN = {
    "BUFFER_MUTATION": "buffer",
    "PARAMETER_MUTATION": "parameter",
    "USER_INPUT_MUTATION": "input",
}
"""The things that a program writes to besides its results, by the kind of its output."""


def check_effects(program: Any) -> None:
    """Raise DifferenceError for a program that writes to buffers, parameters or inputs.

    A model in ONNX's format has no effects but its results.
    """
    outputs = [(each.kind.name, each.target) for each in program.graph_signature.output_specs]
    written = [f"{_WRITTEN[kind]} '{name}'" for kind, name in outputs if kind in _WRITTEN]
    if written:
        some = written if len(written) <= _MOST_NAMED else [*written[:_MOST_NAMED], "others"]
        listed = " and ".join([", ".join(some[:-1]), some[-1]] if some[1:] else some)
        raise DifferenceError(
            f"the module writes to {listed}, which a model would not do",
            hint="return the new value as a result, and give it to the next call as an input; "
            "torch.compile(…, backend='braid') writes as PyTorch does, and modules in evaluation "
            "mode, which .eval() is for, keep no statistics",
        )


def check_export(
    module: Any,
    program: Any,
    proto: onnx.ModelProto,
    args: tuple[object, ...],
    kwargs: dict[str, object],
) -> None:
    """Compare a model with the module, or the program, that it was exported from.

    `program` is the program that the exporter translated op by op. Nothing is compared if results
    are random, or if the interpreter lacks some ops.

    Raises:
        DifferenceError: a result differs; the message names the first op that does.

    """
    if random_op(program.graph) is not None:
        return
    results = torch.utils._pytree.tree_leaves(results_of(module, args, kwargs))
    expected = [each for each in results if each is not None]
    given = _inputs(program, args, kwargs)
    try:
        found = interpret(proto).run(list(map(_real, given)))
    except UnsupportedError:
        return
    difference = first_difference(found, expected, given)
    if difference is None:
        return
    culprit = differing_op(program, proto, given)
    raise DifferenceError(
        f"what PyTorch exports computes something else than PyTorch: {difference}"
        + (f"; the first op that differs is {culprit}" if culprit else ""),
        hint="express the op by others, or skip the comparison with verify=False",
    )


def random_op(graph: Any) -> str | None:
    """Return the first op of a graph that draws random numbers, None where there is none."""
    for node in graph.nodes:
        tags: Iterable[Any] = getattr(node.target, "tags", ())
        if torch.Tag.nondeterministic_seeded in tags and not _leaves_nothing_out(node):
            return str(node.target)
    return None


_SHARES = ("dropout_p", "dropout", "p")
"""The names of the share of elements that ops leave out at random."""
_TRAINING = ("train", "training")


def _leaves_nothing_out(node: Any) -> bool:
    """Return whether an op that may draw random numbers draws none: its share is 0, or no training.

    `p` alone is the probability of ones, which are random.
    """
    known = node.target._schema.arguments
    given = {each.name: each.default_value for each in known if each.has_default_value()}
    given |= {each.name: value for each, value in zip(known, node.args, strict=False)}
    given |= node.kwargs
    if any(given.get(name) is False for name in _TRAINING):
        return True
    names = _SHARES if any(name in given for name in _TRAINING) else _SHARES[:2]
    return any(given.get(name) == 0 for name in names)


def first_difference(
    found: Sequence[Any], expected: Sequence[Any], operands: Sequence[Any] = ()
) -> str | None:
    """Name the first result that differs from the expected one, None if all agree.

    All are arrays, tensors or numbers. Floats may differ by rounding errors, also of `operands`
    that cancel in a result. Where the expected number is not finite, it must be equal.
    """
    magnitude = max(map(_magnitude, operands), default=0.0)
    if len(found) != len(expected):
        return f"there are {len(found)} results, expected {len(expected)}"
    for number, (one, other) in enumerate(zip(found, expected, strict=True)):
        what = f"result {number}" if len(expected) > 1 else "the result"
        given, wanted = _array(one), _array(other)
        if not is_tensor(other) and wanted.dtype.kind == given.dtype.kind:
            wanted = wanted.astype(given.dtype)  # Python's numbers have one width for all
        if difference := _difference(given, wanted, magnitude):
            return f"{what} {difference}"
    return None


def differing_op(program: Any, proto: onnx.ModelProto, args: Sequence[object]) -> str | None:
    """Name the first op of a program whose results differ in the model exported from it.

    The result is None if all agree, so that the exporter is not at fault. `args` are the inputs of
    the program, tensors and numbers.
    """
    known = _values_of(program, args)
    made = {name for node in proto.graph.node for name in node.output}
    names = [name for name in known if name in made]
    extended = onnx.ModelProto()
    extended.CopyFrom(proto)
    del extended.graph.output[:]
    extended.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names)
    inferred = {each.name: each for each in (*proto.graph.value_info, *proto.graph.output)}
    for output in extended.graph.output:
        if output.name in inferred:
            output.CopyFrom(inferred[output.name])
    try:
        found = interpret(extended).run(list(map(_real, args)))
    except BraidError:
        return None
    for name, value in zip(names, found, strict=True):
        target, expected = known[name]
        if first_difference([value], [expected], args) is not None:
            return f"{target} ('{name}')"
    return None


def _values_of(program: Any, args: Sequence[object]) -> dict[str, tuple[str, Any]]:
    """Return the op and the value by the name of every node of a program that makes one tensor."""
    given = iter(args)
    flat: list[Any] = []
    for spec in program.graph_signature.input_specs:
        if _is_given(spec):
            flat.append(spec.arg.value if _is_constant(spec) else next(given))
        else:
            state = program.state_dict
            flat.append(
                state[spec.target] if spec.target in state else program.constants[spec.target]
            )
    interpreter = torch.fx.Interpreter(program.graph_module, garbage_collect_values=False)
    with torch.no_grad():
        interpreter.run(*flat)
    known: dict[str, tuple[str, Any]] = {}
    for node, value in interpreter.env.items():
        if node.op == "call_function" and is_tensor(value):
            named = node.args[0].target if node.target is getitem else node.target
            known[node.name] = str(named), value
    return known


@contextlib.contextmanager
def _attributes_kept(module: Any) -> Generator[None]:
    """Restore at the end which attributes the module, and those in it, have."""
    modules: Iterable[object] = module.modules()
    own = [vars(inner) for inner in modules]
    before = [dict(each) for each in own]
    try:
        yield
    finally:
        for attributes, old in zip(own, before, strict=True):
            attributes.clear()
            attributes.update(old)


def results_of(module: Any, args: tuple[object, ...], kwargs: dict[str, object]) -> Any:
    """Return PyTorch's results, on copies of the inputs and of the module's buffers.

    Raises:
        BraidError: a program does not take these inputs.

    """
    args, kwargs = copy.deepcopy(args), copy.deepcopy(kwargs)
    with torch.no_grad():
        if isinstance(module, torch.nn.Module):
            buffers = {name: each.clone() for name, each in module.named_buffers()}
            with _attributes_kept(module), evaluating(module):
                return torch.func.functional_call(module, buffers, args, kwargs)
        try:
            return module.module()(*args, **kwargs)
        except Exception as error:  # guards, and whatever the ops raise
            raise BraidError(
                f"the program does not take these inputs: {first_line(error)}",
                hint="leave args and kwargs out for the inputs that it was exported with",
            ) from error


def _inputs(program: Any, args: tuple[object, ...], kwargs: Mapping[str, object]) -> list[Any]:
    """Return copies of the inputs that the program, and so the model, has.

    They are tensors and open numbers.
    """
    flat: Sequence[object] = program._get_flat_args_with_check(args, kwargs)[0]
    specs = [each for each in program.graph_signature.input_specs if _is_given(each)]
    pairs = zip(flat, specs, strict=True)
    return [copy.deepcopy(x) for x, spec in pairs if not _is_constant(spec)]


def _is_given(spec: Any) -> bool:
    return spec.kind.name == "USER_INPUT"


def _is_constant(spec: Any) -> bool:
    """Return whether an argument, such as a flag, was traced as a constant, and is no input."""
    return type(spec.arg).__name__ == "ConstantArgument"


def _array(value: Any) -> Array:
    if not is_tensor(value):
        return np.asarray(value)
    try:
        return array_of(value.to(torch.complex64) if value.dtype == torch.complex32 else value)
    except (TypeError, RuntimeError) as error:
        raise BraidError(f"a result cannot be compared: {first_line(error)}") from error


def _real(value: Any) -> Any:
    """Return an input as the model takes it: complex numbers as pairs of real ones."""
    if not is_tensor(value):
        return value
    return torch.view_as_real(value.resolve_conj()) if value.is_complex() else value


_ROUNDINGS = 8
"""The number of units in the last place of its operands that a result may differ by."""


def _magnitude(value: Any) -> float:
    """Return the largest finite number of a float tensor, 0 for others."""
    array = _array(_real(value))
    if array.dtype.kind in "biu":
        return 0.0
    wide = np.abs(array.astype(np.float64))
    return float(wide[np.isfinite(wide)].max(initial=0.0))


def _difference(found: Array, expected: Array, magnitude: float) -> str | None:
    if expected.dtype.kind == "c" and found.dtype.kind == "f":  # pairs, as ONNX has them
        expected = np.stack([np.real(expected), np.imag(expected)], -1)
    if found.shape != expected.shape:
        return f"has shape {found.shape}, expected {expected.shape}"
    if found.dtype != expected.dtype:
        return f"is {found.dtype.name}, expected {expected.dtype.name}"
    if expected.dtype.kind in "biu":
        count = int((found != expected).sum())
        return f"differs in {count} of {expected.size} elements" if count else None
    tolerance = _TOLERANCES.get(expected.dtype.name, _TOLERANCE)
    wide = np.complex128 if expected.dtype.kind == "c" else np.float64
    one, other = found.astype(wide), expected.astype(wide)
    finite = np.isfinite(other)
    largest = float(np.abs(other[finite]).max(initial=0.0))
    kind = np.real(found).dtype
    rounding = _ROUNDINGS * float(torch.finfo(getattr(torch, kind.name)).eps) * magnitude
    least = max(tolerance / 10 * largest, rounding) + 1e-30
    if np.allclose(one, other, rtol=tolerance, atol=least, equal_nan=True):
        return None
    with np.errstate(invalid="ignore", over="ignore"):
        worst = np.abs(one - other)[finite & np.isfinite(one)].max(initial=0.0)
    odd = int((np.isfinite(one) != finite).sum())
    more = f", and {odd} elements are finite in one alone" if odd else ""
    return f"differs by up to {worst:.3g}, of numbers up to {largest:.3g}{more}"
