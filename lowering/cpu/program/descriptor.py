"""The descriptor `braid_model` that compiled code exports; see the runtime's header."""

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from onnx import helper
from xdsl.ir import Attribute

from braid.dialects.braid.dtypes import to_numpy
from braid.lowering.cpu.program.emit import ENTRY

ir: Any = import_module("llvmlite.ir")
"""llvmlite comes without types."""

ABI_VERSION = 1
SYMBOL = "braid_model"

_I64 = ir.IntType(64)
_POINTER = ir.PointerType()
_TENSOR = ir.LiteralStructType([_POINTER, _I64, _I64, _POINTER, _POINTER])


@dataclass(frozen=True)
class Port:
    """An input or output of a model: `shape` has -1 for open dims, `bound` their upper bounds."""

    name: str
    element_type: Attribute
    shape: tuple[int, ...]
    bound: tuple[int, ...]


@dataclass(frozen=True)
class ModelDescription:
    """What the descriptor says."""

    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    arena_bytes: int
    arena_alignment: int
    features: tuple[str, ...]
    counters: tuple[str, ...]


def descriptor_module(description: ModelDescription) -> str:
    """LLVM IR that defines `braid_model` and refers to the program's entry."""
    return str(_Descriptor(description).module)


class _Descriptor:
    def __init__(self, description: ModelDescription) -> None:
        self.module = ir.Module()
        self._globals = 0
        entry_type = ir.FunctionType(ir.IntType(32), [_POINTER] * 5)
        entry = ir.Function(self.module, entry_type, ENTRY)
        fields = [
            _I64(ABI_VERSION),
            *self._list([self._port(port) for port in description.inputs], _TENSOR),
            *self._list([self._port(port) for port in description.outputs], _TENSOR),
            _I64(description.arena_bytes),
            _I64(description.arena_alignment),
            *self._list([self._text(name) for name in description.features], _POINTER),
            *self._list([self._text(name) for name in description.counters], _POINTER),
            entry,
        ]
        type = ir.LiteralStructType([field.type for field in fields])
        model = ir.GlobalVariable(self.module, type, SYMBOL)
        model.global_constant = True
        model.initializer = ir.Constant(type, fields)

    def _port(self, port: Port) -> Any:
        dtype = helper.np_dtype_to_tensor_dtype(to_numpy(port.element_type))
        return ir.Constant(
            _TENSOR,
            [
                self._text(port.name),
                _I64(int(dtype)),
                _I64(len(port.shape)),
                self._integers(port.shape),
                self._integers(port.bound),
            ],
        )

    def _text(self, text: str) -> Any:
        data = bytearray(text.encode() + b"\0")
        return self._global(ir.Constant(ir.ArrayType(ir.IntType(8), len(data)), data))

    def _integers(self, values: Sequence[int]) -> Any:
        return self._list([_I64(value) for value in values], _I64)[1]

    def _list(self, elements: Sequence[Any], type: Any) -> tuple[Any, Any]:
        """The length, and the address of a constant array of the elements."""
        if not elements:
            return _I64(0), ir.Constant(_POINTER, None)
        array = ir.Constant(ir.ArrayType(type, len(elements)), list(elements))
        return _I64(len(elements)), self._global(array)

    def _global(self, initializer: Any) -> Any:
        variable = ir.GlobalVariable(self.module, initializer.type, f"constant.{self._globals}")
        self._globals += 1
        variable.global_constant = True
        variable.linkage = "private"
        variable.initializer = initializer
        return variable
