"""Random programs of tensor ops with nested control flow, as text."""

from dataclasses import dataclass, field

import numpy as np
from hypothesis import strategies as st

TYPE = "tensor<1x4x6x6xf32>"
CHANNELS = "tensor<1x4x1x1xf32>"
WEIGHTS = "tensor<4x4x3x3xf32>"

_UNARY = ("exp", "tanh", "neg", "abs")
_BINARY = ("add", "sub", "mul", "maximum")


@dataclass
class Program:
    """A module with `@main` on one feature map, and the values of its parameters."""

    lines: list[str] = field(default_factory=list[str])
    parameters: dict[str, np.ndarray] = field(default_factory=dict[str, np.ndarray])
    count: int = 0
    views: bool = False

    def text(self, result: str) -> str:
        body = "\n".join(
            ["%t = arith.constant true", *self.lines, f"func.return {result} : {TYPE}"]
        )
        return f"func.func @main(%x: {TYPE}) -> {TYPE} {{\n{body}\n}}"

    def new(self, op: str) -> str:
        name = f"%v{self.count}"
        self.count += 1
        self.lines.append(f"{name} = {op}")
        return name

    def parameter(self, type: str) -> str:
        key = f"p{len(self.parameters)}"
        shape = [int(extent) for extent in type[7:-1].split("x")[:-1]]
        rng = np.random.default_rng(len(self.parameters))
        self.parameters[key] = rng.uniform(0.2, 0.8, shape).astype(np.float32)
        return self.new(f'braid.parameter {{key = "{key}"}} : {type}')


@st.composite
def programs(draw: st.DrawFn, views: bool = False) -> tuple[str, dict[str, np.ndarray]]:
    program = Program(views=views)
    result = _block(draw, program, ["%x"], depth=0)
    return program.text(result), program.parameters


def _block(draw: st.DrawFn, program: Program, values: list[str], depth: int) -> str:
    values = list(values)
    kinds = ["unary", "binary", "affine", "conv", "pool", "transpose", "concat", "reduce"]
    if program.views:
        kinds += ["shuffle", "view"]
    if depth < 2:
        kinds += ["if", "for", "switch"]
    for _ in range(draw(st.integers(1, 5))):
        kind = draw(st.sampled_from(kinds))
        x, y = (draw(st.sampled_from(values[-3:])) for _ in range(2))
        values.append(_op(draw, program, kind, x, y, values, depth))
    return values[-1]


def _op(
    draw: st.DrawFn, program: Program, kind: str, x: str, y: str, values: list[str], depth: int
) -> str:
    match kind:
        case "unary":
            name = draw(st.sampled_from(_UNARY))
            bounded = program.new(f"braid.tanh {x} : ({TYPE}) -> {TYPE}")
            return program.new(f"braid.{name} {bounded} : ({TYPE}) -> {TYPE}")
        case "binary":
            name = draw(st.sampled_from(_BINARY))
            return program.new(f"braid.{name} {x}, {y} : ({TYPE}, {TYPE}) -> {TYPE}")
        case "affine":
            name = draw(st.sampled_from(("add", "sub", "mul", "div")))
            p = program.parameter(CHANNELS)
            return program.new(f"braid.{name} {x}, {p} : ({TYPE}, {CHANNELS}) -> {TYPE}")
        case "conv":
            w = program.parameter(WEIGHTS)
            return program.new(
                f"braid.conv {x}, {w} {{{_window()}, groups = 1 : i64}} : "
                f"({TYPE}, {WEIGHTS}) -> {TYPE}"
            )
        case "pool":
            attributes = f'kind = "max", window = array<i64: 3, 3>, {_window()}'
            return program.new(f"braid.pool {x} {{{attributes}}} : ({TYPE}) -> {TYPE}")
        case "transpose":
            attributes = "permutation = array<i64: 0, 1, 3, 2>"
            return program.new(f"braid.transpose {x} {{{attributes}}} : ({TYPE}) -> {TYPE}")
        case "concat":
            wide = "tensor<1x8x6x6xf32>"
            both = program.new(
                f"braid.concat {x}, {y} {{dim = 1 : i64}} : ({TYPE}, {TYPE}) -> {wide}"
            )
            part = "offsets = array<i64: 0, 2, 0, 0>, sizes = array<i64: 1, 4, 6, 6>"
            steps = "strides = array<i64: 1, 1, 1, 1>"
            return program.new(f"braid.slice {both} {{{part}, {steps}}} : ({wide}) -> {TYPE}")
        case "reduce":
            dims = 'kind = "maximum", dims = array<i64: 2, 3>'
            small = program.new(f"braid.reduce {x} {{{dims}}} : ({TYPE}) -> {CHANNELS}")
            return program.new(f"braid.sub {x}, {small} : ({TYPE}, {CHANNELS}) -> {TYPE}")
        case "shuffle":
            apart, swapped = "tensor<1x2x2x6x6xf32>", "permutation = array<i64: 0, 2, 1, 3, 4>"
            split = program.new(f"braid.reshape {x} : ({TYPE}) -> {apart}")
            turned = program.new(f"braid.transpose {split} {{{swapped}}} : ({apart}) -> {apart}")
            return program.new(f"braid.reshape {turned} : ({apart}) -> {TYPE}")
        case "view":
            flat = "tensor<1x4x36xf32>"
            seen = program.new(f"braid.reshape {values[0]} : ({TYPE}) -> {flat}")
            computed = program.new(f"braid.tanh {seen} : ({flat}) -> {flat}")
            back = program.new(f"braid.reshape {computed} : ({flat}) -> {TYPE}")
            return program.new(f"braid.maximum {back}, {x} : ({TYPE}, {TYPE}) -> {TYPE}")
        case _:
            return _control_flow(draw, program, kind, x, values, depth)


def _control_flow(
    draw: st.DrawFn, program: Program, kind: str, x: str, values: list[str], depth: int
) -> str:
    name = f"%v{program.count}"
    program.count += 1
    if kind == "if":
        program.lines.append(f"{name} = scf.if %t -> ({TYPE}) {{")
        for separator in (
            "} else {",
            f"}} {{braid.branch_probability = {draw(st.integers(0, 10)) / 10} : f64}}",
        ):
            end = _block(draw, program, values, depth + 1)
            program.lines += [f"scf.yield {end} : {TYPE}", separator]
        return name
    if kind == "switch":
        chosen = program.new(f"arith.constant {draw(st.integers(0, 2))} : index")
        program.lines.append(f"{name} = scf.index_switch {chosen} -> {TYPE}")
        for case in ("case 2", "case 0", "default"):
            program.lines.append(f"{case} {{")
            end = _block(draw, program, values, depth + 1)
            program.lines += [f"scf.yield {end} : {TYPE}", "}"]
        return name
    step = program.count
    program.count += 1
    for constant, value in (("lo", 0), ("hi", 2), ("st", 1)):
        program.lines.append(f"%{constant}{step} = arith.constant {value} : index")
    program.lines.append(
        f"{name} = scf.for %i{step} = %lo{step} to %hi{step} step %st{step} "
        f"iter_args(%c{step} = {x}) -> ({TYPE}) {{"
    )
    end = _block(draw, program, [*values, f"%c{step}"], depth + 1)
    trips = draw(st.integers(0, 5))
    program.lines += [f"scf.yield {end} : {TYPE}", f"}} {{braid.trip_count = {trips}.0 : f64}}"]
    return name


def _window() -> str:
    return (
        "strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, "
        "pad_low = array<i64: 1, 1>, pad_high = array<i64: 1, 1>"
    )
