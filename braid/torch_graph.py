"""Graphs of ATen's ops as functions of tensors, which PyTorch exports for all sizes."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from operator import getitem
from typing import Any

from braid.runtime.torch_tensors import is_tensor, tensor_of
from braid.support.errors import BraidError
from braid.torch_exporter import ExportError, first_line, tracing_alone

torch: Any = import_module("torch")  # by name, since checks of types run without it
_Finish = Callable[[Any], Any]


@dataclass(frozen=True)
class Graph:
    """A graph that computes the whole graph's results except for views and sizes.

    Its inputs are those at `taken` of the whole graph's: sizes are read from tensors that have
    them. `finish` lays each of its results out as PyTorch expects it; `tail` makes the results of
    the whole graph of its inputs and these, so that views share memory as they do in eager.
    """

    module: Any
    taken: Sequence[int]
    finish: Sequence[_Finish]
    tail: Any
    open_dims: Sequence[Any]

    def arguments(self, inputs: Sequence[Any]) -> list[Any]:
        """Return the inputs of this graph among those of the whole one."""
        return [inputs[number] for number in self.taken]

    @staticmethod
    def reals(arguments: Sequence[Any]) -> list[Any]:
        """Return the arguments as ONNX has them: complex numbers as pairs of real ones."""
        return [
            torch.view_as_real(x.detach().resolve_conj()) if is_tensor(x) and x.is_complex() else x
            for x in arguments
        ]

    def results(self, inputs: Sequence[Any], computed: Sequence[Any]) -> Any:
        """Return the results of the whole graph."""
        finished = [finish(value) for finish, value in zip(self.finish, computed, strict=True)]
        return self.tail(*inputs, *finished)

    def export(self, arguments: Sequence[Any]) -> Any:
        """Trace it on arguments as an `ExportedProgram`; raises ExportError where that fails."""
        examples = tuple(x.detach() if is_tensor(x) else x for x in arguments)
        try:
            with tracing_alone(), torch.no_grad():
                return torch.export.export(
                    self.module,
                    examples,
                    dynamic_shapes=tuple(self.open_dims),
                    strict=False,
                )
        except Exception as error:  # tracing raises whatever the ops do
            raise ExportError(f"PyTorch cannot trace it: {first_line(error)}") from error


def tensor_graph(
    whole: Any, fakes: Sequence[Any], inputs: Sequence[Any], frozen: Sequence[int]
) -> Graph | None:
    """Return a graph of AOTAutograd's as one that can be exported, None if it computes nothing.

    `fakes` are the inputs without data, whose sizes are open where they are symbols; `inputs` are
    some with data; those at `frozen` become constants.

    Raises:
        BraidError: something else than a tensor is computed.

    """
    tail, computed = _tail_of(whole)
    if not computed:
        return None
    graph, root = torch.fx.Graph(), torch.nn.Module()
    env: dict[Any, Any] = {}
    places = [node for node in whole.graph.nodes if node.op == "placeholder"]
    taken = _tensors(graph, root, env, places, fakes, inputs, frozen)
    taken += _sizes(graph, env, places, fakes)
    for node in whole.graph.nodes:
        if node.op == "get_attr":
            setattr(root, node.target, getattr(whole, node.target))
        if node.op not in ("placeholder", "output"):
            env[node] = graph.node_copy(node, env.__getitem__)
    graph.output(tuple(env[node] for node in computed))
    graph.eliminate_dead_code()
    return Graph(
        torch.fx.GraphModule(root, graph),
        taken,
        [_finish(node.meta["val"]) for node in computed],
        tail,
        [_open(fakes[number]) for number in taken],
    )


def _tail_of(whole: Any) -> tuple[Any, list[Any]]:
    """Return the views and sizes at the end of a graph, and the nodes that these read.

    They form a graph whose inputs are those of the whole graph and these nodes.

    Its inputs are those of the whole graph and the nodes returned.
    """
    graph = torch.fx.Graph()
    env: dict[Any, Any] = {}
    for node in whole.graph.nodes:
        if node.op == "placeholder":
            env[node] = graph.placeholder(node.name)
    (output,) = whole.graph.find_nodes(op="output")
    needed, computed = {output}, list[Any]()
    for node in reversed(whole.graph.nodes):
        if node in needed and (node is output or _is_tail(node)):
            needed.update(node.all_input_nodes)
    for node in whole.graph.nodes:
        if node in needed and node not in env and node is not output and not _is_tail(node):
            env[node] = graph.placeholder(f"computed_{len(computed)}")
            computed.append(node)
    for node in whole.graph.nodes:
        if node in needed and node not in env:
            env[node] = graph.node_copy(node, env.__getitem__)
    return torch.fx.GraphModule(whole, graph), computed


def _is_tail(node: Any) -> bool:
    """Return whether a node is a constant, a size, or a view of an operand of it."""
    if node.op != "call_function":
        return node.op == "get_attr"
    if node.target is getitem:
        return _is_tail(node.args[0])
    own = node.meta.get("val")
    if isinstance(own, torch.SymInt | torch.SymFloat | torch.SymBool | int | float):
        return True
    operands = [each.meta.get("val") for each in node.all_input_nodes]
    return bool(_storages(own) & _storages(operands))


def _storages(values: Any) -> set[int]:
    """Return the memory of tensors without data, by which views of them are known."""
    leaves: list[Any] = torch.utils._pytree.tree_leaves(values)
    return {each.untyped_storage()._cdata for each in leaves if is_tensor(each)}


def _tensors(
    graph: Any,
    root: Any,
    env: dict[Any, Any],
    places: Sequence[Any],
    fakes: Sequence[Any],
    inputs: Sequence[Any],
    frozen: Sequence[int],
) -> list[int]:
    """Give the graph the inputs that are tensors; return their numbers."""
    taken: list[int] = []
    for number, (place, fake) in enumerate(zip(places, fakes, strict=True)):
        if not is_tensor(fake):
            continue
        if number in frozen:
            root.register_buffer(f"frozen_{number}", inputs[number].detach())
            env[place] = graph.get_attr(f"frozen_{number}")
        else:
            env[place] = graph.placeholder(place.name)
            taken.append(number)
    return taken


def _sizes(
    graph: Any, env: dict[Any, Any], places: Sequence[Any], fakes: Sequence[Any]
) -> list[int]:
    """Give the graph the sizes: of tensors that have them, else as inputs; return their numbers."""
    tensors = [(env[p], x) for p, x in zip(places, fakes, strict=True) if is_tensor(x)]
    dims: dict[Any, tuple[Any, int]] = {}
    for node, fake in tensors:
        for dim, size in enumerate(fake.shape):
            if isinstance(size, torch.SymInt):
                dims.setdefault(size.node.expr, (node, dim))
    taken: list[int] = []
    read: list[tuple[Any, Any, int]] = []
    for number, (place, fake) in enumerate(zip(places, fakes, strict=True)):
        if is_tensor(fake):
            continue
        known = dims.get(fake.node.expr) if isinstance(fake, torch.SymInt) else None
        if known is not None:
            read.append((place, *known))
        elif isinstance(fake, torch.SymInt | torch.SymFloat | torch.SymBool):
            env[place] = graph.placeholder(place.name)
            taken.append(number)
        else:
            env[place] = fake
    for place, node, dim in read:  # behind all inputs
        env[place] = graph.call_function(torch.ops.aten.sym_size.int, (node, dim))
    return taken


def _open(fake: Any) -> Any:
    """Return which dims of an input are open, as `torch.export` wants it."""
    if not is_tensor(fake):
        return torch.export.Dim.DYNAMIC
    sizes = enumerate(fake.shape)
    return {dim: torch.export.Dim.DYNAMIC for dim, size in sizes if isinstance(size, torch.SymInt)}


def _finish(expected: Any) -> _Finish:
    """Return a function that gives a computed result the form of `expected`, which has no data."""
    if not is_tensor(expected):
        raise BraidError(f"it computes a {type(expected).__name__}, expected a tensor")
    sizes = [_number(size) for size in expected.shape]
    strides = [_number(stride) for stride in expected.stride()]
    order = sorted(range(len(sizes)), key=lambda dim: -strides[dim])
    usual = [dim for dim in range(len(sizes)) if sizes[dim] != 1]
    form = _as_complex if expected.is_complex() else _as_tensor
    if [dim for dim in order if sizes[dim] != 1] == usual or 0 in strides:
        return form
    return lambda value: _in_order(form(value), order)


def _number(size: Any) -> int:
    return int(size.node.hint) if isinstance(size, torch.SymInt) else int(size)


def _as_tensor(value: Any) -> Any:
    """Return a value as a tensor: a graph without inputs that are tensors returns arrays."""
    return value if is_tensor(value) else tensor_of(value)


def _as_complex(value: Any) -> Any:
    return torch.view_as_complex(_as_tensor(value))


def _in_order(value: Any, order: Sequence[int]) -> Any:
    """Return the tensor with its dims in this order in memory, the outermost first.

    Code after the graph relies on the strides that PyTorch predicted.
    """
    inverse = [order.index(dim) for dim in range(len(order))]
    return value.permute(*order).contiguous().permute(*inverse)
