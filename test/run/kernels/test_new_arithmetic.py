"""A new arithmetic in addition to braid's: what a package or a new file in `contraction` must
provide."""

from dataclasses import dataclass

import pytest
from xdsl.dialects import arith
from xdsl.dialects.builtin import TensorType, f16, f32

from braid.dialects.braid.base import element_type_of
from braid.dialects.braid.regions import FusedOp
from braid.lowering.cpu.families import ARITHMETICS
from braid.lowering.cpu.kernels.contraction.arithmetic import FloatArithmetic
from braid.lowering.cpu.kernels.contraction.floats import FloatCandidate
from braid.lowering.cpu.kernels.contraction.product import ProductArithmetic, ProductStorage
from braid.lowering.cpu.kernels.conv_direct import ConvDirectFamily
from braid.lowering.cpu.kernels.gemm import GemmFamily
from braid.lowering.cpu.unit.vector_unit import VectorUnit
from braid.lowering.emit.buffer import Buffer
from braid.lowering.emit.emitter import Emitter, Index, Value
from braid.targets.machines.machine import Machine
from test.machines import HOST
from test.run.kernels import test_halves
from test.run.kernels.conftest import make_group


class Converted(FloatArithmetic):
    """f16 of both operands, converted as it is loaded; the base class does so for B."""

    def zero(self, e: Emitter, a: Buffer) -> Value:
        return e.constant(0.0, e.vector_type(f32))

    def repeated(self, e: Emitter, a: Buffer, offset: Index) -> Value:
        return e.broadcast(e.insert(arith.ExtFOp(a.load_scalar(e, offset), f32)))


@dataclass(frozen=True)
class ConvertedProducts(ProductArithmetic):
    """Products of f16, added up in f32."""

    def candidate(
        self, group: FusedOp, unit: VectorUnit, storage: ProductStorage, machine: Machine
    ) -> FloatCandidate | None:
        op = storage.product.op
        takes = op.accumulator == f32 and set(map(element_type_of, op.operands)) == {f16}
        return FloatCandidate(group, unit, storage, Converted()) if takes else None


CONVERTED = ConvertedProducts(gemm=("gemm-converted", 1), conv=("conv-converted", 1))


def test_products(check) -> None:
    types = [TensorType(f16, (9, 21)), TensorType(f16, (21, 37)), TensorType(f32, (1, 37))]
    family = GemmFamily(HOST, CONVERTED)
    assert (family.name, family.version) == ("gemm-converted", 1)
    check.tolerance = 4e-3  # of the rounded result
    check(family, types, test_halves.product)


@pytest.mark.parametrize("groups", [1, 2])
def test_convolutions(check, groups: int) -> None:
    types = [TensorType(f16, (2, 6, 9, 8)), TensorType(f16, (20, 6 // groups, 3, 3))]
    check(ConvDirectFamily(HOST, CONVERTED), types, test_halves.convolution(1, groups))


def test_one_arithmetic_takes_a_product() -> None:
    types = [TensorType(f16, (9, 21)), TensorType(f16, (21, 37)), TensorType(f32, (1, 37))]
    group = make_group(types, test_halves.product)
    takers = [each for each in (*ARITHMETICS, CONVERTED) if GemmFamily(HOST, each).match(group)]
    assert takers == [CONVERTED]


def test_names_of_records_are_told_apart() -> None:
    names = [name for each in ARITHMETICS for name, _ in (each.gemm, each.conv)]
    assert sorted(names) == [
        "conv-amx",
        "conv-direct",
        "conv-low-precision",
        "gemm",
        "gemm-amx",
        "gemm-low-precision",
    ]
