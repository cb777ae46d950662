"""Optimized LLVM IR of a GPU's kernels as LLVM IR for the CPU, which calls the emulator.

It is the code that becomes PTX, with changes only in GPU-specific parts. Each access to memory is
checked before it, instructions of the GPU are functions of the emulator, and a function with the
symbol of the kernel, which the host program calls, launches the entries.
"""

import re
from collections.abc import Iterator, Sequence

from braid.lowering.gpu.codegen.emulated_assembly import without_assembly
from braid.lowering.gpu.codegen.emulated_functions import (
    EMULATED_FUNCTIONS,
    INTRINSICS,
    emulated_function,
)
from braid.lowering.gpu.launch.launches import (
    ENTRY_ALIGNMENT,
    MAP_BYTES,
    Launch,
    Launches,
    dynamic_shared,
)
from braid.support.errors import BraidError

_TYPE = r"<[^>]+>|[\w]+"
_POINTER = r"ptr(?: addrspace\(\d\))?"
_LOAD = re.compile(rf"^\s*%\S+ = load (?:volatile )?({_TYPE}), ({_POINTER}) (.+?), align (\d+)")
_STORE = re.compile(rf"^\s*store (?:volatile )?({_TYPE}) .+?, ({_POINTER}) (.+?), align (\d+)")
_ATOMIC = re.compile(
    rf"^\s*(?:%\S+ = )?(?:atomicrmw|cmpxchg) .*?({_POINTER}) ([^,(]+|.+\)), ({_TYPE}) "
)
_MEMORY = re.compile(r"^\s*(?:tail )?call void @llvm\.(memcpy|memmove|memset)\.[^(]*\((.*)\)")
_DECLARED = re.compile(r"^declare (.*)@llvm\.nvvm\.([\w.]+)\((.*)\)")
_ENTRY_WORDS = re.compile(
    r"captures\([^)]*\) ?|byval\([^)]*\) |\b(?:readonly|readnone|writeonly) "
    r'|"nvvm\.[^"]*"(?:="[^"]*")? ?'
)
_ARGUMENT_WORDS = re.compile(r"\b(?:immarg|readonly|writeonly|captures\([^)]*\))( |(?=[,)]|$))")
_GLOBAL = re.compile(
    r"^@(\S+) = .*?(addrspace\(\d\) )?(?:global|constant) (\[.*?\]|\w+) ", re.MULTILINE
)
_ARRAY = re.compile(r"\[(\d+) x (.+)\]$")
_SHARED_SPACE = "addrspace(3) "
_BYTES = {"float": 4, "double": 8, "half": 2, "bfloat": 2, "ptr": 8}
_READ_ONLY, _WRITABLE, _SHARED = range(3)

_NUMBER_BYTES = {"bf16": 2, "f16": 2, "f32": 4, "tf32": 4, "s8": 1, "u8": 1, "s32": 4}

STATUS = "braid_gpu_status"
"""The emulator's function that returns whether a launch has failed; see `KernelNeeds.status`."""

_RUNTIME = """
declare void @braid_gpu_read(ptr, i64, i64)
declare void @braid_gpu_write(ptr, i64, i64)
declare void @braid_gpu_atomic(ptr, i64, i64)
declare void @braid_gpu_tensor_map(ptr, ptr, i32, i32, i32, ptr, ptr, ptr)
declare void @braid_gpu_launch(ptr, ptr, ptr, i64, i64, ptr, i64)
"""


def emulated_ir(optimized: str, kernel: Launches) -> str:
    """Return LLVM IR that defines `kernel.symbol` with the signature of a kernel of the CPU.

    Raises BraidError for code for which the emulator has no function.
    """
    optimized = _with_dynamic_shared(optimized, kernel)
    optimized, shims = without_assembly(optimized)
    lines = [line for text in optimized.splitlines() for line in rewritten(text)]
    lines += [line for line in INTRINSICS if line not in lines]
    regions = list(_globals_of(optimized))
    launcher = "\n".join(_launcher(kernel, regions))
    return "\n".join([*_numbered_checks(lines), *shims, _RUNTIME, launcher])


def _with_dynamic_shared(optimized: str, kernel: Launches) -> str:
    """Declare shared memory of dynamic size with the size of the launch."""
    for launch in kernel.launches:
        name = re.escape(dynamic_shared(launch.entry))
        old = rf"@{name} = external (?:local_unnamed_addr )?addrspace\(3\) global \[0 x i8\]"
        new = f"@{dynamic_shared(launch.entry)} = internal addrspace(3) global "
        new += f"[{launch.shared_bytes} x i8] undef"
        optimized = re.sub(old, new, optimized)
    return optimized


def rewritten(line: str) -> Iterator[str]:
    """Yield a line of a module, preceded by the emulator's checks, or replaced by its functions."""
    if line.startswith(("target ", "attributes ")):
        return
    line = re.sub(r" #\d+\b", "", line)
    if (declared := _DECLARED.match(line)) is not None:
        result, name, arguments = declared.groups()
        if (own := emulated_function(name, _emulated_name(name))) is not None:
            yield own
            return
        plain = _ARGUMENT_WORDS.sub("", arguments)
        yield from _declaration(result.strip(), _emulated_name(name), plain)
        return
    if line.startswith("define "):
        line = _ENTRY_WORDS.sub("", line).replace("define ptx_kernel ", "define internal ")
    else:
        yield from _checks(line)
    several = re.match(r"\s*%\S+ = (?:tail )?call \{", line) is not None
    suffix = ".results" if several else ""
    yield re.sub(r"@llvm\.nvvm\.([\w.]+)", lambda m: f"@{_emulated_name(m[1])}{suffix}", line)


def _declaration(result: str, name: str, arguments: str) -> Iterator[str]:
    """Yield the declaration of a function of the emulator.

    An instruction with several results gets an address for them first.
    """
    if not result.endswith("}"):
        yield f"declare {result} @{name}({arguments})"
        return
    fields = "{" + result.partition("{")[2]
    types = re.findall(rf"(?:^|, )({_POINTER}|<[^>]+>|\S+?)(?=[ ,]|$)", arguments)
    given = [f"{type} %a{n}" for n, type in enumerate(types)]
    # C has no vectors of halves: they are passed as their bits.
    passed = [f"i{8 * _bytes_of(t)}" if t.startswith("<") else t for t in types]
    yield f"declare void @{name}({', '.join(['ptr', *passed])})"
    yield f"define internal {fields} @{name}.results({', '.join(given)}) alwaysinline {{"
    yield f"  %results = alloca {fields}"
    for n, (type, bits) in enumerate(zip(types, passed, strict=True)):
        if type != bits:
            yield f"  %b{n} = bitcast {type} %a{n} to {bits}"
            given[n] = f"{bits} %b{n}"
    yield f"  call void @{name}({', '.join(['ptr %results', *given])})"
    yield f"  %loaded = load {fields}, ptr %results"
    yield f"  ret {fields} %loaded\n}}"


def _emulated_name(intrinsic: str) -> str:
    name = "braid_gpu_" + intrinsic.replace(".", "_")
    return f"{name}.own" if intrinsic in EMULATED_FUNCTIONS else name


def _checks(line: str) -> Iterator[str]:
    """Yield the checks before an access; `%check` gets a number later."""
    if (load := _LOAD.match(line)) is not None:
        type, pointer, address, alignment = load.groups()
        yield from _check("read", pointer, address, str(_bytes_of(type)), alignment)
    elif (store := _STORE.match(line)) is not None:
        type, pointer, address, alignment = store.groups()
        yield from _check("write", pointer, address, str(_bytes_of(type)), alignment)
    elif (atomic := _ATOMIC.match(line)) is not None:
        pointer, address, type = atomic.groups()
        size = str(_bytes_of(type))
        yield from _check("atomic", pointer, address, size, size)
    elif (memory := _MEMORY.match(line)) is not None:
        yield from _check_range(memory[1], memory[2])


def _check_range(name: str, arguments: str) -> Iterator[str]:
    """Yield the checks of a copy or a fill of a range of bytes."""
    parts = re.split(r", (?=ptr|i8 |i64 |i32 |i1 )", arguments)
    kind, size = parts[2].split()[0], parts[2].split()[-1]
    if kind != "i64":
        raise BraidError(f"the emulator knows copies of i64 bytes, not of {kind}")
    for part, access in zip(parts, ("write", "read"), strict=False):
        pointer = re.match(_POINTER, part)
        if pointer is not None and (access == "write" or name != "memset"):
            yield from _check(access, pointer[0], part.split()[-1], size, "1")


def _check(access: str, pointer: str, address: str, size: str, alignment: str) -> Iterator[str]:
    if pointer == "ptr":
        yield f"  call void @braid_gpu_{access}(ptr {address}, i64 {size}, i64 {alignment})"
        return
    yield f"  %check = addrspacecast {pointer} {address} to ptr"
    yield f"  call void @braid_gpu_{access}(ptr %check, i64 {size}, i64 {alignment})"


def _numbered_checks(lines: Sequence[str]) -> Iterator[str]:
    number = 0
    for line in lines:
        if line.startswith("  %check = "):
            number += 1
        yield re.sub(r"%check\b", f"%check.{number}", line) if "%check" in line else line


def _bytes_of(type: str) -> int:
    if (array := _ARRAY.match(type)) is not None:
        return int(array[1]) * _bytes_of(array[2])
    if type.startswith("<"):
        count, _, element = type[1:-1].partition(" x ")
        return int(count) * _bytes_of(element)
    if re.fullmatch(r"i\d+", type):
        return -(-int(type[1:]) // 8)
    if type not in _BYTES:
        raise BraidError(f"the emulator does not know the size of '{type}'")
    return _BYTES[type]


def _globals_of(optimized: str) -> Iterator[tuple[str, str, int, int]]:
    """Return the symbol, type of its address, bytes and kind of each global variable."""
    for found in _GLOBAL.finditer(optimized):
        symbol, space, type = found.groups()
        kind = _SHARED if space == _SHARED_SPACE else _READ_ONLY
        yield symbol, f"ptr {space or ''}".strip(), _bytes_of(type), kind


def _launcher(kernel: Launches, globals: Sequence[tuple[str, str, int, int]]) -> Iterator[str]:
    """Yield the function that the host program calls, and one for each single launch of an
    entry."""
    count = len(kernel.buffer_bytes)
    names = [kernel.buffer_name(number) for number in range(count)]
    names += [symbol for symbol, *_ in globals]
    for number, name in enumerate(names):
        yield f"@name.{number} = private constant {_text(name)}"
    for number, launch in enumerate(kernel.launches):
        yield from _map_memory(number, launch)
        for entry in launch.entries:
            yield f"@name.{entry} = private constant {_text(entry)}"
            yield from _thunk(entry, number, launch)
    buffers = "".join(f"ptr %b{n}, " for n in range(count))
    yield f"define void @{kernel.symbol}({buffers}i64 %begin, i64 %end) {{"
    yield from _memory(kernel, globals, [f"%b{n}" for n in range(count)])
    for number, launch in enumerate(kernel.launches):
        addresses = [f"%b{n}" for n in range(count)]
        yield from _map_writes(number, launch, addresses)
        yield from _choice(number, launch, addresses)
        chosen = (f"%chosen.name.{number}", f"%chosen.thunk.{number}")
        yield _start(*chosen, launch.blocks, launch.threads, len(names))
    yield "  ret void\n}"
    for number, launch in enumerate(kernel.launches):
        for entry in launch.entries:
            yield f"define void @{alone(entry)}(ptr %given, i64 %blocks, i64 %threads) {{"
            addresses = ["null"] * count
            for place, argument in enumerate(launch.arguments):
                yield f"  %place{place} = getelementptr ptr, ptr %given, i64 {place}"
                yield f"  %value{place} = load ptr, ptr %place{place}"
                yield f"  %given{place} = load ptr, ptr %value{place}"
                addresses[argument] = f"%given{place}"
            yield from _memory(kernel, globals, addresses)
            yield from _map_writes(number, launch, addresses)
            names_of = (f"@name.{entry}", f"@thunk.{entry}")
            yield _start(*names_of, "%blocks", "%threads", len(names))
            yield "  ret void\n}"


def alone(entry: str) -> str:
    """Return the symbol of a function that launches one entry, as a driver would.

    It is called with the addresses of the arguments, the blocks and their threads.
    """
    return f"{entry}.from"


def _memory(
    kernel: Launches, globals: Sequence[tuple[str, str, int, int]], addresses: Sequence[str]
) -> Iterator[str]:
    """Yield the slots of a kernel's buffers, and all regions that it may use; `null` is no map."""
    count, regions = len(addresses), len(addresses) + len(globals)
    yield f"  %slots = alloca [{max(count, 1)} x ptr]"
    yield f"  %regions = alloca [{max(regions, 1)} x {{ ptr, i64, i64, ptr }}]"
    for number, (address, size) in enumerate(zip(addresses, kernel.buffer_bytes, strict=True)):
        yield f"  %slot{number} = getelementptr ptr, ptr %slots, i64 {number}"
        yield f"  store ptr {address}, ptr %slot{number}"
        kind = _READ_ONLY if number < kernel.operands else _WRITABLE
        yield from _region(number, address, 0 if address == "null" else size, kind)
    for number, (symbol, type, size, kind) in enumerate(globals, count):
        address = f"@{symbol}"
        if type != "ptr":
            address = f"%g{number}"
            yield f"  {address} = addrspacecast {type} @{symbol} to ptr"
        yield from _region(number, address, size, kind)


def _choice(number: int, launch: Launch, addresses: Sequence[str]) -> Iterator[str]:
    """Choose the name and thunk of the entry for buffers at these addresses, as a device does."""
    yield f"  %bits.{number}.0 = add i64 0, 0"
    for place, argument in enumerate(launch.arguments):
        yield f"  %address.{number}.{place} = ptrtoint ptr {addresses[argument]} to i64"
        both = f"%bits.{number}.{place}, %address.{number}.{place}"
        yield f"  %bits.{number}.{place + 1} = or i64 {both}"
    every = f"%bits.{number}.{len(launch.arguments)}"
    yield f"  %rest.{number} = and i64 {every}, {ENTRY_ALIGNMENT - 1}"
    yield f"  %aligned.{number} = icmp eq i64 %rest.{number}, 0"
    for kind in ("name", "thunk"):
        usual, other = (f"ptr @{kind}.{entry}" for entry in (launch.entries * 2)[:2])
        yield f"  %chosen.{kind}.{number} = select i1 %aligned.{number}, {usual}, {other}"


def _start(name: str, thunk: str, blocks: int | str, threads: int | str, regions: int) -> str:
    """Start an entry, whose thunk is called for each thread."""
    return (
        f"  call void @braid_gpu_launch(ptr {name}, ptr {thunk}, "
        f"ptr %slots, i64 {blocks}, i64 {threads}, ptr %regions, i64 {regions})"
    )


def _region(number: int, address: str, size: int, kind: int) -> Iterator[str]:
    type = "{ ptr, i64, i64, ptr }"
    yield f"  %r{number} = getelementptr {type}, ptr %regions, i64 {number}"
    for field, value in enumerate([f"ptr {address}", f"i64 {size}", f"i64 {kind}"]):
        yield f"  %r{number}.{field} = getelementptr {type}, ptr %r{number}, i32 0, i32 {field}"
        yield f"  store {value}, ptr %r{number}.{field}"
    yield f"  %r{number}.3 = getelementptr {type}, ptr %r{number}, i32 0, i32 3"
    yield f"  store ptr @name.{number}, ptr %r{number}.3"


def _thunk(entry: str, number: int, launch: Launch) -> Iterator[str]:
    """Call an entry with its arguments from the slots of the kernel, and its tensor maps."""
    yield f"define internal void @thunk.{entry}(ptr %slots) {{"
    for place, argument in enumerate(launch.arguments):
        yield f"  %s{place} = getelementptr ptr, ptr %slots, i64 {argument}"
        yield f"  %a{place} = load ptr, ptr %s{place}"
    values = [f"%a{place}" for place in range(len(launch.arguments))]
    values += [f"@map.{number}.{place}" for place in range(len(launch.tensor_maps))]
    yield f"  call void @{entry}({', '.join(f'ptr {value}' for value in values)})"
    yield "  ret void\n}"


def _map_memory(number: int, launch: Launch) -> Iterator[str]:
    """Yield the tensor maps of a launch, with their fields."""
    for place, map in enumerate(launch.tensor_maps):
        name = f"@map.{number}.{place}"
        yield f"{name} = internal global [{MAP_BYTES} x i8] zeroinitializer, align 64"
        arrays = (map.extents, (_NUMBER_BYTES[map.number], *map.strides), map.box)
        for kind, array in enumerate(arrays):
            values = ", ".join(f"i64 {value}" for value in array)
            yield f"{name}.{kind} = private constant [{len(array)} x i64] [{values}]"


def _map_writes(number: int, launch: Launch, addresses: Sequence[str]) -> Iterator[str]:
    """Make the tensor maps of buffers at these addresses, as a driver would."""
    for place, map in enumerate(launch.tensor_maps):
        name = f"@map.{number}.{place}"
        yield (
            f"  call void @braid_gpu_tensor_map(ptr {name}, ptr {addresses[map.argument]}, "
            f"i32 {_NUMBER_BYTES[map.number]}, i32 {len(map.extents)}, i32 {map.swizzle}, "
            f"ptr {name}.0, ptr {name}.1, ptr {name}.2)"
        )


def _text(text: str) -> str:
    data = text.encode() + b"\0"
    escaped = "".join(f"\\{byte:02X}" for byte in data)
    return f'[{len(data)} x i8] c"{escaped}"'
