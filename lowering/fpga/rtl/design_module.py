"""The modules of a design, with AXI4-Stream ports."""

from xdsl.ir import SSAValue

from braid.dialects.braid_hls.design import ChannelOp, DesignOp, stream_of
from braid.dialects.braid_hls.permute import PermuteOp
from braid.dialects.braid_hls.stage import StageOp
from braid.dialects.braid_hls.weights import WeightsOp
from braid.lowering.fpga.design.streams import channels_of, weights_of, workers_of
from braid.lowering.fpga.rtl.channel_module import channel_module
from braid.lowering.fpga.rtl.hardware import HardwareModule, Wire
from braid.lowering.fpga.rtl.permute_module import permute_module
from braid.lowering.fpga.rtl.resources import Resources
from braid.lowering.fpga.rtl.stage_module import stage_module
from braid.lowering.fpga.rtl.weights_module import MemoryPort, weights_module


def design_modules(design: DesignOp) -> str:
    """Return the `hw` modules of the design; the top has its name.

    Input i has the ports `s{i}_tdata`, `s{i}_tvalid`, `s{i}_tready`; output i has `m{i}_tdata`,
    `m{i}_tvalid`, `m{i}_tready`. Bits of a beat are its lanes, the first lowest. Weights i that are
    read from memory have `m_axi{i}_…`, a read channel of AXI4, and `weights{i}_base`, the address.
    """
    return _Top(design).text()


def resources_of(design: DesignOp) -> Resources:
    """Return the total resources of the modules of the design."""
    top = _Top(design)
    top.text()
    used = [top.parts[name].resources for name in top.instances]
    used += [Resources(memory=port.bits) for port in memory_ports(design)]
    return sum(used, top.module.resources)


def weights_resources(op: WeightsOp) -> Resources:
    """Return the resources for reading weights."""
    return weights_module("weights", op).resources + Resources(memory=op.port.value.data)


def memory_ports(design: DesignOp) -> list[MemoryPort]:
    """Return the ports by which weights are read."""
    return [MemoryPort(at, op.port.value.data) for at, op in enumerate(weights_of(design))]


def module_of(name: str, op: StageOp | PermuteOp) -> HardwareModule:
    """Return a module with `valid`/`data` per stream and one `take` for all; `room`, `reserve`,
    `write`, `result`.
    """
    return stage_module(name, op) if isinstance(op, StageOp) else permute_module(name, op)


class _Top:
    def __init__(self, design: DesignOp) -> None:
        self.design = design
        self.name = design.sym_name.data
        self.module = HardwareModule(self.name)
        self.parts: dict[str, HardwareModule] = {}
        self.instances: list[str] = []
        self.channels = channels_of(design)
        self.workers = workers_of(design)
        self.weights: dict[SSAValue, int] = {
            op.output: at for at, op in enumerate(weights_of(design))
        }
        # The inputs of the channel, by names that are defined later.
        self.number: dict[SSAValue, int] = {
            op.output: index for index, op in enumerate(self.channels)
        }

    def text(self) -> str:
        """Return the text of all modules."""
        for index, channel in enumerate(self.channels):
            self._channel(index, channel)
        for index, argument in enumerate(self.design.body.block.args):
            self._input(index, argument)
        for index, stage in enumerate(self.workers):
            self._stage(index, stage)
        for index, value in enumerate(self.design.output.streams):
            self._output(index, value)
        for port, op in zip(memory_ports(self.design), weights_of(self.design), strict=True):
            self._weights(port, op)
        return "".join(part.text() for part in [*self.parts.values(), self.module])

    def _channel(self, index: int, channel: ChannelOp) -> None:
        bits, depth = stream_of(channel.stream).bits, channel.depth.value.data
        name = f"{self.name}_channel_{bits}x{depth}"
        if name not in self.parts:
            self.parts[name] = channel_module(name, bits, depth)
        self.instances.append(name)
        self.module.line(
            f'%room{index}, %valid{index}, %head{index} = hw.instance "channel{index}" @{name}('
            f"clk: %clk: !seq.clock, rst: %rst: i1, reserve: %reserve{index}: i1, "
            f"write: %write{index}: i1, data: %data{index}: i{bits}, take: %take{index}: i1) -> "
            f"(room: i1, valid: i1, head: i{bits})"
        )

    def _channels_after(self, value: SSAValue) -> list[int]:
        """Return the channels that a stream goes into."""
        return [index for index, one in enumerate(self.channels) if one.stream == value]

    def _room(self, value: SSAValue) -> Wire:
        free = [Wire(f"%room{index}", 1) for index in self._channels_after(value)]
        # Unused results are dropped.
        return self.module.apply("and", *free) if free else self.module.constant(1, 1)

    def _connect(self, value: SSAValue, reserve: str, write: str, data: str) -> None:
        """Connect a stream to the channels that it feeds."""
        for index in self._channels_after(value):
            for name, source in (("reserve", reserve), ("write", write), ("data", data)):
                bits = stream_of(value).bits if name == "data" else 1
                self.module.line(f"%{name}{index} = comb.or {source} : i{bits}")

    def _input(self, index: int, value: SSAValue) -> None:
        data = self.module.input(f"s{index}_tdata", stream_of(value).bits)
        valid = self.module.input(f"s{index}_tvalid", 1)
        ready = self._room(value)
        goes = self.module.apply("and", valid, ready)
        self.module.output(f"s{index}_tready", ready)
        self._connect(value, goes.name, goes.name, data.name)

    def _stage(self, index: int, stage: StageOp | PermuteOp) -> None:
        name = f"{self.name}_stage{index}"
        self.parts[name] = module_of(name, stage)
        self.instances.append(name)
        ports = ["clk: %clk: !seq.clock", "rst: %rst: i1"]
        numbers = [self.number[value] for value in stage.inputs]
        ports += [f"valid{i}: %valid{number}: i1" for i, number in enumerate(numbers)]
        ports += [
            f"data{i}: %head{number}: i{stream_of(value).bits}"
            for i, (number, value) in enumerate(zip(numbers, stage.inputs, strict=True))
        ]
        ports.append(f"room: {self._room(stage.output).name}: i1")
        bits = stream_of(stage.output).bits
        results, kinds = "", ""
        if isinstance(stage, StageOp) and stage.weights is not None:
            number = self.weights[stage.weights]
            ports.append(f"weights: %row{number}: i{stream_of(stage.weights).bits}")
            ports.append(f"weights_valid: %row{number}_valid: i1")
            results, kinds = f"%row{number}_take, ", "weights_take: i1, "
        self.module.line(
            f"{results}%stage{index}_take, %stage{index}_reserve, %stage{index}_write, "
            f'%stage{index}_result = hw.instance "stage{index}" @{name}({", ".join(ports)}) -> '
            f"({kinds}take: i1, reserve: i1, write: i1, result: i{bits})"
        )
        for number in numbers:
            self.module.line(f"%take{number} = comb.or %stage{index}_take : i1")
        self._connect(
            stage.output,
            f"%stage{index}_reserve",
            f"%stage{index}_write",
            f"%stage{index}_result",
        )

    def _weights(self, port: MemoryPort, op: WeightsOp) -> None:
        name = f"{self.name}_weights{port.number}"
        self.parts[name] = weights_module(name, op)
        self.instances.append(name)
        given = [self.module.input(*one) for one in port.inputs]
        names = [one.rpartition("_")[2] for one, _ in port.inputs]
        ports = ["clk: %clk: !seq.clock", "rst: %rst: i1"]
        ports += [
            f"{one}: {wire.name}: i{wire.bits}" for one, wire in zip(names, given, strict=True)
        ]
        at = port.number
        ports.append(f"take: %row{at}_take: i1")
        made = [f"%{one}" for one, _ in port.outputs]
        kinds = [f"{one.rpartition('_')[2]}: i{bits}" for one, bits in port.outputs]
        self.module.line(
            f"{', '.join([*made, f'%row{at}_valid', f'%row{at}'])} = "
            f'hw.instance "weights{at}" @{name}({", ".join(ports)}) -> '
            f"({', '.join([*kinds, 'valid: i1', f'row: i{stream_of(op.output).bits}'])})"
        )
        for one, bits in port.outputs:
            self.module.output(one, Wire(f"%{one}", bits))

    def _output(self, index: int, value: SSAValue) -> None:
        number, bits = self.number[value], stream_of(value).bits
        ready = self.module.input(f"m{index}_tready", 1)
        valid = Wire(f"%valid{number}", 1)
        self.module.output(f"m{index}_tdata", Wire(f"%head{number}", bits))
        self.module.output(f"m{index}_tvalid", valid)
        taken = self.module.apply("and", valid, ready)
        self.module.line(f"%take{number} = comb.or {taken.name} : i1")
