"""Products that tests of several kernel families make."""

from braid.dialects.braid.elementwise import elementwise
from braid.dialects.braid.matmul import MatmulOp


def product(a, b):
    """Return a single matmul."""
    op = MatmulOp.on(a, b)
    return [op], [op.output]


def with_epilogue(a, b, bias, other):
    """Return a product, and elementwise ops on its result."""
    op = MatmulOp.on(a, b)
    biased = elementwise("add", op.output, bias)
    scaled = elementwise("mul", biased.output, other)
    bounded = elementwise("maximum", scaled.output, bias)
    return [op, biased, scaled, bounded], [bounded.output]
