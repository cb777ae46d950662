"""`torch.compile(…, backend="braid")`: what is compiled, what runs in eager, and what is said."""

import copy
import logging
import subprocess
import sys
import warnings
from collections.abc import Iterator
from typing import Any

import pytest

from braid.support.errors import BraidError


@pytest.fixture(scope="module")
def torch() -> Any:
    pytest.importorskip("onnxscript")
    return pytest.importorskip("torch")


@pytest.fixture(autouse=True)
def fresh(torch: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Forget what was compiled, and fail where something runs in eager unless a test expects it."""
    from braid import torch_backend
    from braid.torch_backend import EagerWarning

    torch.manual_seed(0)
    torch.compiler.reset()
    monkeypatch.setattr(torch_backend, "_told", set())
    with warnings.catch_warnings():
        warnings.simplefilter("error", EagerWarning)
        yield


@pytest.fixture
def compiled(caplog: pytest.LogCaptureFixture) -> Any:
    """How many graphs were compiled so far."""
    caplog.set_level(logging.INFO, logger="braid.torch")
    return lambda: sum("compiled a graph" in record.message for record in caplog.records)


@pytest.fixture
def network(torch: Any) -> Any:
    nn = torch.nn
    layers = (nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten())
    return nn.Sequential(*layers, nn.Linear(8 * 36, 5)).eval()


def close(torch: Any, found: Any, expected: Any, tolerance: float = 1e-5) -> None:
    torch.testing.assert_close(found, expected, rtol=tolerance, atol=tolerance)


def test_it_is_registered(torch: Any) -> None:
    assert "braid" in torch._dynamo.list_backends()


def test_braid_does_not_import_it() -> None:
    code = "import braid, sys; braid.compile; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_one_artifact_serves_all_sizes(torch: Any, network: Any, compiled: Any) -> None:
    run = torch.compile(network, backend="braid", dynamic=True)
    with torch.no_grad():
        for batch in (2, 3, 7, 4):
            x = torch.randn(batch, 3, 6, 6)
            close(torch, run(x), network(x))
    assert compiled() == 1


def test_sizes_open_when_they_change(torch: Any, network: Any, compiled: Any) -> None:
    run = torch.compile(network, backend="braid")
    with torch.no_grad():
        for batch in (2, 3, 7, 4):
            x = torch.randn(batch, 3, 6, 6)
            close(torch, run(x), network(x))
    assert compiled() == 2


def test_weights_may_change(torch: Any, network: Any, compiled: Any) -> None:
    run = torch.compile(network, backend="braid")
    x = torch.randn(2, 3, 6, 6)
    with torch.no_grad():
        run(x)
        network[4].weight.data.mul_(2)
        network[1].running_mean.add_(1)
        close(torch, run(x), network(x))
    assert compiled() == 1


def test_what_has_no_code_for_all_sizes_is_compiled_for_each(torch: Any, compiled: Any) -> None:
    network = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.Flatten())
    network.append(torch.nn.Linear(8 * 16, 5)).eval()  # of heights and widths, one alone is right
    run = torch.compile(network, backend="braid", dynamic=True)
    with torch.no_grad():
        for batch in (2, 3, 2, 3):
            x = torch.randn(batch, 3, 6, 6)
            close(torch, run(x), network(x))
    assert compiled() == 2


def test_frozen_weights(
    torch: Any, network: Any, compiled: Any, caplog: pytest.LogCaptureFixture
) -> None:
    run = torch.compile(network, backend="braid", options={"freeze": True}, dynamic=True)
    with torch.no_grad():
        for batch in (2, 5):
            x = torch.randn(batch, 3, 6, 6)
            close(torch, run(x), network(x))
    assert compiled() == 1
    (said,) = [r.message for r in caplog.records if "compiled a graph" in r.message]
    assert said.count("float32[") == 2  # the input and the result: weights are constants


@pytest.mark.parametrize("name", ["float16", "bfloat16"])
def test_narrow_floats(torch: Any, network: Any, compiled: Any, name: str) -> None:
    dtype = getattr(torch, name)
    network.to(dtype)
    with torch.inference_mode():
        x = torch.randn(2, 3, 6, 6, dtype=dtype)
        y = torch.compile(network, backend="braid")(x)
        assert y.dtype == dtype
        close(torch, y, network(x), 2e-2)
    assert compiled() == 1


@pytest.mark.parametrize("inside", [True, False])
def test_autocast(torch: Any, network: Any, compiled: Any, inside: bool) -> None:
    def cast(x: Any) -> Any:
        with torch.autocast("cpu", torch.bfloat16):
            return network(x)

    run = torch.compile(cast if inside else network, backend="braid")
    x = torch.randn(2, 3, 6, 6)
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16, enabled=not inside):
        y = run(x)
    with torch.no_grad():
        expected = cast(x)
    assert y.dtype == expected.dtype == torch.bfloat16
    close(torch, y, expected, 2e-2)
    assert compiled() == 1


def test_graph_breaks(torch: Any, compiled: Any) -> None:
    def function(x: Any) -> Any:
        y = x * 2
        return y + 1 if y.sum() > 0 else y - 1

    run = torch.compile(function, backend="braid")
    for x in (torch.ones(3, 4), -torch.ones(3, 4)):
        close(torch, run(x), function(x))
    assert compiled() == 3


def test_mutation_and_aliases(torch: Any, compiled: Any) -> None:
    def function(x: Any, y: Any) -> Any:
        x.add_(1)
        z = (y * 2).t()
        return x.view(-1), x, z, z[0], y.relu().permute(1, 0), None

    run = torch.compile(function, backend="braid")
    x, y = torch.randn(3, 4), torch.randn(3, 4)
    own = x.clone()
    expected, found = function(own, y), run(x, y)
    close(torch, x, own)
    for one, other in zip(found, expected, strict=True):
        assert one is None if other is None else one.stride() == other.stride()
        close(torch, one, other)
    assert found[1] is x
    found[0][0] = 7  # a view of x
    assert x[0, 0] == 7
    found[3].fill_(5)
    assert (found[2][0] == 5).all()
    assert compiled() == 1


def test_layouts_of_results(torch: Any, compiled: Any) -> None:
    network = torch.nn.Conv2d(3, 8, 3).to(memory_format=torch.channels_last)
    x = torch.randn(2, 3, 6, 6).to(memory_format=torch.channels_last)

    def function(x: Any) -> Any:
        y = network(x)
        return y, y[:, :4]

    with torch.no_grad():
        expected, found = function(x), torch.compile(function, backend="braid")(x)
    for one, other in zip(found, expected, strict=True):
        assert one.stride() == other.stride()
        close(torch, one, other)
    assert compiled() == 1


def test_sizes_as_results_and_inputs(torch: Any, compiled: Any) -> None:
    def function(x: Any, n: int) -> Any:
        return x * n, x.shape[0] * n

    run = torch.compile(function, backend="braid", dynamic=True)
    for rows, n in ((3, 5), (4, 9)):
        x = torch.randn(rows, 2)
        y, size = run(x, n)
        assert size == rows * n
        close(torch, y, x * n)
    assert compiled() == 1


def test_training(torch: Any, compiled: Any) -> None:
    nn = torch.nn
    reference = nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.LayerNorm(8), nn.Linear(8, 2))
    trained = copy.deepcopy(reference)
    run = torch.compile(trained, backend="braid")
    for rows in (3, 4, 5):
        x = torch.randn(rows, 4)
        for module, call in ((reference, reference), (trained, run)):
            optimizer = torch.optim.SGD(module.parameters(), 0.1)
            call(x).square().mean().backward()
            optimizer.step()
            optimizer.zero_grad()
    for one, other in zip(trained.parameters(), reference.parameters(), strict=True):
        close(torch, one, other)
    assert compiled() == 2


def test_what_braid_lacks_runs_in_eager(torch: Any) -> None:
    from braid.torch_backend import EagerWarning

    def function(x: Any) -> Any:
        return torch.linalg.svd(x).S * 2

    x = torch.randn(4, 4)
    with pytest.warns(EagerWarning, match=r"runs a graph of \d+ ops in eager: .*_linalg_svd"):
        close(torch, torch.compile(function, backend="braid")(x), function(x))
    torch.compiler.reset()
    torch.compile(function, backend="braid")(x)  # said once: another warning would be an error


def test_what_the_exporter_gets_wrong_runs_in_eager(torch: Any) -> None:
    from braid.torch_backend import EagerWarning

    def function(x: Any) -> Any:
        return torch.special.erfcx(x) + 1

    run, x = torch.compile(function, backend="braid"), torch.tensor([1.0, 2.0, 12.0])
    with pytest.warns(EagerWarning, match="first op that differs is aten.special_erfcx"):
        close(torch, run(x), function(x))
    close(torch, run(x), function(x))


def test_random_numbers_are_those_of_pytorch(torch: Any) -> None:
    from braid.torch_backend import EagerWarning

    def function(x: Any) -> Any:
        return torch.nn.functional.dropout(x, 0.5) * 2

    run, x = torch.compile(function, backend="braid"), torch.ones(5, 5)
    torch.manual_seed(3)
    with pytest.warns(EagerWarning, match="dropout.* draws random numbers"):
        found = run(x)
    torch.manual_seed(3)
    close(torch, found, function(x))


def test_options(torch: Any, compiled: Any) -> None:
    x = torch.randn(3, 4)
    run = torch.compile(torch.sin, backend="braid", options={"numerics": "strict", "threads": 1})
    close(torch, run(x), x.sin())
    assert compiled() == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"thread": 2}, r"no option 'thread'\n.*did you mean 'threads'"),
        ({"freeze": 1}, "option freeze is 1, expected True or False"),
        ({"threads": -1}, "threads is -1"),
    ],
)
def test_wrong_options(torch: Any, options: Any, message: str) -> None:
    run = torch.compile(torch.cos, backend="braid", options=options)
    with pytest.raises(torch._dynamo.exc.BackendCompilerFailed, match=message) as caught:
        run(torch.ones(3))
    assert isinstance(caught.value.inner_exception, BraidError)
