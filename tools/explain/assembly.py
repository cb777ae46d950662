"""The machine code of kernels as text: assembly of a CPU's, PTX of a GPU's."""

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp

from braid.dialects.braid.names import names_of
from braid.lowering.common.upstream import to_llvm_ir
from braid.lowering.host.codegen.llvm_passes import LLVM_PASSES
from braid.lowering.host.codegen.objects import emit_assembly
from braid.lowering.host.model_code import emit_parts
from braid.lowering.host.stages import HostStage
from braid.targets.backends import backend_of
from braid.targets.machines.target import Target

_PTX = "ptx"
_FUNCTION = re.compile(r"^(?:\.visible )?(?:\.entry )?\"?([\w.$]+)\"?(?::|\()", re.MULTILINE)
_NUMBER = re.compile(r"_\d+$")
_SKIPPED = re.compile(r"\s*(\.(p2align|cfi_\w+|type|size|globl|addrsig\w*|hidden)\b|//|$)")


@dataclass(frozen=True)
class KernelCode:
    """Texts by the symbols of functions, and the symbol of each kernel by its ops' names."""

    symbols: Mapping[tuple[str, ...], str] = field(default_factory=dict[tuple[str, ...], str])
    texts: Mapping[str, str] = field(default_factory=dict[str, str])


def kernel_code(module: ModuleOp, target: Target) -> KernelCode:
    """Return the code of the kernels of an outlined module, which is not changed.

    Kernels of devices whose code is neither are left out.

    Raises:
        BraidError: a kernel cannot be compiled.

    """
    symbols = {
        names_of(op): op.callee.root_reference.data
        for op in module.walk()
        if isinstance(op, func.CallOp) and names_of(op)
    }
    wanted, texts = set(symbols.values()), dict[str, str]()
    for text in _device_texts(module.clone(), target):
        for name, body in _functions(text):
            owner = _owner(name, wanted)
            if owner is not None:
                texts[owner] = "\n\n".join(filter(None, (texts.get(owner), body)))
    return KernelCode({n: s for n, s in symbols.items() if s in texts}, texts)


def _device_texts(module: ModuleOp, target: Target) -> Iterator[str]:
    """Yield the code of each device's kernels, one file or several."""
    for part in emit_parts(module, target):
        device = part.job.device
        if _PTX in backend_of(device).stages:
            yield from map(str, part.kernels.at(_PTX, part.functions))
        elif device.backend == target.host_device.backend:
            for text in part.kernels.at(HostStage.LINALG, part.functions):
                yield emit_assembly(to_llvm_ir(str(text), LLVM_PASSES), device.machine)


def _owner(name: str, kernels: Collection[str]) -> str | None:
    """Return the kernel that a function belongs to, which has its number or a twin's suffix."""
    aligned = name.removesuffix("_unaligned")
    return next((own for own in (aligned, _NUMBER.sub("", aligned)) if own in kernels), None)


def _functions(text: str) -> Iterator[tuple[str, str]]:
    """Yield the functions of a file, with their lines but for those that only the linker reads."""
    heads = [match for match in _FUNCTION.finditer(text) if match[1][0] not in ".$"]
    ends = [*(match.start() for match in heads[1:]), len(text)]
    for match, end in zip(heads, ends, strict=True):
        body = text[match.start() : end].partition("\n.Lfunc_end")[0]
        lines = (line.replace("\t", "  ") for line in body.split("\n"))
        yield match[1], "\n".join(line for line in lines if not _SKIPPED.match(line))
