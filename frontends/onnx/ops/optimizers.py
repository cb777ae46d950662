"""Steps of optimizers, the ops of ONNX's training domain.

Inputs are the learning rate, the number of steps so far, then the values of all tensors, their
gradients and the optimizer's states; outputs are the new values and states in the same order.
"""

from collections.abc import Callable, Sequence

from xdsl.ir import SSAValue

from braid.dialects.braid.base import element_type_of
from braid.frontends.onnx.building.builder import Builder
from braid.frontends.onnx.building.expressions import apply, cast, scalar
from braid.frontends.onnx.building.node import Node
from braid.frontends.onnx.building.registry import importer

DOMAIN = "ai.onnx.preview.training"

Step = Callable[[Builder, Node, SSAValue, SSAValue, Sequence[SSAValue]], Sequence[SSAValue]]
"""Gets the rate, the number of steps, and value, gradient and memories of one tensor."""


def _optimizer(step: Step, memories: int) -> Callable[[Builder, Node], list[SSAValue]]:
    def build(b: Builder, node: Node) -> list[SSAValue]:
        rate, steps = node.input(0), node.input(1)
        kinds, rest = 2 + memories, [node.input(i) for i in range(2, len(node.inputs))]
        if len(rest) % kinds:
            node.fail(f"{len(rest)} inputs after the first two, expected a multiple of {kinds}")
        count = len(rest) // kinds
        results = [step(b, node, rate, steps, rest[i::count]) for i in range(count)]
        return [result[kind] for kind in range(1 + memories) for result in results]

    return build


def _scaled(b: Builder, x: SSAValue, factor: float) -> SSAValue:
    return apply(b, "mul", x, scalar(b, factor, x))


def _regularized(b: Builder, node: Node, x: SSAValue, gradient: SSAValue) -> SSAValue:
    """Return the gradient with that of the norm of x."""
    return apply(b, "add", _scaled(b, x, node.number("norm_coefficient", 0.0)), gradient)


def adagrad(
    b: Builder, node: Node, rate: SSAValue, steps: SSAValue, tensors: Sequence[SSAValue]
) -> Sequence[SSAValue]:
    """Import Adagrad (Duchi et al., 2011): steps shrink with the sum of squared gradients."""
    x, gradient, squares = tensors
    decay = _scaled(b, cast(b, steps, element_type_of(rate)), node.number("decay_factor", 0.0))
    rate = apply(b, "div", rate, apply(b, "add", decay, scalar(b, 1, decay)))
    gradient = _regularized(b, node, x, gradient)
    squares = apply(b, "add", squares, apply(b, "mul", gradient, gradient))
    root = apply(b, "sqrt", squares)
    divisor = apply(b, "add", root, scalar(b, node.number("epsilon", 1e-6), root))
    step = apply(b, "div", apply(b, "mul", rate, gradient), divisor)
    return apply(b, "sub", x, step), squares


def adam(
    b: Builder, node: Node, rate: SSAValue, steps: SSAValue, tensors: Sequence[SSAValue]
) -> Sequence[SSAValue]:
    """Import Adam: running means of the gradient and of its square, without their bias.

    Kingma and Ba, 2014.
    """
    x, gradient, first, second = tensors
    alpha, beta = node.number("alpha", 0.9), node.number("beta", 0.999)
    gradient = _regularized(b, node, x, gradient)
    square = apply(b, "mul", gradient, gradient)
    first = apply(b, "add", _scaled(b, first, alpha), _scaled(b, gradient, 1 - alpha))
    second = apply(b, "add", _scaled(b, second, beta), _scaled(b, square, 1 - beta))
    wide = cast(b, steps, element_type_of(rate))
    first_bias, second_bias = (
        apply(b, "sub", scalar(b, 1, wide), apply(b, "pow", scalar(b, factor, wide), wide))
        for factor in (alpha, beta)
    )
    corrected = apply(b, "div", apply(b, "mul", rate, apply(b, "sqrt", second_bias)), first_bias)
    is_started = apply(b, "gt", wide, scalar(b, 0, wide))
    rate = apply(b, "select", is_started, corrected, rate)
    root = apply(b, "sqrt", second)
    divisor = apply(b, "add", root, scalar(b, node.number("epsilon", 1e-6), root))
    moved = apply(b, "sub", x, apply(b, "div", apply(b, "mul", rate, first), divisor))
    return _scaled(b, moved, 1 - node.number("norm_coefficient_post", 0.0)), first, second


def momentum(
    b: Builder, node: Node, rate: SSAValue, steps: SSAValue, tensors: Sequence[SSAValue]
) -> Sequence[SSAValue]:
    """Import gradient descent with momentum, or with Nesterov's (Sutskever et al., 2013)."""
    x, gradient, velocity = tensors
    alpha = node.number("alpha")
    gradient = _regularized(b, node, x, gradient)
    is_started = apply(b, "gt", steps, scalar(b, 0, steps))
    beta = scalar(b, node.number("beta"), rate)
    factor = apply(b, "select", is_started, beta, scalar(b, 1, beta))
    added = apply(b, "mul", factor, gradient)
    velocity = apply(b, "add", _scaled(b, velocity, alpha), added)
    step = velocity
    if node.text("mode") == "nesterov":
        step = apply(b, "add", gradient, _scaled(b, velocity, alpha))
    return apply(b, "sub", x, apply(b, "mul", rate, step)), velocity


importer("Adagrad", domain=DOMAIN)(_optimizer(adagrad, 1))
importer("Adam", domain=DOMAIN)(_optimizer(adam, 2))
importer("Momentum", domain=DOMAIN)(_optimizer(momentum, 1))
