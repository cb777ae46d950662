"""Random functions of opaque ops, for passes that order or place ops without running them."""

from random import Random

from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp, TensorType, f32
from xdsl.ir import SSAValue

from braid.dialects.braid.constants import ParameterOp
from braid.dialects.braid.opaque import OpaqueOp


def random_module(seed: int, size: int, parameters: float = 0.0, largest: int = 99) -> ModuleOp:
    """Return a module whose `@main` has `size` opaque ops on tensors of up to `largest` floats.

    Every op is used; a fraction `parameters` of them reads a parameter too.
    """
    random = Random(seed)
    function = func.FuncOp("main", ((TensorType(f32, [4]),), ()))
    values: list[SSAValue] = list(function.args)
    unused: list[SSAValue] = []
    for _ in range(size):
        inputs = random.sample(values, min(len(values), random.randint(1, 2)))
        made = TensorType(f32, [random.randint(1, largest)])
        weights: list[SSAValue] = []
        if random.random() < parameters:
            weight = ParameterOp.of("w", TensorType(f32, [largest]))
            function.body.block.add_op(weight)
            weights.append(weight.results[0])
        op = OpaqueOp.get("op", [*inputs, *weights], [made])
        function.body.block.add_op(op)
        values.append(op.results[0])
        unused = [value for value in (*unused, op.results[0]) if value not in inputs]
    last = OpaqueOp.get("last", unused, [TensorType(f32, [1])])
    function.body.block.add_ops([last, func.ReturnOp(last)])
    function.update_function_type()
    return ModuleOp([function])
