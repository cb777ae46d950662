"""Typical mistakes with PyTorch: each message has the expected and actual values, and the way
out."""

from collections.abc import Callable
from typing import Any, cast

import numpy as np
import pytest

import braid

torch = pytest.importorskip("torch")
pytest.importorskip("onnxscript")

from test.unit.api.test_mistakes import message_of  # noqa: E402


class Net(torch.nn.Module):
    """A linear layer."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(8, 4)

    def forward(self, x: Any) -> Any:
        return self.layer(x)


class Branching(Net):
    """A branch on data."""

    def forward(self, x: Any) -> Any:
        return self.layer(x) if x.sum() > 0 else x


@pytest.fixture(scope="module")
def model() -> braid.Model:
    return braid.compile(braid.from_torch(Net(), (torch.ones(2, 8),)))


X = torch.ones(2, 8)
EXPORTS: dict[str, tuple[Callable[[], object], str]] = {
    "a function": (
        lambda: braid.from_torch(torch.relu, (X,)),
        r"was given a .*, expected a torch.nn.Module or an ExportedProgram\nhint: give functions",
    ),
    "a class": (
        lambda: braid.from_torch(Net, (X,)),
        r"was given a type, expected a torch.nn.Module or an ExportedProgram\nhint: ",
    ),
    "no example inputs": (lambda: braid.from_torch(Net()), r"cannot export Net: .*\nhint: .*args"),
    "one tensor in place of a tuple": (
        lambda: braid.from_torch(Net(), cast(Any, X)),
        r"args is a Tensor, expected a tuple of example inputs\nhint: such as \(x,\)",
    ),
    "example inputs of another size": (
        lambda: braid.from_torch(Net(), (torch.ones(2, 7),)),
        r"cannot export Net: .*\nhint: ",
    ),
    "a branch on data": (
        lambda: braid.from_torch(Branching(), (X,)),
        r"cannot export Branching: .*\nhint: ",
    ),
    "a misspelled keyword": (
        lambda: cast(Any, braid.from_torch)(Net(), (X,), verfy=True),
        r"braid.from_torch has no option 'verfy'\nhint: did you mean 'verify'",
    ),
    "a dim of fixed size that is to be open": (
        lambda: braid.from_torch(Net(), (X,), dynamic_shapes=({1: "n"},)),
        r"conflicts between .*: - .*static shape of 8 .*\nhint: ",
    ),
    "dims of a program": (
        lambda: braid.from_torch(torch.export.export(Net(), (X,)), dynamic_shapes=({0: "n"},)),
        r"dynamic_shapes is given for an ExportedProgram.*\nhint: give dynamic_shapes to torch.exp",
    ),
    "a module that is compiled": (
        lambda: braid.compile(cast(Any, Net())),
        r"a model cannot be read from a Net\nhint: .*braid.from_torch takes modules of PyTorch",
    ),
}

CALLS: dict[str, tuple[Callable[[braid.Model], object], str]] = {
    "another type": (
        lambda m: m(X.double()),
        r"input 'x' has dtype float64, expected float32\nhint: .*tensor with .to\(torch.float32\)",
    ),
    "another shape": (
        lambda m: m(X.T),
        r"'x' has shape \(8, 2\), expected \(2, 8\)\nhint: .*trans",
    ),
    "a buffer that needs a gradient": (
        lambda m: m(X, out=torch.empty(2, 4, requires_grad=True)),
        r"the buffer for output .* gradient",
    ),
    "a sparse tensor": (lambda m: m(X.to_sparse()), r"input 'x' is a Tensor that is not an array"),
    "a buffer of another shape": (
        lambda m: m(X, out=torch.empty(2, 5)),
        r"the buffer for output .* has shape \(2, 5\), expected \(2, 4\)\nhint: give np.empty",
    ),
}


@pytest.mark.parametrize("name", EXPORTS)
def test_exporting(name: str) -> None:
    message_of(*EXPORTS[name])


@pytest.mark.parametrize("name", CALLS)
def test_calling(name: str, model: braid.Model) -> None:
    call, expected = CALLS[name]
    message_of(lambda: call(model), expected)


def test_a_tensor_with_a_gradient_is_taken(model: braid.Model) -> None:
    result = model(torch.ones(2, 8, requires_grad=True))
    assert isinstance(result, torch.Tensor) and not result.requires_grad
    assert np.shape(result) == (2, 4)
