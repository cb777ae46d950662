"""Compute the probabilities of classes from those of pairs of classes.

The second method of T.-F. Wu, C.-J. Lin, R. C. Weng, "Probability Estimates for Multi-class
Classification by Pairwise Coupling", JMLR 5 (2004): p minimizes pᵀQp, class by class.
"""

import itertools

import numpy as np
import onnx.parser
from onnx import GraphProto
from xdsl.ir import SSAValue

from braid.dialects.braid.base import extents_of
from braid.frontends.onnx.building.builder import Builder
from braid.frontends.onnx.building.expressions import apply, broadcast, matmul, scalar
from braid.frontends.onnx.building.node import Node

_MOST_SWEEPS = 100
_TOLERANCE = 0.005
"""Over the number of classes: by how much Qp may differ from pᵀQp."""


def coupled_probabilities(b: Builder, node: Node, pairs: SSAValue, count: int) -> SSAValue:
    """Return the probabilities of classes `[N, C]`, given those of the first ones of pairs.

    A row no longer changes after the sweep in which it converged.
    """
    table = _matrix(b, pairs, count)
    start = broadcast(
        b, b.constant(np.full((1, count), 1 / count, np.float32)), [extents_of(pairs)[0], count]
    )
    (found,) = node.import_subgraph(_sweeps(count), [table, start])
    return found


def _matrix(b: Builder, pairs: SSAValue, count: int) -> SSAValue:
    """Return Q, `[N, C · C]`: Qij = -rij · rji, and Qii = Σ rji² over all j but i."""
    classes = list(itertools.combinations(range(count), 2))
    number = {pair: place for place, pair in enumerate(classes)}
    # First the squares of rji and rij, then the products.
    squares = np.zeros((2 * len(classes), count * count), np.float32)
    products = np.zeros((len(classes), count * count), np.float32)
    for (first, second), place in number.items():
        squares[place, second * count + second] = 1
        squares[len(classes) + place, first * count + first] = 1
        products[place, first * count + second] = products[place, second * count + first] = -1
    others = apply(b, "sub", scalar(b, 1, pairs), pairs)
    half = len(classes)
    parts = (
        matmul(b, apply(b, "mul", pairs, pairs), b.constant(squares[:half])),
        matmul(b, apply(b, "mul", others, others), b.constant(squares[half:])),
        matmul(b, apply(b, "mul", pairs, others), b.constant(products)),
    )
    return apply(b, "add", apply(b, "add", *parts[:2]), parts[2])


def _sweeps(count: int) -> GraphProto:
    """Return the graph that goes from Q and the first probabilities to the last ones."""
    steps = "".join(_step(number, count) for number in range(count))
    return onnx.parser.parse_graph(f"""
    coupling (float[n, {count * count}] flat, float[n, {count}] start) => (float[n, {count}] last)
    <int64[3] square = {{0, {count}, {count}}}, int64[3] row = {{0, 1, {count}}},
     int64[1] dims_1 = {{1}}, int64[1] dims_2 = {{2}}, int64[1] dims_01 = {{0}},
     int64 most = {{{_MOST_SWEEPS}}}, bool always = {{1}}, float one = {{1}}, float two = {{2}},
     float near = {{{_TOLERANCE / count}}}> {{
      table = Reshape (flat, square)
      last = Loop (most, always, start) <body = sweep (int64 i, bool before, float[n, {count}] p)
        => (bool more, float[n, {count}] next) {{
          column = Reshape (p, row)
          weighted = Mul (table, column)
          product = ReduceSum <keepdims = 0> (weighted, dims_2)
          by_class = Mul (p, product)
          total = ReduceSum <keepdims = 1> (by_class, dims_1)
          apart = Sub (product, total)
          error = Abs (apart)
          worst = ReduceMax <keepdims = 1> (error, dims_1)
          far = GreaterOrEqual (worst, near)
          far_number = Cast <to = 1> (far)
          farthest = ReduceMax <keepdims = 0> (far_number)
          more = Cast <to = 9> (farthest)
          p_0 = Identity (p)
          product_0 = Identity (product)
          total_0 = Identity (total)
          {steps}
          next = Where (far, p_{count}, p)
      }}>
    }}""")


def _step(number: int, count: int) -> str:
    """Return the nodes that change the probability of one class, and scale all of them."""
    i, following = number, number + 1
    diagonal = number * count + number
    unit = ", ".join("1" if c == number else "0" for c in range(count))
    return f"""
          place_{i} = Constant <value = int64[1] {{{number}}}> ()
          corner_{i} = Constant <value = int64[1] {{{diagonal}}}> ()
          unit_{i} = Constant <value = float[1, {count}] {{{unit}}}> ()
          own_{i} = Gather <axis = 1> (product_{i}, place_{i})
          diagonal_{i} = Gather <axis = 1> (flat, corner_{i})
          lack_{i} = Sub (total_{i}, own_{i})
          change_{i} = Div (lack_{i}, diagonal_{i})
          scale_{i} = Add (one, change_{i})
          moved_{i} = Mul (change_{i}, diagonal_{i})
          double_{i} = Mul (own_{i}, two)
          slope_{i} = Add (moved_{i}, double_{i})
          more_{i} = Mul (change_{i}, slope_{i})
          sum_{i} = Add (total_{i}, more_{i})
          once_{i} = Div (sum_{i}, scale_{i})
          total_{following} = Div (once_{i}, scale_{i})
          lines_{i} = Gather <axis = 1> (table, place_{i})
          line_{i} = Squeeze (lines_{i}, dims_1)
          shift_{i} = Mul (line_{i}, change_{i})
          shifted_{i} = Add (product_{i}, shift_{i})
          product_{following} = Div (shifted_{i}, scale_{i})
          added_{i} = Mul (unit_{i}, change_{i})
          raised_{i} = Add (p_{i}, added_{i})
          p_{following} = Div (raised_{i}, scale_{i})"""
