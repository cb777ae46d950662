"""PyTorch modules and exported programs as models; PyTorch is only needed here."""

import inspect
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, cast

import onnx

from braid.runtime.torch_tensors import is_tensor
from braid.support.checked_keywords import checks_arguments
from braid.support.errors import BraidError, did_you_mean
from braid.torch_exporter import (
    ExportError,
    evaluating,
    first_line,
    import_package,
    leaves,
    proto_of,
    run_exporter,
    said,
)


@checks_arguments("braid.from_torch")
def from_torch(
    module: Any,
    args: Sequence[object] = (),
    *,
    kwargs: Mapping[str, object] | None = None,
    dynamic_shapes: object = None,
    opset: int | None = None,
    verify: bool = True,
) -> onnx.ModelProto:
    """Export a `torch.nn.Module` or an `ExportedProgram` as an ONNX model.

    All functions of braid take the result.

    ```python
    net = braid.from_torch(module, (torch.randn(2, 8),), dynamic_shapes=({0: "batch"},))
    model = braid.compile(net, shape_bounds={"batch": 8})
    ```

    `args` and `kwargs` are example inputs: the module is exported in evaluation mode, for their
    types and shapes. `dynamic_shapes` names the dims that stay open, as that of `torch.onnx.export`
    does; `opset` is by default PyTorch's. A program of `torch.export.export` has its shapes and,
    unless others are given, its example inputs already.

    Unless `verify` is False, the model is interpreted once on these inputs, and compared with
    PyTorch's results: `torch.onnx` exports several ops to something else. Nothing is compared if
    results are random, or if braid lacks ops of the model, which `compile` then reports.

    Results are tensors; None among them is left out. A model has no effects but its
    results: a module that writes to a buffer, a parameter or an input is refused.

    Raises:
        BraidError: PyTorch or onnxscript is missing, PyTorch cannot export the module, a result is
            no tensor, an argument has another value, or the exported program computes something
            else than the module; the message names the op, the result, the argument or the buffer.

    """
    torch = import_package("torch")
    import_package("onnxscript")
    _check_examples(args, kwargs)
    _check_options(dynamic_shapes, opset, verify)
    if isinstance(module, torch.export.ExportedProgram):
        exported, args, kwargs = _of_program(module, args, kwargs, dynamic_shapes, opset, verify)
    elif isinstance(module, torch.nn.Module):
        exported = _of_module(module, tuple(args), dict(kwargs or {}), dynamic_shapes, opset)
    else:
        raise BraidError(
            f"from_torch was given a {type(module).__name__}, expected a torch.nn.Module or an "
            "ExportedProgram",
            hint="give functions as a module whose forward calls them",
        )
    proto = proto_of(exported)
    _check_model(proto, opset)
    from braid.torch_comparison import check_effects, check_export  # which need the interpreter

    check_effects(exported.exported_program)
    if verify:
        check_export(module, exported.exported_program, proto, tuple(args), dict(kwargs or {}))
    return proto


def _check_examples(args: object, kwargs: object) -> None:
    """Raise BraidError for example inputs that are no tuple, no mapping by name, or arrays."""
    if not isinstance(args, tuple | list):
        raise BraidError(
            f"args is a {type(args).__name__}, expected a tuple of example inputs",
            hint="such as (x,), also for one input",
        )
    if not isinstance(kwargs, Mapping | None):
        raise BraidError(
            f"kwargs is a {type(kwargs).__name__}, expected example inputs by name",
            hint="such as kwargs={'x': x}",
        )
    named = cast(Mapping[object, Any], kwargs or {})
    for name in named:
        if not isinstance(name, str):
            raise BraidError(
                f"kwargs has {name!r:.200} for a name, expected the names of inputs",
                hint="such as kwargs={'x': x}",
            )
    for path, value in leaves((tuple(cast(Sequence[Any], args)), dict(named))).items():
        if hasattr(value, "__array__") and not is_tensor(value):
            kind = f"{type(value).__module__.partition('.')[0]}'s {type(value).__name__}"
            is_array = kind == "numpy's ndarray"
            raise BraidError(
                f"{path} is {'a numpy array' if is_array else kind}, expected a tensor",
                hint=f"give torch.{'from_numpy' if is_array else 'as_tensor'}(…) of it",
            )


def _check_options(dynamic_shapes: object, opset: object, verify: object) -> None:
    """Raise BraidError for values that the keywords of `from_torch` do not take."""
    if not isinstance(verify, bool):
        raise BraidError(
            f"verify is {verify!r:.200}, expected True or False",
            hint="leave it out to have the model compared with PyTorch",
        )
    newest = onnx.defs.onnx_opset_version()
    is_number = isinstance(opset, int) and not isinstance(opset, bool)
    if opset is not None and not (is_number and 1 <= cast(int, opset) <= newest):
        raise BraidError(
            f"opset is {opset!r:.200}, expected a whole number from 1 to {newest}",
            hint="such as opset=18, or leave it out for PyTorch's",
        )
    if not isinstance(dynamic_shapes, dict | tuple | list | None):
        raise BraidError(
            f"dynamic_shapes is {dynamic_shapes!r:.200}, expected the open dims of each input",
            hint=_OPEN_DIMS,
        )


_OPEN_DIMS = "such as dynamic_shapes=({0: 'batch'},), which opens the first dim of the first input"


def _check_model(proto: onnx.ModelProto, opset: int | None) -> None:
    """Raise BraidError for a model that computes nothing, or that has another opset than
    requested."""
    if not proto.graph.output:
        raise BraidError(
            "no result is a tensor, so that a model would compute nothing",
            hint="return the computed tensor, or several",
        )
    found = next((each.version for each in proto.opset_import if not each.domain), opset)
    if opset not in (None, found):
        raise BraidError(
            f"PyTorch exports it in opset {found}, and cannot convert it to opset {opset}",
            hint=f"give opset={found}, or leave it out",
        )


def _of_module(
    module: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    dynamic_shapes: object,
    opset: int | None,
) -> Any:
    """Export a module. Raises BraidError."""
    if dynamic_shapes is not None:
        _check_open_dims(module, args, kwargs, dynamic_shapes)
    # The exporter takes a dict at the end for keywords where none are given.
    is_taken = args and isinstance(args[-1], dict) and not kwargs
    given = (*args, dict[str, Any]()) if is_taken else args
    name = type(module).__name__
    try:
        with evaluating(module):
            return run_exporter(
                name,
                module,
                given,
                kwargs=kwargs,
                dynamic_shapes=dynamic_shapes,
                opset_version=opset,
                hint=None if args or kwargs else "give inputs to trace it with: args=(x,)",
            )
    except ExportError as error:
        reason = first_line(error)
        # PyTorch's message about results that are no tensors names only their type.
        if (
            "object has no attribute 'name'" in reason
            or "in output, which is not a known" in reason
        ):
            from braid.torch_comparison import results_of

            results: dict[str, object] = leaves(results_of(module, args, kwargs), ())
            for path, value in results.items():
                if f"'{type(value).__name__}' object" in reason or str(type(value)) in reason:
                    raise _no_tensor(name, path, value) from error
        raise


def _no_tensor(name: str, path: str, value: object) -> BraidError:
    """Return the error about a result that is no tensor."""
    is_number = isinstance(value, bool | int | float | complex)
    more = "; an int is computed where it is a size that dynamic_shapes opens"
    return BraidError(
        f"result{path} of {name} is {said(value)}, expected a tensor",
        hint=f"leave it out, or return torch.tensor({value})" + more * (type(value) is int)
        if is_number
        else "leave it out: a model computes tensors alone",
    )


def _check_open_dims(
    module: Any, args: tuple[Any, ...], kwargs: dict[str, Any], dynamic_shapes: Any
) -> None:
    """Raise BraidError for open dims of unknown inputs, or of dims that do not exist."""
    try:
        bound = inspect.signature(module.forward).bind(*args, **kwargs).arguments
    except (TypeError, ValueError):
        return  # the exporter reports invalid inputs
    if isinstance(dynamic_shapes, dict):
        for name in cast(dict[Any, Any], dynamic_shapes):
            if name not in bound:
                raise BraidError(
                    f"dynamic_shapes is given for {name!r:.200}, which is no input",
                    hint=did_you_mean(str(name), bound) or f"inputs are {', '.join(bound)}",
                )
        pairs = [(repr(n), bound[n], e) for n, e in cast(dict[str, Any], dynamic_shapes).items()]
    else:
        if len(dynamic_shapes) not in (0, len(bound)):
            raise BraidError(
                f"dynamic_shapes has {len(dynamic_shapes)} elements, expected one for each of "
                f"{', '.join(bound) or 'no inputs'}",
                hint="give None for an input of fixed size, or names: {'x': {0: 'batch'}}",
            )
        values = zip(bound.values(), dynamic_shapes, strict=False)
        pairs = [(str(number), *pair) for number, pair in enumerate(values)]
    for where, value, dims in pairs:
        for path, tensor, own in _with_dims(f"dynamic_shapes[{where}]", value, dims):
            _check_dims_of(path, tensor, own)


def _with_dims(path: str, value: Any, dims: Any) -> Iterator[tuple[str, Any, Any]]:
    """Find the tensors of an input and the specifications of their dims, by their paths."""
    if dims is None:
        return
    if is_tensor(value):
        yield path, value, dims
    elif isinstance(value, dict) and isinstance(dims, dict):
        for name, own in cast(dict[Any, Any], dims).items():
            if name in value:
                yield from _with_dims(f"{path}[{name!r}]", value[name], own)
    elif isinstance(value, tuple | list) and isinstance(dims, tuple | list):
        pairs = zip(cast(Sequence[Any], value), cast(Sequence[Any], dims), strict=False)
        for number, pair in enumerate(pairs):
            yield from _with_dims(f"{path}[{number}]", *pair)


def _check_dims_of(path: str, tensor: Any, dims: Any) -> None:
    """Raise BraidError for dims that a tensor does not have, or that have another form."""
    if isinstance(dims, tuple | list):
        count = len(cast(Sequence[Any], dims))
        if count != tensor.ndim:
            raise BraidError(
                f"{path} has {count} elements, expected one for each of {tensor.ndim} dims",
                hint="give open dims alone by their number, such as {0: 'batch'}",
            )
        return
    if not isinstance(dims, dict):
        raise BraidError(
            f"{path} is {said(dims)}, expected names of open dims by their number",
            hint="such as {0: 'batch'}",
        )
    for dim in cast(dict[object, object], dims):
        if isinstance(dim, bool) or not isinstance(dim, int) or not 0 <= dim < tensor.ndim:
            known = f"from 0 to {tensor.ndim - 1}" if tensor.ndim else "none, since it is a scalar"
            raise BraidError(
                f"{path} opens dim {dim!r:.200} of a tensor of shape {tuple(tensor.shape)}, "
                f"expected {known}",
                hint="dims are counted from the first one, which is 0",
            )


def _of_program(
    program: Any,
    args: Sequence[object],
    kwargs: Mapping[str, object] | None,
    dynamic_shapes: object,
    opset: int | None,
    verify: bool,
) -> tuple[Any, Sequence[object], Mapping[str, object]]:
    """Export a program; return that with the inputs to compare it on. Raises BraidError."""
    if dynamic_shapes is not None:
        raise BraidError(
            "dynamic_shapes is given for an ExportedProgram, which already has open dims",
            hint="give dynamic_shapes to torch.export.export",
        )
    if not args and not kwargs and program.example_inputs is not None:
        args, kwargs = program.example_inputs
    if args or kwargs or verify:
        _check_inputs(program, tuple(args), dict(kwargs or {}))
    _check_results(program)
    exported = run_exporter("the program", program, opset_version=opset)
    return exported, args, kwargs or {}


def _check_results(program: Any) -> None:
    """Raise BraidError for a program with a result that is no tensor."""
    own = [e.arg for e in program.graph_signature.output_specs if e.kind.name == "USER_OUTPUT"]
    numbers = leaves(_unflattened(range(len(own)), program.call_spec.out_spec), ())
    for path, number in numbers.items():
        found = own[number]
        if type(found).__name__ == "ConstantArgument" and found.value is not None:
            raise _no_tensor("the program", path, found.value)


def _unflattened(leaves: Collection[Any], spec: Any) -> Any:
    return import_package("torch").utils._pytree.tree_unflatten(leaves, spec)


def _check_inputs(program: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Raise BraidError for inputs that are not like those that the program was exported with."""
    hint = "leave args and kwargs out for the inputs that it was exported with"
    nodes = program.graph.find_nodes(op="placeholder")
    specs = zip(nodes, program.graph_signature.input_specs, strict=True)
    inputs = [(node, spec) for node, spec in specs if spec.kind.name == "USER_INPUT"]
    own: list[tuple[Any, Any]] = [(node.meta.get("val"), spec.arg) for node, spec in inputs]
    tree = _unflattened(range(len(own)), program.call_spec.in_spec)
    if len(args) != len(tree[0]):
        takes = f"the {len(tree[0])} that the program takes by position"
        raise BraidError(f"args has {len(args)} inputs, expected {takes}", hint=hint)
    known: dict[str, int] = leaves(tree)
    given = leaves((args, kwargs))
    for path in given:
        if path not in known:
            listed = ", ".join(known) or "none"
            raise BraidError(
                f"{path} is given, which is no input of the program",
                hint=did_you_mean(path, known, 0.9) or f"its inputs are {listed}",
            )
    sizes: dict[Any, tuple[str, int]] = {}
    for path, number in known.items():
        if path not in given:
            raise BraidError(f"{path} is not given, which is an input of the program", hint=hint)
        expected, argument = own[number]
        if type(argument).__name__ == "ConstantArgument":
            wrong = _other_constant(given[path], argument.value)
        elif is_tensor(expected):
            wrong = _other_tensor(path, given[path], expected, program.range_constraints, sizes)
        else:
            wrong = None
        if wrong:
            raise BraidError(
                f"{path} {wrong}",
                hint=f"{hint}, or export it for these; torch.export.export(…, dynamic_shapes=…) "
                "opens dims",
            )


def _other_constant(value: Any, expected: Any) -> str | None:
    """Describe how a value differs from the traced one, None if it does not."""
    if type(value) is type(expected) and (value == expected or value != value):
        return None
    return f"is {said(value)}, expected {said(expected)}, which the program was exported with"


def _other_tensor(
    path: str, value: Any, expected: Any, ranges: Mapping[Any, Any], sizes: dict[Any, Any]
) -> str | None:
    """Describe how a tensor differs from the one that a program takes, None if it does not.

    `ranges` are those of open dims; `sizes` holds where each was found first, and its size.
    """
    if not is_tensor(value):
        return f"is {said(value)}, expected a tensor"
    if value.dtype != expected.dtype:
        return f"has dtype {_dtype(value)}, expected {_dtype(expected)}"
    known = [None if hasattr(size, "node") else int(size) for size in expected.shape]
    pairs = zip(value.shape, known, strict=False)
    if len(value.shape) != len(known) or any(other not in (None, one) for one, other in pairs):
        shape = ", ".join("any" if size is None else str(size) for size in known)
        shape += "," if len(known) == 1 else ""
        return f"has shape {tuple(value.shape)}, expected ({shape})"
    for dim, (size, symbol) in enumerate(zip(value.shape, expected.shape, strict=True)):
        if not hasattr(symbol, "node"):
            continue
        expression = symbol.node.expr
        first, other = sizes.setdefault(expression, (f"{path} in dim {dim}", size))
        if size != other:
            return f"has size {size} in dim {dim}, expected {other}, as {first} has"
        bounds = ranges.get(expression)
        lowest = 0 if bounds is None or bounds.lower <= 2 else bounds.lower  # 2 is PyTorch's own
        if bounds is not None and not lowest <= size <= bounds.upper:
            return f"has size {size} in dim {dim}, expected {bounds.lower} to {bounds.upper}"
    return None


def _dtype(tensor: Any) -> str:
    return str(tensor.dtype).removeprefix("torch.")
