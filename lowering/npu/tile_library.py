"""The kernels with which streams compute, in one library for the plugin `npu-sim`.

It exports `braid_npu_kernels`, a table of `npu_kernel` (see the runtime's `src/npu/execute.h`), and
its length, `braid_npu_kernel_count`. Kernel `k0` of stream 3 of a device has the name `3.k0` there.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from xdsl.dialects.builtin import StringAttr
from xdsl.dialects.func import FuncOp

from braid.analysis.storage.tensor_storage import storage_bytes
from braid.lowering.host.codegen.link import link_shared_object
from braid.lowering.host.codegen.objects import emit_object
from braid.lowering.npu.streamed_group import StreamedGroup
from braid.support.errors import BraidError
from braid.support.sizes.expression import known
from braid.targets.backend import OBJECT, Code, KernelNeeds
from braid.targets.machines.machine import Machine

ir: Any = import_module("llvmlite.ir")
"""llvmlite comes without types."""

LIBRARY = "stream-kernels"
"""The kind of the library."""

_I64, _POINTER = ir.IntType(64), ir.PointerType()
_ENTRY = ir.LiteralStructType([_POINTER, _POINTER, _I64, _I64, _I64, _POINTER])


@dataclass(frozen=True)
class Tiles:
    """The kernels of streams, equal ones once: functions, and their symbols by stream and name."""

    functions: tuple[FuncOp, ...] = ()
    symbols: Mapping[str, Mapping[str, str]] = field(default_factory=dict[str, Mapping[str, str]])

    @staticmethod
    def of(streamed: Mapping[str, StreamedGroup]) -> "Tiles":
        """Return the kernels of the groups, by their symbols."""
        known: dict[str, FuncOp] = {}
        symbols: dict[str, dict[str, str]] = {}
        for owner, group in streamed.items():
            own = symbols[owner] = dict[str, str]()
            for name, function in group.functions.items():
                function.sym_name = StringAttr("tile")
                own[name] = str(function)
                known.setdefault(own[name], function)
        functions: list[FuncOp] = []
        named: dict[str, str] = {}
        for number, (text, function) in enumerate(known.items()):
            named[text] = f"braid_tile_{number}"
            function.sym_name = StringAttr(named[text])
            functions.append(function)
        return Tiles(
            tuple(functions),
            {o: {n: named[text] for n, text in own.items()} for o, own in symbols.items()},
        )

    def names_of(self, owner: str) -> Mapping[str, str]:
        """Return the symbols of the kernels of a group, by their names in its stream."""
        return self.symbols[owner]


def kernel_library(
    objects: Sequence[Code],
    kernels: Sequence[FuncOp],
    needs: Sequence[KernelNeeds],
    tiles: Tiles,
    numbers: Mapping[str, int],
    machine: Machine,
) -> Code:
    """Return the library of `kernels`, whose code is `objects`; streams have `numbers` by their
    symbols.

    Raises BraidError where there is no C compiler to link it.
    """
    parts: list[bytes] = []
    libraries: list[str] = []
    for code in objects:
        if code.kind != OBJECT:
            raise BraidError(f"the host's backend makes code of kind '{code.kind}', not objects")
        parts += code.parts
        libraries += code.libraries
    functions = {kernel.sym_name.data: kernel for kernel in kernels}
    table = _Table({one.symbol: one for one in needs}, functions)
    for symbol in functions:
        table.add(symbol, symbol)
    for owner, number in numbers.items():
        for name, symbol in tiles.names_of(owner).items():
            table.add(f"{number}.{name}", symbol)
    parts.append(emit_object(table.text(), machine))
    data = link_shared_object(parts, tuple(dict.fromkeys(libraries)))
    return Code(LIBRARY, (data,), libraries=tuple(dict.fromkeys(libraries)))


class _Table:
    """Entries for kernels, each with a function that takes its buffers as a list of addresses."""

    def __init__(self, needs: Mapping[str, KernelNeeds], functions: Mapping[str, FuncOp]) -> None:
        self.module = ir.Module()
        self._needs, self._functions = needs, functions
        self._calls: dict[str, Any] = {}
        self._entries: list[Any] = []

    def add(self, name: str, symbol: str) -> None:
        """Add an entry of this name for the kernel of that symbol."""
        types = self._functions[symbol].function_type
        buffers = (*types.inputs, *types.outputs)
        sizes = [_I64(storage_bytes(type)) for type in buffers]
        text = bytearray(name.encode() + b"\0")
        fields = [
            self._global(ir.Constant(ir.ArrayType(ir.IntType(8), len(text)), text)),
            self._call(symbol, len(buffers)),
            _I64(len(types.inputs)),
            _I64(len(types.outputs)),
            _I64(known(self._needs[symbol].scratch_bytes)),
            self._global(ir.Constant(ir.ArrayType(_I64, len(sizes)), sizes)),
        ]
        self._entries.append(ir.Constant(_ENTRY, fields))

    def text(self) -> str:
        """Return the module as LLVM IR."""
        array = ir.Constant(ir.ArrayType(_ENTRY, len(self._entries)), self._entries)
        for symbol, value in (
            ("braid_npu_kernels", array),
            ("braid_npu_kernel_count", _I64(len(self._entries))),
        ):
            variable = ir.GlobalVariable(self.module, value.type, symbol)
            variable.global_constant = True
            variable.initializer = value
        return str(self.module)

    def _call(self, symbol: str, buffers: int) -> Any:
        if symbol not in self._calls:
            needs = self._needs[symbol]
            count = buffers + (known(needs.scratch_bytes) > 0)
            void = ir.VoidType()
            kernel_type = ir.FunctionType(void, [_POINTER] * count + [_I64, _I64])
            kernel = ir.Function(self.module, kernel_type, symbol)
            call = ir.Function(self.module, ir.FunctionType(void, [_POINTER]), f"call.{symbol}")
            call.linkage = "internal"
            builder = ir.IRBuilder(call.append_basic_block())
            arguments = [
                builder.load(
                    builder.gep(call.args[0], [_I64(n)], source_etype=_POINTER), typ=_POINTER
                )
                for n in range(count)
            ]
            builder.call(kernel, [*arguments, _I64(0), _I64(known(needs.grid))])
            builder.ret_void()
            self._calls[symbol] = call
        return self._calls[symbol]

    def _global(self, initializer: Any) -> Any:
        name = f"constant.{len(self.module.globals)}"
        variable = ir.GlobalVariable(self.module, initializer.type, name)
        variable.global_constant = True
        variable.linkage = "private"
        variable.initializer = initializer
        return variable
