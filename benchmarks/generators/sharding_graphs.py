"""Sharding problems of training steps: the structure of the iopddl instances at any size.

A tensor is sharded by mapping each of two mesh axes to one of its dims or to none, so that rank r
has (r + 1)^2 strategies. A layer has weights that live throughout, activations that live from the
forward to the backward pass, matrix products (sharding the contraction costs an all-reduce),
aliases and parameters of ops that must follow their origin (costs 0 or infinite), and one tensor
that every layer reads. Moving a tensor to another sharding costs the bytes that it transfers.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache
from itertools import product
from math import inf, prod

import numpy as np

from braid.solvers.strategy import ProblemBuilder, StrategyProblem
from braid.solvers.strategy.problem import peak_usage

_MESH = (4, 8)
_Sharding = tuple[str, str]
"""Dim of each mesh axis; an empty string where the axis replicates."""


@dataclass
class _Tensor:
    node: int
    dims: dict[str, int]
    shardings: tuple[_Sharding, ...]


def _shards(sharding: _Sharding) -> int:
    return prod(size for size, dim in zip(_MESH, sharding, strict=True) if dim)


def _transfer(size: int, have: _Sharding, want: _Sharding) -> float:
    """Return the cost of a change from one sharding to another."""
    cost = 0.0
    for before, after, devices in zip(have, want, _MESH, strict=True):
        if before and before != after:
            moved = size / _shards(want if not after else have)
            cost += 64 + moved * (devices - 1) / devices / (1 if not after else devices)
    return round(cost)


@dataclass
class ShardingGraph:
    """Appends tensors to a problem; times are op indices."""

    rng: np.random.Generator
    builder: ProblemBuilder = field(default_factory=ProblemBuilder)

    def tensor(
        self, dims: dict[str, int], live: tuple[int, int], *, reduced: str = "", flops: float = 0.0
    ) -> _Tensor:
        """Add a tensor over `dims`; sharding the dim `reduced` costs an all-reduce instead."""
        names = ["", *dims]
        shardings = tuple(product(names, repeat=2))
        kept = {name: size for name, size in dims.items() if name != reduced}
        size = prod(kept.values())
        costs, usage = [], []
        for sharding in shardings:
            own = _visible(kept, sharding)
            partial = size / _shards(own) if own != sharding else 0.0
            costs.append(round(flops / _shards(sharding) + 2 * partial))
            usage.append(size // _shards(own) + 1)
        node = self.builder.add_node(costs, usage=usage, live=live)
        return _Tensor(node, kept, shardings)

    def read(self, source: _Tensor, user: _Tensor) -> None:
        """Let `user` read `source`, resharded as its own strategy demands."""
        self.builder.add_edge(source.node, user.node, _resharding(*_key(source), *_key(user)))

    def follow(self, source: _Tensor, user: _Tensor) -> None:
        """Forbid `user` any sharding of the shared dims but that of `source`."""
        self.builder.add_edge(source.node, user.node, _following(*_key(source), *_key(user)))


_Dims = tuple[tuple[str, int], ...]
_Shardings = tuple[_Sharding, ...]


def _key(tensor: _Tensor) -> tuple[_Dims, _Shardings]:
    return tuple(tensor.dims.items()), tensor.shardings


def _visible(dims: Iterable[str], sharding: _Sharding) -> _Sharding:
    first, second = (dim if dim in dims else "" for dim in sharding)
    return first, second


@cache
def _resharding(source: _Dims, have: _Shardings, user: _Dims, want: _Shardings) -> np.ndarray:
    size, dims = prod(extent for _, extent in source), dict(source)
    return _frozen(
        [[_transfer(size, _visible(dims, h), _visible(dims, w)) for w in want] for h in have]
    )


@cache
def _following(source: _Dims, have: _Shardings, user: _Dims, want: _Shardings) -> np.ndarray:
    both = dict(source).keys() & dict(user).keys()
    return _frozen(
        [[0.0 if _visible(both, h) == _visible(both, w) else inf for w in want] for h in have]
    )


def _frozen(rows: list[list[float]]) -> np.ndarray:
    matrix = np.array(rows)
    matrix.flags.writeable = False  # shared by all edges alike
    return matrix


def _product(
    graph: ShardingGraph,
    source: _Tensor,
    weight: _Tensor,
    into: str,
    over: str,
    time: int,
    end: int,
) -> _Tensor:
    """Add a matrix product over the dim `over`, an alias of its result and its scalars."""
    sizes = {**source.dims, **weight.dims}
    dims = {name: sizes[name] for name in ("batch", "rows", into, over)}
    flops = prod(dims.values()) / 512
    result = graph.tensor(dims, (time, time + 2), reduced=over, flops=flops)
    graph.read(source, result)
    graph.read(weight, result)
    alias = graph.tensor(result.dims, (time + 1, max(end, time + 2)))
    graph.follow(result, alias)
    for _ in range(int(graph.rng.integers(1, 4))):
        dim = str(graph.rng.choice(list(result.dims)))
        leaf = graph.tensor({dim: result.dims[dim]}, (time, time + int(graph.rng.integers(1, 4))))
        graph.follow(alias, leaf)
    return alias


def sharding_problem(nodes: int, *, seed: int = 0, slack: float = 1.1) -> StrategyProblem:
    """Return a training step of about `nodes` tensors.

    Args:
        nodes: size; a layer has about 19.
        seed: of shapes and leaves.
        slack: memory limit as a multiple of the peak when every tensor takes its least usage.
    """
    rng = np.random.default_rng(seed)
    graph = ShardingGraph(rng)
    layers = max(1, nodes // 19)
    horizon = 12 * layers
    mask = graph.tensor({"batch": 32, "rows": 64}, (0, horizon))
    value = graph.tensor({"batch": 32, "rows": 64, "model": 64}, (0, 4))
    saved: list[tuple[_Tensor, _Tensor, _Tensor]] = []
    for layer in range(layers):
        time, back = 6 * layer, horizon - 6 * layer
        hidden = int(rng.choice([64, 128, 256]))
        up = graph.tensor({"model": 64, "hidden": hidden}, (0, horizon))
        down = graph.tensor({"hidden": hidden, "model": 64}, (0, horizon))
        inner = _product(graph, value, up, "hidden", "model", time, back - 2)
        if layer % max(1, layers // 70) == 0:
            graph.read(mask, inner)
        outer = _product(graph, inner, down, "model", "hidden", time + 3, back)
        graph.read(value, outer)
        saved.append((up, down, inner))
        value = outer
    for layer, (up, down, inner) in reversed(list(enumerate(saved))):
        time = horizon - 6 * layer - 6
        gradient = _product(graph, value, down, "hidden", "model", time, time + 3)
        graph.read(inner, gradient)
        value = _product(graph, gradient, up, "model", "hidden", time + 3, time + 6)
        update = graph.tensor(up.dims, (time + 3, time + 5))
        graph.read(update, up)
    return _limited(graph, slack)


def _limited(graph: ShardingGraph, slack: float) -> StrategyProblem:
    problem = graph.builder.build(memory_limit=0)
    assert problem.memory is not None
    choice = np.array([int(usage.argmin()) for usage in problem.memory.usages])
    return graph.builder.build(memory_limit=int(slack * peak_usage(problem.memory, choice)))
