"""PyTorch modules as models."""

import sys
from typing import Any

import numpy as np
import pytest

import braid
from braid.support.errors import BraidError


def test_torch_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(BraidError, match=r"(?s)needs torch.*pip install 'braid-compiler\[torch\]'"):
        braid.from_torch(object())


@pytest.fixture(scope="module")
def torch() -> Any:
    pytest.importorskip("onnxscript")
    module = pytest.importorskip("torch")
    module.manual_seed(0)
    return module


@pytest.fixture
def network(torch: Any) -> Any:
    nn = torch.nn
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.Flatten(),
        nn.Dropout(0.5),
        nn.Linear(8 * 6 * 6, 5),
    )


def test_static_shapes(torch: Any, network: Any) -> None:
    x = torch.randn(2, 3, 6, 6)
    assert network.training
    model = braid.compile(braid.from_torch(network, (x,)), jobs=1)
    assert network.training and all(inner.training for inner in network)
    expected = network.eval()(x).detach().numpy()
    np.testing.assert_allclose(model(x), expected, rtol=1e-4, atol=1e-5)


def test_dynamic_shapes(torch: Any, network: Any) -> None:
    x = torch.randn(2, 3, 6, 6)
    proto = braid.from_torch(network, (x,), dynamic_shapes=({0: "rows"},))
    model = braid.compile(proto, shape_bounds={"rows": 4}, jobs=1)
    network.eval()
    for rows in (1, 2, 3, 4):
        x = torch.randn(rows, 3, 6, 6)
        expected = network(x).detach().numpy()
        np.testing.assert_allclose(model(x), expected, rtol=1e-4, atol=1e-5)


def test_keyword_arguments(torch: Any) -> None:
    class Scaled(torch.nn.Module):
        def forward(self, x: Any, *, scale: Any) -> Any:
            return x * scale

    x, scale = torch.randn(2, 3), torch.randn(3)
    model = braid.compile(braid.from_torch(Scaled(), (x,), kwargs={"scale": scale}), jobs=1)
    np.testing.assert_allclose(model(x, scale=scale), x * scale, rtol=1e-6)


def test_what_cannot_be_exported(torch: Any) -> None:
    class Unsupported(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return x if x.sum() > 0 else -x

    with pytest.raises(BraidError, match=r"PyTorch cannot export Unsupported: \S") as caught:
        braid.from_torch(Unsupported(), (torch.ones(3),))
    assert "\n\n" not in caught.value.message


def test_what_is_no_module(torch: Any) -> None:
    with pytest.raises(BraidError, match=r"was given a function, expected a torch.nn.Module"):
        braid.from_torch(lambda x: x, (1,))
