"""The four operations on floats, scalars or vectors, of an emitter."""

from xdsl.dialects import arith

from braid.lowering.emit.emitter import Emitter, Value


class FloatArithmetic:
    """Base of what computes with floats by `e`."""

    e: Emitter

    def add(self, a: Value, b: Value) -> Value:
        """Return a + b."""
        return self.e.apply(arith.AddfOp, a, b)

    def sub(self, a: Value, b: Value) -> Value:
        """Return a - b."""
        return self.e.apply(arith.SubfOp, a, b)

    def mul(self, a: Value, b: Value) -> Value:
        """Return a · b."""
        return self.e.apply(arith.MulfOp, a, b)

    def div(self, a: Value, b: Value) -> Value:
        """Return a / b."""
        return self.e.apply(arith.DivfOp, a, b)
