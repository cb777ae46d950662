"""`torch.compile(…, backend="braid")`: compiled parts, parts in eager mode, and messages."""

import copy
import logging
import subprocess
import sys
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
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
    torch.compile(function, backend="braid")(x)  # reported once: another warning would be an error


@pytest.mark.parametrize("level", [logging.INFO, logging.DEBUG])
def test_what_runs_in_eager_is_logged_in_one_line(
    torch: Any, caplog: pytest.LogCaptureFixture, level: int
) -> None:
    from braid.torch_backend import EagerWarning

    caplog.set_level(level, logger="braid.torch")
    with pytest.warns(EagerWarning), torch.no_grad():
        torch.compile(torch.linalg.svd, backend="braid")(torch.randn(4, 4))
    said = [record for record in caplog.records if record.name == "braid.torch"]
    told = [record for record in said if record.levelno == logging.INFO]
    assert len(told) == 1 and told[0].exc_info is None
    assert "_linalg_svd" in told[0].message and "\n" not in told[0].message
    traced = [record for record in said if record.exc_info]
    assert [record.levelno for record in traced] == [logging.DEBUG] * (level == logging.DEBUG)


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
        ({1: 2}, r"no option 1, expected a name\n.*its options are verify, "),
        ({None: 2}, r"no option None, expected a name\n"),
        ({("verify",): 2}, r"no option \('verify',\), expected a name\n"),
        (["verify"], r"options is a list, expected .* by name\n.*\{'threads': 1\}"),
        ("verify", r"options is a str, expected .* by name\n.*\{'threads': 1\}"),
    ],
)
def test_wrong_options(torch: Any, options: Any, message: str) -> None:
    run = torch.compile(torch.cos, backend="braid", options=options)
    with pytest.raises(torch._dynamo.exc.BackendCompilerFailed, match=message) as caught:
        run(torch.ones(3))
    assert isinstance(caught.value.inner_exception, BraidError)


def test_wrong_values_of_options_are_errors(torch: Any) -> None:
    for options, message in (
        ({"target": "nope"}, "no target 'nope'"),
        ({"numerics": "exactly"}, "numerics are 'exactly'"),
        ({"passes": "nothing"}, "unknown pass 'nothing'"),
        ({"dims": {"x": 8}}, "no option 'dims', since PyTorch gives inputs"),
        ({"shape_bounds": {"s0": 8}}, "no option 'shape_bounds'"),
    ):
        torch.compiler.reset()
        run = torch.compile(torch.cos, backend="braid", options=options)
        with pytest.raises(torch._dynamo.exc.BackendCompilerFailed, match=message):
            run(torch.ones(3))


def test_a_mode_has_no_effect(torch: Any, compiled: Any) -> None:
    from braid.torch_backend import EagerWarning

    run, x = torch.compile(torch.cos, backend="braid", mode="max-autotune"), torch.ones(3)
    with pytest.warns(EagerWarning, match="mode 'max-autotune' is Inductor's"):
        close(torch, run(x), x.cos())
    assert compiled() == 1


@pytest.mark.parametrize(
    ("mode", "message"),
    [
        ("foo", r"there is no mode 'foo', .*\n.*leave it out; .* default, .*max-autotune"),
        ("max_autotune", r"there is no mode 'max_autotune', .*\n.*did you mean 'max-autotune'"),
        (3, r"there is no mode 3, .*\n.*leave it out"),
    ],
)
def test_wrong_modes(torch: Any, mode: Any, message: str) -> None:
    run = torch.compile(torch.cos, backend="braid", mode=mode)
    with pytest.raises(torch._dynamo.exc.BackendCompilerFailed, match=message) as caught:
        run(torch.ones(3))
    assert isinstance(caught.value.inner_exception, BraidError)


def test_all_modes_of_inductor_are_taken(torch: Any, compiled: Any) -> None:
    from braid.torch_backend import EagerWarning

    for mode in ("reduce-overhead", "max-autotune-no-cudagraphs"):
        torch.compiler.reset()
        with pytest.warns(EagerWarning, match=f"mode '{mode}' is Inductor's"):
            torch.compile(torch.cos, backend="braid", mode=mode)(torch.ones(3))
    torch.compiler.reset()
    torch.compile(torch.cos, backend="braid", mode="default")(torch.ones(3))  # says nothing
    assert compiled() == 3


def test_frozen_buffers_that_the_graph_writes(torch: Any, compiled: Any) -> None:
    network, expected = torch.nn.BatchNorm2d(3), torch.nn.BatchNorm2d(3)
    run = torch.compile(network, backend="braid", options={"freeze": True})
    with torch.no_grad():
        for _ in range(4):
            x = torch.randn(2, 3, 4, 4)
            close(torch, run(x), expected(x))
        assert network.num_batches_tracked == 4
        network.eval(), expected.eval()
        close(torch, run(x), expected(x))
    assert compiled() == 2


def attention(torch: Any) -> Any:
    return torch.nn.functional.scaled_dot_product_attention


@pytest.mark.parametrize("name", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("case", ["plain", "causal", "mask", "bools", "rows", "scale", "groups"])
def test_attention(torch: Any, compiled: Any, name: str, case: str) -> None:
    dtype = getattr(torch, name)
    q = torch.randn(2, 4, 5, 8, dtype=dtype)
    k, v = torch.randn(2, 2, 4, 7, 8, dtype=dtype)
    bools = torch.rand(2, 1, 5, 7) > 0.3
    if case == "rows":  # one that sees no key
        bools[0, 0, 2] = False
    options: dict[str, Any] = {
        "plain": {},
        "causal": {"is_causal": True},
        "mask": {"attn_mask": torch.randn(5, 7, dtype=dtype)},
        "bools": {"attn_mask": bools},
        "rows": {"attn_mask": bools},
        "scale": {"scale": 0.3},
        "groups": {"enable_gqa": True},
    }[case]
    if case == "groups":
        k, v = k[:, :2], v[:, :2]

    def function(q: Any, k: Any, v: Any) -> Any:
        return attention(torch)(q, k, v, **options).transpose(1, 2).flatten(2)

    tolerance = {"float32": 1e-5, "float16": 2e-3, "bfloat16": 2e-2}[name]
    with torch.no_grad():
        found = torch.compile(function, backend="braid")(q, k, v)
    close(torch, found, function(q, k, v), tolerance)
    assert compiled() == 1


@pytest.mark.parametrize("case", ["plain", "causal", "rows"])
def test_gradients_of_attention(torch: Any, compiled: Any, case: str) -> None:
    mask = torch.zeros(5, 5)
    mask[2] = -torch.inf
    options = {"plain": {}, "causal": {"is_causal": True}, "rows": {"attn_mask": mask}}[case]

    def function(q: Any, k: Any, v: Any) -> Any:
        return attention(torch)(q, k, v, **options)

    given = torch.randn(3, 2, 4, 5, 8)
    gradients = []
    for run in (torch.compile(function, backend="braid", options={"verify": False}), function):
        tensors = [each.clone().requires_grad_() for each in given]
        run(*tensors).square().sum().backward()
        gradients.append([each.grad for each in tensors])
    close(torch, *gradients, 1e-4)
    assert compiled() == 1


@pytest.mark.parametrize("batch_first", [True, False])
@pytest.mark.parametrize("norm_first", [True, False])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_layers_of_transformers(
    torch: Any, compiled: Any, batch_first: bool, norm_first: bool, activation: str
) -> None:
    options = {"batch_first": batch_first, "norm_first": norm_first, "activation": activation}
    encoder = torch.nn.TransformerEncoderLayer(16, 2, 32, **options).eval()
    decoder = torch.nn.TransformerDecoderLayer(16, 2, 32, **options).eval()
    x, memory = torch.randn(2, 5, 16), torch.randn(2, 5, 16)
    with torch.no_grad():
        close(torch, torch.compile(encoder, backend="braid")(x), encoder(x))
        found = torch.compile(decoder, backend="braid")(x, memory)
        close(torch, found, decoder(x, memory))
    assert compiled() == 2


@pytest.mark.parametrize("case", ["rows", "keys", "both"])
def test_masks_of_layers(torch: Any, compiled: Any, case: str) -> None:
    layer = torch.nn.TransformerEncoderLayer(16, 2, 32, batch_first=True).eval()
    causal = torch.ones(5, 5, dtype=torch.bool).triu(1)
    padding = torch.zeros(2, 5, dtype=torch.bool)
    padding[1, 3:] = True
    rows, keys = {"src_mask": causal}, {"src_key_padding_mask": padding}
    masks = {"rows": rows, "keys": keys, "both": {**rows, **keys}}[case]

    def function(x: Any) -> Any:
        return layer(x, **masks)

    x = torch.randn(2, 5, 16)
    with torch.no_grad():
        close(torch, torch.compile(function, backend="braid")(x), function(x))
    assert compiled() == 1


@pytest.mark.parametrize("average", [True, False])
def test_weights_of_attention(torch: Any, compiled: Any, average: bool) -> None:
    layer = torch.nn.MultiheadAttention(16, 2, batch_first=True).eval()

    def function(x: Any) -> Any:
        return layer(x, x, x, average_attn_weights=average)

    x = torch.randn(2, 5, 16)
    with torch.no_grad():
        for one, other in zip(
            torch.compile(function, backend="braid")(x), function(x), strict=True
        ):
            close(torch, one, other)
    assert compiled() == 1


def test_dropout_that_leaves_nothing_out(torch: Any, compiled: Any) -> None:
    def function(x: Any) -> Any:
        return torch.nn.functional.dropout(x, 0.0) + torch.nn.functional.dropout(x, 0.5, False)

    x = torch.randn(3, 4)
    close(torch, torch.compile(function, backend="braid")(x), 2 * x)
    assert compiled() == 1


def test_results_without_elements(torch: Any) -> None:
    found = torch.compile(lambda x: x + 1, backend="braid")(torch.randn(0, 4))
    assert found.shape == (0, 4) and found.stride() == (4, 1)


def test_threads_compile_one_after_the_other(torch: Any, compiled: Any) -> None:
    layers = [torch.nn.Linear(8, 4 + number) for number in range(3)]
    runs = [torch.compile(layer, backend="braid", dynamic=True) for layer in layers]
    x = torch.randn(2, 8)

    def work(number: int) -> Any:
        with torch.no_grad():
            return runs[number](x)

    with ThreadPoolExecutor(3) as pool:
        for found, layer in zip(pool.map(work, range(3)), layers, strict=True):
            close(torch, found, layer(x))
    assert not torch.compiler.is_compiling()
    work(0), work(1), work(2)  # one that waited for another's tracing ran in eager mode
    assert compiled() == 3


def test_a_model_that_gives_a_constant_of_another(torch: Any, compiled: Any) -> None:
    inner = torch.compile(torch.cos, backend="braid")

    @torch.compiler.assume_constant_result
    def constant() -> Any:
        return inner(torch.ones(3))

    def function(x: Any) -> Any:
        return x + constant()

    x = torch.randn(3)
    found = torch.compile(function, backend="braid")(x)
    close(torch, found, x + torch.ones(3).cos())


def test_results_that_are_rounding_alone(torch: Any, compiled: Any) -> None:
    nn = torch.nn
    norms = nn.Sequential(nn.Linear(16, 32), nn.LayerNorm(32), nn.LayerNorm(32))
    torch.compile(norms, backend="braid")(torch.randn(8, 16)).sum().backward()
    with torch.no_grad():
        run = torch.compile(lambda x: 1 - x.softmax(-1).sum(-1), backend="braid")
        run(torch.randn(8, 16))
    assert compiled() == 2
