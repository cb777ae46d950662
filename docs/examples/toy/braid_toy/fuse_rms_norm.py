"""Pass `fuse-rms-norm`."""

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from braid.extend import ConstantOp, ReduceOp, emit_remark, numpy_from_dense, shape_of, union_names
from braid_toy.dialect import RmsNormOp


def _made_by(value: SSAValue, name: str) -> Operation | None:
    """Return the op that makes `value`, if it is a `name` and nothing else reads the value."""
    owner = value.owner
    if isinstance(owner, Operation) and owner.name == name and value.has_one_use():
        return owner
    return None


def _number(value: SSAValue) -> float | None:
    """Return the number that all elements of `value` are, if that is known."""
    if not isinstance(value.owner, ConstantOp):
        return None
    array = numpy_from_dense(value.owner.value)
    return float(array.flat[0]) if array.size == 1 else None


def _match(div: Operation) -> tuple[float, list[Operation]] | None:
    """Return epsilon and the ops, if `div` ends x / sqrt(sum(x·x) · 1/n + epsilon).

    The ops begin with `div` and go up to the first.
    """
    x = div.operands[0]
    ops: list[Operation] = [div]
    value = div.operands[1]
    numbers: list[float] = []
    for name in ("braid.sqrt", "braid.add", "braid.mul", "braid.reduce", "braid.mul"):
        op = _made_by(value, name)
        if op is None:
            return None
        if name in ("braid.add", "braid.mul") and len(numbers) < 2:
            number = _number(op.operands[1])
            if number is None:
                return None
            numbers.append(number)
        ops.append(op)
        value = op.operands[0]
    epsilon, factor = numbers
    square, reduce = ops[-1], ops[-2]
    if tuple(square.operands) != (x, x) or epsilon < 0:
        return None
    if not isinstance(reduce, ReduceOp) or reduce.kind.data != "add":
        return None
    last = len(shape_of(x)) - 1
    if tuple(reduce.dims.get_values()) != (last,) or abs(factor * shape_of(x)[last] - 1) > 1e-6:
        return None
    return epsilon, ops


def _fuse(div: Operation, epsilon: float, ops: list[Operation]) -> None:
    new = RmsNormOp.get(div.operands[0], epsilon)
    union_names(new, *ops)
    new.location = div.location
    Rewriter.replace_op(div, new)
    for op in ops[1:]:  # Each is read by the one before alone.
        Rewriter.erase_op(op)


@dataclass(frozen=True)
class FuseRmsNormPass(ModulePass):
    """Replaces the ops of a root mean square normalization by `toy.rms_norm`.

    In: any module, best behind `canonicalize,cse`. Out: where x / sqrt(sum(x·x) · 1/n + epsilon)
    stood, with n the extent of the last dim and no other use in between, one op stands, with the
    names of all. Emits a remark for each.

    ```mlir
    %q = braid.mul %x, %x …
    %s = braid.reduce %q {kind = "add", dims = array<i64: 1>} …
    %m = braid.mul %s, %reciprocal_of_n …
    %e = braid.add %m, %epsilon …
    %r = braid.sqrt %e …
    %y = braid.div %x, %r …
    // %y = toy.rms_norm %x {epsilon = 1.0e-5 : f64} …
    ```
    """

    name = "fuse-rms-norm"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Fuse every normalization in `op`."""
        for div in [div for div in op.walk() if div.name == "braid.div"]:
            if (match := _match(div)) is not None:
                emit_remark(div, self.name, f"{len(match[1])} ops are one", epsilon=match[0])
                _fuse(div, *match)
