"""Modules that `from_torch` refuses since a model cannot express them, with hints."""

from collections.abc import Callable
from typing import Any, cast

import numpy as np
import onnx
import pytest

import braid

torch = pytest.importorskip("torch")
pytest.importorskip("onnxscript")

from test.unit.api.test_mistakes import message_of  # noqa: E402

X = torch.ones(2, 8)


class Called(torch.nn.Module):
    """A function as a module."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Any) -> Any:
        return self.function(x)


class Counting(torch.nn.Module):
    """A buffer, or a parameter, that each call adds to."""

    def __init__(self, kind: str, read: bool) -> None:
        super().__init__()
        self.read = read
        if kind == "parameter":
            self.calls = torch.nn.Parameter(torch.zeros(8), requires_grad=False)
        else:
            self.register_buffer("calls", torch.zeros(8), persistent=kind == "buffer")

    def forward(self, x: Any) -> Any:
        self.calls.add_(1)
        return x + self.calls if self.read else x * 2


@pytest.mark.parametrize("read", [True, False])
@pytest.mark.parametrize("kind", ["buffer", "parameter", "buffer that is not saved"])
@pytest.mark.parametrize("verify", [True, False])
def test_writes_to_a_tensor_of_the_module(kind: str, read: bool, verify: bool) -> None:
    module, what = Counting(kind, read), kind.split()[0]
    for given in (module, torch.export.export(module, (X,))):
        message_of(
            lambda given=given: braid.from_torch(given, (X,), verify=verify),
            rf"writes to {what} 'calls', which a model .*\nhint: return .*torch\.compile",
        )
    assert (module.calls == 0).all()


@pytest.mark.parametrize("kind", ["buffer", "parameter"])
def test_torch_compile_writes_them(kind: str) -> None:
    torch.compiler.reset()
    module, expected = Counting(kind, True), Counting(kind, True)
    run = torch.compile(module, backend="braid")
    with torch.no_grad():
        for _ in range(3):
            assert torch.equal(run(X), expected(X))
    assert torch.equal(module.calls, expected.calls) and module.calls[0] == 3


class Assigning(torch.nn.Module):
    """A tensor that is no buffer, which each call assigns anew."""

    def __init__(self, read: bool) -> None:
        super().__init__()
        self.read, self.last = read, torch.zeros(8)

    def forward(self, x: Any) -> Any:
        self.last = (self.last if self.read else x[0]) + 1
        return x + self.last


def test_a_tensor_that_is_assigned() -> None:
    module = torch.nn.Sequential(Assigning(True))
    message_of(
        lambda: braid.from_torch(module, (X,)),
        r"Sequential assigns the tensor '0.last' that it reads, .*\nhint: return .*torch\.compile",
    )
    assert (module[0].last == 0).all()
    module = Assigning(False)  # whose calls do not depend on each other
    assert braid.from_torch(module, (X,)).graph.output
    assert (module.last == 0).all() and module.training


WRITES: dict[str, Callable[[Any], Any]] = {
    "all of it": lambda x: (x.mul_(2), x + 1)[1],
    "a part": lambda x: (x[0].mul_(2), x + 1)[1],
    "what is returned": lambda x: x.mul_(2),
}


@pytest.mark.parametrize("name", WRITES)
def test_writes_to_an_input(name: str) -> None:
    module, x = Called(WRITES[name]), torch.ones(2, 8)
    message_of(lambda: braid.from_torch(module, (x,)), r"writes to input 'x', .*\nhint: return")
    assert (x == 1).all()


def test_writes_to_a_nested_input() -> None:
    module = Called(lambda x: (x["a"].mul_(2), x["a"] + 1)[1])
    message_of(lambda: braid.from_torch(module, ({"a": X},)), r"writes to input 'x_a', ")


def test_batch_norm_writes_while_it_trains_alone() -> None:
    norm = torch.nn.BatchNorm1d(8)
    proto = braid.from_torch(norm, (X,))
    assert isinstance(proto, onnx.ModelProto) and norm.num_batches_tracked == 0
    message_of(
        lambda: braid.from_torch(torch.export.export(norm, (X,))),
        r"'running_mean', buffer 'running_var' and buffer 'num_batches_tracked', .*\nhint: .*eval",
    )
    assert braid.from_torch(torch.export.export(norm.eval(), (X,))).graph.output


RESULTS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "an int": (lambda x: (x * 2, 3), r"result\[1\] of .* is 3, .*\nhint: .*torch.tensor\(3\)"),
    "a float": (lambda x: (x * 2, 3.5), r"result\[1\] of .* is 3.5, .*\nhint: .*tensor\(3.5\)"),
    "a bool": (lambda x: (True, x * 2), r"result\[0\] of .* is True, expected a tensor"),
    "text": (lambda x: (x * 2, "a"), r"result\[1\] of .* is 'a', expected a tensor\nhint: leave"),
    "a size": (
        lambda x: (x * 2, x.shape[0]),
        r"result\[1\] of .* is 2, .*\nhint: .*dynamic_shapes",
    ),
    "nested": (lambda x: {"a": [x, {"b": 3}]}, r"result\['a'\]\[1\]\['b'\] of .* is 3, expected"),
    "alone": (lambda x: 3, r"result of .* is 3, expected a tensor"),
    "None alone": (lambda x: None, r"no result is a tensor, .*\nhint: return what"),
    "nothing": (lambda x: (), r"no result is a tensor, .*\nhint: return what"),
}


@pytest.mark.parametrize("name", RESULTS)
def test_results_that_are_no_tensors(name: str) -> None:
    function, message = RESULTS[name]
    module = Called(function)
    message_of(lambda: braid.from_torch(module, (X,)), message)
    program = torch.export.export(module, (X,))
    message_of(lambda: braid.from_torch(program), message)


def test_a_result_of_a_type_that_pytorch_does_not_know() -> None:
    module = Called(lambda x: (x * 2, x.dtype))
    message_of(lambda: braid.from_torch(module, (X,)), r"result\[1\] of Called is of type dtype, ")


def test_results_that_are_none_or_inputs() -> None:
    module = Called(lambda x: (x, None, {"y": x + 1}))
    for given in (module, torch.export.export(module, (X,))):
        same, more = braid.compile(braid.from_torch(given, (X,)), jobs=1)(X)
        assert torch.equal(same, X) and torch.equal(more, X + 1)


def test_sizes_that_are_open_are_results() -> None:
    module = Called(lambda x: (x * 2, x.shape[0]))
    proto = braid.from_torch(module, (X,), dynamic_shapes=({0: "n"},))
    assert len(proto.graph.output) == 2


class Keyed(torch.nn.Module):
    """A dict for the last input."""

    def forward(self, *given: Any) -> Any:
        return given[-1]["a"] + given[-1]["b"]


def test_a_dict_at_the_end_is_an_input() -> None:
    for args in (({"a": X, "b": X},), (X, {"a": X, "b": X})):
        proto = braid.from_torch(Keyed(), args)
        assert len(proto.graph.input) >= 2
    module = Called(lambda x: x["a"] + x["b"])
    proto = braid.from_torch(
        module, ({"a": X, "b": X},), dynamic_shapes=({"a": {0: "n"}, "b": {0: "n"}},)
    )
    x = torch.ones(5, 8)
    assert torch.equal(braid.compile(proto, jobs=1)(x, x), x + x)


class Scaled(torch.nn.Module):
    """Inputs by position and by keyword, some of them nested."""

    def forward(self, x: Any, times: int, *, late: Any, early: Any) -> Any:
        return x * times + late["by"] + early


KEYWORDS = {"late": {"by": X}, "early": X}
INPUTS: dict[str, tuple[tuple[Any, ...], dict[str, Any], str]] = {
    "another size": (
        (X[:1], 3),
        KEYWORDS,
        r"args\[0\] has shape \(1, 8\), expected \(2, 8\)\nhint: l",
    ),
    "another rank": (
        (X[0], 3),
        KEYWORDS,
        r"args\[0\] has shape \(8,\), expected \(2, 8\)\nhint: leave",
    ),
    "another type": (
        (X.double(), 3),
        KEYWORDS,
        r"args\[0\] has dtype float64, expected float32\nhint",
    ),
    "another flag": (
        (X, 4),
        KEYWORDS,
        r"args\[1\] is 4, expected 3, which the program was exported",
    ),
    "a number": ((3, 3), KEYWORDS, r"args\[0\] is 3, expected a tensor\nhint: "),
    "too many": (
        (X, 3, X),
        KEYWORDS,
        r"args has 3 inputs, expected the 2 that .*\nhint: leave args",
    ),
    "too few": ((X,), KEYWORDS, r"args has 1 inputs, expected the 2 that .*\nhint: leave args"),
    "another keyword": (
        (X, 3),
        {"late": {"by": X}, "erly": X},
        r"kwargs\['erly'\] is given, which is no input of the program\nhint: did you .*'early'",
    ),
    "a missing keyword": (
        (X, 3),
        {"late": {"by": X}},
        r"kwargs\['early'\] is not given, which is an input of the program\nhint: leave args",
    ),
    "another nested size": (
        (X, 3),
        {"late": {"by": X[:1]}, "early": X},
        r"kwargs\['late'\]\['by'\] has shape \(1, 8\), expected \(2, 8\)\nhint: ",
    ),
}


@pytest.fixture(scope="module")
def program() -> Any:
    return torch.export.export(Scaled(), (X, 3), KEYWORDS)


@pytest.mark.parametrize("name", INPUTS)
@pytest.mark.parametrize("verify", [True, False])
def test_inputs_that_a_program_does_not_take(program: Any, name: str, verify: bool) -> None:
    args, kwargs, message = INPUTS[name]
    message_of(lambda: braid.from_torch(program, args, kwargs=kwargs, verify=verify), message)


def test_inputs_that_a_program_takes(program: Any) -> None:
    swapped = dict(reversed(KEYWORDS.items()))
    assert braid.from_torch(program, (X, 3), kwargs=swapped).graph.output
    assert braid.from_torch(program).graph.output


def test_open_dims_of_a_program() -> None:
    n = torch.export.Dim("n", max=9)
    both = {"late": {"by": X}, "early": torch.ones(8)}
    dims = {"x": {0: n}, "times": None, "late": {"by": {0: n}}, "early": None}
    program = torch.export.export(Scaled(), (X, 3), both, dynamic_shapes=dims)

    def export(rows: int, others: int) -> Any:
        keywords = {"late": {"by": torch.ones(others, 8)}, "early": torch.ones(8)}
        return braid.from_torch(program, (torch.ones(rows, 8), 3), kwargs=keywords)

    assert export(5, 5).graph.output
    message_of(lambda: export(10, 10), r"args\[0\] has size 10 in dim 0, expected \d+ to 9")
    message_of(lambda: export(5, 6), r"\['by'\] has size 6 in dim 0, expected 5, as args\[0\]")


def exported(**options: Any) -> Callable[[], object]:
    return lambda: cast(Any, braid.from_torch)(Called(torch.relu), **{"args": (X,), **options})


VALUES: dict[str, tuple[Callable[[], object], str]] = {
    "verify as text": (exported(verify="x"), r"verify is 'x', expected True or False\nhint: "),
    "verify as None": (exported(verify=None), r"verify is None, expected True or False\nhint: "),
    "opset as text": (
        exported(opset="x"),
        r"opset is 'x', expected a whole number from 1 to .*\nh",
    ),
    "opset as bool": (exported(opset=True), r"opset is True, expected a whole number from 1 to"),
    "an opset of the future": (exported(opset=999), r"opset is 999, expected .* from 1 to"),
    "an old opset": (
        exported(opset=3),
        r"PyTorch exports it in opset 18, .* opset 3\nhint: give opset",
    ),
    "dims as a number": (exported(dynamic_shapes=3), r"dynamic_shapes is 3, .*\nhint: such as dyn"),
    "no such dim": (
        exported(dynamic_shapes=({5: "n"},)),
        r"dynamic_shapes\[0\] opens dim 5 of a tensor of shape \(2, 8\), expected from 0 to 1\n",
    ),
    "a dim from behind": (
        exported(dynamic_shapes=({-2: "n"},)),  # which PyTorch takes, and does not open
        r"dynamic_shapes\[0\] opens dim -2 of a tensor of .*, expected from 0 to 1\nhint: dims are",
    ),
    "a dim by name": (
        exported(dynamic_shapes={"x": {"0": "n"}}),
        r"dynamic_shapes\['x'\] opens .*'0'",
    ),
    "a nested dim": (
        exported(args=({"a": X},), dynamic_shapes=({"a": {2: "n"}},)),
        r"dynamic_shapes\[0\]\['a'\] opens dim 2 ",
    ),
    "dims of a scalar": (
        exported(args=(torch.tensor(1.0),), dynamic_shapes=({0: "n"},)),
        r"opens dim 0 of a tensor of shape \(\), expected none",
    ),
    "a name in place of dims": (
        exported(dynamic_shapes=("n",)),
        r"dynamic_shapes\[0\] is 'n', expected",
    ),
    "too few dims": (
        exported(dynamic_shapes=(("n",),)),
        r"\[0\] has 1 elements, expected .* 2 dims",
    ),
    "dims of no input": (
        exported(dynamic_shapes={"xs": {0: "n"}}),
        r"'xs', which is no input\nhint: ",
    ),
    "too many inputs": (
        exported(dynamic_shapes=({0: "n"}, None)),
        r"dynamic_shapes has 2 elements, expected one for each of x\nhint: give None",
    ),
    "an array": (
        exported(args=(X.numpy(),)),
        r"args\[0\] is a numpy array, expected a tensor\nhint: give torch.from_numpy\(",
    ),
    "a nested array": (
        exported(args=({"a": [X.numpy()]},)),
        r"args\[0\]\['a'\]\[0\] is a numpy array",
    ),
    "a number of numpy": (
        exported(args=(np.float32(3),)),
        r"args\[0\] is numpy's float32, expected",
    ),
    "an array by keyword": (
        exported(args=(), kwargs={"x": X.numpy()}),
        r"kwargs\['x'\] is a numpy array, expected a tensor\nhint: ",
    ),
    "a number for a keyword": (
        exported(kwargs={3: X}),
        r"kwargs has 3 for a name, expected .*\nhint: ",
    ),
}


@pytest.mark.parametrize("name", VALUES)
def test_values(name: str) -> None:
    message_of(*VALUES[name])
