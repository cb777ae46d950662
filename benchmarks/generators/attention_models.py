"""Random attentions as exporters write them: packed or not, masked, biased, causal, grouped."""

import random
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import ModelProto, TensorProto, helper, numpy_helper

_WIDTHS = (8, 16, 24, 32, 40, 48, 64, 80, 96, 128, 256)
_HEADS = (1, 2, 3, 4, 6, 8, 12, 16)
_TOKENS = (1, 2, 7, 16, 33, 49, 64, 100, 128, 144, 196, 197, 256, 384, 512, 577, 1024, 1500, 2048)
_BATCHES = (1, 1, 1, 2, 4, 16, 64)
_PACKED = ("split", "gather", "slice", "squeezed")
_FORMS = (*_PACKED, "apart", "inputs")
_BIASES = ("none", "none", "relative", "shared", "mask", "where", "causal")
_SCALES = ("none", "scores", "divided", "queries", "both")
_MOST_FLOPS = 1 << 31
_MOST_BYTES = 1 << 25
_FEATURES = 128
_OPSET = 17
_REFUSED = -1e9


@dataclass(frozen=True, kw_only=True)
class AttentionPattern:
    """One attention of `heads` heads, `width` wide, `values` where these are wider or narrower.

    `form` is the origin of q, k and v: parts of one product (`split` within heads, `gather`
    along a dim of 3, `slice` of columns, `squeezed` slices of a dim of 3), three products
    (`apart`), or `inputs`. `groups` queries share a head of keys and values. There are `keys` keys,
    as many as queries if both come from the same product. The `bias` is added to scores
    (`relative`: of each head, `shared`: of all, `mask`: of keys, an input, `causal`) or chosen
    (`where`). `scale` says which tensors are scaled.
    """

    batch: int
    heads: int
    groups: int
    tokens: int
    keys: int
    width: int
    values: int
    form: str
    bias: str
    scale: str

    @property
    def name(self) -> str:
        """All of it, for tables."""
        sizes = f"b{self.batch}h{self.heads}q{self.tokens}k{self.keys}d{self.width}v{self.values}"
        return f"{self.form}-{sizes}-g{self.groups}-{self.bias}-{self.scale}"


def random_pattern(seed: int) -> AttentionPattern:
    """Return the attention of this seed; one run takes some ten milliseconds at most."""
    choose = random.Random(seed)
    while True:
        form, width = choose.choice(_FORMS), choose.choice(_WIDTHS)
        heads, tokens = choose.choice(_HEADS), choose.choice(_TOKENS)
        packed = form in _PACKED
        groups = 1 if packed else choose.choice((1, 1, *(n for n in (2, 4) if heads % n == 0)))
        keys = choose.choice(_TOKENS) if form == "inputs" else tokens
        wide = form in ("split", "apart") and choose.random() < 0.4
        pattern = AttentionPattern(
            batch=choose.choice(_BATCHES),
            heads=heads,
            groups=groups,
            tokens=tokens,
            keys=keys,
            width=width,
            values=2 * width if wide else width,
            form=form,
            bias=choose.choice(_BIASES),
            scale=choose.choice(_SCALES),
        )
        scores = pattern.batch * heads * tokens * keys
        if 2 * scores * (width + pattern.values) <= _MOST_FLOPS and 4 * scores <= _MOST_BYTES:
            return pattern


@dataclass
class _Graph:
    """Nodes, weights and inputs in the order in which they are made."""

    random: np.random.Generator
    nodes: list[Any] = field(default_factory=list[Any])
    weights: list[Any] = field(default_factory=list[Any])
    inputs: list[Any] = field(default_factory=list[Any])

    def node(self, kind: str, *operands: str, **attributes: Any) -> str:
        """Add a node and return its only result."""
        return self.nodes_of(kind, operands, 1, **attributes)[0]

    def nodes_of(self, kind: str, operands: Any, count: int, **attributes: Any) -> list[str]:
        """Add a node and return its results."""
        results = [f"{kind.lower()}{len(self.nodes)}_{number}" for number in range(count)]
        self.nodes.append(helper.make_node(kind, list(operands), results, **attributes))
        return results

    def known(self, array: NDArray[Any]) -> str:
        """Add a weight."""
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(array, name))
        return name

    def scalar(self, value: float) -> str:
        """Add a number."""
        return self.known(np.array(value, np.float32))

    def numbers(self, *values: int) -> str:
        """Add a shape, or the like."""
        return self.known(np.array(values, np.int64))

    def normal(self, *shape: int, factor: float = 1.0) -> str:
        """Add a weight of normal numbers."""
        return self.known((factor * self.random.standard_normal(shape)).astype(np.float32))

    def input(self, *shape: int, kind: int = TensorProto.FLOAT) -> str:
        """Add an input."""
        name = f"x{len(self.inputs)}"
        self.inputs.append(helper.make_tensor_value_info(name, kind, shape))
        return name

    def product(self, operand: str, columns: int) -> str:
        """Add a product with a weight."""
        return self.node("MatMul", operand, self.normal(_FEATURES, columns, factor=0.1))

    def reshape(self, operand: str, *shape: int) -> str:
        """Add a reshape."""
        return self.node("Reshape", operand, self.numbers(*shape))


def attention_model(pattern: AttentionPattern) -> ModelProto:
    """Return the model: q, k and v, scores, softmax, the weighted sum with heads side by side."""
    p, graph = pattern, _Graph(np.random.default_rng(0))
    q, k, v = _scaled(graph, p, *_operands(graph, p))
    scores = graph.node("MatMul", q, k)
    if p.scale == "scores":
        scores = graph.node("Mul", scores, graph.scalar(p.width**-0.5))
    if p.scale == "divided":
        scores = graph.node("Div", scores, graph.scalar(p.width**0.5))
    scores = _biased(graph, p, scores)
    weighted = graph.node("MatMul", graph.node("Softmax", scores, axis=-1), v)
    side_by_side = graph.node("Transpose", weighted, perm=[0, 2, 1, 3])
    result = graph.reshape(side_by_side, p.batch, p.tokens, p.heads * p.values)
    output = helper.make_tensor_value_info(
        result, TensorProto.FLOAT, (p.batch, p.tokens, p.heads * p.values)
    )
    made = helper.make_graph(graph.nodes, p.name, graph.inputs, [output], graph.weights)
    opset = helper.make_opsetid("", _OPSET)
    return helper.make_model(made, opset_imports=[opset], ir_version=8)


def _operands(graph: _Graph, p: AttentionPattern) -> tuple[str, str, str]:
    """Return q, transposed k, and v, all with heads outside."""
    if p.form == "inputs":
        q = graph.input(p.batch, p.heads, p.tokens, p.width)
        k, v = (
            _repeated(graph, p, graph.input(p.batch, p.heads // p.groups, p.keys, width), width)
            for width in (p.width, p.values)
        )
        return q, graph.node("Transpose", k, perm=[0, 1, 3, 2]), v
    x = graph.input(p.batch, p.tokens, _FEATURES)
    if p.form == "apart":
        return _apart(graph, p, x)
    q, k, v = _packed(graph, p, x)
    if p.form != "gather":
        q, v = (graph.node("Transpose", each, perm=[0, 2, 1, 3]) for each in (q, v))
        return q, graph.node("Transpose", k, perm=[0, 2, 3, 1]), v
    return q, graph.node("Transpose", k, perm=[0, 1, 3, 2]), v


def _apart(graph: _Graph, p: AttentionPattern, x: str) -> tuple[str, str, str]:
    few = p.heads // p.groups
    made = (
        graph.reshape(graph.product(x, heads * width), p.batch, p.tokens, heads, width)
        for heads, width in ((p.heads, p.width), (few, p.width), (few, p.values))
    )
    q, k, v = (graph.node("Transpose", each, perm=[0, 2, 1, 3]) for each in made)
    k, v = _repeated(graph, p, k, p.width), _repeated(graph, p, v, p.values)
    return q, graph.node("Transpose", k, perm=[0, 1, 3, 2]), v


def _repeated(graph: _Graph, p: AttentionPattern, operand: str, width: int) -> str:
    """Return keys or values of all heads: each is repeated for the queries that share it."""
    if p.groups == 1:
        return operand
    few = p.heads // p.groups
    one = graph.reshape(operand, p.batch, few, 1, p.keys, width)
    all = graph.node("Expand", one, graph.numbers(p.batch, few, p.groups, p.keys, width))
    return graph.reshape(all, p.batch, p.heads, p.keys, width)


def _packed(graph: _Graph, p: AttentionPattern, x: str) -> list[str]:
    """Return q, k and v of one product: [batch, tokens, heads, width]; of `gather` heads first."""
    columns = p.heads * p.width
    total = columns * 2 + p.heads * p.values
    product = graph.product(x, total)
    if p.form == "split":
        parts = graph.reshape(product, p.batch, p.tokens, p.heads, 2 * p.width + p.values)
        sizes = graph.numbers(p.width, p.width, p.values)
        return graph.nodes_of("Split", (parts, sizes), 3, axis=3)
    if p.form == "slice":
        edges = (0, columns, 2 * columns, total)
        cut = [_cut(graph, product, edges[n], edges[n + 1]) for n in range(3)]
        return [graph.reshape(each, p.batch, p.tokens, p.heads, p.width) for each in cut]
    three = graph.reshape(product, p.batch, p.tokens, 3, p.heads, p.width)
    if p.form == "gather":
        first = graph.node("Transpose", three, perm=[2, 0, 3, 1, 4])
        places = [graph.known(np.array(n, np.int64)) for n in range(3)]
        return [graph.node("Gather", first, place, axis=0) for place in places]
    cut = [_cut(graph, three, n, n + 1) for n in range(3)]
    return [graph.node("Squeeze", each, graph.numbers(2)) for each in cut]


def _cut(graph: _Graph, operand: str, begin: int, end: int) -> str:
    """Return a part along dim 2."""
    return graph.node("Slice", operand, *map(graph.numbers, (begin, end, 2)))


def _scaled(graph: _Graph, p: AttentionPattern, q: str, k: str, v: str) -> tuple[str, str, str]:
    if p.scale == "queries":
        q = graph.node("Mul", q, graph.scalar(p.width**-0.5))
    if p.scale == "both":
        q, k = (graph.node("Mul", x, graph.scalar(p.width**-0.25)) for x in (q, k))
    return q, k, v


def _biased(graph: _Graph, p: AttentionPattern, scores: str) -> str:
    sides = (p.tokens, p.keys)
    match p.bias:
        case "relative":
            return graph.node("Add", scores, graph.normal(1, p.heads, *sides))
        case "shared":
            return graph.node("Add", scores, graph.normal(*sides))
        case "mask":
            return graph.node("Add", scores, graph.input(p.batch, 1, 1, p.keys))
        case "causal":
            later = np.triu(np.full(sides, _REFUSED, np.float32), 1 + p.keys - min(sides))
            return graph.node("Add", scores, graph.known(later[None, None]))
        case "where":
            allowed = graph.input(p.batch, 1, 1, p.keys, kind=TensorProto.BOOL)
            return graph.node("Where", allowed, scores, graph.scalar(_REFUSED))
        case _:
            return scores
