"""The module of a stage: control, window, and the pipeline of its body."""

from dataclasses import dataclass, field

from xdsl.dialects.builtin import IntegerType, Signedness

from braid.dialects.braid_hls.body import bits_of
from braid.dialects.braid_hls.design import stream_of
from braid.dialects.braid_hls.stage import WINDOW_START, Loops, StageOp, window_bits
from braid.lowering.fpga.rtl.body_pipeline import Folds, Pipeline
from braid.lowering.fpga.rtl.hardware import HardwareModule, Wire, index_bits


def stage_module(name: str, stage: StageOp) -> HardwareModule:
    """Return the module: `valid`/`data` per stream with one `take` for all; `room`, `reserve`,
    `write`.

    With weights also `weights_valid`, `weights`, and `weights_take`.
    """
    module = HardwareModule(name)
    valids = [module.input(f"valid{i}", 1) for i in range(len(stage.inputs))]
    datas = [
        module.input(f"data{i}", stream_of(value).bits) for i, value in enumerate(stage.inputs)
    ]
    room = module.input("room", 1)
    weights = _Weights.of(module, stage)
    control = _control(module, stage.loops, valids, room, weights)
    pipeline = Pipeline(module, control.folds)
    for index, argument in enumerate(stage.windows):
        element = stream_of(stage.inputs[index]).element
        pipeline.values[argument] = _window(
            module, stage, control, datas[index], element, bits_of(argument)
        )
    if weights is not None:
        pipeline.values[stage.body.block.args[-1]] = weights.lanes(module)
        module.output("weights_take", control.folds.step)
    for op in stage.body.block.ops:
        pipeline.add(op)
    module.output("take", control.take)
    module.output("reserve", control.writes)
    _write(module, stage, control, pipeline)
    return module


@dataclass(frozen=True)
class _Weights:
    """A row of weights on offer, with numbers of this many bits."""

    valid: Wire
    row: Wire
    bits: int

    @staticmethod
    def of(module: HardwareModule, stage: StageOp) -> "_Weights | None":
        if stage.weights is None:
            return None
        kind = stream_of(stage.weights)
        row = module.input("weights", kind.bits)
        return _Weights(module.input("weights_valid", 1), row, kind.element.width.data)

    def lanes(self, module: HardwareModule) -> list[Wire]:
        """Return the lanes in the cycle of the window."""
        row = module.later(self.row, WINDOW_START)
        return [module.extract(row, at, self.bits) for at in range(0, row.bits, self.bits)]


@dataclass
class _Control:
    """Wires of cycle 0 of an iteration."""

    go: Wire
    take: Wire
    writes: Wire
    advance: Wire
    column: Wire
    folds: Folds
    rows_inside: list[Wire] = field(default_factory=list[Wire])
    columns_inside: list[Wire] = field(default_factory=list[Wire])


def _control(
    module: HardwareModule,
    loops: Loops,
    valids: list[Wire],
    room: Wire,
    weights: _Weights | None,
) -> _Control:
    """Return the loop counters, and whether an iteration begins in this cycle."""
    go = Wire("%go", 1)
    groups, parts = loops.folds
    position, next_end = _position_registers(module, loops)
    over_image = loops.over_image
    emits = module.constant(1, 1) if over_image else module.compare("eq", position, next_end)
    step = module.apply("and", go, emits)
    part, last_part = module.counter(parts, step, "part")
    group, _ = module.counter(groups, module.apply("and", step, last_part), "group")
    fold, last_fold = module.counter(groups * parts, step, "fold")
    first_fold = module.equals(fold, 0) if groups * parts > 1 else module.constant(1, 1)
    done = module.apply("or", module.invert(emits), last_fold)
    advance = module.apply("and", go, done)
    pixels = module.constant(loops.pixels, position.bits)
    reads = module.apply("and", module.compare("ult", position, pixels), first_fold)
    is_last = module.equals(position, loops.positions - 1) if over_image else emits
    writes = module.apply("and", is_last, last_fold)
    iteration = module.counter(loops.iterations, step, "iteration")[0] if over_image else fold
    begins = module.equals(part, 0)
    if over_image:
        begins = module.apply("and", begins, module.equals(position, 0))
    there = module.apply("or", module.invert(reads), module.apply("and", *valids))
    free = module.apply("or", module.invert(writes), room)
    if weights is not None:
        known = module.apply("or", module.invert(emits), weights.valid)
        there = module.apply("and", there, known)
    module.define(go, "and", there, free)
    control = _Control(
        go=go,
        take=module.apply("and", go, reads),
        writes=module.apply("and", go, writes),
        advance=advance,
        column=module.counter(loops.image[1], advance, "column")[0]
        if loops.positions % loops.image[1] == 0
        else _column(module, loops, position, advance),
        folds=Folds(part, group, fold, last_part, step, iteration, begins, loops),
    )
    _define_positions(module, loops, position, next_end, advance, step, last_fold, control)
    return control


def _position_registers(module: HardwareModule, loops: Loops) -> tuple[Wire, Wire]:
    bits = index_bits(loops.positions + 1)
    return Wire(module.name_for("position"), bits), Wire(module.name_for("next_end"), bits)


def _column(module: HardwareModule, loops: Loops, position: Wire, advance: Wire) -> Wire:
    """Return the position's column; 0 again when an image begins."""
    width = loops.image[1]
    bits = index_bits(width)
    if width == 1:
        return module.constant(0, bits)
    value = Wire(module.name_for("column"), bits)
    ends = module.apply(
        "or", module.equals(value, width - 1), module.equals(position, loops.positions - 1)
    )
    more = module.apply("add", value, module.constant(1, bits))
    module.define_register(
        value, module.mux(ends, module.constant(0, bits), more), advance, reset=0
    )
    return value


def _define_positions(
    module: HardwareModule,
    loops: Loops,
    position: Wire,
    next_end: Wire,
    advance: Wire,
    step: Wire,
    last_fold: Wire,
    control: _Control,
) -> None:
    """Define the position, the position of the next output's end, and which pixels are in the
    image.
    """
    bits = position.bits
    zero, one = module.constant(0, bits), module.constant(1, bits)
    wraps = module.equals(position, loops.positions - 1)
    after = module.mux(wraps, zero, module.apply("add", position, one))
    module.define_register(position, after, advance, reset=0)
    if loops.over_image:
        control.rows_inside.append(module.constant(1, 1))
        control.columns_inside.append(module.constant(1, 1))
        return
    emitted = module.apply("and", step, last_fold)
    rows, columns = loops.outputs
    column, last_column = module.counter(columns, emitted, "out_column")
    row, last_row = module.counter(rows, module.apply("and", emitted, last_column), "out_row")
    first = loops.end_of(0, 0)
    across = loops.strides[1]
    down = loops.end_of(1, 0) - loops.end_of(0, columns - 1)
    step_across = module.apply("add", next_end, module.constant(across, bits))
    step_down = module.apply("add", next_end, module.constant(down, bits))
    on = module.mux(last_column, step_down, step_across)
    again = module.apply("and", last_column, last_row)
    on = module.mux(again, module.constant(first, bits), on)
    module.define_register(next_end, on, emitted, reset=first)
    for dim, (counter, out) in enumerate(
        ((row, control.rows_inside), (column, control.columns_inside))
    ):
        for tap in range(loops.window[dim]):
            out.append(_inside(module, loops, dim, tap, counter))


def _inside(module: HardwareModule, loops: Loops, dim: int, tap: int, counter: Wire) -> Wire:
    """Return whether the tap of an output's window is a pixel of the image, in this dim."""
    stride, extent = loops.strides[dim], loops.image[dim]
    offset = tap * loops.dilations[dim] - loops.pad_low[dim]
    least = max(0, -(offset // stride))
    most = (extent - 1 - offset) // stride
    holds = module.constant(1, 1)
    if most < 0 or least >= loops.outputs[dim]:
        return module.constant(0, 1)
    if least > 0:
        holds = module.compare("uge", counter, module.constant(least, counter.bits))
    if most < loops.outputs[dim] - 1:
        below = module.compare("ule", counter, module.constant(most, counter.bits))
        holds = module.apply("and", holds, below)
    return holds


def _window(
    module: HardwareModule,
    stage: StageOp,
    control: _Control,
    data: Wire,
    element: IntegerType,
    bits: int,
) -> list[Wire]:
    """Return the lanes of the window in cycle 2, with `pad_value` outside of the image."""
    loops = stage.loops
    rows = _rows_of_pixels(module, loops, control, data)
    # The first iteration of a position brings its pixel, whatever others follow.
    began = module.later(_begins_position(module, control), 1, reset=0)
    lanes = data.bits // element.width.data
    padding = module.constant(stage.pad_value.value.data, bits)
    taps: list[Wire] = []
    for tap_row in range(loops.window[0]):
        line = rows[(loops.window[0] - 1 - tap_row) * loops.dilations[0]]
        columns = [module.register(line, began)]
        for _ in range(loops.reach[1]):
            columns.append(module.register(columns[-1], began))
        for tap_column in range(loops.window[1]):
            pixel = columns[(loops.window[1] - 1 - tap_column) * loops.dilations[1]]
            inside = module.apply(
                "and", control.rows_inside[tap_row], control.columns_inside[tap_column]
            )
            inside = module.later(inside, WINDOW_START)
            for lane in range(lanes):
                number = _number(module, pixel, lane, element, bits)
                taps.append(number if _always(loops) else module.mux(inside, number, padding))
    return taps


def _always(loops: Loops) -> bool:
    """Return whether no window reaches over an edge."""
    return all(
        low == 0 and (out - 1) * stride + reach < extent
        for low, out, stride, reach, extent in zip(
            loops.pad_low, loops.outputs, loops.strides, loops.reach, loops.image, strict=True
        )
    )


def _begins_position(module: HardwareModule, control: _Control) -> Wire:
    fold = control.folds.fold
    return module.apply("and", control.go, module.equals(fold, 0))


def _number(
    module: HardwareModule, pixel: Wire, lane: int, element: IntegerType, bits: int
) -> Wire:
    width = element.width.data
    number = module.extract(pixel, lane * width, width)
    if element.signedness.data == Signedness.UNSIGNED:
        number = module.concat([number, module.constant(0, 1)])
    assert bits >= window_bits(element)
    return module.resize(number, bits)


def _rows_of_pixels(
    module: HardwareModule, loops: Loops, control: _Control, data: Wire
) -> list[Wire]:
    """Return, in cycle 1, the pixel that was read and those of the rows above it."""
    began = module.later(_begins_position(module, control), 1, reset=0)
    column = module.later(control.column, 1)
    rows = [module.later(data, 1)]
    for _ in range(loops.reach[0]):
        if loops.image[1] == 1:
            rows.append(module.register(rows[-1], began))
        else:
            # Read in cycle 0, so that the memory may be one with a register after it. The address
            # of the write differs: columns follow each other.
            width = loops.image[1]
            rows.append(module.memory(width, control.column, column, rows[-1], began))
    return rows


def _write(module: HardwareModule, stage: StageOp, control: _Control, pipeline: Pipeline) -> None:
    """Gather groups of channels to a beat."""
    element = stream_of(stage.output).element
    latency = stage.latency.value.data
    lanes = [module.resize(wire, element.width.data) for wire in pipeline.at(stage.value, latency)]
    group = module.concat(lanes)
    groups, _ = stage.loops.folds
    if groups > 1:
        ends_group = module.later(
            module.apply("and", control.folds.step, control.folds.last_part),
            latency,
            reset=0,
        )
        held: list[Wire] = []
        newest = group
        for _ in range(groups - 1):
            newest = module.register(newest, ends_group)
            held.insert(0, newest)
        group = module.concat([*held, group])
    module.output("write", module.later(control.writes, latency, reset=0))
    module.output("result", group)
