"""Weights that are read from memory as C++: a port `m_axi`, and a function that reads it."""

from braid.dialects.braid_hls.design import stream_of
from braid.dialects.braid_hls.weights import WeightsOp
from braid.lowering.fpga.cpp.stage_text import beat_text, indented


def memory_name(number: int) -> str:
    """Return the name of the top function's parameter for weights, an array of rows."""
    return f"memory{number}"


def memory_parameter(number: int, op: WeightsOp) -> str:
    """Return the declaration of the parameter for weights."""
    return f"const {beat_text(stream_of(op.output))} *{memory_name(number)}"


def memory_pragmas(number: int, op: WeightsOp) -> list[str]:
    """Return the port: a row is a word, and requests are as long, and as many, as in the
    circuit.
    """
    name = memory_name(number)
    options = {
        "offset": "slave",
        "bundle": f"gmem{number}",
        "depth": op.words,
        "latency": op.latency.value.data,
        "max_read_burst_length": max(op.burst.value.data, 2),
        "num_read_outstanding": op.bursts.value.data,
    }
    shown = " ".join(f"{key}={value}" for key, value in options.items())
    return [
        f"#pragma HLS INTERFACE m_axi port={name} {shown}",
        f"#pragma HLS AGGREGATE variable={name} compact=auto",
    ]


def weights_stream(name: str, op: WeightsOp) -> list[str]:
    """Return the stream between the memory and its stage; the port has a buffer of its own."""
    kind = stream_of(op.output)
    return [
        f'hls::stream<{beat_text(kind)}> {name}("{name}");',
        f"#pragma HLS STREAM variable={name} depth=2",
    ]


def weights_function(name: str, op: WeightsOp) -> str:
    """Return `void name(memory, out0)`, which sends all rows as often as an image takes them."""
    kind = beat_text(stream_of(op.output))
    body = [
        f"for (int image = 0; image < {op.repeats.value.data}; image++) {{",
        f"  for (int row = 0; row < {op.words}; row++) {{",
        "#pragma HLS PIPELINE II=1",
        "    out0.write(memory[row]);",
        "  }",
        "}",
    ]
    head = ["// weights", f"void {name}(const {kind} *memory, hls::stream<{kind}> &out0) {{"]
    return "\n".join([*head, *indented(body), "}", ""])


def memory_content(number: int, op: WeightsOp) -> str:
    """Return the rows, for a driver."""
    rows = ", ".join("{{" + ", ".join(map(str, row)) + "}}" for row in op.rows.tolist())
    kind = beat_text(stream_of(op.output))
    return f"static const {kind} {memory_name(number)}[{op.words}] = {{{rows}}};"
