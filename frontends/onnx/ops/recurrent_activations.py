"""The activation functions of `RNN`, `GRU` and `LSTM`, with their alphas and betas."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from xdsl.ir import SSAValue

from braid.frontends.onnx.building.builder import Builder
from braid.frontends.onnx.building.expressions import apply, scalar
from braid.frontends.onnx.building.node import Node
from braid.frontends.onnx.ops.activation import (
    hard_sigmoid,
    scaled_exp,
    sigmoid,
    softplus,
    where_negative,
)
from braid.support.errors import did_you_mean

Activation = Callable[[Builder, SSAValue], SSAValue]
_Build = Callable[[Builder, SSAValue, float, float], SSAValue]
_UNSET = None
"""The default of a parameter for which ONNX has none: that of an op removed from ONNX."""


@dataclass(frozen=True)
class _Function:
    """A function of x, and of the numbers that it takes: none, alpha, or alpha and beta.

    `defaults` are those of ONNX's op of the name.
    """

    build: _Build
    defaults: tuple[float | None, ...] = ()


def _affine(b: Builder, x: SSAValue, alpha: float, beta: float) -> SSAValue:
    """Return alpha · x + beta."""
    return apply(b, "add", apply(b, "mul", x, scalar(b, alpha, x)), scalar(b, beta, x))


def _thresholded(b: Builder, x: SSAValue, alpha: float, _: float) -> SSAValue:
    """Return x where it is at least alpha, 0 elsewhere; `ThresholdedRelu` alone is 0 at alpha."""
    return apply(b, "select", apply(b, "ge", x, scalar(b, alpha, x)), x, scalar(b, 0, x))


def _scaled_tanh(b: Builder, x: SSAValue, alpha: float, beta: float) -> SSAValue:
    """Return alpha · tanh(beta · x)."""
    curve = apply(b, "tanh", apply(b, "mul", x, scalar(b, beta, x)))
    return apply(b, "mul", curve, scalar(b, alpha, x))


def _leaky(b: Builder, x: SSAValue, alpha: float, _: float) -> SSAValue:
    return where_negative(b, x, apply(b, "mul", x, scalar(b, alpha, x)), x)


def _elu(b: Builder, x: SSAValue, alpha: float, _: float) -> SSAValue:
    return where_negative(b, x, scaled_exp(b, x, alpha), x)


def _softsign(b: Builder, x: SSAValue) -> SSAValue:
    return apply(b, "div", x, apply(b, "add", apply(b, "abs", x), scalar(b, 1, x)))


def _relu(b: Builder, x: SSAValue) -> SSAValue:
    return apply(b, "maximum", x, scalar(b, 0, x))


def _tanh(b: Builder, x: SSAValue) -> SSAValue:
    return apply(b, "tanh", x)


def _plain(build: Activation) -> _Function:
    """Return a function without numbers."""
    return _Function(lambda b, x, _, __: build(b, x))


_FUNCTIONS: dict[str, _Function] = {
    "Affine": _Function(_affine, (_UNSET, _UNSET)),
    "Elu": _Function(_elu, (1.0,)),
    "HardSigmoid": _Function(hard_sigmoid, (0.2, 0.5)),
    "LeakyRelu": _Function(_leaky, (0.01,)),
    "Relu": _plain(_relu),
    "ScaledTanh": _Function(_scaled_tanh, (_UNSET, _UNSET)),
    "Sigmoid": _plain(sigmoid),
    "Softplus": _plain(softplus),
    "Softsign": _plain(_softsign),
    "Tanh": _plain(_tanh),
    "ThresholdedRelu": _Function(_thresholded, (1.0,)),
}
_BY_NAME = {name.lower(): function for name, function in _FUNCTIONS.items()}


def activations_of(
    node: Node, defaults: Sequence[str], directions: int
) -> list[tuple[Activation, ...]]:
    """Return the activation functions of each direction; a cell has a default for each.

    Functions take alphas and betas in order, each only those that it has.

    Raises:
        BraidError: other numbers of functions, or of their numbers, than are asked for.
        UnsupportedError: a function that ONNX does not name.

    """
    count = len(defaults)
    names = node.texts("activations", []) or [*defaults] * directions
    if len(names) != count * directions:
        node.fail(f"{len(names)} activations are named, expected {count * directions}")
    numbers = (_numbers(node, "activation_alpha"), _numbers(node, "activation_beta"))
    functions = [_function(node, name, numbers) for name in names]
    for name, left in zip(("activation_alpha", "activation_beta"), numbers, strict=True):
        if more := len(list(left)):
            node.fail(f"{name} has {more} more than its activations take")
    return [tuple(functions[i * count :][:count]) for i in range(directions)]


def _numbers(node: Node, name: str) -> Iterator[float]:
    return iter(node.numbers(name, ()))


def _function(node: Node, name: str, numbers: Sequence[Iterator[float]]) -> Activation:
    function = _BY_NAME.get(name.lower())
    if function is None:
        node.unsupported(
            f"activation '{name}' is not supported", hint=did_you_mean(name, _FUNCTIONS)
        )
    given: list[float] = []
    for which, default in enumerate(function.defaults):
        number = next(numbers[which], default)
        if number is None:
            attribute = ("activation_alpha", "activation_beta")[which]
            node.fail(f"activation '{name}' needs a number in {attribute}: it has no default")
        given.append(number)
    alpha, beta = (*given, 0.0, 0.0)[:2]
    return lambda b, x: function.build(b, x, alpha, beta)
