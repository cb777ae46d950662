"""Ops of a program at which a run fails: their texts, and whether one of them was reached."""

from xdsl.dialects import arith, llvm
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, ModuleOp, TensorType, i32
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue

from braid.dialects.braid.attribute_names import BRANCH_SIZE_CHECKS
from braid.dialects.braid.failure import FailOp
from braid.lowering.host.environment import FAIL_OFFSET, Environment
from braid.lowering.host.pointers import I8, PointerBuilder

_LONGEST = 500
"""Bytes of a text; the runtime keeps 511."""


class Failures:
    """Emits failures: the runtime is told why, and the program returns that it has failed."""

    def __init__(
        self,
        module: ModuleOp,
        symbol: str,
        function: FuncOp,
        environment: Environment,
        entry: PointerBuilder,
    ) -> None:
        self._module, self._symbol, self._environment = module, symbol, environment
        self._count = 0
        self._has_failed: SSAValue | None = None
        if any(map(_may_fail, function.walk())):
            self._has_failed = entry.emit(llvm.AllocaOp(entry.constant(1), i32, alignment=8))
            entry.store(_number(entry, 0), self._has_failed)

    def emit(self, message: str, builder: PointerBuilder) -> None:
        """Record that the run has failed, and why."""
        assert self._has_failed is not None
        text = message.encode()[:_LONGEST].decode(errors="ignore").encode() + b"\0"
        name = f"{self._symbol}_failure_{self._count}"
        self._count += 1
        signed = [byte - 256 if byte > 127 else byte for byte in text]
        self._module.body.block.add_op(
            llvm.GlobalOp(
                llvm.LLVMArrayType(len(text), I8),
                name,
                llvm.LinkageAttr("internal"),
                constant=True,
                value=DenseIntOrFPElementsAttr.from_list(TensorType(I8, [len(text)]), signed),
            )
        )
        fail = self._environment.service(builder, FAIL_OFFSET)
        builder.call_pointer(fail, [self._environment.env, builder.function_address(name)])
        builder.store(_number(builder, 1), self._has_failed)

    def status(self, builder: PointerBuilder) -> SSAValue:
        """Return whether one of them was reached, as an i32."""
        if self._has_failed is None:
            return _number(builder, 0)
        return builder.load(self._has_failed, i32)


def _number(builder: PointerBuilder, value: int) -> SSAValue:
    return builder.emit(arith.ConstantOp.from_int_and_width(value, 32))


def _may_fail(op: Operation) -> bool:
    return isinstance(op, FailOp) or BRANCH_SIZE_CHECKS in op.attributes
