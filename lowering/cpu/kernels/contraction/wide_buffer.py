"""Narrow integers in memory that kernels compute with in a wider type."""

from dataclasses import dataclass

from xdsl.ir import Attribute

from braid.lowering.common.element_types import signless
from braid.lowering.emit.buffer import Buffer
from braid.lowering.emit.emitter import Emitter, Index, Value
from braid.lowering.emit.math.elementwise_table import conversion


@dataclass(frozen=True)
class WideBuffer(Buffer):
    """Vectors of `element_type`, loaded from elements of the integer type `stored`."""

    stored: Attribute

    def load(self, e: Emitter, offset: Index, mask: Value | None = None) -> Value:
        """Load a vector; lanes that the mask turns off are 0."""
        return self._wide(e, Buffer(self.ref, signless(self.stored)).load(e, offset, mask))

    def splat(self, e: Emitter, offset: Index) -> Value:
        """Load one element into every lane."""
        return self._wide(e, Buffer(self.ref, signless(self.stored)).splat(e, offset))

    def _wide(self, e: Emitter, value: Value) -> Value:
        op = conversion(self.stored, self.element_type)
        assert op is not None, f"no conversion of {self.stored} to {self.element_type}"
        return e.convert(op, value, self.element_type)
