"""Inline assembly of kernels as calls of the emulator, which executes its text.

A piece of assembly holds one instruction of PTX, maybe with labels, branches and predicates around
it that make up a wait. The emulator's function is named after the opcode, and gets the operands in
the order of the text, numbers among them as i32.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from braid.support.errors import BraidError

_CALL = re.compile(
    r"(?P<head>(?:tail )?call (?P<type>void|\{[^}]*\}|\w+)) asm (?:sideeffect )?"
    r'"(?P<text>[^"]*)", "(?P<constraints>[^"]*)"\('
)
_NO_INSTRUCTION = re.compile(r"\.reg\b|@!?\w+ bra |bra |setp\.|\w+:$")
_OPERAND = re.compile(r"\$(\d+)|(?<![\w.$])(\d+)(?![\w.])")
_PRODUCT = re.compile(
    r"wgmma\.mma_async\.sync\.aligned\.m64n(\d+)k\d+\.(?:f32|s32)\.(bf16|f16|tf32|s8|u8)\."
    r"(bf16|f16|tf32|s8|u8)"
)
_KINDS = ("bf16", "f16", "tf32", "s8", "u8")
"""The kinds of elements, as the emulator numbers them."""
_REPLACES = "setp.ne.b32 p, 0, 0;"
"""The text before a product: the predicate that says whether it is added."""
_WAIT_FOR_PRODUCTS = "wgmma.wait_group.sync.aligned"


@dataclass(frozen=True)
class Assembly:
    """One instruction: its opcode, its operands' text, and how many operands are results.

    A product `adds` to what its results hold before, or replaces it.
    """

    opcode: str
    operands: str
    results: int
    adds: bool = True

    @staticmethod
    def of(text: str, results: int) -> "Assembly":
        """Raise BraidError unless there is one instruction that the emulator knows how to call."""
        plain = text.removeprefix("{").removesuffix("}")
        parts = (re.sub(r"^\s*\w+:\s", "", part).strip() for part in plain.split(";"))
        found = [part for part in parts if part and not _NO_INSTRUCTION.match(part)]
        if len(found) != 1:
            raise BraidError(
                f"the emulator knows one instruction a piece of assembly, not '{text}'"
            )
        opcode, _, operands = found[0].partition(" ")
        return Assembly(opcode, operands, results, _REPLACES not in text)

    def call(self, given: Sequence[str]) -> str:
        """Return the call of the emulator's function; `given` are the arguments with their
        types.
        """
        product = _PRODUCT.fullmatch(self.opcode)
        flags: list[str] = []
        values: list[str] = []
        for argument, number in _OPERAND.findall(self.operands):
            if number:
                flags.append(f"i32 {number}")
                values.append(f"i32 {number}")
            elif int(argument) >= self.results:
                values.append(given[int(argument) - self.results])
        registers = ["ptr %results"] if self.results else []
        if product is not None:
            columns, *kinds = product.groups()
            numbers = [f"i32 {_KINDS.index(kind)}" for kind in kinds]
            scales, turns = flags[:2], flags[2:] or ["i32 0", "i32 0"]
            if scales not in ([], ["i32 1"] * 2):
                raise BraidError(
                    f"the emulator knows products that are added, not '{self.operands}'"
                )
            matrices = [value for value in values if "%" in value]
            adds = f"i32 {int(self.adds)}"
            arguments = [*registers, *matrices, f"i32 {columns}", *numbers, *turns, adds]
            return _call("wgmma" if len(matrices) == 2 else "wgmma_registers", arguments)
        if self.opcode == _WAIT_FOR_PRODUCTS:
            registers = registers or ["ptr null"]
            registers.append(f"i32 {self.results}")
        return _call(re.sub(r"[.:]", "_", self.opcode), [*registers, *values])


def without_assembly(module: str) -> tuple[str, list[str]]:
    """Return the module with calls instead of assembly, and definitions of what they call."""
    shims: dict[tuple[str, ...], str] = {}
    texts: list[str] = []

    def rewritten(line: str) -> str:
        found = _CALL.search(line)
        if found is None:
            return line
        end = _end_of(line, found.end())
        arguments = _split(line[found.end() : end])
        types = [_type_of(argument) for argument in arguments]
        key = (found["type"], found["text"], found["constraints"], *types)
        if key not in shims:
            shims[key] = f"@asm.{len(shims)}"
            texts.append(_shim(shims[key], found, types))
        call = f"{found['head']} {shims[key]}({', '.join(arguments)})"
        return line[: found.start()] + call + line[end + 1 :]

    lines = [rewritten(line) for line in module.splitlines()]
    declared = {_declaration(text) for text in texts}
    return "\n".join(lines), [*sorted(declared), *texts]


def _end_of(line: str, start: int) -> int:
    """Return where the bracket closes that has opened before `start`."""
    depth = 1
    for place in range(start, len(line)):
        depth += (line[place] == "(") - (line[place] == ")")
        if depth == 0:
            return place
    raise BraidError(f"the emulator cannot read '{line}'")


def _declaration(text: str) -> str:
    """Return the declaration of the emulator's function that a shim calls."""
    found = re.search(r"call void @(braid_gpu_\w+)\((.*)\)", text)
    assert found is not None
    types = ", ".join(_type_of(argument) for argument in _split(found[2]))
    return f"declare void @{found[1]}({types})"


def _shim(name: str, found: re.Match[str], types: Sequence[str]) -> str:
    """Return a function of the arguments of a piece of assembly that executes it.

    Tied operands come last; they are the initial values of results.
    """
    type, constraints = found["type"], found["constraints"].split(",")
    results = sum(constraint.startswith("=") for constraint in constraints)
    given = [f"{own} %a{n}" for n, own in enumerate(types)]
    tied = [
        (int(constraint), given[n])
        for n, constraint in enumerate(c for c in constraints[results:] if not c.startswith("~"))
        if constraint.isdecimal()
    ]
    body = [f"define internal {type} {name}({', '.join(given)}) noinline {{"]
    if results:
        element = re.findall(r"[\w]+", type)[0]
        body.append(f"  %results = alloca {type}")
        for place, value in tied:
            body.append(f"  %p{place} = getelementptr {element}, ptr %results, i32 {place}")
            body.append(f"  store {value}, ptr %p{place}")
    body.append("  " + Assembly.of(found["text"], results).call(given))
    if results:
        body += [f"  %loaded = load {type}, ptr %results", f"  ret {type} %loaded"]
    else:
        body.append("  ret void")
    return "\n".join([*body, "}"])


def _call(name: str, arguments: Sequence[str]) -> str:
    return f"call void @braid_gpu_{name}({', '.join(arguments)})"


def _split(arguments: str) -> list[str]:
    """Split text at commas outside of brackets."""
    depth, cuts = 0, [-1]
    for place, character in enumerate(arguments):
        depth += (character in "([{<") - (character in ")]}>")
        if character == "," and depth == 0:
            cuts.append(place)
    cuts.append(len(arguments))
    return [arguments[a + 1 : b].strip() for a, b in pairwise(cuts) if arguments[a + 1 : b].strip()]


def _type_of(argument: str) -> str:
    found = re.match(r"ptr addrspace\(\d\)|<[^>]+>|\w+", argument)
    assert found is not None
    return found[0]
