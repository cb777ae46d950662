"""The backend of `torch.compile(model, backend="braid")`, which an entry point names to PyTorch.

AOTAutograd makes graphs of ATen's ops without mutation and aliases; each is compiled when it is
first called, for all sizes where sizes are open, and compared with eager once. Unsupported
subgraphs run in eager mode. Where gradients are needed, the forward graph is compiled and the
backward graph runs in eager.
"""

import logging
import threading
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from importlib import import_module
from typing import Any, cast

import onnx

from braid.compiler import compile as compile_model
from braid.driver.options import CompileOptions
from braid.runtime.model import Model
from braid.support.errors import BraidError, did_you_mean
from braid.support.option_names import with_current_keywords
from braid.torch_comparison import DifferenceError, differing_op, first_difference, random_op
from braid.torch_decompositions import decompositions
from braid.torch_exporter import first_line, in_fresh_thread, proto_of, run_exporter
from braid.torch_graph import Graph, tensor_graph

torch: Any = import_module("torch")  # by name, since checks of types run without it
_boxed = import_module("torch._functorch.aot_autograd").make_boxed_func
_MOST_SIZES = 8
_OWN = ("verify", "freeze")
_OF_GRAPHS = (
    "shapes",
    "dims",
    "constants",
    "shape_buckets",
    "shape_bounds",
    "parameters",
    "load",
)
"""Options of `braid.compile` that PyTorch decides: names and sizes of inputs, weights."""
_log = logging.getLogger("braid.torch")
_told: set[str] = set()
"""The warnings that were given already; each is given once in a process."""


_Sizes = tuple[Any, ...]


class EagerWarning(UserWarning):
    """A graph runs in eager mode, or a request has no effect."""


@dataclass(frozen=True)
class _Settings:
    """The settings that graphs are compiled with: `options` are those of `braid.compile`.

    With `verify`, the first results of a graph are compared with eager; with `freeze`, parameters
    and buffers never change where no gradients are needed.
    """

    options: Mapping[str, Any]
    verify: bool
    freeze: bool


def braid_backend(
    graph: Any,
    inputs: Sequence[Any],
    *,
    options: Mapping[str, Any] | None = None,
    mode: str | None = None,
) -> Callable[..., Any]:
    """Compile a graph of TorchDynamo, as `torch.compile` asks for it.

    `options` are the keywords of `braid.compile`; `verify` (by default True) compares the first
    results of each graph with eager; `freeze` (by default False) takes parameters and buffers for
    constants, which makes faster kernels. A `mode` is Inductor's and has no effect here.

    Raises:
        BraidError: the option or the mode does not exist, or the option does not have this value.

    """
    settings = _settings({} if options is None else options)
    if mode is not None:
        _check_mode(mode)
        _tell_once(f"mode '{mode}' is Inductor's, and has no effect on backend 'braid'")

    def inference(own: Any, fakes: Sequence[Any]) -> Callable[..., Any]:
        frozen = _static_inputs() if settings.freeze else ()
        return _boxed(CompiledGraph(own, fakes, settings, frozen))

    def forward(own: Any, fakes: Sequence[Any]) -> Callable[..., Any]:
        return _boxed(CompiledGraph(own, fakes, settings, ()))

    def backward(own: Any, fakes: Sequence[Any]) -> Callable[..., Any]:
        return _boxed(own.forward)

    backend = import_module("torch._dynamo.backends.common").aot_autograd(
        fw_compiler=forward,
        bw_compiler=backward,
        inference_compiler=inference,
        decompositions=decompositions(),
    )
    return backend(graph, inputs)


def _check_mode(mode: object) -> None:
    """Raise BraidError for a mode that Inductor does not have either."""
    modes = [*import_module("torch._inductor").list_mode_options()]
    if mode not in modes:
        similar = did_you_mean(mode, modes) if isinstance(mode, str) else None
        raise BraidError(
            f"there is no mode {mode!r:.200}, neither of backend 'braid' nor of Inductor",
            hint=similar or f"leave it out; those of Inductor, {', '.join(modes)}, have no effect",
        )


def _settings(options: object) -> _Settings:
    names = [*_OWN, *(e.name for e in fields(CompileOptions) if e.name not in _OF_GRAPHS)]
    if not isinstance(options, Mapping):
        raise BraidError(
            f"options is a {type(options).__name__}, expected the options of backend 'braid' by "
            "name",
            hint="such as options={'threads': 1}",
        )
    options = with_current_keywords(cast(Mapping[str, Any], options))
    for name in cast(Mapping[object, object], options):
        if not isinstance(name, str):
            raise BraidError(
                f"backend 'braid' has no option {name!r:.200}, expected a name",
                hint=f"its options are {', '.join(names)}",
            )
        if name in _OF_GRAPHS:
            raise BraidError(
                f"backend 'braid' has no option '{name}', since PyTorch gives inputs and weights",
                hint="sizes are open with torch.compile(…, dynamic=True), or where "
                "torch._dynamo.mark_dynamic says so",
            )
        if name not in names:
            raise BraidError(
                f"backend 'braid' has no option '{name}'",
                hint=did_you_mean(name, names) or f"its options are {', '.join(names)}",
            )
    for name in _OWN:
        if not isinstance(options.get(name, False), bool):
            raise BraidError(f"option {name} is {options[name]!r:.200}, expected True or False")
    own = {"threads": torch.get_num_threads(), **options}
    kept = {name: value for name, value in own.items() if name not in _OWN}
    if kept.keys() != {"threads"} or kept["threads"] != torch.get_num_threads():
        _check_values(kept)
    return _Settings(kept, bool(options.get("verify", True)), bool(options.get("freeze", False)))


def _check_values(options: Mapping[str, Any]) -> None:
    """Raise BraidError for values that no model is compiled with, which would mean eager."""
    number = onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [1])
    result = onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [1])
    node = onnx.helper.make_node("Neg", ["x"], ["y"])
    graph = onnx.helper.make_graph([node], "options", [number], [result])
    opset = [onnx.helper.make_opsetid("", 18)]
    compile_model(onnx.helper.make_model(graph, opset_imports=opset, ir_version=8), **options)


def _static_inputs() -> Sequence[int]:
    """Return the numbers of the inputs that are parameters or buffers and only read."""
    context = torch._guards.TracingContext.try_get()
    metadata = None if context is None else context.fw_metadata
    if metadata is None:
        return ()
    inputs = cast(Sequence[Any], metadata.input_info)
    return [
        number
        for number in cast(Sequence[int], metadata.static_input_indices)
        if not (inputs[number].mutates_data or inputs[number].mutates_metadata)
    ]


class CompiledGraph:
    """A graph of ATen's ops that is compiled when it is first called.

    It is compiled for all sizes, or where braid cannot do that, for each of the first few sizes.
    """

    def __init__(
        self, graph: Any, fakes: Sequence[Any], settings: _Settings, frozen: Sequence[int]
    ) -> None:
        """Take a graph and `fakes`, its inputs without data; those at `frozen` never change."""
        self._eager = graph
        self._fakes = fakes
        self._settings = settings
        self._frozen = frozen
        self._lock = threading.Lock()
        self._graph: Graph | None = None
        self._exported: Any = None
        self._by_size = False
        self._models: dict[_Sizes, Model | None] = {}  # None for sizes that run in eager

    def __call__(self, *inputs: Any) -> Any:
        """Run the graph on tensors and sizes."""
        key = _sizes_of(inputs) if self._by_size else ()
        if key not in self._models:
            with self._lock:
                key = _sizes_of(inputs) if self._by_size else ()
                if key not in self._models:
                    return self._first(inputs)
        model, graph = self._models[key], self._graph
        if model is None or graph is None:
            return self._eager(*inputs)
        try:
            found = model.run(graph.reals(graph.arguments(inputs)))
        except BraidError as error:  # such as a size that an op of the model does not take
            self._tell(error)
            return self._eager(*inputs)
        return graph.results(inputs, found)

    def _first(self, inputs: Sequence[Any]) -> Any:
        """Compile, compare and decide, for all sizes or for these; return the results."""
        model = None
        try:
            model, results = self._compiled(inputs)
        except Exception as error:  # the exporter, and its callees may raise any exception
            self._tell(error)
            results = self._eager(*inputs)
        self._models[_sizes_of(inputs) if self._by_size else ()] = model
        if not self._by_size:  # nothing more is compiled
            self._exported, self._fakes = None, ()
        return results

    def _tell(self, reason: Exception) -> None:
        """Warn that the graph runs in eager, once for each reason, and log it each time."""
        ops = sum(node.op == "call_function" for node in self._eager.graph.nodes)
        why = reason.message if isinstance(reason, BraidError) else first_line(reason)
        text = f"braid runs a graph of {ops} ops in eager: {why}"
        _log.info("%s", _one_line(text))
        _log.debug("it runs in eager, since this was raised", exc_info=reason)
        _tell_once(text)

    def _compiled(self, inputs: Sequence[Any]) -> tuple[Model | None, Any]:
        """Compile and run; values that are only views are not part of the model.

        Raises BraidError where it cannot be compiled, or then does something else.
        """
        if self._exported is None:
            self._check(inputs)
            graph = tensor_graph(self._eager, self._fakes, inputs, self._frozen)
            if graph is None:
                return None, self._eager(*inputs)
            self._exported, self._graph = _exported(graph, graph.arguments(inputs)), graph
        assert self._graph is not None
        graph, proto = self._graph, proto_of(self._exported)
        given = graph.arguments(inputs)
        model = self._model_of(proto, graph.reals(given))
        found = model.run(graph.reals(given))
        if self._settings.verify:
            expected = graph.module(*given)
            if difference := first_difference(found, expected, given):
                culprit = differing_op(self._exported.exported_program, proto, given)
                raise DifferenceError(
                    f"{difference} where it is compiled"
                    + (f"; the first op that differs is {culprit}" if culprit else "")
                )
        _log.info("compiled a graph for PyTorch: %r", model)
        return model, graph.results(inputs, found)

    def _model_of(self, proto: onnx.ModelProto, given: Sequence[Any]) -> Model:
        """Compile for all sizes, or for those of the arguments. Raises BraidError."""
        options = self._settings.options
        dims = {
            dim.dim_param: size
            for value, x in zip(proto.graph.input, given, strict=True)
            if isinstance(x, torch.Tensor)
            for dim, size in zip(value.type.tensor_type.shape.dim, x.shape, strict=True)
            if dim.dim_param
        }
        if not self._by_size:
            try:
                return compile_model(proto, **options)
            except BraidError as error:
                if not dims:
                    raise
                _log.info("a graph is compiled for each size: %s", _one_line(error.message))
            self._by_size = True
        if len(self._models) >= _MOST_SIZES:
            raise BraidError(f"it is compiled for {_MOST_SIZES} sizes already, at most as many")
        return compile_model(proto, **dict[str, Any](options, dims=dims))

    def _check(self, inputs: Sequence[Any]) -> None:
        """Raise BraidError for graphs that are not to be compiled at all."""
        if (name := random_op(self._eager.graph)) is not None:
            raise BraidError(f"{name} draws random numbers, which only PyTorch's generator has")
        for each in inputs:
            if isinstance(each, torch.Tensor) and each.device.type != "cpu":
                raise BraidError(f"a tensor is on '{each.device}', expected this computer's memory")


def _one_line(text: str) -> str:
    """Return the first line, as a log at level INFO has it."""
    return next(iter(text.splitlines()), "")


def _tell_once(text: str) -> None:
    """Warn, unless that warning was given before in this process."""
    if text not in _told:
        _told.add(text)
        warnings.warn(text, EagerWarning, stacklevel=5)


def _sizes_of(inputs: Sequence[Any]) -> _Sizes:
    """Return the shapes of tensors, and the sizes and other numbers among the inputs."""
    return tuple(tuple(x.shape) if isinstance(x, torch.Tensor) else x for x in inputs)


def _exported(graph: Graph, arguments: Sequence[Any]) -> Any:
    """Export a graph in a thread of its own; raises ExportError.

    Settings of a call for its thread, such as autocast and excluded dispatch keys, must not be
    traced.
    """
    return in_fresh_thread(lambda: run_exporter("the graph", graph.export(arguments)))
