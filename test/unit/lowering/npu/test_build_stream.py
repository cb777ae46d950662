"""Streams of subgraphs that compile on their own, against blocks lowered as a whole."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from xdsl.dialects import func
from xdsl.ir import Block

from braid.frontends.mlir import parse_mlir
from braid.lowering.npu.build_stream import BuiltStream, SubgraphOptions, build_stream
from braid.lowering.npu.lower_block import lower_to_instructions
from braid.support.object_cache import ObjectCache
from braid.targets.machines.load import load_target
from braid.targets.machines.target import BackendDescription
from braid.targets.simulator.instructions import (
    Instruction,
    Kind,
    Stream,
    from_text,
    to_text,
)
from braid.targets.simulator.simulate import simulate
from braid.targets.simulator.stream_bytes import from_bytes, to_bytes
from braid.universe import make_context

BRANCH = """
  %a{n}_0 = braid.matmul %x{n}, %w : ({t}, {t}) -> {t}
  %a{n}_1 = braid.exp %a{n}_0 : ({t}) -> {t}
  %a{n}_2 = braid.matmul %a{n}_1, %w : ({t}, {t}) -> {t}
  %a{n}_3 = braid.exp %a{n}_2 : ({t}) -> {t}
  %b{n}_0 = braid.exp %x{n} : ({t}) -> {t}
  %b{n}_1 = braid.exp %b{n}_0 : ({t}) -> {t}
  %b{n}_2 = braid.exp %b{n}_1 : ({t}) -> {t}
  %x{m} = braid.add %a{n}_3, %b{n}_2 : ({t}, {t}) -> {t}
"""
PARALLEL = (
    "func.func @main(%x: {t}) -> {t} {{"
    '%w = braid.parameter {{key = "w"}} : {t}'
    "%x0 = braid.abs %x : ({t}) -> {t}"
    + "".join(BRANCH.replace("{n}", str(n)).replace("{m}", str(n + 1)) for n in range(3))
    + "func.return %x3 : {t} }}"
).format(t="tensor<128x128xf32>")
TENSOR = "tensor<{}xf32>"
KINDS = ("exp", "tanh", "sqrt", "neg", "abs")


def block_of(text: str) -> Block:
    function = parse_mlir(make_context(), text, "f.mlir").module.body.block.first_op
    assert isinstance(function, func.FuncOp)
    return function.body.block


def npu() -> BackendDescription:
    return load_target("npu-small").default_backend


def work(stream: Stream) -> list[Instruction]:
    return [i for i in stream.instructions if i.kind is not Kind.SYNC]


def diamonds(sizes: list[tuple[int, int]], elements: int = 1000) -> str:
    """Return a chain of forks and joins: each has two branches of so many ops, and a weight."""
    tensor = TENSOR.format(elements)
    lines = [f"func.func @main(%x0: {tensor}) -> {tensor} {{"]

    def op(result: str, kind: str, *operands: str) -> None:
        types = ", ".join([tensor] * len(operands))
        lines.append(f"%{result} = braid.{kind} {', '.join(operands)} : ({types}) -> {tensor}")

    for number, branches in enumerate(sizes):
        op(f"f{number}", "exp", f"%x{number}")
        ends: list[str] = []
        for side, length in enumerate(branches):
            last = f"%f{number}"
            for place in range(length):
                name = f"b{number}_{side}_{place}"
                op(name, KINDS[(side + place) % len(KINDS)], last)
                last = f"%{name}"
            ends.append(last)
        lines.append(f'%w{number} = braid.parameter {{key = "w{number}"}} : {tensor}')
        op(f"j{number}", "add", *ends)
        op(f"x{number + 1}", "mul", f"%j{number}", f"%w{number}")
    lines.append(f"func.return %x{len(sizes)} : {tensor} }}")
    return "\n".join(lines)


def build(text: str, cache: Path, target: str = "npu-small") -> BuiltStream:
    return build_stream(block_of(text), load_target(target).default_backend, ObjectCache(cache))


@pytest.mark.parametrize("target", ["npu-small", "npu-davinci"])
@pytest.mark.parametrize("elements", [10, 1000, 85_000])
def test_a_linked_stream_is_that_of_the_whole(target: str, elements: int, tmp_path: Path) -> None:
    """Only what one subgraph hands to the next crosses a cut, so that nothing is lost."""
    text = diamonds([(2, 3), (1, 1), (4, 2), (1, 3), (2, 2)], elements)
    built = build(text, tmp_path, target)
    assert built.subgraphs >= 5
    whole = lower_to_instructions(block_of(text), load_target(target).default_backend)
    assert built.stream == whole
    assert from_bytes(to_bytes(built.stream)) == from_text(to_text(built.stream)) == whole


def test_changing_one_subgraph_recompiles_only_that_one(tmp_path: Path) -> None:
    sizes = [(2, 3), (1, 1), (4, 2), (1, 3), (2, 2)]
    first = build(diamonds(sizes), tmp_path)
    assert first.compiled == first.subgraphs >= 5
    again = build(diamonds(sizes), tmp_path)
    assert (again.compiled, again.stream) == (0, first.stream)
    longer = diamonds([(2, 3), (1, 1), (4, 5), (1, 3), (2, 2)])
    changed = build(longer, tmp_path)
    assert (changed.subgraphs, changed.compiled) == (first.subgraphs, 1)
    assert changed.stream == lower_to_instructions(block_of(longer), npu())


def test_equal_subgraphs_are_compiled_once(tmp_path: Path) -> None:
    built = build(diamonds([(2, 3)] * 8), tmp_path)
    assert built.subgraphs >= 8
    assert built.compiled <= 3  # the first, those between, and the last
    assert str(built) == f"{built.subgraphs} subgraphs: {built.compiled} compiled, " + (
        f"{built.subgraphs - built.compiled} reused"
    )


def test_a_broken_object_is_made_again(tmp_path: Path) -> None:
    first = build(diamonds([(2, 3), (1, 1)]), tmp_path)
    files = list(tmp_path.rglob("*.entry"))
    for file in files:
        file.write_bytes(file.read_bytes()[:-1] if file.stat().st_size % 2 else b"cut")
    assert files
    again = build(diamonds([(2, 3), (1, 1)]), tmp_path)
    assert (again.stream, again.compiled) == (first.stream, first.compiled)


def test_processes_do_not_run_the_script_that_compiles(tmp_path: Path) -> None:
    """As `spawn` of multiprocessing would, which ends with an error in scripts as these."""
    (tmp_path / "m.mlir").write_text(PARALLEL)
    script = tmp_path / "script.py"
    script.write_text("""
import braid
import numpy as np

print("once")
weights = {"w": np.zeros((128, 128), np.float32)}
braid.compile("m.mlir", parameters=weights, target="npu-small", order_seconds=0.1, jobs=2)
""")
    ran = subprocess.run(
        [sys.executable, script],
        cwd=tmp_path,
        env={**os.environ, "BRAID_CACHE_DIR": str(tmp_path / "cache")},
        capture_output=True,
        text=True,
    )
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "once\n", "")


def test_orders_are_searched_in_each_subgraph(tmp_path: Path) -> None:
    """The vector unit waits for products while the other branch, behind, has work for it."""
    stands, searched = (
        build_stream(
            block_of(PARALLEL),
            npu(),
            ObjectCache(tmp_path),
            SubgraphOptions(search_seconds=seconds),
            jobs=2,
        )
        for seconds in (0.0, 5.0)
    )
    assert searched.compiled == searched.subgraphs > 1
    before, after = (simulate(built.stream, npu()).seconds for built in (stands, searched))
    assert after < before
    assert sorted(i.kind for i in work(searched.stream)) == sorted(
        i.kind for i in work(stands.stream)
    )
