"""The disassembler's text as instructions, and the effect of each per warp."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

_LINE = re.compile(
    r"/\*([0-9a-f]{4,})\*/\s+(?:(@!?U?P\w+)\s+)?([A-Z][A-Z0-9_]*(?:\.[A-Za-z0-9_]+)*)\s*([^;]*);"
)
_SECTION = re.compile(r"\s*\.text\.(\S+):")
_LABEL = re.compile(r"\s*(\.L_\w+):")
_TARGET = re.compile(r"`\((\.L_\w+)\)")
_TENSOR = re.compile(r"([HIDBQ])(G?)MMA\b")
_WIDE = re.compile(r"\.(\d+)x(\d+)x(\d+)")
_WARP = 32
_SHAPES = {
    "1688": (16, 8, 8),
    "1684": (16, 8, 4),
    "16816": (16, 8, 16),
    "16832": (16, 8, 32),
    "16864": (16, 8, 64),
    "8816": (8, 8, 16),
    "884": (8, 8, 4),
}
"""Rows, columns and K of a warp's instruction, by the number in its name."""
_WIDTHS = {"64": 8, "128": 16, "U8": 1, "S8": 1, "U16": 2, "S16": 2}
_GLOBAL = ("LDG", "STG", "LDGSTS")
_SHARED = ("LDS", "STS", "LDSM", "STSM")
_SPILLS = ("LDL", "STL")
_LEAVING = ("EXIT", "RET", "BRX")


@dataclass(frozen=True)
class Instruction:
    """One instruction of a function: its address, and its jump target (None without one)."""

    address: int
    predicate: str
    name: str
    operands: str
    target: int | None = None

    @property
    def base(self) -> str:
        """The name without what follows a dot."""
        return self.name.partition(".")[0]

    @property
    def flops(self) -> int:
        """Multiplications and additions of a warp: of tensor cores, and of `FFMA` and `DFMA`.

        An instruction of four warps counts as a quarter for each.
        """
        found = _TENSOR.match(self.name)
        if found is None:
            return 2 * _WARP * (2 if self.base == "HFMA2" else 1) if self._multiplies else 0
        if found[2]:
            shape = _WIDE.search(self.name)
            rows, columns, depths = map(int, shape.groups()) if shape else (0, 0, 0)
            return rows * columns * depths // 2
        rows, columns, depths = _SHAPES.get(self.name.split(".")[1], (0, 0, 0))
        return 2 * rows * columns * depths

    @property
    def is_tensor(self) -> bool:
        """Return whether tensor cores execute the instruction."""
        return _TENSOR.match(self.name) is not None

    @property
    def global_bytes(self) -> int:
        """Return the bytes that a thread moves from or to global memory; 0 for others."""
        return self._bytes if self.base in _GLOBAL else 0

    @property
    def shared_bytes(self) -> int:
        """Return the bytes a warp moves from or to shared memory, by LDGSTS too."""
        if self.base in ("LDSM", "STSM"):
            count = re.search(r"\.([124])(?:\.|$)", self.name)
            return 128 * int(count[1] if count else 1)
        if self.base == "LDS" and self.operands.startswith("RZ"):
            return 0  # ptxas puts such beside LDGSTS
        return _WARP * self._bytes if self.base in (*_SHARED, "LDGSTS") else 0

    @property
    def spills(self) -> bool:
        """Return whether the instruction uses local memory of the thread."""
        return self.base in _SPILLS

    @property
    def ends(self) -> bool:
        """Return whether a block of instructions ends after this one."""
        return self.base in (*_LEAVING, "BRA", "JMP")

    @property
    def goes_on(self) -> bool:
        """Return whether the next instruction may be executed after this one."""
        conditional = bool(self.predicate) or re.match(r"\s*!?U?P\d", self.operands) is not None
        return not self.ends or conditional or ".DIV" in self.name or ".CONV" in self.name

    @property
    def _multiplies(self) -> bool:
        return self.base in ("FFMA", "DFMA", "HFMA2")

    @property
    def _bytes(self) -> int:
        words = self.name.split(".")[1:]
        return next((_WIDTHS[word] for word in words if word in _WIDTHS), 4)


def parse_instructions(text: str) -> dict[str, list[Instruction]]:
    """Return the instructions of each function in the text of `nvdisasm -c`."""
    functions: dict[str, list[Instruction]] = {}
    labels: dict[str, int] = {}
    wanted: dict[tuple[str, int], str] = {}
    own, name, waiting = list[Instruction](), "", list[str]()
    for line in text.splitlines():
        if (section := _SECTION.match(line)) is not None:
            name = section[1]
            own = functions.setdefault(name, [])
        elif (label := _LABEL.match(line)) is not None:
            waiting.append(label[1])
        elif (found := _LINE.search(line)) is not None:
            address = int(found[1], 16)
            labels.update(dict.fromkeys(waiting, address))
            waiting.clear()
            operands = found[4].strip()
            if (jump := _TARGET.search(operands)) is not None and found[3][:3] in ("BRA", "JMP"):
                wanted[name, len(own)] = jump[1]
            own.append(Instruction(address, found[2] or "", found[3], operands))
    for (function, place), label in wanted.items():
        old = functions[function][place]
        functions[function][place] = Instruction(
            old.address, old.predicate, old.name, old.operands, labels.get(label)
        )
    return {name: own for name, own in functions.items() if own}


def wide_share(instructions: Sequence[Instruction]) -> float | None:
    """Return which part of the accesses to global memory are of 16 bytes; None without any."""
    sizes = [one.global_bytes for one in instructions if one.global_bytes]
    return sum(size == 16 for size in sizes) / len(sizes) if sizes else None
