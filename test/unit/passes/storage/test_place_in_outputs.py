"""What lives in an output before that is written fits there, and none overlaps another."""

from itertools import combinations
from random import Random

from braid.dialects.braid.buffer import BufferAttr
from braid.passes.storage.placement import place_in_outputs
from braid.passes.storage.storage import Storage


def random_storages(seed: int) -> tuple[list[Storage], Storage]:
    random = Random(seed)
    ops = random.randint(4, 40)
    output = Storage(random.choice((256, 1024)), ops, ops, 4, place=BufferAttr.output(0))
    made = [output]
    for _ in range(random.randint(2, 30)):
        lower = random.randint(0, ops - 1)
        upper = random.randint(lower, ops)
        made.append(Storage(64 * random.randint(1, 12), lower, upper, 4))
    return made, output


def meet(a: Storage, b: Storage) -> bool:
    return a.lower <= b.upper and b.lower <= a.upper


def check(seed: int) -> int:
    storages, output = random_storages(seed)
    place_in_outputs(storages)
    inside = [s for s in storages if s is not output and s.place is not None]
    spans = {}
    for storage in inside:
        assert storage.place is not None
        begin = storage.place.offset.data
        assert storage.place.output_number == 0
        assert begin >= 0 and begin + storage.size <= output.size
        assert storage.upper < output.lower
        spans[storage] = (begin, begin + storage.size)
    for a, b in combinations(inside, 2):
        if meet(a, b):
            assert spans[a][1] <= spans[b][0] or spans[b][1] <= spans[a][0]
    return len(inside)


def test_what_is_in_an_output_fits() -> None:
    assert sum(check(seed) for seed in range(300)) > 300


def test_a_long_chain_takes_turns() -> None:
    """Of buffers as large as the output, every other one is there."""
    output = Storage(256, 1001, 1001, 4, place=BufferAttr.output(0))
    chain = [Storage(256, op, op + 1, 4) for op in range(1000)]
    place_in_outputs([output, *chain])
    inside = [storage for storage in chain if storage.place is not None]
    assert len(inside) == 500
    assert not any(meet(a, b) for a, b in combinations(inside, 2))
