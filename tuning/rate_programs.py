"""Programs whose times give the cost of starting a kernel, and of running it on several threads.

They are models, compiled and run as all are.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from braid.driver.compile_source import compile_source
from braid.driver.options import CompileOptions

_PIPELINE = "outline-kernels"
"""Every group stays unchanged: passes that decide about groups would merge them."""

_MOVED = 1 << 19
"""Elements of f32 that are read, and written, before the small kernels: twice 2 MiB push what
these need out of the caches of a core."""

_SMALL = 16
"""Elements of the operands of kernels that are all launch."""

Run = Callable[[], None]


@dataclass(frozen=True)
class Program:
    """A model to be run and timed; the request is about its `kernels`."""

    run: Run
    kernels: int


def launching_program(kernels: int, inputs: int) -> Program:
    """Move much data, then start as many small kernels, all of which differ.

    Each reads an input of its own, so that code and arguments are cold, as between the kernels of a
    model. There are at least as many `inputs`: programs with equally many differ only in their
    starts.
    """
    return Program(_prepared(_launching_text(kernels, inputs), 1), kernels)


def parallel_program(kernels: int, elements: int, threads: int) -> Program:
    """Return a program of equal kernels one after the other, each on all threads."""
    lines = [f"%v{n + 1} = {_group(['tanh'], [f'%v{n}'], elements)}" for n in range(kernels)]
    type = f"tensor<{elements}xf32>"
    text = _function(f"%v0: {type}", lines, [(f"%v{kernels}", type)])
    return Program(_prepared(text, threads), kernels)


def _launching_text(kernels: int, inputs: int) -> str:
    big, small = f"tensor<{_MOVED}xf32>", f"tensor<{_SMALL}xf32>"
    lines = [f"%moved = {_group(['neg'], ['%big'], _MOVED)}"]
    for number in range(kernels):
        ops = ["abs" if number >> bit & 1 else "neg" for bit in range(kernels.bit_length())]
        lines.append(f"%v{number + 1} = {_group(ops, [f'%v{number}', f'%x{number}'], _SMALL)}")
    names = ["%v0", *(f"%x{number}" for number in range(inputs))]
    arguments = ", ".join([f"%big: {big}", *(f"{name}: {small}" for name in names)])
    return _function(arguments, lines, [("%moved", big), (f"%v{kernels}", small)])


def _group(ops: Sequence[str], operands: Sequence[str], elements: int) -> str:
    """Return a group of unary ops, each on the result of the one before; two operands are added
    first."""
    type = f"tensor<{elements}xf32>"
    lines = [f"    %sum = braid.add %a0, %a1 : ({type}, {type}) -> {type}"]
    value = "%sum" if len(operands) == 2 else "%a0"
    lines = lines[: len(operands) - 1]
    for number, op in enumerate(ops):
        lines.append(f"    %b{number} = braid.{op} {value} : ({type}) -> {type}")
        value = f"%b{number}"
    arguments = ", ".join(f"%a{number}: {type}" for number in range(len(operands)))
    types, body = ", ".join([type] * len(operands)), "\n".join(lines)
    return (
        f'"braid.fused"({", ".join(operands)}) ({{\n  ^bb0({arguments}):\n{body}\n'
        f'    "braid.yield"({value}) : ({type}) -> ()\n  }}) : ({types}) -> {type}'
    )


def _function(arguments: str, lines: Sequence[str], results: Sequence[tuple[str, str]]) -> str:
    values = ", ".join(value for value, _ in results)
    types = ", ".join(type for _, type in results)
    body = "\n  ".join(lines)
    return (
        f"func.func @main({arguments}) -> ({types}) {{\n  {body}\n"
        f"  func.return {values} : {types}\n}}\n"
    )


def _prepared(text: str, threads: int) -> Run:
    """Return the program compiled, with inputs and outputs of its own."""
    options = CompileOptions(passes=_PIPELINE, threads=threads)
    model = compile_source(text.encode(), options)
    inputs = [np.full(spec.shape, 0.5, np.float32) for spec in model.inputs]
    outputs = model.run(inputs)

    def run() -> None:
        model.run(inputs, outputs)

    return run
