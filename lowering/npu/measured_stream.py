"""Streams of groups by schedules: their simulated time and their results."""

from collections.abc import Mapping
from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue
from xdsl.parser import Parser

from braid.analysis.interpreter.interpret import evaluate_prepare
from braid.dialects.braid.constants import ConstantOp, ParameterOp
from braid.dialects.braid.relayout import Array
from braid.lowering.npu.build_stream import BuiltStream, build_stream
from braid.lowering.npu.stream_schedule import StreamSchedule
from braid.lowering.npu.streamed_group import all_dialects
from braid.passes.infrastructure.manager import run_pipeline
from braid.passes.split.select_splits import is_splittable
from braid.support.errors import BraidError
from braid.support.object_cache import default_cache
from braid.targets.machines.target import BackendDescription
from braid.targets.simulator.simulate import simulate

PREPARATION = "apply-splits{through-concats=true},hoist-parameter-expressions"
"""The passes after the decision of splits and before streams, as on the way of a whole model."""


@dataclass(frozen=True)
class StreamRequest:
    """A stream of `@main` of the module `text`, for `chip`, by `schedule`.

    The order of each subgraph is searched for `search_seconds`. With `operands`, the arguments of
    `@main` and then its parameters in their order, the stream is run on them.
    """

    text: str
    chip: BackendDescription
    schedule: StreamSchedule
    search_seconds: float
    operands: tuple[Array, ...] | None = None


@dataclass(frozen=True)
class StreamAnswer:
    """The answer to a request: simulated seconds of a run, its results, or an error."""

    seconds: float | None = None
    results: tuple[Array, ...] | None = None
    refusal: str = ""


def answer(request: StreamRequest) -> StreamAnswer:
    """Return the request; a schedule for which the chip has no stream is refused."""
    try:
        module = Parser(all_dialects(), request.text).parse_module()
        keys = [op.key.data for op in module.walk() if isinstance(op, ParameterOp)]
        built = _built(module, request)
        if not built.stream.executes:
            return StreamAnswer(refusal=f"{built.homeless} buffers do not fit in one piece")
        if request.operands is None:
            return StreamAnswer(simulate(built.stream, request.chip).seconds)
        arguments = len(request.operands) - len(keys)
        weights = dict(zip(keys, request.operands[arguments:], strict=True))
        weights |= evaluate_prepare(module, weights)
        values = _values(_main(module), request.operands[:arguments], weights)
        return StreamAnswer(results=tuple(built.program.run(request.chip, values)))
    except BraidError as error:
        return StreamAnswer(refusal=error.message)


def _built(module: ModuleOp, request: StreamRequest) -> BuiltStream:
    block = _main(module).body.block
    ops = [op for op in block.ops if op.results and is_splittable(op)]
    request.schedule.decide_splits(ops, request.chip)
    run_pipeline(all_dialects(), module, PREPARATION)
    order = request.schedule.order(request.search_seconds)
    return build_stream(_main(module).body.block, request.chip, default_cache(), order)


def _main(module: ModuleOp) -> FuncOp:
    functions = (op for op in module.ops if isinstance(op, FuncOp))
    return next(function for function in functions if function.sym_name.data == "main")


def _values(
    function: FuncOp, arguments: tuple[Array, ...], weights: Mapping[str, Array]
) -> dict[SSAValue, Array]:
    """Return the tensors outside of the chip: arguments, weights and constants."""
    block = function.body.block
    values: dict[SSAValue, Array] = dict(zip(block.args, arguments, strict=True))
    for op in block.ops:
        if isinstance(op, ParameterOp):
            values[op.results[0]] = weights[op.key.data]
        elif isinstance(op, ConstantOp):
            (values[op.results[0]],) = op.evaluate()
    return values
