"""One stage as a C++ function: a single pipelined loop over its iterations."""

from collections.abc import Iterable, Iterator, Sequence

from xdsl.dialects.builtin import Signedness
from xdsl.ir import SSAValue

from braid.dialects.braid_hls.body import bits_of, lanes_of
from braid.dialects.braid_hls.design import StreamType, stream_of
from braid.dialects.braid_hls.stage import Loops, StageOp
from braid.lowering.fpga.cpp.body_text import BodyText

WEIGHTS = "weights"
"""The stream of factors that are read from memory."""


def element_text(kind: StreamType) -> str:
    """Return the C++ type of one lane of a beat."""
    unsigned = kind.element.signedness.data == Signedness.UNSIGNED
    return f"ap_{'u' * unsigned}int<{kind.element.width.data}>"


def beat_text(kind: StreamType) -> str:
    """Return the name of the struct of a beat."""
    unsigned = kind.element.signedness.data == Signedness.UNSIGNED
    return f"beat_{kind.lanes.data}x{'u' * unsigned}i{kind.element.width.data}"


def stage_function(name: str, stage: StageOp, copies: int) -> str:
    """Return `void name(in0, …, weights, out0, …)`; each output gets every beat, and a call is one
    image.
    """
    loops = stage.loops
    inputs = [f"in{at}" for at in range(len(stage.inputs))]
    outputs = [f"out{at}" for at in range(copies)]
    read = [] if stage.weights is None else [WEIGHTS]
    kinds = [*map(stream_of, stage.operands), *([stream_of(stage.output)] * copies)]
    parameters = ", ".join(
        f"hls::stream<{beat_text(kind)}> &{one}"
        for kind, one in zip(kinds, [*inputs, *read, *outputs], strict=True)
    )
    body = BodyText(loops)
    for argument in stage.body.block.args:
        body.name(argument)
    inner = [*_reads(stage, inputs), "{" if loops.over_image else "if (position == end) {"]
    inner += indented([*_windows(stage, body), *_weights(stage, body)])
    inner += indented(body.statements(stage.body.block))
    inner += indented(_writes(stage, body, outputs))
    inner += ["}", *(_steps_over_image(loops) if loops.over_image else _steps(loops))]
    lines = [*_state(stage), *body.outside, f"for (int it = 0; it < {loops.iterations}; it++) {{"]
    lines += ["#pragma HLS PIPELINE II=1", *indented(inner), "}"]
    return "\n".join(
        [f"// {stage.label.data}", f"void {name}({parameters}) {{", *indented(lines), "}", ""]
    )


def indented(lines: Iterable[str]) -> list[str]:
    """Return the lines in a block; pragmas stay at the margin."""
    return [line if line.startswith("#") else f"  {line}" for line in lines]


def _state(stage: StageOp) -> Iterator[str]:
    """Return the line buffers, pixels of the window, counters, and the beat that is gathered."""
    loops = stage.loops
    rows, columns = loops.reach
    for at, value in enumerate(stage.inputs):
        kind = stream_of(value)
        element, lanes = element_text(kind), kind.lanes.data
        if rows:
            yield f"{element} lines{at}[{rows}][{loops.image[1]}][{lanes}];"
            yield f"#pragma HLS ARRAY_PARTITION variable=lines{at} complete dim=1"
            yield f"#pragma HLS ARRAY_PARTITION variable=lines{at} complete dim=3"
        yield f"{element} pixels{at}[{rows + 1}][{columns + 1}][{lanes}];"
        yield f"#pragma HLS ARRAY_PARTITION variable=pixels{at} complete dim=0"
    yield f"{beat_text(stream_of(stage.output))} beat;"
    ends = "" if loops.over_image else f", column = 0, end = {loops.end_of(0, 0)}"
    yield f"int position = 0{ends}, row_out = 0, column_out = 0;"
    yield "int group = 0, part = 0;"


def _reads(stage: StageOp, inputs: Sequence[str]) -> Iterator[str]:
    """Yield the first iteration of a position takes its pixel and moves the window."""
    loops = stage.loops
    rows, columns = loops.reach
    yield "const int fold = group * " + f"{loops.folds[1]} + part;"
    yield "if (fold == 0) {"
    for at, (name, value) in enumerate(zip(inputs, stage.inputs, strict=True)):
        kind = stream_of(value)
        yield f"  {beat_text(kind)} pixel{at} = {beat_text(kind)}();"
        yield f"  if (position < {loops.pixels}) {{"
        yield f"    pixel{at} = {name}.read();"
        yield "  }"
        yield f"  for (int i = 0; i < {kind.lanes.data}; i++) {{"
        yield "#pragma HLS UNROLL"
        yield f"    {element_text(kind)} next = pixel{at}.lane[i];"
        yield f"    for (int r = 0; r < {rows + 1}; r++) {{"
        yield "#pragma HLS UNROLL"
        yield f"      for (int c = {columns}; c > 0; c--) {{"
        yield "#pragma HLS UNROLL"
        yield f"        pixels{at}[r][c][i] = pixels{at}[r][c - 1][i];"
        yield "      }"
        yield f"      pixels{at}[r][0][i] = next;"
        if rows:
            yield f"      if (r < {rows}) {{"
            yield f"        const {element_text(kind)} above = lines{at}[r][column][i];"
            yield f"        lines{at}[r][column][i] = next;"
            yield "        next = above;"
            yield "      }"
        yield "    }"
        yield "  }"
    yield "}"


def _windows(stage: StageOp, body: BodyText) -> Iterator[str]:
    """Yield the lanes of each argument: pixels by rows, `pad_value` outside of the image."""
    loops, pad = stage.loops, stage.pad_value.value.data
    for at, argument in enumerate(stage.windows):
        bits, lanes = bits_of(argument), stream_of(stage.inputs[at]).lanes.data
        name = body.name(argument)
        yield f"ap_int<{bits}> {name}[{lanes_of(argument)}];"
        yield f"#pragma HLS ARRAY_PARTITION variable={name} complete"
        for dim, (loop, count) in enumerate((("r", "row_out"), ("c", "column_out"))):
            indent = "  " * dim
            yield f"{indent}for (int {loop} = 0; {loop} < {loops.window[dim]}; {loop}++) {{"
            yield "#pragma HLS UNROLL"
            where = (
                f"{count} * {loops.strides[dim]} + {loop} * {loops.dilations[dim]}"
                f" - {loops.pad_low[dim]}"
            )
            yield f"{indent}  const int {loop}_at = {where};"
        row, column = loops.image
        yield f"    const bool inside = r_at >= 0 && r_at < {row} && c_at >= 0 && c_at < {column};"
        yield f"    for (int i = 0; i < {lanes}; i++) {{"
        yield "#pragma HLS UNROLL"
        taps = tuple(
            f"({size - 1} - {loop}) * {dilation}"
            for size, loop, dilation in zip(loops.window, "rc", loops.dilations, strict=True)
        )
        pixel = f"pixels{at}[{taps[0]}][{taps[1]}][i]"
        target = f"{name}[(r * {loops.window[1]} + c) * {lanes} + i]"
        yield f"      {target} = inside ? ap_int<{bits}>({pixel}) : ap_int<{bits}>({pad});"
        yield "    }"
        yield "  }"
        yield "}"


def _weights(stage: StageOp, body: BodyText) -> Iterator[str]:
    """Yield the factors of this iteration."""
    if stage.weights is None:
        return
    kind, argument = stream_of(stage.weights), stage.body.block.args[-1]
    name = body.name(argument)
    yield f"const {beat_text(kind)} row = {WEIGHTS}.read();"
    yield f"{element_text(kind)} {name}[{kind.lanes.data}];"
    yield f"#pragma HLS ARRAY_PARTITION variable={name} complete"
    yield f"for (int i = 0; i < {kind.lanes.data}; i++) {{"
    yield "#pragma HLS UNROLL"
    yield f"  {name}[i] = row.lane[i];"
    yield "}"


def _writes(stage: StageOp, body: BodyText, outputs: Sequence[str]) -> Iterator[str]:
    value: SSAValue = stage.value
    lanes, (groups, parts) = lanes_of(value), stage.loops.folds
    yield f"for (int i = 0; i < {lanes}; i++) {{"
    yield "#pragma HLS UNROLL"
    yield f"  beat.lane[group * {lanes} + i] = {body.name(value)}[i];"
    yield "}"
    last = f" && position == {stage.loops.pixels - 1}" if stage.loops.over_image else ""
    yield f"if (group == {groups - 1} && part == {parts - 1}{last}) {{"
    yield from (f"  {one}.write(beat);" for one in outputs)
    yield "}"


def _steps_over_image(loops: Loops) -> Iterator[str]:
    """Return counters that step through all folds of each pixel."""
    groups, parts = loops.folds
    yield f"position += group == {groups - 1} && part == {parts - 1};"
    yield f"group = part == {parts - 1} ? (group == {groups - 1} ? 0 : group + 1) : group;"
    yield f"part = part == {parts - 1} ? 0 : part + 1;"


def _steps(loops: Loops) -> Iterator[str]:
    """Return counters that step through folds inside positions, outputs in their order."""
    groups, parts = loops.folds
    columns = loops.outputs[1]
    down = loops.end_of(1, 0) - loops.end_of(0, columns - 1)
    yield f"const bool last = position != end || (group == {groups - 1} && part == {parts - 1});"
    yield "if (!last) {"
    yield f"  group = part == {parts - 1} ? group + 1 : group;"
    yield f"  part = part == {parts - 1} ? 0 : part + 1;"
    yield "}"
    yield "if (last) {"
    yield "  if (position == end) {"
    yield f"    end += column_out == {columns - 1} ? {down} : {loops.strides[1]};"
    yield f"    row_out += column_out == {columns - 1};"
    yield f"    column_out = column_out == {columns - 1} ? 0 : column_out + 1;"
    yield "  }"
    yield "  group = 0;"
    yield "  part = 0;"
    yield "  position++;"
    yield f"  column = column == {loops.image[1] - 1} ? 0 : column + 1;"
    yield "}"
