"""A design as HLS C++: a top function whose stages run at the same time, joined by FIFOs."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from xdsl.ir import SSAValue

from braid.dialects.braid_hls.design import DesignOp, StreamType, stream_of
from braid.dialects.braid_hls.permute import PermuteOp
from braid.lowering.fpga.cpp.permute_text import drain_function, fill_function, memory_declaration
from braid.lowering.fpga.cpp.stage_text import beat_text, element_text, indented, stage_function
from braid.lowering.fpga.cpp.weights_text import (
    memory_name,
    memory_parameter,
    memory_pragmas,
    weights_function,
    weights_stream,
)
from braid.lowering.fpga.design.streams import (
    beats_read,
    channels_of,
    network_of,
    weights_of,
    workers_of,
)


@dataclass(frozen=True)
class _Process:
    """Functions that run concurrently, their shared declarations, and the calls that start them."""

    functions: tuple[str, ...]
    declared: tuple[str, ...]
    calls: tuple[str, ...]


@dataclass(frozen=True)
class _Names:
    """The names of the channels of a design, by the value that is read, and of the readers of a
    stream.
    """

    of: Mapping[SSAValue, str]
    readers: Mapping[SSAValue, list[str]]

    @staticmethod
    def given(design: DesignOp) -> "_Names":
        channels = channels_of(design)
        names: dict[SSAValue, str] = {one.output: f"c{at}" for at, one in enumerate(channels)}
        names |= {op.output: f"w{at}" for at, op in enumerate(weights_of(design))}
        readers: dict[SSAValue, list[str]] = {}
        for one in channels:
            readers.setdefault(one.stream, []).append(names[one.output])
        return _Names(names, readers)


def design_text(design: DesignOp) -> str:
    """Return a file that Vitis HLS and g++ compile; each call of the top function is one image."""
    names = _Names.given(design)
    processes = [
        *_sources(design, names),
        *_reads(design, names),
        *_workers(design, names),
        *_sinks(design, names),
    ]
    functions = [text for one in processes for text in one.functions]
    return "\n".join([*declarations(design), *functions, *_top(design, names, processes), ""])


def _sources(design: DesignOp, names: _Names) -> Iterator[_Process]:
    for at, argument in enumerate(design.body.block.args):
        outputs = names.readers.get(argument, [])
        copy = _copy(f"source{at}", stream_of(argument), len(outputs), beats_read(argument))
        yield _Process((copy,), (), (f"source{at}({', '.join([f's{at}', *outputs])});",))


def _reads(design: DesignOp, names: _Names) -> Iterator[_Process]:
    """Yield what reads weights from memory."""
    for at, op in enumerate(weights_of(design)):
        name = names.of[op.output]
        yield _Process(
            (weights_function(f"read{at}", op),),
            tuple(weights_stream(name, op)),
            (f"read{at}({memory_name(at)}, {name});",),
        )


def _workers(design: DesignOp, names: _Names) -> Iterator[_Process]:
    for at, op in enumerate(workers_of(design)):
        given = [names.of[value] for value in op.operands]
        outputs = names.readers.get(op.output, [])
        if isinstance(op, PermuteOp):
            yield _Process(
                (
                    fill_function(f"fill{at}", op),
                    drain_function(f"drain{at}", op, len(outputs)),
                ),
                tuple(memory_declaration(f"moved{at}", op)),
                (
                    f"fill{at}({', '.join([*given, f'moved{at}'])});",
                    f"drain{at}({', '.join([f'moved{at}', *outputs])});",
                ),
            )
        else:
            call = f"stage{at}({', '.join([*given, *outputs])});"
            yield _Process((stage_function(f"stage{at}", op, len(outputs)),), (), (call,))


def _sinks(design: DesignOp, names: _Names) -> Iterator[_Process]:
    sinks = network_of(design).processes[-len(design.output.streams) :]
    for at, (value, process) in enumerate(zip(design.output.streams, sinks, strict=True)):
        copy = _copy(f"sink{at}", stream_of(value), 1, process.reads.size)
        yield _Process((copy,), (), (f"sink{at}({names.of[value]}, m{at});",))


def declarations(design: DesignOp) -> Iterator[str]:
    """Yield what the top function and those that call it include, and the types of beats."""
    yield from ("#include <ap_int.h>", "#include <hls_stream.h>", "")
    made = (one.output for one in (*workers_of(design), *weights_of(design)))
    for kind in dict.fromkeys(stream_of(one) for one in (*design.body.block.args, *made)):
        yield _beat(kind)


def _beat(kind: StreamType) -> str:
    return f"struct {beat_text(kind)} {{\n  {element_text(kind)} lane[{kind.lanes.data}];\n}};\n"


def _copy(name: str, kind: StreamType, copies: int, beats: int) -> str:
    """Return the functions that copy between ports and streams: each port has one."""
    outputs = [f"out{at}" for at in range(copies)]
    stream = f"hls::stream<{beat_text(kind)}>"
    lines = [
        f"void {name}({', '.join(f'{stream} &{one}' for one in ('in0', *outputs))}) {{",
        f"  for (int it = 0; it < {beats}; it++) {{",
        "#pragma HLS PIPELINE II=1",
        f"    const {beat_text(kind)} beat = in0.read();",
        *(f"    {one}.write(beat);" for one in outputs),
        "  }",
        "}",
        "",
    ]
    return "\n".join(lines)


def top_name(design: DesignOp) -> str:
    """Return the name of the top function."""
    return top_name_of(design.sym_name.data)


def top_name_of(name: str) -> str:
    """Return the top function's name for this name; `main` is taken in C++."""
    return "top" if name == "main" else name


def ports_of(design: DesignOp) -> list[tuple[str, StreamType]]:
    """Return the names and types of the top function's parameters."""
    arguments = [(f"s{at}", stream_of(one)) for at, one in enumerate(design.body.block.args)]
    outputs = [(f"m{at}", stream_of(one)) for at, one in enumerate(design.output.streams)]
    return [*arguments, *outputs]


def signature(design: DesignOp) -> str:
    """Return the top function without its body: streams of the ports, and memories of weights."""
    shown = [f"hls::stream<{beat_text(kind)}> &{name}" for name, kind in ports_of(design)]
    shown += [memory_parameter(at, op) for at, op in enumerate(weights_of(design))]
    return f'extern "C" void {top_name(design)}({", ".join(shown)})'


def call_text(design: DesignOp) -> str:
    """Return a call of the top function with what has the names of its parameters."""
    memories = [memory_name(at) for at in range(len(weights_of(design)))]
    return f"{top_name(design)}({', '.join([*(one for one, _ in ports_of(design)), *memories])})"


def _top(design: DesignOp, names: _Names, processes: Sequence[_Process]) -> Iterator[str]:
    yield f"{signature(design)} {{"
    yield from (f"#pragma HLS INTERFACE axis port={name}" for name, _ in ports_of(design))
    for at, op in enumerate(weights_of(design)):
        yield from memory_pragmas(at, op)
    yield "#pragma HLS INTERFACE s_axilite port=return"
    yield "#pragma HLS DATAFLOW"
    for channel in channels_of(design):
        name = names.of[channel.output]
        yield f'  hls::stream<{beat_text(stream_of(channel.output))}> {name}("{name}");'
        yield f"#pragma HLS STREAM variable={name} depth={channel.depth.value.data}"
    yield from indented(line for one in processes for line in one.declared)
    yield from indented(line for one in processes for line in one.calls)
    yield "}"
