"""Ops of a model as modules of their own, to be tried on a device."""

from typing import cast

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import DictionaryAttr, IntegerAttr, ModuleOp, TensorType, i64
from xdsl.ir import Block, Operation, Region, SSAValue

from braid.analysis.diagnostics.remarks import collect_remarks
from braid.analysis.execution.compute_ops import runtime_functions
from braid.analysis.structure.clusters import is_placed
from braid.analysis.structure.nesting import ops_outside_groups
from braid.analysis.structure.parameter_expressions import ParameterExpressions
from braid.dialects.braid.attribute_names import CANDIDATES
from braid.dialects.braid.base import AnyTensor, shape_of
from braid.dialects.braid.clusters import Placement, set_placement
from braid.dialects.braid.constants import ConstantOp, ParameterOp
from braid.dialects.braid.layout import DYNAMIC
from braid.dialects.braid.names import set_names
from braid.dialects.braid.ports import name_dictionaries
from braid.passes.infrastructure.manager import run_pipeline
from braid.passes.infrastructure.pipeline_parser import parse_pipeline
from braid.passes.pipelines import DEFAULT
from braid.targets.kernels.op_text import op_text
from braid.targets.machines.target import Device

_BEFORE_DEVICES = DEFAULT[: DEFAULT.index("assign-devices")]


def simplify(context: Context, module: ModuleOp) -> None:
    """Bring `module` to where devices are assigned."""
    with collect_remarks():
        run_pipeline(context, module, parse_pipeline(",".join(_BEFORE_DEVICES)))


def distinct_ops(module: ModuleOp) -> dict[str, Operation]:
    """Return one op of each text that is computed when the model runs, and has known shapes."""
    found: dict[str, Operation] = {}
    known = ParameterExpressions()
    for function in runtime_functions(module):
        for op in ops_outside_groups(function):
            if is_placed(op) and not known.all_known(op.results) and _is_static(op):
                found.setdefault(op_text(op), op)
    return found


def module_of(op: Operation, device: Device) -> ModuleOp:
    """Return a module whose `@main` runs a copy of `op` on `device`, whatever mapping lists say.

    Weights that `op` reads are parameters there, constants are copied, other operands are inputs.
    """
    expressions = ParameterExpressions()
    read = list(dict.fromkeys(op.operands))
    inputs = [value for value in read if not expressions.is_known(value)]
    body = Block(arg_types=[value.type for value in inputs])
    values: dict[SSAValue, SSAValue] = dict(zip(inputs, body.args, strict=True))
    for number, value in enumerate(read):
        if value in values:
            continue
        leaf = (
            value.owner.clone()
            if isinstance(value.owner, ConstantOp)
            else ParameterOp.of(f"weight_{number}", _tensor(value))
        )
        body.add_op(leaf)
        values[value] = leaf.results[0]
    copy = op.clone(values)
    # It is a separate cluster, so that it is launched, also on the default device.
    set_placement(copy, Placement(0, device.name))
    copy.attributes[CANDIDATES] = DictionaryAttr({device.backend: IntegerAttr(1, i64)})
    set_names(copy, ["tried"])
    body.add_ops([copy, func.ReturnOp(*copy.results)])
    function = func.FuncOp(
        "main",
        ([argument.type for argument in body.args], [result.type for result in copy.results]),
        Region(body),
        arg_attrs=name_dictionaries(f"input_{n}" for n in range(len(inputs))),
        res_attrs=name_dictionaries(f"output_{n}" for n in range(len(copy.results))),
    )
    return ModuleOp([function])


def _is_static(op: Operation) -> bool:
    values = (*op.operands, *op.results)
    return all(isinstance(v.type, TensorType) and DYNAMIC not in shape_of(v) for v in values)


def _tensor(value: SSAValue) -> AnyTensor:
    return cast(AnyTensor, value.type)
