"""`merge-prepared-parameters`: parameters that `@prepare` makes twice become one."""

from dataclasses import dataclass
from typing import cast

from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass

from braid.analysis.structure.parameter_expressions import PREPARE
from braid.dialects.braid.attribute_names import PREPARED_KEYS
from braid.dialects.braid.constants import ParameterOp
from braid.passes.canonicalize.cse import CSEPass


@dataclass(frozen=True)
class MergePreparedParametersPass(ModulePass):
    """Gives equal results of `@prepare` one key, and computes them once.

    In: a module after `hoist-parameter-expressions`, such as one with several variants of a
    model, which pack the same weights. Out: common subexpressions are merged, and
    every parameter that is read has a value of its own.

    ```mlir
    func.func private @prepare() -> (tensor<4xf32>, tensor<4xf32>)
        attributes {braid.keys = ["prepared/0", "prepared/1"]} {   // ["prepared/0"]
      …
      return %v, %v : tensor<4xf32>, tensor<4xf32>                 // return %v : tensor<4xf32>
    ```
    """

    name = "merge-prepared-parameters"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Merge in `@prepare`, then rename the keys everywhere."""
        CSEPass().apply(ctx, op)
        for function in op.ops:
            if isinstance(function, FuncOp) and function.sym_name.data == PREPARE:
                _rename(op, _merge(function))


def _merge(prepare: FuncOp) -> dict[str, str]:
    """Drop each result that another equals; return the key that stays for each key."""
    last = prepare.body.block.last_op
    assert isinstance(last, ReturnOp)
    names = [key.data for key in cast(ArrayAttr[StringAttr], prepare.attributes[PREPARED_KEYS])]
    first: dict[SSAValue, str] = {}
    kept = {
        name: first.setdefault(value, name)
        for name, value in zip(names, last.arguments, strict=True)
    }
    last.operands = list(first)
    prepare.function_type = type(prepare.function_type).from_lists([], [v.type for v in first])
    prepare.attributes[PREPARED_KEYS] = ArrayAttr([StringAttr(name) for name in first.values()])
    return kept


def _rename(module: ModuleOp, kept: dict[str, str]) -> None:
    for op in module.walk():
        if isinstance(op, ParameterOp) and op.key.data in kept:
            op.attributes["key"] = StringAttr(kept[op.key.data])
