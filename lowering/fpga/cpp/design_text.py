"""A design as HLS C++: a top function whose stages run at the same time, joined by FIFOs."""

from collections.abc import Iterator

from xdsl.ir import SSAValue

from braid.dialects.braid_hls.design import ChannelOp, DesignOp, StreamType, stream_of
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
from braid.lowering.fpga.streams import (
    beats_read,
    channels_of,
    network_of,
    weights_of,
    workers_of,
)


def design_text(design: DesignOp) -> str:
    """A file that Vitis HLS and g++ compile; each call of the top function is one image."""
    block = design.body.block
    workers, channels = workers_of(design), channels_of(design)
    memories = weights_of(design)
    names: dict[SSAValue, str] = {channel.output: f"c{at}" for at, channel in enumerate(channels)}
    names |= {op.output: f"w{at}" for at, op in enumerate(memories)}
    behind: dict[SSAValue, list[str]] = {}
    for channel in channels:
        behind.setdefault(channel.stream, []).append(names[channel.output])
    functions: list[str] = []
    calls: list[str] = []
    for at, argument in enumerate(block.args):
        outputs = behind.get(argument, [])
        functions.append(
            _copy(f"source{at}", stream_of(argument), len(outputs), beats_read(argument))
        )
        calls.append(f"source{at}({', '.join([f's{at}', *outputs])});")
    declared: list[str] = []
    for at, op in enumerate(memories):
        functions.append(weights_function(f"read{at}", op))
        declared += weights_stream(names[op.output], op)
        calls.append(f"read{at}({memory_name(at)}, {names[op.output]});")
    for at, op in enumerate(workers):
        outputs = behind.get(op.output, [])
        given = [names[value] for value in op.operands]
        if isinstance(op, PermuteOp):
            functions += [
                fill_function(f"fill{at}", op),
                drain_function(f"drain{at}", op, len(outputs)),
            ]
            declared += memory_declaration(f"memory{at}", op)
            calls.append(f"fill{at}({', '.join([*given, f'memory{at}'])});")
            calls.append(f"drain{at}({', '.join([f'memory{at}', *outputs])});")
        else:
            functions.append(stage_function(f"stage{at}", op, len(outputs)))
            calls.append(f"stage{at}({', '.join([*given, *outputs])});")
    sinks = network_of(design).processes[-len(design.output.streams) :]
    for at, (value, process) in enumerate(zip(design.output.streams, sinks, strict=True)):
        functions.append(_copy(f"sink{at}", stream_of(value), 1, process.reads.size))
        calls.append(f"sink{at}({names[value]}, m{at});")
    return "\n".join(
        [
            *declarations(design),
            *functions,
            *_top(design, channels, names, declared, calls),
            "",
        ]
    )


def declarations(design: DesignOp) -> Iterator[str]:
    """What the top function and those that call it include, and the types of beats."""
    yield from ("#include <ap_int.h>", "#include <hls_stream.h>", "")
    made = (one.output for one in (*workers_of(design), *weights_of(design)))
    for kind in dict.fromkeys(stream_of(one) for one in (*design.body.block.args, *made)):
        yield _beat(kind)


def _beat(kind: StreamType) -> str:
    return f"struct {beat_text(kind)} {{\n  {element_text(kind)} lane[{kind.lanes.data}];\n}};\n"


def _copy(name: str, kind: StreamType, copies: int, beats: int) -> str:
    """Ports are read and written by one function each."""
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
    """Of the top function."""
    return top_name_of(design.sym_name.data)


def top_name_of(name: str) -> str:
    """Of the top function of what has this name: C++ has another `main`."""
    return "top" if name == "main" else name


def ports_of(design: DesignOp) -> list[tuple[str, StreamType]]:
    """Names and types of the top function's parameters."""
    arguments = [(f"s{at}", stream_of(one)) for at, one in enumerate(design.body.block.args)]
    outputs = [(f"m{at}", stream_of(one)) for at, one in enumerate(design.output.streams)]
    return [*arguments, *outputs]


def signature(design: DesignOp) -> str:
    """The top function without its body: streams of the ports, and memories of weights."""
    shown = [f"hls::stream<{beat_text(kind)}> &{name}" for name, kind in ports_of(design)]
    shown += [memory_parameter(at, op) for at, op in enumerate(weights_of(design))]
    return f'extern "C" void {top_name(design)}({", ".join(shown)})'


def call_text(design: DesignOp) -> str:
    """A call of the top function with what has the names of its parameters."""
    memories = [memory_name(at) for at in range(len(weights_of(design)))]
    return f"{top_name(design)}({', '.join([*(one for one, _ in ports_of(design)), *memories])})"


def _top(
    design: DesignOp,
    channels: list[ChannelOp],
    names: dict[SSAValue, str],
    declared: list[str],
    calls: list[str],
) -> Iterator[str]:
    yield f"{signature(design)} {{"
    yield from (f"#pragma HLS INTERFACE axis port={name}" for name, _ in ports_of(design))
    for at, op in enumerate(weights_of(design)):
        yield from memory_pragmas(at, op)
    yield "#pragma HLS INTERFACE s_axilite port=return"
    yield "#pragma HLS DATAFLOW"
    for channel in channels:
        name = names[channel.output]
        yield f'  hls::stream<{beat_text(stream_of(channel.output))}> {name}("{name}");'
        yield f"#pragma HLS STREAM variable={name} depth={channel.depth.value.data}"
    yield from indented([*declared, *calls])
    yield "}"
