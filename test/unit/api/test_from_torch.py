"""PyTorch modules as models."""

import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import onnx
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


def test_flags_and_nested_arguments(torch: Any) -> None:
    class Scaled(torch.nn.Module):
        def forward(self, x: Any, times: int, *, late: Any, early: Any, none: Any = None) -> Any:
            return x * times - late["by"] if none is None else x, early * 2

    x, late, early = torch.randn(2, 3), torch.randn(3), torch.randn(2)
    keywords = {"early": early, "late": {"by": late}, "none": None}
    model = braid.compile(braid.from_torch(Scaled(), (x, 3), kwargs=keywords), jobs=1)
    y, twice = model(**{"x": x, "late_by": late, "early": early})
    torch.testing.assert_close(y, x * 3 - late)
    assert torch.equal(twice, early * 2)


def test_what_cannot_be_exported(torch: Any) -> None:
    class Unsupported(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return x if x.sum() > 0 else -x

    with pytest.raises(BraidError, match=r"PyTorch cannot export Unsupported: \S") as caught:
        braid.from_torch(Unsupported(), (torch.ones(3),))
    assert "\n\n" not in caught.value.message


def test_what_is_no_module(torch: Any) -> None:
    with pytest.raises(BraidError, match=r"was given a function, expected a torch.nn.Module or"):
        braid.from_torch(lambda x: x, (1,))


def test_exported_programs(torch: Any, network: Any) -> None:
    x = torch.randn(2, 3, 6, 6)
    batch = torch.export.Dim("batch")
    program = torch.export.export(network.eval(), (x,), dynamic_shapes=({0: batch},))
    model = braid.compile(braid.from_torch(program), jobs=1)
    for rows in (2, 5):
        x = torch.randn(rows, 3, 6, 6)
        torch.testing.assert_close(model(x), network(x).detach(), rtol=1e-4, atol=1e-5)
    with pytest.raises(BraidError, match=r"which already has open dims\n.*torch.export.export"):
        braid.from_torch(program, dynamic_shapes=({0: "batch"},))


def wrongly_exported(torch: Any) -> dict[str, tuple[Any, tuple[Any, ...]]]:
    """Return what `torch.onnx` makes something else of, by the op that it gets wrong."""
    f = torch.nn.functional

    def averaged(x: Any) -> Any:
        return f.avg_pool2d(x * 2, 3, 1, 1, count_include_pad=False, divisor_override=2)

    def normalized(x: Any, mean: Any, variance: Any) -> Any:
        return f.batch_norm(x, mean.clone(), variance.clone(), training=True)

    def scattered(x: Any, indices: Any, source: Any) -> Any:
        return torch.scatter_reduce(x, 0, indices, source, "mean", include_self=True)

    normal = (torch.randn(8, 3) * 5 + 2, torch.zeros(3), torch.ones(3))
    places = torch.tensor([[0, 1], [0, 1]])
    return {
        "avg_pool2d": (averaged, (torch.randn(1, 1, 4, 4),)),
        "_native_batch_norm_legit_functional": (normalized, normal),
        "scatter_reduce": (scattered, (torch.ones(3, 2), places, torch.full((2, 2), 4.0))),
        "special_erfcx": (torch.special.erfcx, (torch.tensor([0.5, 5.0, 12.0]),)),
    }


@pytest.mark.parametrize(
    "op",
    ["avg_pool2d", "_native_batch_norm_legit_functional", "scatter_reduce", "special_erfcx"],
)
def test_what_pytorch_exports_wrongly(torch: Any, op: str) -> None:
    function, args = wrongly_exported(torch)[op]

    class Module(torch.nn.Module):
        def forward(self, *args: Any) -> Any:
            return function(*args)

    with pytest.raises(BraidError, match=rf"the first op that differs is aten\.{op}\.") as caught:
        braid.from_torch(Module(), args)
    assert caught.value.hint and "verify=False" in caught.value.hint
    assert isinstance(braid.from_torch(Module(), args, verify=False), onnx.ModelProto)


def test_comparing_changes_nothing(torch: Any) -> None:
    class Counting(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("calls", torch.zeros(()))

        def forward(self, x: Any) -> Any:
            self.calls += 1
            return x * self.calls

    module, x = Counting(), torch.ones(3)
    with pytest.raises(BraidError, match="writes to buffer 'calls'"):
        braid.from_torch(module, (x,))
    assert module.calls == 0
    assert torch.equal(x, torch.ones(3))


def test_random_results_are_not_compared(torch: Any) -> None:
    class Noisy(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return x + torch.rand_like(x)

    assert isinstance(braid.from_torch(Noisy(), (torch.ones(3),)), onnx.ModelProto)


@pytest.mark.parametrize("name", ["bfloat16", "float16"])
def test_batch_norm_in_narrow_floats(torch: Any, network: Any, name: str) -> None:
    dtype = getattr(torch, name)
    module = network.to(dtype).eval()
    x = torch.randn(2, 3, 6, 6, dtype=dtype)
    proto = braid.from_torch(module, (x,))
    assert {each.data_type for each in proto.graph.initializer if each.data_type != 7} == {
        onnx.helper.np_dtype_to_tensor_dtype(np.dtype(name))
        if name == "float16"
        else onnx.TensorProto.BFLOAT16
    }
    y = braid.compile(proto, jobs=1)(x)
    torch.testing.assert_close(y, module(x).detach(), rtol=2e-2, atol=2e-2)


def test_digits_of_log1p(torch: Any) -> None:
    class Log1p(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return torch.log1p(x)

    x = torch.tensor([1e-30, -3e-8, 2e-5, 0.5, 1e20, float("inf"), -1.0, 0.0])
    y = braid.compile(braid.from_torch(Log1p(), (x,)), jobs=1)(x)
    torch.testing.assert_close(y, torch.log1p(x), rtol=1e-5, atol=0)


def test_floats_and_integers_are_not_mixed(torch: Any) -> None:
    class Deviation(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return torch.masked.std(x, 1)

    x = torch.randn(3, 5)
    y = braid.compile(braid.from_torch(Deviation(), (x,)), jobs=1)(x)
    torch.testing.assert_close(y, torch.masked.std(x, 1), rtol=1e-5, atol=1e-6)


def test_numbers_as_results(torch: Any) -> None:
    class Item(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return x.item()

    x = torch.tensor(2.5)
    assert braid.compile(braid.from_torch(Item(), (x,)), jobs=1)(x) == 2.5


def test_threads_export_one_after_the_other(torch: Any) -> None:
    layers = [torch.nn.Linear(8, 4 + number) for number in range(3)]
    with ThreadPoolExecutor(3) as pool:
        exported = list(pool.map(lambda m: braid.from_torch(m, (torch.ones(2, 8),)), layers))
    widths = [model.graph.output[0].type.tensor_type.shape.dim[1].dim_value for model in exported]
    assert widths == [4, 5, 6]
    assert not torch.compiler.is_compiling() and not torch.compiler.is_exporting()
