"""A permute as C++: one function fills a memory, and one reads it in another order."""

from collections.abc import Iterator, Sequence

import numpy as np

from braid.dialects.braid_hls.design import stream_of
from braid.dialects.braid_hls.permute import PermuteOp
from braid.lowering.fpga.cpp.stage_text import beat_text, element_text, indented
from braid.lowering.fpga.design.memory_reads import memory_reads
from braid.solvers.hls.banks import Integers, loops_of


def memory_declaration(name: str, op: PermuteOp) -> list[str]:
    """Return the memory between the two functions, of this many images."""
    kind, banks = stream_of(op.input), op.banks.value.data
    deep = -(-op.words // banks)
    return [
        f"{element_text(kind)} {name}[{banks}][{deep}][{kind.lanes.data}];",
        f"#pragma HLS ARRAY_PARTITION variable={name} complete dim=1",
        f"#pragma HLS ARRAY_RESHAPE variable={name} complete dim=3",
        f"#pragma HLS STREAM type=pipo variable={name} depth={op.images.value.data}",
    ]


def fill_function(name: str, op: PermuteOp) -> str:
    """Return `void name(in0, memory)`, which writes a word of each beat."""
    kind, banks = stream_of(op.input), op.banks.value.data
    memory = memory_declaration("memory", op)[0].rstrip(";")
    body = [
        f"const {beat_text(kind)} beat = in0.read();",
        f"for (int i = 0; i < {kind.lanes.data}; i++) {{",
        "#pragma HLS UNROLL",
        f"  memory[word % {banks}][word / {banks}][i] = beat.lane[i];",
        "}",
    ]
    loop = [f"for (int word = 0; word < {op.words}; word++) {{", "#pragma HLS PIPELINE II=1"]
    return _function(
        "permute, in", name, f"hls::stream<{beat_text(kind)}> &in0, {memory}", [*loop, *_in(body)]
    )


def drain_function(name: str, op: PermuteOp, copies: int) -> str:
    """Return `void name(memory, out0, …)`, which sends some lanes of a beat in each iteration."""
    kind, passes = stream_of(op.output), op.ii.value.data
    reads = memory_reads(op)
    group = kind.lanes.data // passes
    memory = memory_declaration("memory", op)[0].rstrip(";")
    outputs = [f"hls::stream<{beat_text(kind)}> &out{at}" for at in range(copies)]
    outside: list[str] = [f"{beat_text(kind)} beat;"]
    body: list[str] = []
    for bank, addresses in enumerate(reads.addresses.T):
        index, table = _numbers(f"address{bank}", addresses)
        outside += table
        body.append(f"const int at{bank} = {index};")
    for lane in range(group):
        which, table = _numbers(f"lane{lane}", reads.lanes[:, lane])
        outside += table
        bank, table = _numbers(f"bank{lane}", reads.banks[:, lane])
        outside += table
        body += _lane(reads.banks[:, lane], lane, bank, which, f"it % {passes} * {group} + {lane}")
    body.append(f"if (it % {passes} == {passes - 1}) {{")
    body += [f"  out{at}.write(beat);" for at in range(copies)]
    body.append("}")
    loop = [f"for (int it = 0; it < {op.beats * passes}; it++) {{", "#pragma HLS PIPELINE II=1"]
    return _function("permute", name, ", ".join([memory, *outputs]), [*outside, *loop, *_in(body)])


def _lane(banks: Integers, lane: int, bank: str, which: str, target: str) -> Iterator[str]:
    """Return one number, from the bank that has it."""
    used = [int(one) for one in np.unique(banks)]
    yield f"const int which{lane} = {which};"
    value = f"memory[{used[-1]}][at{used[-1]}][which{lane}]"
    for one in reversed(used[:-1]):
        value = f"bank{lane} == {one} ? memory[{one}][at{one}][which{lane}] : {value}"
    if len(used) > 1:
        yield f"const int bank{lane} = {bank};"
    yield f"beat.lane[{target}] = {value};"


def _numbers(name: str, numbers: Integers) -> tuple[str, list[str]]:
    """Return the number of iteration `it` as an expression, and the table that it needs."""
    loops = loops_of(numbers)
    if loops is None:
        text = ", ".join(map(str, numbers))
        table = f"table_{name}"
        return f"{table}[it]", [f"static const int {table}[{numbers.size}] = {{{text}}};"]
    terms = [str(loops.start)]
    inner = 1
    for extent, stride in zip(reversed(loops.extents), reversed(loops.strides), strict=True):
        terms.append(f"it / {inner} % {extent} * {stride}")
        inner *= extent
    return " + ".join(terms), []


def _in(body: Sequence[str]) -> list[str]:
    return [*indented(body), "}"]


def _function(what: str, name: str, parameters: str, lines: Sequence[str]) -> str:
    head = [f"// {what}", f"void {name}({parameters}) {{"]
    return "\n".join([*head, *indented(lines), "}", ""])
