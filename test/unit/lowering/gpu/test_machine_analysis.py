"""What machine code says: parsing, loops against brute force, occupancy, main loops."""

import random

import pytest

from benchmarks.gpu_static import CASES, braid_row
from braid.lowering.gpu.machine_analysis.instructions import parse_instructions, wide_share
from braid.lowering.gpu.machine_analysis.loops import heaviest_path, natural_loops
from braid.lowering.gpu.machine_analysis.main_loop import code_facts, find_main_loop
from braid.lowering.gpu.machine_analysis.occupancy import blocks_at_once, occupancy

TEXT = """
.text.product:
        /*0000*/                   MOV R1, c[0x0][0x28] ;
        /*0010*/                   LDG.E.128 R4, [R2.64] ;
        /*0020*/                   LDG.E.U16 R8, [R2.64+0x10] ;
.L_x_0:
        /*0030*/                   LDGSTS.E.BYPASS.128 [R5], [R6.64] ;
        /*0040*/                   LDSM.16.MT88.4 R20, [R9] ;
        /*0050*/              @P0  BRA `(.L_x_1) ;
        /*0060*/                   IADD3 R4, R4, 0x1, RZ ;
.L_x_1:
        /*0070*/                   HMMA.16816.F32.BF16 R12, R4, R8, R12 ;
        /*0080*/                   HMMA.16816.F32.BF16 R16, R4, R10, R16 ;
        /*0090*/              @!P1 BRA `(.L_x_0) ;
        /*00a0*/                   STL [R1], R3 ;
        /*00b0*/                   STG.E.128 [R2.64], R12 ;
        /*00c0*/                   EXIT ;
.L_x_2:
        /*00d0*/                   BRA `(.L_x_2);
"""


def test_a_loop_by_hand() -> None:
    (code,) = parse_instructions(TEXT).values()
    loop = find_main_loop(code)
    assert loop is not None
    # The way around the addition: as much work by fewer instructions.
    assert (loop.address, loop.instructions, loop.tensor) == (0x30, 6, 2)
    assert loop.flops == 2 * 2 * 16 * 8 * 16
    assert loop.shared_bytes == 32 * 16 + 4 * 128
    assert loop.tensor_name == "HMMA.16816.F32.BF16"
    assert wide_share(code) == 3 / 4
    assert code_facts(code).spills == 1


def random_graph(seed: int) -> list[list[int]]:
    rng = random.Random(seed)
    count = rng.randint(1, 9)
    return [
        sorted(
            {rng.randrange(count) for _ in range(rng.randint(0, 2))}
            | ({n + 1} if n + 1 < count else set())
        )
        for n in range(count)
    ]


def reachable(successors: list[list[int]], start: int, without: int | None) -> set[int]:
    found, waiting = set[int](), [start]
    while waiting:
        node = waiting.pop()
        if node != without and node not in found:
            found.add(node)
            waiting += successors[node]
    return found


@pytest.mark.parametrize("seed", range(200))
def test_loops_are_those_of_the_definition(seed: int) -> None:
    """A node dominates what cannot be reached without it."""
    graph = random_graph(seed)
    expected: dict[int, set[int]] = {}
    everywhere = reachable(graph, 0, None)
    for node in everywhere:
        for header in graph[node]:
            if node == header or node not in reachable(graph, 0, header):
                backwards = [[p for p in everywhere if n in graph[p]] for n in range(len(graph))]
                body = reachable(backwards, node, header) | {header}
                expected.setdefault(header, set()).update(body)
    assert natural_loops(graph) == expected


@pytest.mark.parametrize("seed", range(100))
def test_the_heaviest_path_is(seed: int) -> None:
    """Of a loop without others inside, by trying all of them."""
    rng = random.Random(seed)
    count = rng.randint(2, 7)
    graph = [sorted({rng.randint(n + 1, count - 1) for _ in range(2)}) for n in range(count - 1)]
    graph.append([0])
    weights = [(rng.randint(0, 3), -rng.randint(1, 5)) for _ in range(count)]

    def paths(node: int) -> list[list[int]]:
        if node == count - 1:
            return [[node]]
        return [[node, *rest] for other in graph[node] for rest in paths(other)]

    def total(path: list[int]) -> tuple[int, int]:
        return sum(weights[n][0] for n in path), sum(weights[n][1] for n in path)

    found = heaviest_path(graph, set(range(count)), 0, weights)
    assert total(found) == max(map(total, paths(0)))


@pytest.mark.parametrize(
    ("architecture", "threads", "registers", "shared", "blocks"),
    [
        # By NVIDIA's occupancy calculator.
        ("sm_80", 256, 32, 0, 8),
        ("sm_80", 256, 128, 0, 2),
        ("sm_80", 256, 226, 147456, 1),
        ("sm_80", 128, 228, 69632, 2),
        ("sm_89", 256, 32, 0, 6),
        ("sm_90a", 384, 168, 200000, 1),
        ("sm_86", 32, 16, 0, 16),
    ],
)
def test_occupancy(
    architecture: str, threads: int, registers: int, shared: int, blocks: int
) -> None:
    assert blocks_at_once(architecture, threads, registers, shared) == blocks
    assert 0 < occupancy(architecture, threads, registers, shared) <= 1


@pytest.mark.parametrize(
    ("name", "tensor", "by_cutlass", "instruction"),
    [
        # As `benchmarks.gpu_static` has counted what nvcc makes of CUTLASS 2.x and 3.x.
        ("bf16 128×128×32", 64, 162 / 1.2, "HMMA.16816.F32.BF16"),
        ("bf16 128×256×64, wgmma", 4, 44, "HGMMA.64x256x16.F32.BF16"),
    ],
)
def test_main_loops_of_products(
    name: str, tensor: int, by_cutlass: float, instruction: str
) -> None:
    """CUTLASS's loops have as many products of as many more instructions."""
    (case,) = (case for case in CASES if case.name == name)
    row = braid_row(case)
    assert row.loop["tensor"] == tensor
    assert row.loop["instructions"] <= by_cutlass
    assert row.spilled_bytes == 0
    assert row.loop["instruction"] == instruction
