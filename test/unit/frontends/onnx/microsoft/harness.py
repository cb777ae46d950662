"""Random nodes of ONNX Runtime's own ops, beside ONNX Runtime."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, helper, numpy_helper
from onnxruntime import GraphOptimizationLevel, InferenceSession, SessionOptions

from braid.analysis.interpreter import interpret
from braid.frontends.onnx import import_onnx
from braid.passes.sizes.bind_sizes import bind_sizes
from braid.support.errors import BraidError

Array = np.ndarray[Any, np.dtype[Any]]
Rng = np.random.Generator
QUICK, MANY = 20, 300


@dataclass(frozen=True)
class Fixed:
    """An operand that is an initializer of the model."""

    array: Array


@dataclass(frozen=True)
class Case:
    """A node; omitted operands are None.

    Results differ from the reference by `tolerance` of its largest element at most; integers by
    `steps`. `outputs` are numbered; those that are not in it are left out. Dims of the operands in
    `fixed` are never open; those in `names` are open under these names, and the others under a
    separate name for each dim.
    """

    operands: Sequence[Array | Fixed | None]
    attributes: Mapping[str, Any] = field(default_factory=dict[str, Any])
    outputs: Sequence[int] = (0,)
    tolerance: float = 2e-5
    steps: int = 0
    fixed: Sequence[int] = ()
    names: Mapping[int, Sequence[str | int]] = field(default_factory=dict[int, Any])


Generator = Callable[[Rng], Case]


def model_of(op: str, case: Case, domain: str, named: bool = False) -> ModelProto:
    """Return a model of the node; with `named`, all dims of its inputs are open."""
    inputs, constants, names = [], [], []
    for index, operand in enumerate(case.operands):
        name = f"x{index}"
        names.append("" if operand is None else name)
        if isinstance(operand, Fixed):
            constants.append(numpy_helper.from_array(operand.array, name))
        elif operand is not None:
            kind = helper.np_dtype_to_tensor_dtype(operand.dtype)
            shape = names_of(case, index, operand) if named else operand.shape
            inputs.append(helper.make_tensor_value_info(name, kind, shape))
    results = [f"y{i}" if i in case.outputs else "" for i in range(max(case.outputs) + 1)]
    node = helper.make_node(op, names, results, name="node", domain=domain, **case.attributes)
    outputs = [helper.make_empty_tensor_value_info(name) for name in results if name]
    return helper.make_model(
        helper.make_graph([node], "g", inputs, outputs, constants),
        opset_imports=[helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)],
        ir_version=10,
    )


def names_of(case: Case, index: int, operand: Array) -> Sequence[str | int]:
    """Return the sizes of an operand whose dims are open."""
    if index in case.fixed:
        return operand.shape
    return case.names.get(index) or [f"x{index}_{dim}" for dim in range(operand.ndim)]


def sizes_of(case: Case) -> dict[str, int]:
    """Return the sizes of all open dims of a case."""
    return {
        name: extent
        for index, operand in enumerate(case.operands)
        if isinstance(operand, np.ndarray)
        for name, extent in zip(names_of(case, index, operand), operand.shape, strict=True)
        if isinstance(name, str)
    }


def arrays_of(case: Case) -> dict[str, Array]:
    return {f"x{i}": x for i, x in enumerate(case.operands) if isinstance(x, np.ndarray)}


def onnx_runtime(model: ModelProto, inputs: Mapping[str, Array]) -> list[Array]:
    """Return what ONNX Runtime computes, in one thread, without optimizations of the graph."""
    options = SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    options.graph_optimization_level = GraphOptimizationLevel.ORT_DISABLE_ALL
    return InferenceSession(model.SerializeToString(), options).run(None, dict(inputs))


def check(
    op: str,
    case: Case,
    *,
    named: bool = False,
    domain: str = "com.microsoft",
    expected: Sequence[Array] | None = None,
) -> None:
    """Check the interpreted node, with open dims or fixed ones, against ONNX Runtime."""
    inputs = arrays_of(case)
    if expected is None:
        expected = onnx_runtime(model_of(op, case, domain), inputs)
    imported = import_onnx(model_of(op, case, domain, named), keep_open=named)
    imported.module.verify()
    if named:
        bind_sizes(imported.module, sizes_of(case))
    results = interpret(imported.module, inputs, parameters=imported.parameters)
    for result, wanted in zip(results, expected, strict=True):
        compare(result, np.asarray(wanted), case)


def compare(result: Array, wanted: Array, case: Case) -> None:
    assert (result.shape, result.dtype) == (wanted.shape, wanted.dtype)
    if np.issubdtype(wanted.dtype, np.integer):
        distance = np.abs(result.astype(np.int64) - wanted.astype(np.int64))
        assert distance.max(initial=0) <= case.steps
        return
    scale = np.abs(wanted[np.isfinite(wanted)].astype(np.float64)).max(initial=1e-3)
    np.testing.assert_allclose(
        result.astype(np.float64), wanted.astype(np.float64), rtol=0, atol=case.tolerance * scale
    )


def quick_cases(generators: Mapping[str, Generator]) -> Any:
    """Return the parameters of a test `(op, seed)` over all generators."""
    return pytest.mark.parametrize(
        ("op", "seed"), [(op, seed) for op in generators for seed in range(QUICK)]
    )


def check_random(op: str, generator: Generator, seed: int, **options: Any) -> None:
    """Check one random case of an op; every other one with open dims."""
    case = generator(np.random.default_rng([seed, len(op)]))
    check(op, case, named=bool(seed % 2), **options)


def check_many(op: str, generator: Generator, **options: Any) -> None:
    """Check many random cases of an op, none of which is among the quick ones."""
    for seed in range(QUICK, QUICK + MANY):
        check_random(op, generator, seed, **options)


def refusal(op: str, case: Case, message: str) -> None:
    """Check that the node is refused by name, with a message that matches."""
    with pytest.raises(BraidError, match=rf"node 'node' \({op}\): .*{message}"):
        import_onnx(model_of(op, case, "com.microsoft"))


def maybe(rng: Rng, value: Any) -> Any:
    """Return the value or, half of the time, None."""
    return value if rng.random() < 0.5 else None


def floats(rng: Rng, *shape: int, kind: Any = np.float32) -> Array:
    return rng.standard_normal(shape).astype(kind)


def sizes(rng: Rng, count: int, most: int = 6) -> list[int]:
    return [int(n) for n in rng.integers(1, most + 1, count)]
