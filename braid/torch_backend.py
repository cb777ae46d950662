"""The backend of `torch.compile(model, backend="braid")`, which an entry point names to PyTorch.

AOTAutograd makes graphs of ATen's ops without mutation and aliases; each is compiled when it is
first called, for all sizes where sizes are open, and compared with eager once. What cannot be
compiled runs in eager. Where gradients are needed, the forward graph is compiled and the backward
graph runs in eager.
"""

import logging
import threading
import warnings
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields
from typing import Any, cast

import torch
from torch._decomp import get_decompositions
from torch._dynamo.backends.common import aot_autograd
from torch._functorch.aot_autograd import make_boxed_func

from braid.compiler import compile as compile_model
from braid.driver.options import CompileOptions
from braid.runtime.model import Model
from braid.support.errors import BraidError, did_you_mean
from braid.torch_comparison import DifferenceError, differing_op, first_difference, random_op
from braid.torch_export import first_line, proto_of, run_exporter
from braid.torch_graph import Graph, tensor_graph

_aten = torch.ops.aten
_DECOMPOSED = [
    _aten._native_batch_norm_legit,
    _aten._native_batch_norm_legit_functional,
    _aten.native_batch_norm,
]
"""What the exporter translates wrongly while it trains, and PyTorch expresses by other ops."""
_OWN = ("verify", "freeze")
_log = logging.getLogger("braid.torch")
_told: set[str] = set()
"""What was said already; each is said once in a process."""


class EagerWarning(UserWarning):
    """A graph, or what `torch.compile` makes of it, runs in eager."""


@dataclass(frozen=True)
class _Settings:
    """How graphs are compiled: `options` are those of `braid.compile`.

    With `verify`, the first results of a graph are compared with eager; with `freeze`, parameters
    and buffers never change where no gradients are needed.
    """

    options: Mapping[str, Any]
    verify: bool
    freeze: bool


def braid_backend(
    graph: Any, inputs: Sequence[Any], *, options: Mapping[str, Any] | None = None
) -> Callable[..., Any]:
    """Compile a graph of TorchDynamo, as `torch.compile` asks for it.

    `options` are the keywords of `braid.compile`; `verify` (by default True) compares the first
    results of each graph with eager; `freeze` (by default False) takes parameters and buffers for
    constants, which makes faster kernels.

    Raises:
        BraidError: there is no such option.

    """
    settings = _settings(options or {})
    frozen: Sequence[int] = ()

    def inference(own: Any, fakes: Sequence[Any]) -> Callable[..., Any]:
        still = _static_inputs() if settings.freeze else frozen
        return make_boxed_func(CompiledGraph(own, fakes, settings, still))

    def forward(own: Any, fakes: Sequence[Any]) -> Callable[..., Any]:
        return make_boxed_func(CompiledGraph(own, fakes, settings, frozen))

    def backward(own: Any, fakes: Sequence[Any]) -> Callable[..., Any]:
        return make_boxed_func(own.forward)

    backend = aot_autograd(
        fw_compiler=forward,
        bw_compiler=backward,
        inference_compiler=inference,
        decompositions=get_decompositions(_DECOMPOSED),
    )
    return backend(graph, inputs)


def _settings(options: Mapping[str, Any]) -> _Settings:
    names = [*_OWN, *(each.name for each in fields(CompileOptions))]
    for name in options:
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
    CompileOptions(**kept).check()
    return _Settings(kept, bool(options.get("verify", True)), bool(options.get("freeze", False)))


def _static_inputs() -> Sequence[int]:
    """The numbers of the inputs that are parameters or buffers, in the graph at hand."""
    context = torch._guards.TracingContext.try_get()
    metadata = None if context is None else context.fw_metadata
    return () if metadata is None else cast(Sequence[int], metadata.static_input_indices)


class CompiledGraph:
    """A graph of ATen's ops that is compiled when it is first called."""

    def __init__(
        self, graph: Any, fakes: Sequence[Any], settings: _Settings, frozen: Sequence[int]
    ) -> None:
        """`fakes` are its inputs without data, of which those at `frozen` never change."""
        self._eager = graph
        self._fakes = fakes
        self._settings = settings
        self._frozen = frozen
        self._lock = threading.Lock()
        self._graph: Graph | None = None
        self._model: Model | None = None
        self._decided = False

    def __call__(self, *inputs: Any) -> Any:
        """Run the graph on tensors and sizes."""
        if not self._decided:
            with self._lock:
                if not self._decided:
                    try:
                        return self._first(inputs)
                    finally:
                        self._decided = True
        if self._model is None or self._graph is None:
            return self._eager(*inputs)
        given = self._graph.arguments(inputs)
        return self._graph.results(inputs, self._model.run(self._graph.reals(given)))

    def _first(self, inputs: Sequence[Any]) -> Any:
        """Compile, compare and decide; return the results."""
        ops = sum(node.op == "call_function" for node in self._eager.graph.nodes)
        try:
            return self._compiled(inputs)
        except Exception as error:  # the exporter, and what it calls, raise whatever they do
            self._graph = self._model = None
            text = error.message if isinstance(error, BraidError) else first_line(error)
            _tell(f"braid runs a graph of {ops} ops in eager: {text}", error)
        return self._eager(*inputs)

    def _compiled(self, inputs: Sequence[Any]) -> Any:
        """Compile and run. Raises BraidError where that cannot be, or does something else."""
        self._check(inputs)
        graph = tensor_graph(self._eager, self._fakes, inputs, self._frozen)
        if graph is None:
            return self._eager(*inputs)
        with ThreadPoolExecutor(1) as fresh:
            # What a call has set for its thread, such as autocast and which keys dispatch leaves
            # out, is not to be in what is traced.
            exported = fresh.submit(lambda: run_exporter("the graph", graph.export())).result()
        proto = proto_of(exported)
        model = compile_model(proto, **self._settings.options)
        given = graph.arguments(inputs)
        found = model.run(graph.reals(given))
        if self._settings.verify:
            expected = graph.module(*given)
            if difference := first_difference(found, expected):
                culprit = differing_op(exported.exported_program, proto, given)
                raise DifferenceError(
                    f"{difference} where it is compiled"
                    + (f"; the first op that differs is {culprit}" if culprit else "")
                )
        self._graph, self._model = graph, model
        _log.info("compiled a graph for PyTorch: %r", model)
        return graph.results(inputs, found)

    def _check(self, inputs: Sequence[Any]) -> None:
        """Raises BraidError for what is not to be compiled at all."""
        if (name := random_op(self._eager.graph)) is not None:
            raise BraidError(f"{name} draws random numbers, which only PyTorch's generator has")
        for each in inputs:
            if isinstance(each, torch.Tensor) and each.device.type != "cpu":
                raise BraidError(f"a tensor is on '{each.device}', expected this computer's memory")


def _tell(text: str, reason: Exception) -> None:
    """Warn of what runs in eager, once in a process, and log it each time."""
    _log.info("%s", text, exc_info=reason)
    if text not in _told:
        _told.add(text)
        warnings.warn(text, EagerWarning, stacklevel=4)
