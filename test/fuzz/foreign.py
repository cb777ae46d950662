"""Mutated modules of upstream's dialects: `python test/fuzz/foreign.py SEED COUNT`.

Each of `COUNT` seeds is a module of `linalg`, `tensor`, `arith`, `stablehlo` or `tosa` with some of
its types, numbers, maps, kinds of loops, locations, constants or resources changed. It is refused
with a diagnostic, or computes what the interpreter computes before the conversion to braid's ops.
What is wrong is printed with its seed; a process that ends by a signal has printed the seed it was
at.
"""

import faulthandler
import random
import re
import resource
import signal
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.dialects.func import FuncOp

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))
# Python has a package of this name, which would win over a folder.
sys.modules["test"] = ModuleType("test")
sys.modules["test"].__path__ = [str(ROOT / "test")]

import braid  # noqa: E402
from braid.analysis.interpreter.interpret import interpret  # noqa: E402
from braid.dialects.braid.dtypes import to_numpy  # noqa: E402
from braid.driver.sources.reading import read_mlir  # noqa: E402
from braid.support.errors import BraidError  # noqa: E402
from braid.universe import make_context  # noqa: E402
from test.run.test_upstream_nests import CASES as NESTS  # noqa: E402
from test.unit.passes.linalg.cases import ARITH, CASES  # noqa: E402
from test.unit.passes.stablehlo.case import module_of as stablehlo_module  # noqa: E402
from test.unit.passes.stablehlo.cases import CASES as STABLEHLO  # noqa: E402
from test.unit.passes.tosa import elementwise, movement, windows  # noqa: E402
from test.unit.passes.tosa.case import module_of as tosa_module  # noqa: E402

Array = NDArray[Any]
SECONDS = 120
MEMORY = 12 * 2**30
"""Bytes of addresses that all cases may take; a case that allocates what it describes fails."""
LARGEST = 100_000
"""Elements of inputs."""

MODULES: list[str] = [
    *(text for text, _ in CASES.values()),
    *list(ARITH.values())[::3],
    *(case[0] for case in NESTS.values()),
    *(stablehlo_module(lines) for lines in STABLEHLO.values()),
    *map(tosa_module, (elementwise.CASES | windows.CASES | movement.CASES).values()),
]
TYPES = (
    *("f16", "bf16", "f32", "f64", "f8E4M3FN", "f8E5M2", "f4E2M1FN", "tf32", "i1", "i2", "i4"),
    *("i8", "ui8", "i16", "i32", "ui32", "i64", "i128", "index", "complex<f32>", "!quant.any"),
)
_TYPE = re.compile(r"\b(?:bf16|f16|f32|f64|i1|i8|i32|i64|index)\b")
_NUMBER = re.compile(r"(?<![\w%#.])\d+(?![\w.])|(?<=[x<])\d+(?=x)")
_MAP = re.compile(r"affine_map<\(([^)]*)\) -> \(([^)]*)\)>")
_OP = re.compile(r"\b(?:linalg|arith|math|tensor|stablehlo|tosa)\.[a-z_0-9]+")
_DENSE = re.compile(r"dense<([-+.\w\[\], ]*)> : (tensor<[^<>]*>)")
EXTREMES = tuple(str(n) for n in (2**24, 2**28, 2**31, 2**40, 2**62, 2**63 - 1, -(2**63), 2**64))
"""Numbers that exceed memory, or are at the limit of what an attribute may hold."""


def _exchange(
    pattern: re.Pattern[str], text: str, pick: random.Random, choices: Sequence[str]
) -> str:
    """Replace one match of `pattern`, or all equal ones, by one of the choices."""
    places = list(pattern.finditer(text))
    if not places:
        return text
    place, new = pick.choice(places), pick.choice(choices)
    if pick.random() < 0.5:
        return re.sub(rf"(?<![\w%]){re.escape(place[0])}(?!\w)", lambda _: new, text)
    return text[: place.start()] + new + text[place.end() :]


def _other_map(text: str, pick: random.Random) -> str:
    places = list(_MAP.finditer(text))
    if not places:
        return text
    place = pick.choice(places)
    dims = [dim.strip() for dim in place[1].split(",")]
    results = [result.strip() for result in place[2].split(",")]
    index = pick.randrange(len(results))
    a, b = pick.choice(dims), pick.choice(dims)
    results[index] = pick.choice(
        [a, "0", "1", f"{a} + {b}", f"{a} * 2", f"{a} floordiv 2", f"{a} mod 3", f"{a} - {b}"]
    )
    if pick.random() < 0.3:
        pick.shuffle(results)
    new = f"affine_map<({place[1]}) -> ({', '.join(results)})>"
    return text[: place.start()] + new + text[place.end() :]


def _resource(text: str, pick: random.Random) -> str:
    """`text` with a resource in the place of a constant, most of them not as they should be."""
    places = list(_DENSE.finditer(text))
    if not places:
        return text
    place = pick.choice(places)
    alignment = pick.choice([1, 4, 4, 4, 64, 0, 3, 2**30, 2**31, 2**32 - 1])
    data = pick.randbytes(pick.choice([0, 1, 3, 4, 8, 12, 16, 24, 32, 64]))
    blob = alignment.to_bytes(4, "little") + data
    if pick.random() < 0.1:
        blob = blob[: pick.randrange(4)]
    written = blob.hex() if pick.random() < 0.9 else pick.choice(["0", "zz", "4"])
    text = text[: place.start()] + f"dense_resource<r> : {place[2]}" + text[place.end() :]
    return f'{text}\n{{-# dialect_resources: {{builtin: {{r: "0x{written}"}}}} #-}}\n'


def _line(text: str, pick: random.Random) -> str:
    lines = text.split("\n")
    index = pick.randrange(len(lines))
    match pick.randrange(3):
        case 0:
            del lines[index]
        case 1:
            lines.insert(index, lines[index])
        case _:
            lines[index] += ' loc(fused<"m">["a.py":1:2 to 3:4, #loc7])'
            lines.append('#loc7 = loc("b"("c.py":5:6))' if pick.random() < 0.8 else "")
    return "\n".join(lines)


def changed(text: str, pick: random.Random) -> str:
    """Return `text` with one to three mutations, or unchanged."""
    names = sorted({name for module in MODULES for name in _OP.findall(module)})
    for _ in range(pick.choice([0, 1, 1, 1, 2, 3])):
        match pick.randrange(12):
            case 0 | 1:
                text = _exchange(_TYPE, text, pick, TYPES)
            case 2 | 3:
                text = _exchange(_NUMBER, text, pick, [*"0123579", "-1", "4294967297", "?"])
            case 4 | 5:
                text = _other_map(text, pick)
            case 6:
                kinds = ['"parallel"', '"reduction"', '"window"']
                text = _exchange(re.compile(r'"(?:parallel|reduction)"'), text, pick, kinds)
            case 7:
                text = _exchange(_OP, text, pick, names)
            case 8 | 9:
                text = _exchange(_NUMBER, text, pick, EXTREMES)
            case 10:
                text = _resource(text, pick)
            case _:
                text = _line(text, pick)
    return text.replace("\n", "\r\n") if pick.random() < 0.1 else text


def _inputs(module: ModuleOp, seed: int) -> list[Array] | None:
    """Return inputs of the only function, None if its types allow none."""
    functions = [op for op in module.ops if isinstance(op, FuncOp)]
    numbers = np.random.default_rng(seed)
    made: list[Array] = []
    for argument in functions[0].body.block.args if len(functions) == 1 else ():
        if not isinstance(argument.type, TensorType):
            return None
        type = cast(TensorType[Any], argument.type)
        shape = type.get_shape()
        if any(n < 0 for n in shape) or np.prod(shape, dtype=np.float64) > LARGEST:
            return None
        made.append(numbers.integers(-3, 4, shape).astype(to_numpy(type.element_type)))
    return made


def _reference(module: ModuleOp, text: str, inputs: list[Array]) -> list[Array] | None:
    try:
        if "stablehlo" not in text:
            return interpret(module, inputs)
        found = braid.interpret(module)(*inputs)
        return list(found) if isinstance(found, tuple) else [cast(Array, found)]
    except (BraidError, AssertionError, IndexError):
        return None  # not all that is compiled can be interpreted


WRONG = ("internal error", "crashed", "bug of braid", "malformed")
"""Words of diagnostics that say nothing of the model."""


def run(seed: int) -> str:
    """Return the outcome of a seed: `refused`, `equal`, `compiled`, or an error message."""
    pick = random.Random(seed)
    text = changed(pick.choice(MODULES), pick)
    target = pick.choice(["host", "host", "gpu-emulated"])
    try:
        model = braid.compile(text.encode(), target=target, jobs=1, cache=False)
        module = read_mlir(make_context(), text.replace("\r", ""), "x")
        inputs = _inputs(module, seed)
        if inputs is None:
            return "compiled"
        try:
            found = model(*inputs)
        except TimeoutError:
            return _endless(module, text, inputs)
    except BraidError as error:
        if any(word in str(error) for word in WRONG):
            return f"WRONG {target}: {error}\n{text}"
        return "refused"
    results = list(found) if isinstance(found, tuple) else [found]
    try:
        with np.errstate(all="ignore"):
            expected = _reference(module, text, inputs)
    except TimeoutError:  # of the interpreter: what is compiled has ended by then
        return "compiled"
    if expected is None:
        return "compiled"
    for got, want in zip(results, expected, strict=True):
        got, want = (np.asarray(a).astype(np.complex128) for a in (got, want))
        scale = np.nanmax(np.abs(want[np.isfinite(want)]), initial=1.0)
        alike = np.isclose(got, want, rtol=2e-2, atol=1e-2 * scale, equal_nan=True)
        # Divisions by zero and logarithms of negative numbers are NaN or infinite in either.
        if not np.all(alike | ~np.isfinite(want)):
            return f"WRONG {target}: {got.ravel()[:8]}, expected {want.ravel()[:8]}\n{text}"
    return "equal"


def _endless(module: ModuleOp, text: str, inputs: list[Array]) -> str:
    """Return the outcome of a model that did not end: right where the interpreter does not."""
    signal.alarm(SECONDS)
    try:
        _reference(module, text, inputs)
    except TimeoutError:
        return "compiled"
    return f"WRONG: it does not end\n{text}"


def _too_long(*_: object) -> None:
    raise TimeoutError


def main() -> int:
    """Run the seeds and return the exit status, 1 if one fails."""
    faulthandler.enable()
    signal.signal(signal.SIGALRM, _too_long)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    first, count = int(sys.argv[1]), int(sys.argv[2])
    ends: dict[str, int] = {}
    for seed in range(first, first + count):
        print(f"seed {seed}", flush=True)
        signal.alarm(SECONDS)
        try:
            end = run(seed)
        except BaseException:
            end = f"WRONG {traceback.format_exc()[-1500:]}"
        signal.alarm(0)
        if end.startswith("WRONG"):
            print(end, flush=True)
        ends[end.split()[0]] = ends.get(end.split()[0], 0) + 1
    print(f"{ends}, {ends.get('WRONG', 0)} wrong")
    return 1 if "WRONG" in ends else 0


if __name__ == "__main__":
    sys.exit(main())
