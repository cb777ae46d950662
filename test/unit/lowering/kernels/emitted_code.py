"""Digests of what kernel families emit for fixed groups, layouts, schedules and machines.

A family's `version` says whether measurements of its kernels still hold, so it has to be raised
when other code is emitted. `emitted_code.json` has the digests of each family's present version:

    RECORD_EMITTED_CODE=1 pytest test/unit/lowering/kernels/test_emitted_code.py

writes it anew, and refuses to for a family that emits other code under the same version. What
xDSL and MLIR of another version make of the same code is not the family's doing.
"""

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from xdsl.dialects.builtin import IntegerType, Signedness, TensorType, bf16, f16, f32, f64, i32, i64
from xdsl.ir import Attribute

from braid.analysis.storage.layout_choice import LayoutChoice
from braid.analysis.storage.strided_storage import set_boxes, set_overlap, set_strides
from braid.dialects.braid.arg_reduction import ArgReduceOp
from braid.dialects.braid.box_selection import NonMaxSuppressionOp
from braid.dialects.braid.constants import ConstantOp
from braid.dialects.braid.convolution import ConvOp
from braid.dialects.braid.elementwise import elementwise
from braid.dialects.braid.folding import FoldOp
from braid.dialects.braid.fourier import FftOp
from braid.dialects.braid.indexing import GatherOp
from braid.dialects.braid.layout import Layout
from braid.dialects.braid.matmul import MatmulOp
from braid.dialects.braid.movement import ConcatOp, PadOp, SliceOp, TransposeOp
from braid.dialects.braid.normalization import LayerNormOp, SoftmaxOp
from braid.dialects.braid.placement import ReorderOp
from braid.dialects.braid.pooling import PoolOp
from braid.dialects.braid.reduction import ReduceOp
from braid.dialects.braid.regions import FusedOp
from braid.dialects.braid.scan import ScanOp
from braid.dialects.braid.scattering import ScatterElementsOp, ScatterNdOp
from braid.dialects.braid.sorting import TopKOp
from braid.dialects.braid.tree_ensemble import TreeEnsembleOp
from braid.lowering.cpu.families import cpu_families
from braid.lowering.cpu.unit.vector_unit import VectorUnit
from braid.targets.kernels.kernel_family import LIBRARIES, KernelFamily
from braid.targets.kernels.schedules import Entries
from braid.targets.machines.cpus import cpu_machine
from test.machines import AVX512, SSE
from test.run.kernels.conftest import Build, candidate_of, make_group
from test.schedules import emitted

RECORD = Path(__file__).with_suffix(".json")
AMX = cpu_machine("x86-64-v4,+amx-tile,+amx-int8,+amx-bf16")
VNNI = cpu_machine("x86-64-v4,+avx512vnni")
MACHINES = {"avx512": AVX512, "sse": SSE, "amx": AMX, "vnni": VNNI}
COMMAND = "RECORD_EMITTED_CODE=1 pytest test/unit/lowering/kernels/test_emitted_code.py"


@dataclass(frozen=True)
class Case:
    """A group that `family` makes in the layouts of these tags, operands before results.

    In a tag, `{one}` and `{two}` are the lanes of one vector and of two. Elements are `f32` unless
    `types` says others.
    """

    family: str
    label: str
    shapes: Sequence[Sequence[int]]
    build: Build
    layouts: Sequence[str]
    schedule: Entries = field(default_factory=dict[str, int])
    boxes: dict[int, int] = field(default_factory=dict[int, int])
    strides: Sequence[tuple[int, ...] | None] = ()
    overlap: int | None = None
    types: Sequence[Attribute] = ()
    machines: Sequence[str] = ("avx512", "sse")

    def group(self, lanes: int) -> FusedOp:
        """Return the group with its storage decisions, for vectors of so many `lanes`."""
        layouts = tuple(Layout.parse(tag.format(one=lanes, two=2 * lanes)) for tag in self.layouts)
        count = len(self.shapes)
        choice = LayoutChoice(layouts[:count], layouts[count:])
        types = self.types or [f32] * count
        tensors = [TensorType(t, shape) for t, shape in zip(types, self.shapes, strict=True)]
        group = make_group(tensors, self.build, choice)
        if self.boxes:
            set_boxes(group, self.boxes)
        if self.strides:
            set_strides(group, self.strides)
        set_overlap(group, self.overlap)
        return group


def chain(*ops: Any) -> tuple[list[Any], list[Any]]:
    """All ops, and the result of the last one."""
    return list(ops), [ops[-1].results[0]]


def _functions(x: Any) -> Any:
    """Yield a function for each function."""
    names = [
        "exp", "log", "tanh", "erf", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh",
        "asinh", "acosh", "atanh",
    ]  # fmt: skip
    ops: list[Any] = []
    for name in names:
        ops.append(elementwise(name, ops[-1].output if ops else x))
    return chain(*ops, elementwise("pow", x, ops[-1].output))


def _transform(kind: str, x: Any) -> Any:
    return chain(FftOp.get(x, kind, 1))


def _fold(x: Any) -> Any:
    lists = {"strides": (1, 2), "dilations": (1, 1), "pad_low": (1, 1)}
    return chain(FoldOp.get(x, (3, 3), (9, 80), **lists))


def _convolution(groups: int) -> Build:
    def build(x: Any, w: Any, bias: Any) -> Any:
        op = ConvOp.get(
            x, w, strides=(1, 1), dilations=(1, 1), pad_low=(0, 0), pad_high=(0, 0), groups=groups
        )
        add = elementwise("add", op.output, bias)
        return chain(op, add, elementwise("exp", add.output))

    return build


def _pool(combine: str) -> Build:
    def build(x: Any) -> Any:
        return chain(
            PoolOp.get(
                x,
                combine,
                (3, 3),
                strides=(2, 2),
                dilations=(1, 1),
                pad_low=(0, 0),
                pad_high=(0, 0),
            )
        )

    return build


def _product(a: Any, b: Any, bias: Any) -> Any:
    op = MatmulOp.on(a, b)
    add = elementwise("add", op.output, bias)
    return chain(op, add, elementwise("tanh", add.output))


def _byte_product(a: Any, b: Any) -> Any:
    return chain(MatmulOp.on(a, b, accumulator=i32))


def _byte_convolution(x: Any, w: Any, groups: int = 1) -> Any:
    none = (0, 0)
    op = ConvOp.get(
        x,
        w,
        strides=(1, 1),
        dilations=(1, 1),
        pad_low=none,
        pad_high=none,
        groups=groups,
        accumulator=i32,
    )
    return chain(op)


def _plain_product(a: Any, b: Any) -> Any:
    return chain(MatmulOp.on(a, b))


def _product_of_halves(a: Any, b: Any) -> Any:
    wide = elementwise("cast", b, element_type=f32)
    return chain(wide, MatmulOp.on(a, wide.output))


def _joined(x: Any, y: Any) -> Any:
    return chain(ConcatOp.get([x, y], 1))


def _pad(x: Any) -> Any:
    return chain(PadOp.get(x, (0, 0, 1, 2), (0, 0, 3, 1), -2.5))


def _mirrored(x: Any) -> Any:
    """Return a border around a matrix, by the rows and columns inside."""
    rows = ConstantOp.of(np.array([1, 0, 1, 2, 3, 4, 3]))
    columns = ConstantOp.of(np.array([2, 1, *range(9), 7]))
    first = GatherOp.get(x, rows.output, 0)
    return chain(rows, first, columns, GatherOp.get(first.output, columns.output, 1))


def _suppressed(boxes: Any, scores: Any) -> Any:
    overlap, least = (ConstantOp.of(np.full(1, n, np.float32)) for n in (0.5, 0.1))
    op = NonMaxSuppressionOp.get(boxes, scores, overlap, least, 20)
    return [overlap, least, op], [op.indices, op.counts]


def _top_k(x: Any, k: int, dim: int) -> Any:
    op = TopKOp.get(x, k, dim)
    return [op], [op.values, op.indices]


def _sliced(x: Any, y: Any) -> Any:
    part = SliceOp.get(x, (0, 3), (7, 37))
    product = elementwise("mul", part, y)
    return chain(part, product, elementwise("exp", product.output))


def _attention(q: Any, k: Any, v: Any) -> Any:
    scores = MatmulOp.on(q, k)
    weights = SoftmaxOp.get(scores.output, 1)
    return chain(scores, weights, MatmulOp.on(weights.output, v))


BYTES = (IntegerType(8, Signedness.UNSIGNED), IntegerType(8))
TILE = {"rows": 4, "vectors": 2, "unroll": 3, "columns_outside": 1}
ONE = {"rows": 3, "vectors": 1, "unroll": 2, "columns_outside": 0}
IMAGE, WIDE = (1, 16, 9, 11), (1, 32, 9, 11)
CASES = (
    Case("border", "pad", [IMAGE], _pad, ["acdb", "acdb"], boxes={0: 0}),
    Case("pad", "pad", [IMAGE], _pad, ["abcd", "abcd"]),
    Case("pad", "pad in blocks", [IMAGE], _pad, ["aBcd16b", "aBcd16b"]),
    Case("gemm", "plain", [(9, 20), (20, 37), (1, 37)], _product, ["ab"] * 4, TILE),
    Case(
        "gemm", "packed", [(9, 20), (20, 37), (9, 37)], _product,
        ["ab", "Ba{two}b", "ab", "ab"], TILE,
    ),
    Case("gemm", "batches", [(2, 5, 8), (2, 8, 19)], _plain_product, ["abc"] * 3, ONE),
    Case("gemm", "over", [(9, 20), (20, 70)], _plain_product, ["ab"] * 3, ONE, overlap=0),
    Case(
        "gemm", "strided", [(9, 20), (20, 37)], _plain_product, ["ab"] * 3, ONE,
        strides=[(24, 1), None, (40, 1)],
    ),
    Case("concat", "pieces", [(2, 9, 8192), (2, 1, 8192)], _joined, ["abc"] * 3),
    Case(
        "gemm", "halves", [(9, 20), (20, 37)], _product_of_halves, ["ab", "Ba{two}b", "ab"],
        TILE, types=(f32, bf16),
    ),
    Case("gemm-dots", "plain", [(3, 20), (20, 37), (1, 37)], _product, ["ab", "ba", "ab", "ab"]),
    Case(
        "gemm-dots", "halves", [(3, 20), (20, 37)], _product_of_halves, ["ab", "ba", "ab"],
        types=(f32, bf16),
    ),
    Case(
        "gemm-low-precision", "packed", [(9, 20), (20, 37)], _byte_product,
        ["ab", "BA{two}b2a", "ab"],
        TILE, types=BYTES,
    ),
    Case(
        "conv-low-precision", "packed", [IMAGE, (20, 16, 3, 3)], _byte_convolution,
        ["acdb", "AcdB{two}a2b", "acdb"], TILE, types=BYTES,
    ),
    Case(
        "conv-low-precision", "groups", [IMAGE, (40, 8, 3, 3)],
        partial(_byte_convolution, groups=2),
        ["acdb", "AcdB20a2b", "acdb"], TILE, types=BYTES, machines=["avx512"],
    ),
    Case(
        "gemm-packing", "by rows", [(9, 20), (20, 37)], _byte_product, ["ab", "ab", "ab"],
        TILE, types=BYTES,
    ),
    Case(
        "gemm-packing", "few rows", [(3, 20), (20, 37)], _byte_product, ["ab", "ab", "ab"],
        TILE, types=BYTES, machines=["vnni"],
    ),
    Case(
        "gemm-packing", "by columns", [(9, 22), (22, 37)], _byte_product, ["ab", "ba", "ab"],
        TILE, types=BYTES,
    ),
    Case(
        "gemm-amx", "packed", [(40, 100), (100, 37)], _byte_product, ["ab", "BA32b4a", "ab"],
        types=BYTES, machines=["amx"],
    ),
    Case(
        "conv-amx", "packed", [IMAGE, (20, 16, 3, 3)], _byte_convolution,
        ["acdb", "AcdB32a4b", "acdb"], types=BYTES, machines=["amx"],
    ),
    Case(
        "conv-direct", "channels last", [IMAGE, (20, 16, 3, 3), (1, 20, 1, 1)], _convolution(1),
        ["acdb", "Acdb{two}a", "abcd", "acdb"], TILE,
    ),
    Case(
        "conv-direct", "lines", [IMAGE, (20, 16, 3, 3), (1, 20, 1, 1)], _convolution(1),
        ["abcd", "bcda", "abcd", "abcd"], TILE,
    ),
    Case(
        "conv-direct", "groups", [IMAGE, (32, 8, 1, 1), (1, 32, 1, 1)], _convolution(2),
        ["acdb", "Acdb16a", "abcd", "acdb"], ONE,
    ),
    *(
        Case(
            "conv-winograd", f"{results} results", [IMAGE, (20, 16, 3, 3), (1, 20, 1, 1)],
            _convolution(1), ["acdb", f"Acdb{{two}}a:winograd{results}", "abcd", "acdb"],
            {"tiles": 5, "rows": 3, "unroll": 2, "parts": 1},
        )
        for results in (2, 4)
    ),
    *(
        Case(
            "conv-depthwise", label, [WIDE, (32, 1, 3, 3), (1, 32, 1, 1)], _convolution(32),
            [tag, weight, "abcd", tag], {"columns": 3, "vectors": 2},
        )
        for label, tag, weight in (("last", "acdb", "bcda"), ("lines", "abcd", "abcd"))
    ),
    *(
        Case(
            "conv-grouped", label, [(1, 16 * depth, 9, 11), (32, depth, 3, 3), (1, 32, 1, 1)],
            _convolution(16), ["acdb", "Acdb{one}a", "abcd", "acdb"],
            {"columns": 3, "vectors": 2},
        )
        for label, depth in (("pairs", 2), ("of three", 3))
    ),
    *(
        Case("pool", f"{kind} {tag}", [WIDE], _pool(kind), [tag, tag], {"columns": 3, "vectors": 2})
        for kind in ("max", "add")
        for tag in ("acdb", "abcd")
    ),
    Case("reduction", "rows", [(5, 37)], lambda x: chain(ReduceOp.get(x, "add", (1,))), ["ab"] * 2),
    Case(
        "reduction", "rows of 3", [(37, 3)], lambda x: chain(ReduceOp.get(x, "add", (1,))),
        ["ab"] * 2,
    ),
    Case(
        "reduction", "columns", [(5, 3, 37)], lambda x: chain(ReduceOp.get(x, "maximum", (1,))),
        ["abc"] * 2,
    ),
    Case(
        "normalization", "softmax", [(5, 37)], lambda x: chain(SoftmaxOp.get(x, 1)), ["ab", "ab"]
    ),
    *(
        Case(
            "normalization", f"{columns} columns", [(5, 21, columns)],
            lambda x: chain(SoftmaxOp.get(x, 1)), ["abc"] * 2,
        )
        for columns in (2, 37)
    ),
    Case(
        "normalization", "layer", [(5, 37), (1, 37), (1, 37)],
        lambda x, s, b: chain(LayerNormOp.get(x, s, b, first_dim=1, epsilon=1e-5)), ["ab"] * 4,
    ),
    *(
        Case(
            "movement", f"{source} to {target}", [(1, 16, 5, 7)],
            lambda x: chain(ReorderOp.to(x, Layout.row_major(4))), [source, target], {"unroll": 2},
        )
        for source, target in (("abcd", "acdb"), ("aBcd16b", "abcd"))
    ),
    Case(
        "movement", "transpose", [(37, 50)], lambda x: chain(TransposeOp.get(x, (1, 0))),
        ["ab", "ab"], {"unroll": 2},
    ),
    Case(
        "scatter", "slices", [(5, 37), (2, 1), (2, 37)],
        lambda x, i, u: chain(ScatterNdOp.get(x, i, u)), ["ab"] * 4, types=(f32, i64, f32),
    ),
    Case(
        "scatter", "elements", [(5, 7), (2, 7), (2, 7)],
        lambda x, i, u: chain(ScatterElementsOp.get(x, i, u, 0, "add")), ["ab"] * 4,
        types=(f32, i64, f32),
    ),
    Case(
        "scan", "vectors", [(3, 5, 37)],
        lambda x: chain(ScanOp.get(x, "add", 1, exclusive=True, reverse=True)), ["abc"] * 2,
        types=(f16,),
    ),
    Case("scan", "numbers", [(11, 7)], lambda x: chain(ScanOp.get(x, "mul", 1)), ["ab"] * 2),
    Case("known-gather", "mirrored", [(5, 9)], _mirrored, ["ab"] * 2),
    Case(
        "arg-reduce", "rows", [(3, 300)],
        lambda x: chain(ArgReduceOp.get(x, "min", 1)), ["ab"] * 2,
    ),
    Case("top-k", "few", [(3, 300)], lambda x: _top_k(x, 5, 1), ["ab"] * 3),
    Case("top-k", "many", [(400, 3)], lambda x: _top_k(x, 40, 0), ["ab"] * 3, types=(f16,)),
    Case("elementwise", "sliced", [(7, 64), (1, 37)], _sliced, ["ab"] * 3, {"unroll": 3}),
    Case(
        "elementwise", "strided", [(7, 37)], lambda x: chain(elementwise("erf", x)), ["ab"] * 2,
        {"unroll": 1}, strides=[(40, 1), None],
    ),
    Case("elementwise", "functions", [(7, 37)], _functions, ["ab"] * 2, {"unroll": 1}),
    Case(
        "tiled", "attention", [(32, 16), (16, 32), (32, 16)], _attention, ["ab"] * 4,
        {"tile0": 12, "tile1": 16},
    ),
    Case("gemm", "doubles", [(9, 20), (20, 37)], _plain_product, ["ab"] * 3, ONE, types=(f64,) * 2),
    Case(
        "gemm", "doubles over", [(9, 20), (20, 70)], _plain_product, ["ab"] * 3, ONE, overlap=0,
        types=(f64,) * 2,
    ),
    Case(
        "gemm-dots", "doubles", [(3, 20), (20, 37)], _plain_product, ["ab", "ba", "ab"],
        types=(f64,) * 2,
    ),
    Case(
        "conv-direct", "doubles", [IMAGE, (20, 16, 3, 3), (1, 20, 1, 1)], _convolution(1),
        ["abcd", "bcda", "abcd", "abcd"], TILE, types=(f64,) * 3,
    ),
    Case(
        "conv-depthwise", "doubles", [WIDE, (32, 1, 3, 3), (1, 32, 1, 1)], _convolution(32),
        ["acdb", "bcda", "abcd", "acdb"], {"columns": 3, "vectors": 2}, types=(f64,) * 3,
    ),
    Case(
        "pool", "doubles", [WIDE], _pool("max"), ["acdb"] * 2, {"columns": 3, "vectors": 2},
        types=(f64,),
    ),
    Case(
        "normalization", "doubles", [(5, 37)], lambda x: chain(SoftmaxOp.get(x, 1)), ["ab", "ab"],
        types=(f64,),
    ),
    Case(
        "elementwise", "doubles", [(7, 37)], _functions, ["ab"] * 2, {"unroll": 1}, types=(f64,)
    ),
    Case(
        "non-max-suppression", "boxes", [(1, 90, 4), (1, 3, 90)], _suppressed, ["abc"] * 3 + ["ab"]
    ),
    Case(
        "trees", "sums", [(40, 3), (15, 4), (1, 2), (8, 2)],
        lambda *x: chain(TreeEnsembleOp.get(*x, "add", depth=3, tracks_missing=True)),
        ["ab"] * 4 + ["abc"], types=(f32, i32, i32, f32),
    ),
    Case("fft", "rows", [(5, 60, 2)], partial(_transform, "ifft"), ["abc"] * 2),
    Case("fft", "columns", [(5, 60, 3, 1)], partial(_transform, "rfft"), ["abcd"] * 2),
    Case(
        "fft", "convolution", [(5, 37, 2)], partial(_transform, "fft"), ["abc"] * 2,
        {"is_row": 0, "most_radix": 8}, types=(f64,),
    ),
    Case("fold", "strides", [(2, 18, 9, 40)], _fold, ["abcd"] * 2),
    Case("top-k", "doubles", [(400, 3)], lambda x: _top_k(x, 40, 0), ["ab"] * 3, types=(f64,)),
    Case(
        "arg-reduce", "long", [(3, 300)], lambda x: chain(ArgReduceOp.get(x, "min", 1)),
        ["ab"] * 2, types=(i64,),
    ),
    Case("generic", "sum", [(5, 7)], lambda x: chain(ReduceOp.get(x, "add", (1,))), ["ab", "ab"]),
    Case("generic", "pad", [IMAGE], _pad, ["acdb", "acdb"]),
)  # fmt: skip


def toolchain() -> str:
    """Return the versions of the code printer and, for the generic lowering, of the code
    generator."""
    return ", ".join(f"{name} {version(name)}" for name in ("xdsl", "torch-mlir"))


def families() -> dict[str, dict[str, KernelFamily]]:
    """Those that emit code of braid's own by name, for each machine."""
    return {
        label: {
            family.name: family for family in cpu_families(machine) if family.name not in LIBRARIES
        }
        for label, machine in MACHINES.items()
    }


def digests(name: str) -> dict[str, str]:
    """Return the digests of the family's code, by machine and case."""
    return dict(_digests(name))


def _digests(name: str) -> Iterator[tuple[str, str]]:
    for machine, known in families().items():
        lanes = VectorUnit.of(MACHINES[machine]).lanes
        for case in CASES:
            if case.family == name and machine in case.machines:
                candidate = candidate_of(known[name], case.group(lanes))
                kernel = emitted(candidate, case.schedule)
                needs = (kernel.grid, kernel.scratch_bytes, kernel.in_place, kernel.overlap)
                text = f"{kernel.module}\n{needs} {kernel.barriers}"
                digest = hashlib.sha256(text.encode()).hexdigest()
                yield f"{case.label}, {machine}", digest[:16]


def read() -> dict[str, Any]:
    """Return the record."""
    return json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.exists() else {}


def present() -> dict[str, Any]:
    """Return the record that should exist."""
    known = families()["avx512"]
    return {
        "toolchain": toolchain(),
        "families": {
            name: {"version": family.version, "digests": digests(name)}
            for name, family in known.items()
        },
    }


def changed_silently(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    """Families that emit other code under the same version, by what is in both records."""
    if old.get("toolchain") != new["toolchain"]:
        return []
    return [
        name
        for name, entry in new["families"].items()
        if (before := old["families"].get(name)) is not None
        and before["version"] == entry["version"]
        and any(
            before["digests"].get(case, digest) != digest
            for case, digest in entry["digests"].items()
        )
    ]


def write() -> list[str]:
    """Write the record anew, unless a version has to be raised first: of these families."""
    new = present()
    silent = changed_silently(read(), new)
    if not silent:
        RECORD.write_text(json.dumps(new, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    return silent
